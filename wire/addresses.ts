/** Hosts in URLs. */
import { canonicalHost } from '../model/idents';

/** The host of a URL: IPv6 addresses stand in brackets (RFC 3986 §3.2.2). */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Replaces the host `from`, in any spelling, by `to` in the URLs of a text. Only whole hosts after `://` are replaced. */
export function withHost(text: string, from: string, to: string): string {
  const replaced = canonicalHost(from);
  return text.replaceAll(/(?<=:\/\/)(?:\[[\da-f:.]{2,45}\]|[^\s/:[\]]{1,255})(?=[:/\s]|$)/gi, (host) =>
    replaced !== undefined && canonicalHost(host) === replaced ? urlHost(to) : host,
  );
}
