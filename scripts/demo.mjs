// npm run demo [-- --keep | --qemu]: from a fresh clone to machines deployed.
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';

installPackages();
build();
// In this process, so that signals reach it. By a variable: the linter would read the built program, and its packages, with the scripts.
const program = join(root, 'dist/demo/demo.js');
await import(program);
