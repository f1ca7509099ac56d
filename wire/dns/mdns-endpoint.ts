/** Makes the mDNS announcement of a service's URL, by OpenStack's guideline for discovery (RFC 6763 with `path` and `protocol`). */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Announced } from './mdns-responder';

/** Rejects when the URL's host has no address. */
export async function announcedAt(service: string, url: string, params: Readonly<Record<string, string>>): Promise<Announced> {
  const { protocol: scheme, hostname, port: portText, pathname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const protocol = scheme.replace(':', '');
  const defaultPort = protocol === 'https' ? 443 : 80;
  const port = portText === '' ? defaultPort : Number(portText);
  const isAddress = isIP(host) !== 0;
  const addresses = isAddress ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
  return {
    service,
    addresses: [...new Set(addresses)],
    port,
    // Default values are left out.
    params: {
      ...params,
      ...(pathname === '/' ? {} : { path: pathname }),
      ...(port === defaultPort ? {} : { protocol }),
    },
    ...(isAddress ? {} : { hostname: host }),
  };
}
