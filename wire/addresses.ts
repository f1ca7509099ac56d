/** The host of a URL: IPv6 addresses stand in brackets (RFC 3986 §3.2.2). */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Replaces the host `from` by `to` in the URLs of a text. Only whole hosts after `://` are replaced. */
export const withHost = (text: string, from: string, to: string): string =>
  text.replaceAll(/(?<=:\/\/)(?:\[[\da-f:.]{2,45}\]|[^\s/:[\]]{1,255})(?=[:/\s]|$)/gi, (host) =>
    host === urlHost(from) ? urlHost(to) : host,
  );
