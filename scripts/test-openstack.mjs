// npm run test:openstack [-- PATH …]: our server inside a real OpenStack from PyPI, one file after the other. Debian's Python.
// A file that fails runs once more by itself. The comparison with Ironic (compare) shows times: it runs only when it is named.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { summary } from './flaky.mjs';
import { installDebianPackages } from './debian-packages.mjs';
import { build, installPackages, root } from './install.mjs';
import { repeatFailedFiles, runJest } from './jest-results.mjs';

const { positionals } = cliArguments({
  command: 'npm run test:openstack',
  usage: '[PATH …]',
  about: 'Our server inside a real OpenStack from PyPI: all tests but compare, or those whose path contains one of these.',
  positional: { name: 'PATH', several: true },
});
installPackages();
installDebianPackages(['python']);
build();
mkdirSync(join(root, '.cache/test'), { recursive: true });
const paths =
  positionals.length === 0 ? ['--testPathIgnorePatterns=openstack/compare'] : positionals.flatMap((path) => ['--testPathPatterns', path]);
const suite = {
  name: 'openstack',
  projects: ['openstack'],
  file: join(root, '.cache/test/openstack.json'),
  options: [`--reporters=${join(root, 'scripts/test-progress.mjs')}`],
  run: (command) => spawnSync(command[0], command.slice(1), { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }).status,
};
const all = await repeatFailedFiles(suite, await runJest(suite, '--runInBand', ...paths));
console.log(summary(all).join('\n'));
process.exit(all.failed.length === 0 ? 0 : 1);
