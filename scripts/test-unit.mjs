// npm run test:unit [-- PATH …]: the unit, flow and hostile tests whose path contains one of these, with jest's output. Other options
// go to jest.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';

installPackages();
build();
// `--selectProjects` takes every argument up to the next option.
const jest = [
  join(root, 'node_modules/jest/bin/jest.js'),
  '--selectProjects',
  'unit',
  'flows',
  'hostile',
  'long',
  '--passWithNoTests=false',
];
const { status } = spawnSync(process.execPath, [...jest, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
