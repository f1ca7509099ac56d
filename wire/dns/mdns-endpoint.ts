/** From the URL of a service to what multicast DNS tells of it, by OpenStack's guideline for discovery (RFC 6763 with `path` and `protocol`). */
import { lookup } from 'node:dns/promises';
import { isAddress } from './dns';
import type { Announced } from './mdns-responder';

/** Rejects when the host of the URL has no address. */
export async function announcedAt(service: string, url: string, params: Readonly<Record<string, string>>): Promise<Announced> {
  const { protocol: scheme, hostname, port: given, pathname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const protocol = scheme.replace(':', '');
  const usual = protocol === 'https' ? 443 : 80;
  const port = given === '' ? usual : Number(given);
  const addresses = isAddress(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
  return {
    service,
    addresses: [...new Set(addresses)],
    port,
    // What can be told from the rest is left out.
    params: {
      ...params,
      ...(pathname === '/' || pathname === '' ? {} : { path: pathname }),
      ...(port === usual ? {} : { protocol }),
    },
    ...(isAddress(host) ? {} : { hostname: host }),
  };
}
