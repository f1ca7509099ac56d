import { checkAccess, listenHosts } from '../../config/access';
import { loadOptions } from '../../config/load';
import type { LoadedOptions } from '../../config/options';
import { tlsOf } from '../../config/tls';

const defaults = loadOptions([], {}).options;
const ALL = ['api', 'conductor', 'boot', 'inspector'];
const check = (changes: Partial<LoadedOptions>, roles = ALL, hasRpc = true): readonly string[] =>
  checkAccess({ ...defaults, ...changes }, roles, hasRpc);

describe('without auth_strategy', () => {
  it('the services listen on loopback, and with it where Ironic does', () => {
    expect(Object.values(listenHosts(defaults))).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1']);
    expect(listenHosts({ ...defaults, 'DEFAULT.auth_strategy': 'noauth' })).toEqual({
      'api.host_ip': '0.0.0.0',
      'DEFAULT.listen_address': '::',
      'json_rpc.host_ip': '::',
    });
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost', '::ffff:127.0.0.1'])('%s is loopback', (host) => {
    expect(check({ 'api.host_ip': host, 'DEFAULT.listen_address': host, 'json_rpc.host_ip': host })).toEqual([]);
  });

  it.each<[string, Partial<LoadedOptions>, string[], RegExp]>([
    ['API', { 'api.host_ip': '0.0.0.0' }, ALL, /the API would listen on 0\.0\.0\.0 \(\[api\]host_ip\): set auth_strategy = http_basic/],
    ['API by name', { 'api.host_ip': 'example.net' }, ALL, /the API would listen on example\.net/],
    ['API beside a name like loopback', { 'api.host_ip': '127.0.0.1.example.net' }, ALL, /the API would listen/],
    ['introspection service', { 'DEFAULT.listen_address': '::' }, ALL, /the introspection service would listen on ::/],
    ['JSON-RPC', { 'json_rpc.host_ip': '10.0.0.1' }, ['conductor'], /JSON-RPC would listen on 10\.0\.0\.1/],
  ])('the %s beyond loopback is refused', (_, changes, roles, message) => {
    expect(() => check(changes, roles)).toThrow(message);
    expect(() => check(changes, roles)).toThrow(/auth_strategy = noauth, to let everybody/);
    expect(check({ ...changes, 'DEFAULT.auth_strategy': 'http_basic' }, roles)).toEqual([]);
  });

  it('what does not run is not asked', () => {
    const everywhere = { 'api.host_ip': '0.0.0.0', 'DEFAULT.listen_address': '::', 'json_rpc.host_ip': '::' };
    expect(check(everywhere, ['boot'])).toEqual([]);
    expect(check(everywhere, ['conductor'], false)).toEqual([]);
    expect(check({ 'api.host_ip': '0.0.0.0', 'api.unix_socket': '/run/api.sock' }, ['api'])).toEqual([]);
  });
});

it('noauth beyond loopback is a warning', () => {
  expect(check({ 'DEFAULT.auth_strategy': 'noauth' })).toEqual([
    '[DEFAULT]auth_strategy = noauth: everybody who reaches the API on 0.0.0.0 or the introspection service on :: may do everything',
  ]);
  expect(check({ 'DEFAULT.auth_strategy': 'noauth', 'api.host_ip': '::1' }, ['api', 'conductor'])).toEqual([]);
});

it('options of Keystone without a strategy are refused where callers are asked who they are', () => {
  const given = { 'keystone_authtoken.auth_url': 'http://192.0.2.1:5000' };
  expect(() => check(given, ['api'])).toThrow(/^\[keystone_authtoken\]auth_url is set, but \[DEFAULT\]auth_strategy is not/);
  expect(check(given, ['boot'])).toEqual([]);
  expect(check({ ...given, 'DEFAULT.auth_strategy': 'http_basic' })).toEqual([]);
  expect(check({ ...given, 'DEFAULT.auth_strategy': 'keystone' })).toEqual([]);
});

it.each(['api.cert_file', 'api.key_file', 'ssl.ca_file', 'ssl.cert_file'] as const)(
  '%s without TLS is refused beyond loopback',
  (option) => {
    const given = { [option]: '/a.pem', 'DEFAULT.auth_strategy': 'http_basic' } as const;
    expect(() => check(given)).toThrow(`[${option.replace('.', ']')} is set, but [api]enable_ssl_api is not`);
    expect(() => check(given, ['inspector'])).toThrow(/the introspection service would listen on :: without TLS/);
    expect(check({ ...given, 'api.host_ip': '127.0.0.1', 'DEFAULT.listen_address': '::1' })).toEqual([]);
    expect(check({ ...given, 'api.enable_ssl_api': true })).toEqual([]);
  },
);

