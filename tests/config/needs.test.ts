import { loadOptions } from '../../config/load';
import { checkNeeds, NEEDS } from '../../config/needs';
import { OPTIONS, type LoadedOptions, type OptionRow } from '../../config/options';
import { checkOptions } from '../../server/setting-checks';

const given = (changes: Partial<LoadedOptions>): LoadedOptions => ({ ...loadOptions([], {}).options, ...changes });
const check = (changes: Partial<LoadedOptions>) => () => checkNeeds(given(changes));

const FILE = { 'ssl.cert_file': '/nowhere/a.pem', 'ssl.key_file': '/nowhere/a.key' } as const;

it('the defaults need nothing', () => expect(check({})).not.toThrow());

it('certificates that no listener uses refuse the start, whatever the addresses, and all are named', () => {
  const message =
    '[ssl]cert_file, [ssl]key_file are set, but have no effect without one of [api]enable_ssl_api, [json_rpc]use_ssl, ' +
    '[boot]http_use_ssl, [boot]https_port, [metrics]prometheus_use_ssl, [vnc]enable_ssl: set that, or remove the options';
  expect(check(FILE)).toThrow(message);
  expect(() => checkOptions(given(FILE), ['api'], false, '/state')).toThrow(message);
  expect(check({ 'ssl.ca_file': '/ca', 'metrics.cert_file': '/c' })).toThrow(
    '[ssl]ca_file is set, but has no effect without [api]enable_ssl_api = true: set that, or remove the option\n' +
      '[metrics]cert_file is set, but has no effect without [metrics]prometheus_use_ssl = true: set that, or remove the option',
  );
});

/** Each row's options with a value → changes with which they have their effect. */
it.each<[Partial<LoadedOptions>, Partial<LoadedOptions>]>([
  [FILE, { 'boot.https_port': 0 }],
  [{ ...FILE, 'ssl.version': 'TLSv1_2', 'ssl.ciphers': 'A' }, { 'json_rpc.use_ssl': true }],
  [{ 'ssl.ca_file': '/ca' }, { 'api.enable_ssl_api': true }],
  [{ 'api.cert_file': '/c', 'api.server_tls_ciphers': 'A', 'api.server_tls_minimum_version': '1.2' }, { 'api.enable_ssl_api': true }],
  [{ 'json_rpc.key_file': '/k' }, { 'json_rpc.use_ssl': true }],
  [{ 'boot.cert_file': '/c' }, { 'boot.http_use_ssl': true }],
  [{ 'boot.server_tls_minimum_version': '1.3' }, { 'boot.https_port': 8443 }],
  [{ 'metrics.cert_file': '/c' }, { 'metrics.prometheus_use_ssl': true, 'metrics.prometheus_port': 0 }],
  [{ 'vnc.cert_file': '/c' }, { 'vnc.enable_ssl': true, 'vnc.enabled': true }],
  [{ 'vnc.read_only': true }, { 'vnc.enabled': true }],
  [{ 'metrics.prometheus_use_ssl': true }, { 'metrics.prometheus_unix_socket': '/run/m' }],
  [{ 'boot.http_use_ssl': true, 'boot.http_unix_socket': '/run/b' }, { 'boot.http_unix_socket': null }],
  [{ 'api.unix_socket_mode': 0o600 }, { 'api.unix_socket': '/run/a' }],
  [{ 'api.unix_socket_proxy_protocol': true }, { 'boot.http_unix_socket': '/run/b' }],
  [{ 'DEFAULT.http_basic_auth_user_file': '/users' }, { 'DEFAULT.auth_strategy': 'http_basic' }],
  [{ 'DEFAULT.http_basic_auth_user_file': '/users', 'DEFAULT.auth_strategy': 'noauth' }, { 'DEFAULT.auth_strategy': 'keystone' }],
  [{ 'DEFAULT.http_basic_roles_file': '/roles', 'DEFAULT.auth_strategy': 'keystone' }, { 'DEFAULT.auth_strategy': 'http_basic' }],
  [{ 'api.agent_allowed_networks': ['192.0.2.0/24'], 'api.agent_source_check': 'off' }, { 'api.agent_source_check': 'known' }],
  [{ 'audit.log_file': '/log' }, { 'audit.enabled': true }],
])('%j refuses the start, and with %j it does not', (changes, more) => {
  expect(check(changes)).toThrow(/no effect without/);
  expect(check({ ...changes, ...more })).not.toThrow();
});

it('each file and limit of TLS is in a row', () => {
  const guards = new Set<string>(NEEDS.flatMap((row) => row.guards));
  const rows: readonly OptionRow[] = OPTIONS;
  const tls = rows.filter(({ name, section }) => /^(?:cert_file|key_file|ca_file|server_tls_.*)$/.test(name) || section === 'ssl');
  expect(tls.map(({ section, name }) => `${section}.${name}`).filter((key) => !guards.has(key))).toEqual([]);
});
