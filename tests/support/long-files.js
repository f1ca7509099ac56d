/** Test files that need Node and npm only, and take long: `npm run test:long` runs them. `npm test` is for after each change. */
const path = require('node:path');

const TESTS = path.join(__dirname, '..');
module.exports = [
  'flows/hardware/redfish-firmware',
  'flows/provisioning/killed-networks',
  'flows/resources/policy-table',
  'hostile/json',
  'hostile/logins',
  'hostile/lookups',
  'store/backup/backup',
  'store/embedded/embedded',
].map((name) => path.join(TESTS, `${name}.test.ts`));
