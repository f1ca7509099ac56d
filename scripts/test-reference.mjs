// npm run test:reference: our server beside the real Ironic from PyPI, one file after the other.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { installDebianPackages, packageGroups } from './debian-packages.mjs';
import { build, installPackages, root } from './install.mjs';
import { jestCommand, jestResults } from './jest-results.mjs';

cliArguments({ command: 'npm run test:reference', usage: '', about: 'Our server beside the real Ironic from PyPI.' });
installPackages();
installDebianPackages(Object.keys(packageGroups()));
build();
mkdirSync(join(root, '.cache/test'), { recursive: true });
const file = join(root, '.cache/test/reference.json');
rmSync(file, { force: true });
const command = jestCommand(file, ['reference'], '--runInBand', `--reporters=${join(root, 'scripts/test-progress.mjs')}`);
const { status } = spawnSync(command[0], command.slice(1), { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
const { passed, failed } = jestResults(file, 'reference', status);
console.log([...failed.map((what) => `FAILED: ${what}`), `${passed} passed, ${failed.length} failed`].join('\n'));
process.exit(failed.length === 0 ? 0 : 1);
