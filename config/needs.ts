/**
 * Security options that have no effect without another option. An operator who sets one relies on it, so the server does not start: without
 * the other option it would be more open than its configuration says.
 */
import { formatOptionName } from './names';
import { OPTIONS, type LoadedOptions, type OptionRow } from './options';

type Key = keyof LoadedOptions;
interface Need {
  readonly guards: readonly Key[];
  /** The needed setting, for the operator. */
  readonly needs: string;
  readonly isMet: (options: LoadedOptions) => boolean;
}

/** Options that switch TLS on. They are true, or a port; port 0 is any free port. */
const SWITCHES = [
  'api.enable_ssl_api',
  'json_rpc.use_ssl',
  'boot.http_use_ssl',
  'boot.https_port',
  'metrics.prometheus_use_ssl',
  'vnc.enable_ssl',
] as const;
type Switch = (typeof SWITCHES)[number];
const isOn =
  (...switches: readonly Switch[]) =>
  (options: LoadedOptions): boolean =>
    switches.some((key) => options[key] !== false && options[key] !== null);
const UNIX_SOCKETS = ['api.unix_socket', 'boot.http_unix_socket', 'metrics.prometheus_unix_socket'] as const;
const tlsOptions = <const S extends 'api' | 'json_rpc' | 'boot' | 'metrics'>(section: S) =>
  [`${section}.cert_file`, `${section}.key_file`, `${section}.server_tls_minimum_version`, `${section}.server_tls_ciphers`] as const;

// One row per line, so that the columns are easy to read.
// prettier-ignore
/** @internal */
export const NEEDS: readonly Need[] = [
  { guards: ['ssl.cert_file', 'ssl.key_file', 'ssl.version', 'ssl.ciphers'], needs: `one of ${SWITCHES.map(formatOptionName).join(', ')}`, isMet: isOn(...SWITCHES) },
  { guards: ['ssl.ca_file', ...tlsOptions('api')], needs: '[api]enable_ssl_api = true', isMet: isOn('api.enable_ssl_api') },
  { guards: tlsOptions('json_rpc'), needs: '[json_rpc]use_ssl = true', isMet: isOn('json_rpc.use_ssl') },
  { guards: tlsOptions('boot'), needs: '[boot]http_use_ssl = true or [boot]https_port', isMet: isOn('boot.http_use_ssl', 'boot.https_port') },
  { guards: tlsOptions('metrics'), needs: '[metrics]prometheus_use_ssl = true', isMet: isOn('metrics.prometheus_use_ssl') },
  { guards: ['vnc.cert_file', 'vnc.key_file', 'vnc.tls_minimum_version', 'vnc.tls_ciphers'], needs: '[vnc]enable_ssl = true', isMet: isOn('vnc.enable_ssl') },
  { guards: ['vnc.enable_ssl', 'vnc.read_only'], needs: '[vnc]enabled = true', isMet: (options) => options['vnc.enabled'] },
  { guards: ['boot.http_use_ssl', 'boot.https_port'], needs: 'a TCP port: [boot]http_unix_socket must not be set', isMet: (options) => options['boot.http_unix_socket'] === null },
  { guards: ['metrics.prometheus_use_ssl'], needs: '[metrics]prometheus_port or [metrics]prometheus_unix_socket', isMet: (options) => (options['metrics.prometheus_port'] ?? options['metrics.prometheus_unix_socket']) !== null },
  { guards: ['api.unix_socket_mode'], needs: '[api]unix_socket', isMet: (options) => options['api.unix_socket'] !== null },
  { guards: ['api.unix_socket_proxy_protocol'], needs: `one of ${UNIX_SOCKETS.map(formatOptionName).join(', ')}`, isMet: (options) => UNIX_SOCKETS.some((name) => options[name] !== null) },
  { guards: ['DEFAULT.http_basic_auth_user_file'], needs: '[DEFAULT]auth_strategy = http_basic, or keystone or oidc', isMet: (options) => !['noauth', null].includes(options['DEFAULT.auth_strategy']) },
  { guards: ['DEFAULT.http_basic_roles_file'], needs: '[DEFAULT]auth_strategy = http_basic', isMet: (options) => options['DEFAULT.auth_strategy'] === 'http_basic' },
  { guards: ['api.agent_allowed_networks'], needs: '[api]agent_source_check, which is off', isMet: (options) => options['api.agent_source_check'] !== 'off' },
  { guards: ['audit.log_file', 'audit.ignore_req_list', 'audit.ignore_path_list'], needs: '[audit]enabled = true', isMet: (options) => options['audit.enabled'] },
];

const DEFAULTS: ReadonlyMap<string, OptionRow['default']> = new Map(
  (OPTIONS as readonly OptionRow[]).map((row) => [`${row.section}.${row.name}`, row.default]),
);
const isSet = (options: LoadedOptions, key: Key): boolean => JSON.stringify(options[key]) !== JSON.stringify(DEFAULTS.get(key));

/** The options cannot be used together. The message is for the operator. */
class NeedError extends Error {}
/** @throws NeedError with a line for each set option whose need is not met */
export function checkNeeds(options: LoadedOptions): void {
  const lines = NEEDS.flatMap(({ guards, needs, isMet }) => {
    const set = guards.filter((key) => isSet(options, key));
    if (set.length === 0 || isMet(options)) return [];
    const [has, them] = set.length === 1 ? ['is set, but has', 'the option'] : ['are set, but have', 'the options'];
    return [`${set.map(formatOptionName).join(', ')} ${has} no effect without ${needs}: set that, or remove ${them}`];
  });
  if (lines.length > 0) throw new NeedError(lines.join('\n'));
}
