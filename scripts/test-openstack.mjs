// npm run test:openstack [-- PATH …]: our server inside a real OpenStack from PyPI, one file after the other. Needs Debian's Python.
// A file that fails runs once more by itself. Three files run only when they are named: compare, which shows times beside Ironic's, scale,
// which makes 200 servers, and switch, which boots a machine in QEMU.
import { cliArguments } from './cli-arguments.mjs';
import { installDebianPackages } from './testing/debian-packages.mjs';
import { build, installPackages } from './install.mjs';
import { runSerially } from './testing/jest-results.mjs';

const { positionals } = cliArguments({
  command: 'npm run test:openstack',
  usage: '[PATH …]',
  about:
    'Our server inside a real OpenStack from PyPI: all tests but compare, scale and switch, or those whose path contains one of these.',
  positional: { name: 'PATH', several: true },
});
installPackages();
// Nova's services run on MariaDB, and so does a Neutron that several callers use at the same time.
const onMariadb = positionals.length === 0 || positionals.some((path) => /compare|killed|nova|scale|switch/.test(path));
const inQemu = positionals.some((path) => path.includes('switch'));
installDebianPackages([
  'python',
  ...(onMariadb ? ['databases'] : []),
  ...(inQemu ? ['machines', 'libvirt', 'ramdisk', 'image', 'network', 'switches'] : []),
]);
build();
await runSerially(
  'openstack',
  ...(positionals.length === 0
    ? ['--testPathIgnorePatterns=openstack/(?:compare|scale|switch)']
    : positionals.flatMap((path) => ['--testPathPatterns', path])),
);
