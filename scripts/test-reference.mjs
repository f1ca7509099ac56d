// npm run test:reference [-- PATH …]: our server beside the real Ironic from PyPI, one file after the other.
// A file that fails runs once more by itself.
import { cliArguments } from './cli-arguments.mjs';
import { installDebianPackages, packageGroups } from './testing/debian-packages.mjs';
import { build, installPackages } from './install.mjs';
import { runSerially } from './testing/jest-results.mjs';

const { positionals } = cliArguments({
  command: 'npm run test:reference',
  usage: '[PATH …]',
  about: 'Our server beside the real Ironic from PyPI: all tests, or those whose path contains one of these.',
  positional: { name: 'PATH', several: true },
});
installPackages();
installDebianPackages(Object.keys(packageGroups()));
build();
await runSerially('reference', ...positionals.flatMap((path) => ['--testPathPatterns', path]));
