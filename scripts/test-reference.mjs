// npm run test:reference: our server beside the real Ironic from PyPI, one file after the other.
// A file that fails runs once more by itself.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { summary } from './flaky.mjs';
import { installDebianPackages, packageGroups } from './debian-packages.mjs';
import { build, installPackages, root } from './install.mjs';
import { repeatFailedFiles, runJest } from './jest-results.mjs';

cliArguments({ command: 'npm run test:reference', usage: '', about: 'Our server beside the real Ironic from PyPI.' });
installPackages();
installDebianPackages(Object.keys(packageGroups()));
build();
mkdirSync(join(root, '.cache/test'), { recursive: true });
const suite = {
  name: 'reference',
  projects: ['reference'],
  file: join(root, '.cache/test/reference.json'),
  options: [`--reporters=${join(root, 'scripts/test-progress.mjs')}`],
  run: (command) => spawnSync(command[0], command.slice(1), { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }).status,
};
const all = await repeatFailedFiles(suite, await runJest(suite, '--runInBand'));
console.log(summary(all).join('\n'));
process.exit(all.failed.length === 0 ? 0 : 1);
