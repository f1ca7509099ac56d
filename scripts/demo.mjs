// npm run demo [-- --keep | --qemu]: from a fresh clone to machines deployed.
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';

installPackages();
build();
// Imported, so that signals reach the demonstration. The path is a variable, so that the linter does not read the built program.
const program = join(root, 'dist/demo/demo.js');
await import(program);
