/** Where a request comes from, for limits that are fair to sources. */
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Options } from '../../config/options';

/** An IPv6 source has a whole /64 at its disposal (RFC 4291 §2.5.4); `::ffff:` is IPv4 (§2.5.5.2). */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.toLowerCase().startsWith('::ffff:')) return address;
  const [head = '', tail = ''] = address.split('::');
  const front = head.split(':').filter(Boolean);
  const back = address.includes('::') ? tail.split(':').filter(Boolean) : [];
  const zeros = Array.from({ length: Math.max(8 - front.length - back.length, 0) }, () => '0');
  return [...front, ...zeros, ...back].slice(0, 4).join(':');
}

/** The address of the client; `` on a Unix socket. */
export function addressOf(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  options: Pick<Options, 'oslo_middleware.enable_proxy_headers_parsing'>,
): string {
  // Behind a proxy: the last address that the proxies added. The others are the client's word.
  const forwarded = options['oslo_middleware.enable_proxy_headers_parsing'] ? [headers['x-forwarded-for']].flat().at(-1) : undefined;
  const last = forwarded?.slice(forwarded.lastIndexOf(',') + 1).trim();
  return last || (socket.remoteAddress ?? '');
}
/** The network of the client. */
export const sourceOf = (...request: Parameters<typeof addressOf>): string => networkOf(addressOf(...request));
