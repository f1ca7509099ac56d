// npm run test:reference: our server beside the real Ironic from PyPI, one file after the other.
// A file that fails runs once more by itself.
import { cliArguments } from './cli-arguments.mjs';
import { installDebianPackages, packageGroups } from './debian-packages.mjs';
import { build, installPackages } from './install.mjs';
import { runSerially } from './jest-results.mjs';

cliArguments({ command: 'npm run test:reference', usage: '', about: 'Our server beside the real Ironic from PyPI.' });
installPackages();
installDebianPackages(Object.keys(packageGroups()));
build();
await runSerially('reference');
