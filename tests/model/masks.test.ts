import { maskSecrets, NODE_MASKS, withoutSecrets } from '../../model/masks';

const M = '******';

it.each([
  [
    { password: 'x', user: 'u' },
    { password: M, user: 'u' },
  ],
  [{ IPMI_Password: 'x' }, { IPMI_Password: M }],
  [{ agent_secret_token: 'x' }, { agent_secret_token: M }],
  [{ a: { b: { auth_token: 'x' } } }, { a: { b: { auth_token: M } } }],
  [{ list: [{ secret: 1 }, 5] }, { list: [{ secret: M }, 5] }],
  // An object under a secret key is looked into.
  [{ secret: { plain: 1, password: 'x' } }, { secret: { plain: 1, password: M } }],
  [{ password: null }, { password: M }],
  [{ text: 'password=hunter2 rest' }, { text: `password=${M} rest` }],
  [{ text: '{"admin_pass": "x"}' }, { text: `{"admin_pass": "${M}"}` }],
  [{ text: '--password x -v' }, { text: `--password ${M} -v` }],
  [{ text: '<token>x</token>' }, { text: `<token>${M}</token>` }],
  [{ text: `curl -H "X-Auth: blm_${'a_-Z'.repeat(12)}" blm_short` }, { text: `curl -H "X-Auth: ${M}" blm_short` }],
  [{ list: ['token=5'] }, { list: [`token=${M}`] }],
  [
    { plain: 'text', number: 5, none: null },
    { plain: 'text', number: 5, none: null },
  ],
])('maskSecrets masks %j', (given, expected) => expect(maskSecrets(given)).toEqual(expected));

it('maskSecrets does not change its argument, and keeps the member __proto__', () => {
  const record = JSON.parse('{"__proto__": {"password": "x"}, "password": "y"}') as Record<string, unknown>;
  expect(JSON.stringify(maskSecrets(record))).toBe(`{"__proto__":{"password":"${M}"},"password":"${M}"}`);
  expect(record['password']).toBe('y');
});

it('NODE_MASKS masks more members in some fields of a node', () => {
  expect(NODE_MASKS['driver_info']!({ snmp_auth_key: 'k', snmp_version: '3' })).toEqual({ snmp_auth_key: M, snmp_version: '3' });
  expect(NODE_MASKS['instance_info']!({ configdrive: { meta_data: {} }, image_url: 'u', image_source: 's' })).toEqual({
    configdrive: M,
    image_url: M,
    image_source: 's',
  });
});

it.each<[unknown, unknown]>([
  ['password=hunter2', `password=${M}`],
  [
    [
      { op: 'add', path: '/driver_info/ipmi_password', value: 'x' },
      { op: 'add', path: '/extra/a', value: 'y' },
    ],
    [
      { op: 'add', path: '/driver_info/ipmi_password', value: M },
      { op: 'add', path: '/extra/a', value: 'y' },
    ],
  ],
  [
    { driver_info: { ipmi_password: 5, snmp_auth_key: 'k', ipmi_address: 'h' }, configdrive: { meta_data: { secret: 's' } } },
    { driver_info: { ipmi_password: M, snmp_auth_key: M, ipmi_address: 'h' }, configdrive: { meta_data: { secret: M } } },
  ],
  [
    { password: true, path: '/password' },
    { password: true, path: '/password' },
  ],
  [null, null],
])('withoutSecrets of %j', (given, expected) => expect(withoutSecrets(given)).toEqual(expected));

it.each<[string, unknown]>([
  ['a list', Array.from({ length: 200_000 }, (_, at) => at)],
  ['lists in a list', Array.from({ length: 200_000 }, () => [1])],
  ['an object', Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`n${at}`, at]))],
])('withoutSecrets truncates %s with hundreds of thousands of members', (_, value) => {
  const text = JSON.stringify(withoutSecrets(value));
  expect(text.length).toBeLessThan(400_000);
  expect(text).toContain('…');
});
