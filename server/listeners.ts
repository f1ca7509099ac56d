/** The ports of the API and the introspection service. They are opened before anything can answer. */
import { serverOptions } from '../api/server';
import { listenHosts } from '../config/access';
import type { LoadedOptions } from '../config/options';
import { tlsOf } from '../config/tls';
import type { Metrics } from '../model/metrics';
import { API_READ_TIMEOUT_MS, API_UNREAD_BYTES, type ClientLimits } from '../wire/http/client-limits';
import { shareLimits } from '../wire/shares';
import type { StartContext } from './context';
import { listenHttp, type HttpListener, type ListenAddress } from './http-listener';
import { hostInUrls } from './settings';

export const clientLimits = (options: LoadedOptions, metrics: Metrics, listener: string): ClientLimits => ({
  connections: shareLimits(options['api.max_connections'], options['api.max_connections_per_source']),
  readTimeoutMs: API_READ_TIMEOUT_MS,
  unreadBytes: API_UNREAD_BYTES,
  onRefused: (limit) => metrics.count('bloomery_connections_refused_total', { listener, limit }),
});
/** Role → name of its listener in metrics. */
const LISTENERS = { api: 'api', inspector: 'introspection', conductor: 'screens' } as const;

export interface Listeners {
  readonly api?: HttpListener | undefined;
  readonly inspector?: HttpListener | undefined;
  /** For screens of nodes; absent: without the role conductor, or [vnc]enabled is false. */
  readonly screens?: HttpListener | undefined;
}
/** Opens the ports of the HTTP services. */
export async function openListeners({ given, roles, stops, reloads, metrics, log }: StartContext): Promise<Listeners> {
  const open = async (role: keyof typeof LISTENERS, address: ListenAddress, what: string): Promise<HttpListener | undefined> => {
    if (!roles.includes(role)) return undefined;
    const listener = await listenHttp({
      options: { ...serverOptions(given), expectsProxyHeaders: 'path' in address && given['api.unix_socket_proxy_protocol'] },
      limits: clientLimits(given, metrics, LISTENERS[role]),
      address,
      what,
      tls: tlsOf(given, role === 'conductor' ? 'vnc' : 'api'),
      log,
    });
    stops.push(() => listener.close());
    reloads.push(() => listener.reload());
    return listener;
  };
  const hosts = listenHosts(given);
  const path = given['api.unix_socket'];
  const api = await (path === null
    ? open('api', { host: hosts['api.host_ip'], port: given['api.port'] }, 'the API, [api]host_ip and port')
    : open('api', { path, mode: given['api.unix_socket_mode'] }, 'the API, [api]unix_socket'));
  const inspector = await open(
    'inspector',
    { host: hosts['DEFAULT.listen_address'], port: given['DEFAULT.listen_port'] },
    'the introspection service, [DEFAULT]listen_address and listen_port',
  );
  const screens = given['vnc.enabled']
    ? await open('conductor', { host: hosts['vnc.host_ip'], port: given['vnc.port'] }, 'screens of nodes, [vnc]host_ip and port')
    : undefined;
  return { api, inspector, screens };
}

/** The URL by which machines and this host reach a listener; undefined for a Unix socket. @param host the address that it listens on */
export const urlOf = ({ scheme, port }: HttpListener, given: LoadedOptions, host: string): string | undefined =>
  port === undefined ? undefined : `${scheme}://${hostInUrls(given, host)}:${port}`;
