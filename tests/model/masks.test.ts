import { MASK, maskSecrets, NODE_MASKS, withoutSecrets } from '../../model/masks';

const M = MASK;

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
  [{ text: `blm_${'a'.repeat(47)}` }, { text: `blm_${'a'.repeat(47)}` }],
  [{ text: `_blm_${'a'.repeat(48)}` }, { text: `_blm_${'a'.repeat(48)}` }],
  [{ text: `blm_${'a'.repeat(48)}, blm_${'b'.repeat(48)}` }, { text: `${M}, ${M}` }],
  [{ text: 'PassWord1 = "a b" rest' }, { text: `PassWord1 = ${M} rest` }],
  [{ text: "token='a b' rest" }, { text: `token=${M} rest` }],
  [{ text: 'a token=x, secret=y.' }, { text: `a token=${M} secret=${M}` }],
  [{ text: "{'My_Token2' : u'a b', 'c': 'd'}" }, { text: `{'My_Token2' : u'${M}', 'c': 'd'}` }],
  [{ text: '{"token": "a", "secret":"b", "c": "d"}' }, { text: `{"token": "${M}", "secret":"${M}", "c": "d"}` }],
  [{ text: '--Token1  x --secret y z' }, { text: `--Token1  ${M} --secret ${M} z` }],
  [{ text: '<Secret1>a b</Secret1><token></token><c>d</c>' }, { text: `<Secret1>${M}</Secret1><token>${M}</token><c>d</c>` }],
  [{ text: 'the token is lost' }, { text: 'the token is lost' }],
  [{ list: ['token=5'] }, { list: [`token=${M}`] }],
  [{ list: [[{ secret: 1 }], null] }, { list: [[{ secret: M }], null] }],
  [{ tokens: ['a', 'b'] }, { tokens: M }],
  [
    { plain: 'text', number: 5, none: null },
    { plain: 'text', number: 5, none: null },
  ],
])('maskSecrets masks %j', (given, expected) => expect(maskSecrets(given)).toEqual(expected));

it.each(
  // The keys of oslo.utils, and the key of a BMC.
  [
    'adminpass admin_pass password admin_password auth_token new_pass auth_password secret_uuid secret sys_pswd token configdrive',
    'chappassword encrypted_key private_key fernetkey sslkey passphrase cephclusterfsid octaviaheartbeatkey rabbitcookie',
    'cephmanilaclientkey pacemakerremoteauthkey designaterndckey cephadminkey heatauthencryptionkey cephclientkey keystonecredential',
    'barbicansimplecryptokek cephrgwkey swifthashsuffix migrationsshkey cephmdskey cephmonkey chapsecret ipmi_hex_kg_key',
  ].flatMap((words) => words.split(' ')),
)('maskSecrets masks the key %s, in texts too', (key) => {
  expect(maskSecrets({ [`my_${key.toUpperCase()}_2`]: 'x', text: `${key}=x` })).toEqual({
    [`my_${key.toUpperCase()}_2`]: M,
    text: `${key}=${M}`,
  });
});
it('maskSecrets uses another mask at any depth', () => {
  const given = { token: 'x', text: 'token=x', list: ['token=x', { token: 'x' }], object: { token: 'x' } };
  expect(maskSecrets(given, '***')).toEqual({
    token: '***',
    text: 'token=***',
    list: ['token=***', { token: '***' }],
    object: { token: '***' },
  });
  expect(maskSecrets({ token: 'x' })).toEqual({ token: '******' });
});

it('maskSecrets does not change its argument, and keeps the member __proto__', () => {
  const record = JSON.parse('{"__proto__": {"password": "x"}, "password": "y"}') as Record<string, unknown>;
  expect(JSON.stringify(maskSecrets(record))).toBe(`{"__proto__":{"password":"${M}"},"password":"${M}"}`);
  expect(record['password']).toBe('y');
});

