// npm run test:openstack [-- PATH …]: our server inside a real OpenStack from PyPI, one file after the other. Debian's Python.
// The comparison with Ironic (compare) measures times, which say nothing on a busy machine: it runs only when it is named.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cliArguments } from './cli-arguments.mjs';
import { installDebianPackages } from './debian-packages.mjs';
import { build, installPackages, root } from './install.mjs';
import { jestCommand, jestResults } from './jest-results.mjs';

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
const file = join(root, '.cache/test/openstack.json');
rmSync(file, { force: true });
const paths =
  positionals.length === 0 ? ['--testPathIgnorePatterns', 'openstack/compare'] : positionals.flatMap((path) => ['--testPathPatterns', path]);
const command = jestCommand(file, ['openstack'], '--runInBand', `--reporters=${join(root, 'scripts/test-progress.mjs')}`, ...paths);
const { status } = spawnSync(command[0], command.slice(1), { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
const { passed, failed } = jestResults(file, 'openstack', status);
console.log([...failed.map((what) => `FAILED: ${what}`), `${passed} passed, ${failed.length} failed`].join('\n'));
process.exit(failed.length === 0 ? 0 : 1);