describe('TLS', () => {
  const on = { 'api.enable_ssl_api': true, 'json_rpc.use_ssl': true };
  const files = { 'api.cert_file': '/a.crt', 'api.key_file': '/a.key' };
  const tls = (changes: Partial<LoadedOptions>, section: 'api' | 'json_rpc' = 'api') => tlsOf({ ...defaults, ...on, ...changes }, section);

  it('is off by default, and takes the files of its section before those of [ssl]', () => {
    expect(tlsOf(defaults, 'api')).toBeUndefined();
    const shared = { 'ssl.cert_file': '/s.crt', 'ssl.key_file': '/s.key' };
    expect(tls({ ...files, ...shared })?.cert).toEqual({ option: '[api]cert_file', path: '/a.crt' });
    // Half a pair does not count, as in Ironic.
    expect(tls({ 'api.cert_file': '/a.crt', ...shared })?.cert).toEqual({ option: '[ssl]cert_file', path: '/s.crt' });
    expect(tls({ ...files, ...shared }, 'json_rpc')?.key).toEqual({ option: '[ssl]key_file', path: '/s.key' });
  });

  it.each([
    [{}, 'TLSv1.3', 'TLSv1.3'],
    [{ 'api.server_tls_minimum_version': '1.2' }, 'TLSv1.2', 'TLSv1.3'],
    [{ 'api.server_tls_minimum_version': '1.2', 'ssl.version': 'TLSv1_2' }, 'TLSv1.2', 'TLSv1.2'],
    [{ 'ssl.version': 'SSLv23' }, 'TLSv1.3', 'TLSv1.3'],
  ] as const)('%j has its versions', (changes, minVersion, maxVersion) => {
    expect(tls({ ...files, ...changes })).toMatchObject({ minVersion, maxVersion });
  });

  it('takes authorities of clients and ciphers', () => {
    expect(tls({ ...files, 'ssl.ca_file': '/ca', 'ssl.ciphers': 'A' })).toMatchObject({ ca: { path: '/ca' }, ciphers: 'A' });
    expect(tls({ ...files, 'ssl.ciphers': 'A', 'api.server_tls_ciphers': 'B' })).toMatchObject({ ciphers: 'B' });
  });

  it.each<[Partial<LoadedOptions>, RegExp]>([
    [{}, /^\[api\]enable_ssl_api needs \[api\]cert_file and \[api\]key_file\. To make a self-signed certificate: openssl req -x509 /],
    [{ ...files, 'ssl.version': 'TLSv1' }, /this version is not secure/],
    [{ ...files, 'ssl.version': 'TLSv1_2' }, /exclude each other/],
  ])('refuses %j', (changes, message) => {
    expect(() => tls(changes)).toThrow(message);
  });
});

describe('OpenID Connect', () => {
  const oidc = { 'DEFAULT.auth_strategy': 'oidc', 'oidc.issuer': 'https://id.example.com', 'oidc.audience': ['a'] } as const;
  it.each([
    [oidc],
    [{ ...oidc, 'DEFAULT.auth_strategy': 'http_basic' }],
    [{ ...oidc, 'oidc.issuer': 'http://127.0.0.1:8080/x' }],
    [{ ...oidc, 'oidc.algorithms': ['ES512', 'EdDSA'] }],
  ] as const)('%j', (options) => expect(check(options)).toEqual([]));
  it.each([
    [{ 'DEFAULT.auth_strategy': 'oidc' }, '[DEFAULT]auth_strategy = oidc needs [oidc]issuer'],
    [{ ...oidc, 'DEFAULT.auth_strategy': 'noauth' }, 'everybody may do everything with [DEFAULT]auth_strategy = noauth'],
    [{ ...oidc, 'DEFAULT.auth_strategy': null }, 'everybody may do everything without [DEFAULT]auth_strategy'],
    [{ ...oidc, 'oidc.audience': [] }, '[oidc]issuer needs [oidc]audience'],
    [{ ...oidc, 'oidc.issuer': 'http://id.example.com' }, '[oidc]issuer: it must begin with https://'],
    [{ ...oidc, 'oidc.issuer': 'id.example.com' }, '[oidc]issuer: it is not a URL'],
    [{ ...oidc, 'oidc.issuer': 'https://a:b@id.example.com' }, '[oidc]issuer: it has a user name or a password in it'],
    [{ ...oidc, 'oidc.algorithms': ['RS256', 'HS256'] }, '[oidc]algorithms: "HS256" is not an algorithm of asymmetric signatures'],
    [{ ...oidc, 'oidc.algorithms': ['none'] }, '[oidc]algorithms: "none" is not'],
    [{ ...oidc, 'oidc.algorithms': [] }, '[oidc]algorithms: "" is not'],
  ] as const)('%j is refused', (options, message) => expect(() => check(options)).toThrow(message));
});

it.each(['noauth', 'keystone', 'oidc', null] as const)(
  'refuses roles of users with auth_strategy %s, where they limit nobody',
  (strategy) => {
    const changes = { 'DEFAULT.http_basic_roles_file': '/roles', 'oidc.issuer': strategy === 'oidc' ? 'https://id.example' : null };
    const all: Partial<LoadedOptions> = { ...changes, 'oidc.audience': ['a'], 'DEFAULT.auth_strategy': strategy };
    expect(() => check(all)).toThrow(/http_basic_roles_file is set, but \[DEFAULT\]auth_strategy is (?:noauth|keystone|oidc|not set)/);
    expect(check({ ...changes, 'oidc.issuer': null, 'DEFAULT.auth_strategy': 'http_basic' })).toEqual([]);
  },
);
