/** Where a request comes from, for limits that are fair to sources. */
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import { networkOf } from '../../wire/http/client-limits';

/** Behind a proxy ([oslo_middleware]enable_proxy_headers_parsing) the last address that the proxies added: the others are the client's word. */
export function sourceOf(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  options: Pick<Options, 'oslo_middleware.enable_proxy_headers_parsing'>,
): string {
  const forwarded = options['oslo_middleware.enable_proxy_headers_parsing'] ? [headers['x-forwarded-for']].flat().at(-1) : undefined;
  const last = forwarded?.slice(forwarded.lastIndexOf(',') + 1).trim();
  return networkOf(last || (socket.remoteAddress ?? ''));
}
