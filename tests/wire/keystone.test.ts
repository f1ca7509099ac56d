import { OPTIONS } from '../../config/options';
import { AUTH_ROWS, inSection, TLS_ROWS } from '../../config/keystoneauth';
import { catalogOf, endpointOf } from '../../wire/keystone/catalog';
import { keystoneSettings, withoutVersion } from '../../wire/keystone/settings';

const settingsOf = (values: Readonly<Record<string, unknown>>) =>
  keystoneSettings(
    Object.fromEntries(
      Object.entries({ auth_url: 'http://keystone/v3', auth_type: 'password', ...values }).map(([name, value]) => [
        `neutron.${name}`,
        value,
      ]),
    ),
    'neutron',
  );
const USER = { user_id: 'u', password: 'p' };

it.each([
  ['http://keystone:5000', 'http://keystone:5000'],
  ['http://keystone:5000/', 'http://keystone:5000'],
  ['http://keystone:5000/v3', 'http://keystone:5000'],
  ['http://keystone:5000/v2.0/', 'http://keystone:5000'],
  ['https://keystone/identity/v3/', 'https://keystone/identity'],
  ['https://keystone/identity', 'https://keystone/identity'],
  ['https://keystone/v31', 'https://keystone/v31'],
])('withoutVersion(%s) is %s', (url, expected) => {
  expect(withoutVersion(url)).toBe(expected);
});

it.each<[string, object, object]>([
  ['a user by ID', USER, { credentials: { method: 'password', user: { id: 'u' }, password: 'p' } }],
  [
    'a user by name',
    { username: 'n', user_domain_name: 'D', password: 'p' },
    { credentials: { method: 'password', user: { name: 'n', domain: { name: 'D' } }, password: 'p' } },
  ],
  [
    'the default domain for both',
    { username: 'n', password: 'p', project_name: 'q', default_domain_id: 'd' },
    {
      credentials: { method: 'password', user: { name: 'n', domain: { id: 'd' } }, password: 'p' },
      scope: { project: { name: 'q', domain: { id: 'd' } } },
    },
  ],
  ['a project by ID', { ...USER, project_id: 'q', project_name: 'ignored' }, { scope: { project: { id: 'q' } } }],
  ['a domain by name', { ...USER, domain_name: 'D' }, { scope: { domain: { name: 'D' } } }],
  ['the system', { ...USER, system_scope: 'all' }, { scope: { system: true } }],
  ['a trust', { ...USER, trust_id: 't' }, { scope: { trust: 't' } }],
  ['a token', { auth_type: 'token', token: 'x' }, { credentials: { method: 'token', token: 'x' } }],
  [
    'an application credential by ID',
    { auth_type: 'v3applicationcredential', application_credential_id: 'i', application_credential_secret: 's' },
    { credentials: { method: 'application_credential', id: 'i', secret: 's' } },
  ],
  [
    'an application credential by name',
    { auth_type: 'v3applicationcredential', application_credential_name: 'n', application_credential_secret: 's', user_id: 'u' },
    { credentials: { method: 'application_credential', name: 'n', user: { id: 'u' }, secret: 's' } },
  ],
  ['a URL with TLS', { ...USER, auth_url: 'https://keystone' }, { authUrl: 'https://keystone' }],
  [
    'a client certificate',
    { ...USER, certfile: '/cert', keyfile: '/key' },
    { tls: { caFile: null, certFile: '/cert', keyFile: '/key', insecure: false } },
  ],
  [
    'a CA file and insecure',
    { ...USER, cafile: '/ca', insecure: true },
    { tls: { caFile: '/ca', certFile: null, keyFile: null, insecure: true } },
  ],
])('keystoneSettings reads %s', (_, values, expected) => {
  expect(settingsOf(values as Record<string, unknown>)).toMatchObject(expected);
});

