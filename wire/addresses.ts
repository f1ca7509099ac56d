/** The host of a URL: IPv6 addresses stand in brackets (RFC 3986 §3.2.2). */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);
