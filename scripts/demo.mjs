// npm run demo [-- --keep | --qemu]: from a fresh clone to machines deployed.
import { build, installPackages } from './install.mjs';

installPackages();
build();
// In this process, so that signals reach it.
await import('../dist/demo/demo.js');
