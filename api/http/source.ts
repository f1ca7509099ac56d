/** Where a request comes from, for limits that are fair to sources. */
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import { canonicalAddress, isLoopback } from '../../model/idents';
import { networkOf } from '../../wire/http/client-limits';

type ProxyOptions = Pick<Options, 'oslo_middleware.enable_proxy_headers_parsing'>;
type Connection = Pick<IncomingMessage, 'headers' | 'socket'>;

/** The last element of the header, which the proxy next to the server added. The client may have written the others. */
const lastOf = (header: string | string[] | undefined): string | undefined => [header].flat().at(-1)?.split(',').at(-1)?.trim();
/** RFC 7239 §6: `for=192.0.2.1`, `for="[2001:db8::1]:4711"`. */
const FORWARDED_FOR = /(?:^|;)\s*for="?(\[[^\]"]*\]|[^;:"\s]*)/i;

/** What a proxy reports as the client's address; undefined: there is no proxy, or it reports nothing. */
function reportedSource({ headers }: Connection, options: ProxyOptions): string | undefined {
  if (!options['oslo_middleware.enable_proxy_headers_parsing']) return undefined;
  return lastOf(headers['x-forwarded-for']) || FORWARDED_FOR.exec(lastOf(headers.forwarded) ?? '')?.[1] || undefined;
}

/** The client's address; behind a proxy ([oslo_middleware]enable_proxy_headers_parsing) the one that it reports; `` on a Unix socket. */
export const addressOf = (request: Connection, options: ProxyOptions): string =>
  reportedSource(request, options) ?? request.socket.remoteAddress ?? '';
/** The network of the client, for limits. */
export const sourceOf = (request: Connection, options: ProxyOptions): string => networkOf(addressOf(request, options));

/** The two ends of a connection, for checks of the client's address. */
export interface Peer {
  /** The client's address in one spelling. Undefined: unknown, because of a Unix socket or a proxy. */
  readonly address: string | undefined;
  /** A proxy forwarded the request: the client is not a program of this host, whatever the address of the connection is. */
  readonly isReported: boolean;
  /** The port of the listener that received the request. */
  readonly listenerPort: number | undefined;
}
/**
 * Without [oslo_middleware]enable_proxy_headers_parsing no header is believed: many proxies pass on what their client sends. Behind a proxy
 * on this host the client is then unknown, since the address of the connection is the proxy's.
 */
export function peerOf(request: Connection, options: ProxyOptions): Peer {
  const { headers, socket } = request;
  const own = canonicalAddress(socket.remoteAddress ?? '');
  const reported = reportedSource(request, options);
  if (reported !== undefined) return { address: canonicalAddress(reported), isReported: true, listenerPort: socket.localPort };
  const isLocal = own === undefined || isLoopback(own);
  const isForwarded = isLocal && [headers['x-forwarded-for'], headers.forwarded].some(Boolean);
  return { address: isForwarded ? undefined : own, isReported: isForwarded, listenerPort: socket.localPort };
}
