/**
 * Test files that need Node and npm only, and take long: `npm run test:long` runs them. `npm test` is for after each change. It has other
 * files of each of these areas.
 */
const path = require('node:path');

const TESTS = path.join(__dirname, '../..');
module.exports = [
  'api/access/whole-sweep',
  'boot/tftp',
  'drivers/redfish/makers',
  'drivers/redfish/odd-bmcs',
  'flows/hardware/idrac-killed',
  'flows/hardware/personalities',
  'flows/hardware/redfish-firmware',
  'flows/hardware/redfish-settings',
  'flows/inspection/discoverd',
  'flows/inspection/discovery',
  'flows/inspection/recorder-processes',
  'flows/observation/never-stale',
  'flows/processes/console-log',
  'flows/processes/database-away',
  'flows/processes/serve',
  'flows/processes/tokens',
  'flows/provisioning/killed-networks',
  'flows/resources/policy-table',
  'hostile/agents',
  'hostile/connections',
  'hostile/datagrams',
  'hostile/events',
  'hostile/json',
  'hostile/logins',
  'hostile/lookups',
  'hostile/records',
  'hostile/screens',
  'hostile/secrets',
  'hostile/uploads',
  'ramdisk-agent/raid-killed',
  'store/backup/backup',
  'store/embedded/embedded',
].map((name) => path.join(TESTS, `${name}.test.ts`));
