// npm run check: types, lint, format, unused exports. Runs all checks, even if one fails.
import { CHECKS, LONG_CHECKS, runChecks } from './checks/checks.mjs';
import { installPackages } from './install.mjs';

installPackages();
process.exit(runChecks([...CHECKS, ...LONG_CHECKS]).failed.length === 0 ? 0 : 1);
