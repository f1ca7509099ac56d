/** The base URL of links: the host of the request, or the one that a proxy reports. */
import type { Options } from '../../config/options';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);
const PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/** RFC 7239 §4: the first element comes from the proxy next to the client. */
function forwarded(header: string): Readonly<Record<string, string | undefined>> {
  const pairs = header.split(',')[0]!.split(';');
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name, ...value] = pair.split('=');
      return [name!.trim().toLowerCase(), value.join('=').trim()];
    }),
  );
}

/** Scheme, host and prefix, without a trailing slash. Malformed values are ignored, because every link would contain them. */
export function baseOf({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>, options: Options): string {
  const behindProxy = options['oslo_middleware.enable_proxy_headers_parsing'];
  const fixed = options['api.public_endpoint'];
  if (!behindProxy && fixed) return fixed;
  const rfc7239 = headers.forwarded === undefined ? undefined : forwarded(headers.forwarded);
  const reported = !behindProxy
    ? {}
    : {
        proto: rfc7239 ? rfc7239['proto'] : one(headers['x-forwarded-proto']),
        host: rfc7239 ? rfc7239['host'] : one(headers['x-forwarded-host']),
        prefix: one(headers['x-forwarded-prefix']),
      };
  const secure = (socket as Partial<TLSSocket>).encrypted === true;
  const scheme = /^https?$/.test(reported.proto ?? '') ? reported.proto! : secure ? 'https' : 'http';
  const host = /^[\w.:[\]-]+$/.test(reported.host ?? '') ? reported.host! : (headers.host ?? 'localhost');
  const prefix = /^\/[\w./~-]*$/.test(reported.prefix ?? '') ? reported.prefix! : '';
  const port = PORTS[scheme]!;
  return `${scheme}://${host.endsWith(port) ? host.slice(0, -port.length) : host}${prefix}`;
}