it.each<[object, string]>([
  [{ auth_url: null }, '[neutron]auth_url: it is not set'],
  [{ auth_url: 'keystone:5000' }, '[neutron]auth_url: it is neither http:// nor https://'],
  [{ auth_url: 'http://' }, '[neutron]auth_url: it is not a URL'],
  [{ auth_url: 'http://a:b@keystone' }, '[neutron]auth_url: it contains a user name or a password'],
  [{ auth_url: 'http://a@keystone' }, '[neutron]auth_url: it contains a user name or a password'],
  [{ auth_url: 'http://:b@keystone' }, '[neutron]auth_url: it contains a user name or a password'],
  [{ auth_url: 'ftp://keystone' }, '[neutron]auth_url: it is neither http:// nor https://'],
  [{ auth_type: null }, '[neutron]auth_type: it is not set'],
  [{ auth_type: 'v2password' }, '[neutron]auth_type: "v2password" is not supported'],
  [{ auth_type: 'constructor' }, '[neutron]auth_type: "constructor" is not supported'],
  [{ ...USER, system_scope: 'true' }, '[neutron]system_scope: it must be all, or absent'],
  [{ auth_section: 'other' }, '[neutron]auth_section: this program knows no section [other] with such options'],
  [{ password: 'p' }, '[neutron]username: it is not set; or user_id'],
  [{ user_id: 'u' }, '[neutron]password: it is not set'],
  [{ username: 'n', password: 'p' }, '[neutron]username: a name needs user_domain_name or user_domain_id'],
  [{ auth_type: 'v3password', username: 'n', password: 'p', default_domain_id: 'd' }, '[neutron]username: a name needs'],
  [
    {
      auth_type: 'v3applicationcredential',
      application_credential_name: 'n',
      application_credential_secret: 's',
      username: 'n',
      default_domain_id: 'd',
    },
    '[neutron]username: a name needs user_domain_name or user_domain_id',
  ],
  [{ ...USER, project_name: 'q' }, '[neutron]project_name: a name needs project_domain_name or project_domain_id'],
  [{ ...USER, project_id: 'q', system_scope: 'all' }, '[neutron]project_name: only one of'],
  [{ ...USER, domain_id: 'q', trust_id: 't' }, '[neutron]project_name: only one of'],
  [{ auth_type: 'v3token' }, '[neutron]token: it is not set'],
  [{ auth_type: 'v3applicationcredential', application_credential_secret: 's' }, '[neutron]application_credential_id: it is not set'],
  [{ auth_type: 'v3applicationcredential', application_credential_id: 'i' }, '[neutron]application_credential_secret: it is not set'],
  [
    { auth_type: 'v3applicationcredential', application_credential_id: 'i', application_credential_secret: 's', project_id: 'q' },
    '[neutron]project_name: an application credential has a scope of its own',
  ],
])('keystoneSettings rejects %p', (values, message) => {
  expect(() => settingsOf(values as Record<string, unknown>)).toThrow(message);
});

const CATALOG = catalogOf([
  {
    type: 'identity',
    name: 'keystone',
    endpoints: [
      { interface: 'public', region: 'one', url: 'http://public/' },
      { interface: 'internal', region_id: 'one', url: 'http://internal/v3//' },
      { interface: 'internal', region: 'two', url: 'http://two' },
      { interface: 'admin', region: 'one', url: 'file:///etc/passwd' },
      { interface: 'admin', region: 'one', url: 5 },
      'nothing',
    ],
  },
  { type: 'identity', name: 'other', endpoints: [{ interface: 'public', region: null, url: 'http://other' }] },
  { type: 5 },
  null,
]);
it.each([
  [{ interfaces: ['internal'] }, 'http://internal/v3'],
  [{ interfaces: ['internalURL'] }, 'http://internal/v3'],
  [{ interfaces: ['public', 'internal'] }, 'http://public'],
  [{ interfaces: ['internal'], region: 'two' }, 'http://two'],
  [{ interfaces: ['admin', 'public'], region: 'one' }, 'http://public'],
  [{ interfaces: ['public'], region: 'two' }, undefined],
  [{ interfaces: ['admin'] }, undefined],
  [{ interfaces: ['public'], serviceName: 'other' }, 'http://other'],
  [{ interfaces: [], endpointOverride: 'http://given/' }, 'http://given'],
  [{ interfaces: ['public'], serviceType: 'network' }, undefined],
])('endpointOf(catalog, %j) is %s', (selector, expected) => {
  expect(endpointOf(CATALOG, { serviceType: 'identity', ...selector })).toBe(expected);
});

it('the rows of keystoneauth apply to any section, and its secret options are marked', () => {
  const rows = inSection('neutron', AUTH_ROWS);
  expect(rows.find(({ name }) => name === 'username')).toMatchObject({
    section: 'neutron',
    formerly: ['neutron.user_name', 'neutron.user-name'],
  });
  const secrets = [...AUTH_ROWS, ...TLS_ROWS].filter((row) => 'secret' in row).map(({ name }) => name);
  expect(secrets).toEqual(['password', 'token', 'application_credential_secret']);
  const own = OPTIONS.filter((row) => row.section === 'keystone_authtoken');
  expect(own.filter((row) => 'secret' in row).map(({ name }) => name)).toEqual([...secrets, 'memcache_secret_key', 'memcache_password']);
});
