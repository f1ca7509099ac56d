/** Where the services with authentication listen, and which combinations of options are refused because they expose a service. */
import { isLoopback } from '../model/idents';
import { providerUrlProblem } from '../wire/http/openid';
import type { LoadedOptions } from './options';

const HOSTS = { 'api.host_ip': '0.0.0.0', 'DEFAULT.listen_address': '::', 'json_rpc.host_ip': '::', 'vnc.host_ip': '0.0.0.0' } as const;
type HostOption = keyof typeof HOSTS;
type Hosts = Readonly<Record<HostOption, string>>;
const LOOPBACK = '127.0.0.1';

/** Addresses that no option sets are Ironic's default, every address. If [DEFAULT]auth_strategy is not set either, they are loopback. */
export function listenHosts(options: LoadedOptions): Hosts {
  const hostOf = (option: HostOption): string => options[option] ?? (options['DEFAULT.auth_strategy'] === null ? LOOPBACK : HOSTS[option]);
  return {
    'api.host_ip': hostOf('api.host_ip'),
    'DEFAULT.listen_address': hostOf('DEFAULT.listen_address'),
    'json_rpc.host_ip': hostOf('json_rpc.host_ip'),
    'vnc.host_ip': hostOf('vnc.host_ip'),
  };
}

/** The options cannot be used together. The message is for the operator. */
class AccessError extends Error {}

interface ExposedListener {
  readonly service: 'the API' | 'the introspection service' | 'JSON-RPC';
  readonly option: string;
  readonly host: string;
}
/** The listeners that hosts other than this one can reach. */
function exposedListeners(options: LoadedOptions, roles: readonly string[], hasRpc: boolean): readonly ExposedListener[] {
  const hosts = listenHosts(options);
  const listeners: (ExposedListener & { readonly runs: boolean })[] = [
    {
      service: 'the API',
      option: '[api]host_ip',
      host: hosts['api.host_ip'],
      runs: roles.includes('api') && options['api.unix_socket'] === null,
    },
    {
      service: 'the introspection service',
      option: '[DEFAULT]listen_address',
      host: hosts['DEFAULT.listen_address'],
      runs: roles.includes('inspector'),
    },
    { service: 'JSON-RPC', option: '[json_rpc]host_ip', host: hosts['json_rpc.host_ip'], runs: roles.includes('conductor') && hasRpc },
  ];
  return listeners.filter(({ runs, host }) => runs && !isLoopback(host));
}

/** An operator who sets a certificate for all listeners expects TLS of the API too, unless it is for JSON-RPC. */
function checkPlainText(options: LoadedOptions, exposed: readonly ExposedListener[]): void {
  const plain = exposed.find(({ service }) => service !== 'JSON-RPC');
  if (!plain || options['api.enable_ssl_api'] || options['json_rpc.use_ssl'] || options['ssl.cert_file'] === null) return;
  throw new AccessError(
    `[ssl]cert_file is set, but [api]enable_ssl_api is not, and ${plain.service} would listen on ${plain.host} without TLS: ` +
      'set [api]enable_ssl_api = true, remove the option, or listen on 127.0.0.1 or [api]unix_socket',
  );
}

const openBy = (strategy: 'noauth' | null): string =>
  strategy === null ? 'without [DEFAULT]auth_strategy' : 'with [DEFAULT]auth_strategy = noauth';
const SIGNATURES = /^(?:[RPE]S(?:256|384|512)|EdDSA)$/;
function checkOpenId(options: LoadedOptions): void {
  const { 'DEFAULT.auth_strategy': strategy, 'oidc.issuer': issuer } = options;
  if (issuer === null) {
    if (strategy === 'oidc') throw new AccessError('[DEFAULT]auth_strategy = oidc needs [oidc]issuer');
    if (options['oidc.client_id'] !== null) throw new AccessError('[oidc]client_id needs [oidc]issuer');
    return;
  }
  if (strategy === null || strategy === 'noauth')
    throw new AccessError(
      `[oidc]issuer is set, but everybody may do everything ${openBy(strategy)}: ` +
        'set auth_strategy = oidc, or http_basic or keystone to accept both',
    );
  const problem = providerUrlProblem(issuer);
  if (problem !== undefined) throw new AccessError(`[oidc]issuer: ${problem}`);
  if (options['oidc.audience'].length === 0)
    throw new AccessError('[oidc]issuer needs [oidc]audience: otherwise tokens for other services of the provider would be accepted');
  if (options['oidc.client_id'] !== null && !options['oidc.scopes'].includes('openid'))
    throw new AccessError('[oidc]scopes needs openid: the page checks the ID token of each log-in');
  const wrong = options['oidc.algorithms'].find((name) => !SIGNATURES.test(name));
  if (wrong !== undefined || options['oidc.algorithms'].length === 0)
    throw new AccessError(`[oidc]algorithms: "${wrong ?? ''}" is not an algorithm of asymmetric signatures`);
}

/**
 * @param roles of this process
 * @param hasRpc whether other processes may call this one
 * @returns warnings
 * @throws AccessError if a service would be open to more callers than the options say
 */
export function checkAccess(options: LoadedOptions, roles: readonly string[], hasRpc: boolean): readonly string[] {
  const strategy = options['DEFAULT.auth_strategy'];
  checkOpenId(options);
  const exposed = exposedListeners(options, roles, hasRpc);
  checkPlainText(options, exposed);
  const [first] = exposed;
  if (strategy === null && first)
    throw new AccessError(
      `[DEFAULT]auth_strategy is not set, and ${first.service} would listen on ${first.host} (${first.option}): ` +
        'set auth_strategy = http_basic with a file of users in [DEFAULT]http_basic_auth_user_file (htpasswd -B -c FILE USER makes one); ' +
        'or auth_strategy = keystone with [keystone_authtoken]; ' +
        'or auth_strategy = noauth, to let everybody who reaches this address do everything; ' +
        `or ${first.option} = 127.0.0.1`,
    );
  // Conductors check the signature of each call, whatever the strategy.
  const open = exposed.filter(({ service }) => service !== 'JSON-RPC');
  if (strategy === 'noauth' && open.length > 0)
    return [
      `[DEFAULT]auth_strategy = noauth: everybody who reaches ${open.map(({ service, host }) => `${service} on ${host}`).join(' or ')} may do everything`,
    ];
  return [];
}
