/**
 * The order of test files: the longest first. Jest knows how long they took last time, but not in a fresh clone: there it would go by the
 * size of the files, and a long test of few lines would end long after all others, on one of the processors.
 */
const { existsSync } = require('node:fs');
const path = require('node:path');
// By its path, as a package without types: with them, the linter reads the types of Node for every script.
const { default: Sequencer } = require(require.resolve('@jest/test-sequencer'));

const TESTS = path.join(__dirname, '../..');
/** Seconds on two quiet processors, of those that take long. */
const SECONDS = {
  'flows/resources/policy-table': 80,
  'flows/hardware/redfish-firmware': 28,
  'store/embedded/embedded': 24,
  'flows/processes/holding': 22,
  'flows/provisioning/failures': 21,
  'flows/processes/tokens': 18,
  'flows/inspection/discovery': 18,
  'flows/processes/serve': 18,
  'hostile/lookups': 17,
  'flows/provisioning/whole-server': 17,
  'flows/inspection/discoverd': 17,
  'policy/live': 15,
  'drivers/redfish-mutation': 15,
  'hostile/json': 15,
  'store/backup/backup': 14,
  'hostile/logins': 14,
  'wire/ipmi/client': 14,
  'server/audit-log': 13,
  'ramdisk-agent/write': 12,
  'flows/processes/several-processes': 12,
  'flows/inspection/introspection': 10,
  'drivers/redfish/steps/firmware': 10,
  'boot/tftp': 10,
  'flows/observation/never-stale': 10,
  'api/schema/document': 10,
  'flows/hardware/redfish-settings': 9,
  'api/auth/keystone': 9,
  'hostile/secrets': 8,
  'flows/processes/database-away': 8,
};
const named = new Map(Object.entries(SECONDS).map(([name, seconds]) => [path.join(TESTS, `${name}.test.ts`), seconds]));
/** The other files take two seconds at most: their size gives an estimate. */
const BYTES_PER_SECOND = 20_000;

module.exports = class extends Sequencer {
  constructor(...given) {
    super(...given);
    const missing = [...named.keys()].filter((file) => !existsSync(file));
    const names = missing.map((file) => path.relative(TESTS, file)).join(', ');
    if (names !== '') throw new Error(`tests/support/jest/sequencer.js names files that do not exist: ${names}`);
  }
  time(test) {
    const seconds = named.get(test.path) ?? (test.context.hasteFS.getSize(test.path) ?? 0) / BYTES_PER_SECOND;
    return super.time(test) ?? seconds * 1000;
  }
};
