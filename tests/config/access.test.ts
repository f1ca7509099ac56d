import { checkAccess, listenHosts } from '../../config/access';
import { loadOptions } from '../../config/load';
import type { LoadedOptions } from '../../config/options';
import { tlsOf } from '../../config/tls';

const defaults = loadOptions([], {}).options;
const ALL = ['api', 'conductor', 'boot', 'inspector'];
const check = (changes: Partial<LoadedOptions>, roles = ALL, hasRpc = true): readonly string[] =>
  checkAccess({ ...defaults, ...changes }, roles, hasRpc);

describe('without auth_strategy', () => {
  it('the services listen on loopback; with noauth, on the addresses of Ironic', () => {
    expect(Object.values(listenHosts(defaults))).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.1']);
    expect(listenHosts({ ...defaults, 'DEFAULT.auth_strategy': 'noauth' })).toEqual({
      'api.host_ip': '0.0.0.0',
      'DEFAULT.listen_address': '::',
      'json_rpc.host_ip': '::',
      'vnc.host_ip': '0.0.0.0',
    });
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1', '0:0:0:0:0:0:0:1'])('%s is loopback', (host) => {
    expect(check({ 'api.host_ip': host, 'DEFAULT.listen_address': host, 'json_rpc.host_ip': host })).toEqual([]);
  });

  it.each<[string, Partial<LoadedOptions>, string[], RegExp]>([
    ['API', { 'api.host_ip': '0.0.0.0' }, ALL, /the API would listen on 0\.0\.0\.0 \(\[api\]host_ip\): set auth_strategy = http_basic/],
    ['API at a host name', { 'api.host_ip': 'example.net' }, ALL, /the API would listen on example\.net/],
    ['API at a host name that begins like loopback', { 'api.host_ip': '127.0.0.1.example.net' }, ALL, /the API would listen/],
    ['introspection service', { 'DEFAULT.listen_address': '::' }, ALL, /the introspection service would listen on ::/],
    ['JSON-RPC', { 'json_rpc.host_ip': '10.0.0.1' }, ['conductor'], /JSON-RPC would listen on 10\.0\.0\.1/],
  ])('refuses to offer the %s beyond loopback', (_, changes, roles, message) => {
    expect(() => check(changes, roles)).toThrow(message);
    expect(() => check(changes, roles)).toThrow(/auth_strategy = noauth, to let everybody/);
    expect(check({ ...changes, 'DEFAULT.auth_strategy': 'http_basic' }, roles)).toEqual([]);
  });

  it('ignores the addresses of services that do not run', () => {
    const everywhere = { 'api.host_ip': '0.0.0.0', 'DEFAULT.listen_address': '::', 'json_rpc.host_ip': '::' };
    expect(check(everywhere, ['boot'])).toEqual([]);
    expect(check(everywhere, ['conductor'], false)).toEqual([]);
    expect(check({ 'api.host_ip': '0.0.0.0', 'api.unix_socket': '/run/api.sock' }, ['api'])).toEqual([]);
  });
});

it('warns about noauth beyond loopback', () => {
  expect(check({ 'DEFAULT.auth_strategy': 'noauth' })).toEqual([
    '[DEFAULT]auth_strategy = noauth: everybody who reaches the API on 0.0.0.0 or the introspection service on :: may do everything',
  ]);
  expect(check({ 'DEFAULT.auth_strategy': 'noauth', 'api.host_ip': '::1' }, ['api', 'conductor'])).toEqual([]);
});

it('auth_strategy is keystone, as in Ironic, where an option of [keystone_authtoken] says that Keystone authenticates callers', () => {
  const strategy = (environment: Record<string, string>) => loadOptions([], environment).options['DEFAULT.auth_strategy'];
  expect(strategy({})).toBeNull();
  for (const name of ['AUTH_URL', 'WWW_AUTHENTICATE_URI', 'AUTH_TYPE']) {
    const variable = `OS_KEYSTONE_AUTHTOKEN__${name}`;
    expect(strategy({ [variable]: 'x' })).toBe('keystone');
    expect(strategy({ [variable]: 'x', OS_DEFAULT__AUTH_STRATEGY: 'noauth' })).toBe('noauth');
  }
});

it('[ssl]cert_file without TLS of the API is refused beyond loopback, unless it is for JSON-RPC', () => {
  const given = { 'ssl.cert_file': '/a.pem', 'boot.http_use_ssl': true, 'DEFAULT.auth_strategy': 'http_basic' } as const;
  expect(() => check(given)).toThrow('[ssl]cert_file is set, but [api]enable_ssl_api is not');
  expect(() => check(given, ['inspector'])).toThrow(/the introspection service would listen on :: without TLS/);
  expect(check({ ...given, 'api.host_ip': '127.0.0.1', 'DEFAULT.listen_address': '::1' })).toEqual([]);
  expect(check({ ...given, 'json_rpc.use_ssl': true })).toEqual([]);
  expect(check({ ...given, 'api.enable_ssl_api': true })).toEqual([]);
});

describe('the TLS settings', () => {
  const on = { 'api.enable_ssl_api': true, 'json_rpc.use_ssl': true };
  const files = { 'api.cert_file': '/a.crt', 'api.key_file': '/a.key' };
  const tls = (changes: Partial<LoadedOptions>, section: 'api' | 'json_rpc' = 'api') => tlsOf({ ...defaults, ...on, ...changes }, section);

  it('are off by default, and prefer the files of the section to those of [ssl]', () => {
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
  ] as const)('with %j allow the versions %s to %s', (changes, minVersion, maxVersion) => {
    expect(tls({ ...files, ...changes })).toMatchObject({ minVersion, maxVersion });
  });

  it('contain the authority of clients and the ciphers', () => {
    expect(tls({ ...files, 'ssl.ca_file': '/ca', 'ssl.ciphers': 'A' })).toMatchObject({ ca: { path: '/ca' }, ciphers: 'A' });
    expect(tls({ ...files, 'ssl.ciphers': 'A', 'api.server_tls_ciphers': 'B' })).toMatchObject({ ciphers: 'B' });
  });

  it.each<[Partial<LoadedOptions>, RegExp]>([
    [{}, /^\[api\]enable_ssl_api needs \[api\]cert_file and \[api\]key_file\. To make a self-signed certificate: openssl req -x509 /],
    [{ ...files, 'ssl.version': 'TLSv1' }, /this version is not secure/],
    [{ ...files, 'ssl.version': 'TLSv1_2' }, /exclude each other/],
  ])('refuse %j', (changes, message) => {
    expect(() => tls(changes)).toThrow(message);
  });
});

describe('the OpenID Connect settings', () => {
  const oidc = { 'DEFAULT.auth_strategy': 'oidc', 'oidc.issuer': 'https://id.example.com', 'oidc.audience': ['a'] } as const;
  it.each([
    [oidc],
    [{ ...oidc, 'DEFAULT.auth_strategy': 'http_basic' }],
    [{ ...oidc, 'oidc.issuer': 'http://127.0.0.1:8080/x' }],
    [{ ...oidc, 'oidc.algorithms': ['ES512', 'EdDSA'] }],
  ] as const)('may be %j', (options) => expect(check(options)).toEqual([]));
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
  ] as const)('may not be %j', (options, message) => expect(() => check(options)).toThrow(message));
});
