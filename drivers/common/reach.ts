/** URLs of this host for peers that have IPv6 only. */
import { isIPv6 } from 'node:net';
import type { Options } from '../../config/options';
import { canonicalAddress } from '../../model/idents';
import { withHost } from '../../wire/addresses';

type OwnAddresses = Pick<Options, 'DEFAULT.my_ip' | 'DEFAULT.my_ipv6'>;

/** The IPv6 address in a URL, or in an address without a scheme; undefined: there is none. */
function hostOf(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const host = isIPv6(text) ? text : /^(?:\w+:\/\/)?(?:[^@/\s]*@)?\[([\da-f:.]{2,45})\]/i.exec(text)?.[1];
  const address = host === undefined ? undefined : canonicalAddress(host);
  return address !== undefined && isIPv6(address) ? address : undefined;
}

/**
 * The URL by which a peer reaches this host: for a peer with an IPv6 address, `my_ipv6` replaces an IPv4 `my_ip`. A URL with another host
 * stays unchanged.
 * @param peer the peer's URL or address; for a host name the URL stays unchanged
 */
export function reachableFrom(peer: unknown, url: string, { 'DEFAULT.my_ip': myIp, 'DEFAULT.my_ipv6': myIpv6 }: OwnAddresses): string {
  return myIpv6 === null || isIPv6(myIp) || hostOf(peer) === undefined ? url : withHost(url, myIp, myIpv6);
}
