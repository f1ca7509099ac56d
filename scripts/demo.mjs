// npm run demo [-- --keep | --qemu]: from a fresh clone to machines deployed.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';

installPackages();
build();
const { status } = spawnSync(process.execPath, [join(root, 'dist/demo/demo.js'), ...process.argv.slice(2)], { stdio: 'inherit' });
process.exit(status ?? 1);
