// npm run test:long: the checks, and the unit, flow and hostile tests, that take long. Needs Node and npm only.
import { LONG_CHECKS, runChecks } from './checks/checks.mjs';
import { cliArguments } from './cli-arguments.mjs';
import { build, installPackages } from './install.mjs';
import { runProject } from './testing/jest-results.mjs';

cliArguments({
  command: 'npm run test:long',
  usage: '',
  about: 'The checks, and the unit, flow and hostile tests, that `npm test` leaves out, because they take long.',
});
installPackages();
build();
await runProject('long', { checked: runChecks(LONG_CHECKS) });
