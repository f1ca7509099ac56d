/** The key of a BMC, which is in the path of its events, is in no log. */
import { eventPath, withoutEventKey } from '../../../model/rules/bmc-events';

const KEY = 'TheSecretKey';
const PATH = eventPath('7a5ed1b4-8b6c-4b9a-9e0e-0d1c6d1c9f01', KEY);
it.each([
  PATH,
  `${PATH}?x=1`,
  `${PATH}/more`,
  PATH.replace('redfish_events', 'redfish%5Fevents'),
  PATH.replace('redfish_events', '%72edfish_events'),
  PATH.replace('redfish_events', () => Buffer.from('redfish_events').toString('hex').replace(/../g, '%$&')),
  PATH.replace('/redfish_events/', '%2Fredfish_events%2F'),
  PATH.replace('/redfish_events/', '/redfish_events%2f'),
  PATH.replace('/redfish_events/', '%2fredfish%5fevents/'),
  PATH.replace('redfish_events', 'redfish%255Fevents'),
])('%s', (path) => {
  expect(withoutEventKey(path)).not.toContain(KEY);
  expect(withoutEventKey(path)).toContain('***');
});
it.each(['/v1/nodes', '/v1/nodes/a/power?x=%20', '/v1/nodes/a%20b/power', '/v1/nodes/%', '/%zz', '/', ''])('%s stays as it is', (path) => {
  expect(withoutEventKey(path)).toBe(path);
});