it.each<[string, Parameters<typeof maskSecrets>[0], object]>([
  [
    'driver_info',
    { snmp_auth_key: 'k', snmp_priv_key: 'l', snmp_version: '3', image_url: 'u', redfish_password: 'p' },
    { snmp_auth_key: M, snmp_priv_key: M, snmp_version: '3', image_url: 'u', redfish_password: M },
  ],
  ['driver_info', { snmp_auth_key: '', snmp_priv_key: 'l' }, { snmp_auth_key: '', snmp_priv_key: M }],
  ['driver_info', { snmp_auth_key: null }, { snmp_auth_key: null }],
  [
    'instance_info',
    { configdrive: { meta_data: {} }, image_url: 'u', image_source: 's' },
    { configdrive: M, image_url: M, image_source: 's' },
  ],
  ['instance_info', { image_url: 'u', snmp_auth_key: 'k' }, { image_url: M, snmp_auth_key: 'k' }],
  ['instance_info', { configdrive: {}, root_password: 'p' }, { configdrive: M, root_password: M }],
  ['driver_internal_info', { agent_secret_token: 't', image_url: 'u' }, { agent_secret_token: M, image_url: 'u' }],
])('NODE_MASKS masks secrets in %s: %j', (field, given, expected) => {
  expect(NODE_MASKS[field]!(given)).toEqual(expected);
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
  [
    ['snmp_auth_key', 'snmp_priv_key', 'configdrive', 'image_url'].map((key) => ({
      op: 'add',
      path: `/instance_info/${key}/0`,
      value: 'x',
    })),
    ['snmp_auth_key', 'snmp_priv_key', 'configdrive', 'image_url'].map((key) => ({ op: 'add', path: `/instance_info/${key}/0`, value: M })),
  ],
  [
    { path: '/extra/token', value: 5, other: 'x' },
    { path: '/extra/token', value: M, other: 'x' },
  ],
  [
    { path: '/extra/token', value: { a: 'x', secret: 'y' } },
    { path: '/extra/token', value: { a: 'x', secret: M } },
  ],
  [
    { path: ['token'], value: 'x' },
    { path: ['token'], value: 'x' },
  ],
  [{ list: [null, 5, true, 'token=x', [{ token: 'x' }]] }, { list: [null, 5, true, `token=${M}`, [{ token: M }]] }],
  [{ token: null }, { token: null }],
  [null, null],
])('withoutSecrets of %j', (given, expected) => expect(withoutSecrets(given)).toEqual(expected));

it.each<[string, unknown]>([
  ['a list', Array.from({ length: 100_000 }, (_, at) => at)],
  ['lists in a list', Array.from({ length: 100_000 }, () => [1])],
  ['an object', Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`n${at}`, at]))],
])('withoutSecrets truncates %s with a hundred thousand members', (_, value) => {
  const text = JSON.stringify(withoutSecrets(value));
  expect(text.length).toBeLessThan(400_000);
  expect(text).toContain('…');
});

const lengths = (value: unknown): readonly number[] => (value as readonly (string | readonly unknown[])[]).map((item) => item.length);
it('withoutSecrets cuts a text after 4096 characters, and masks what remains', () => {
  expect(withoutSecrets('x'.repeat(4096))).toBe('x'.repeat(4096));
  expect(withoutSecrets('x'.repeat(4097))).toBe(`${'x'.repeat(4096)}…`);
  expect(withoutSecrets(`token=a ${'x'.repeat(5000)}`)).toBe(`token=${M} ${'x'.repeat(4088)}…`);
});
it('withoutSecrets cuts all texts together after 65536 characters, of which each takes 4 more', () => {
  const [full, last] = [4096, 65_536 - 20 * 4 - 15 * 4096];
  const cut = withoutSecrets(Array.from({ length: 20 }, () => 'x'.repeat(4096)));
  expect(lengths(cut)).toEqual([...Array.from({ length: 15 }, () => full), last + 1, 1, 1, 1, 1]);
  expect((cut as readonly string[]).slice(15).every((text) => text.endsWith('…'))).toBe(true);
  const short = Array.from({ length: 100 }, () => 'x'.repeat(600));
  expect(withoutSecrets(short)).toEqual(short);
});
it('withoutSecrets cuts lists and objects after 16384 members', () => {
  const numbers = Array.from({ length: 16_385 }, (_, at) => at);
  const object = (many: readonly number[]): object => Object.fromEntries(many.map((at) => [`n${at}`, at]));
  // A comparison of texts takes less time than one of each member.
  const text = (value: unknown): string => JSON.stringify(withoutSecrets(value));
  expect(text(numbers.slice(1)) === JSON.stringify(numbers.slice(1))).toBe(true);
  expect(text(numbers) === JSON.stringify([...numbers.slice(0, -1), '…'])).toBe(true);
  expect(text(object(numbers.slice(1))) === JSON.stringify(object(numbers.slice(1)))).toBe(true);
  expect(text(object(numbers)) === JSON.stringify({ ...object(numbers.slice(0, -1)), '…': '…' })).toBe(true);
  // 8 of 65536 characters are for the outer list, and 40000 for the first inner one.
  expect(lengths(withoutSecrets([numbers.slice(0, 10_000), numbers.slice(0, 10_000)]))).toEqual([10_000, 6382 + 1]);
});
