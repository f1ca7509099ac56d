/** The host of a URL: IPv6 addresses stand in brackets (RFC 3986 §3.2.2). */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** A text whose URLs with this host have another one. Only whole hosts are replaced, after `://`. */
export const withHost = (text: string, from: string, to: string): string =>
  text.replaceAll(/(?<=:\/\/)(?:\[[\da-f:.]{2,45}\]|[^\s/:[\]]{1,255})(?=[:/\s]|$)/gi, (host) =>
    host === urlHost(from) ? urlHost(to) : host,
  );
