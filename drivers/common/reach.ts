/** URLs of this host for peers that have IPv6 only. */
import { isIPv6 } from 'node:net';
import type { Options } from '../../config/options';
import { withHost } from '../../wire/addresses';

type OwnAddresses = Pick<Options, 'DEFAULT.my_ip' | 'DEFAULT.my_ipv6'>;

/** The literal host of a URL, or of an address without a scheme; undefined: it is a name, or nothing. */
function hostOf(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const host = isIPv6(text) ? text : /^(?:\w+:\/\/)?(?:[^@/\s]*@)?\[([\da-f:.]{2,45})\]/i.exec(text)?.[1];
  return host !== undefined && isIPv6(host) ? host : undefined;
}

/**
 * The URL by which a peer reaches this host: one with an IPv6 address gets `my_ipv6` in place of an IPv4 `my_ip`. Other hosts stay.
 * @param peer the peer's URL or address; a host name says nothing
 */
export function reachableFrom(peer: unknown, url: string, { 'DEFAULT.my_ip': myIp, 'DEFAULT.my_ipv6': myIpv6 }: OwnAddresses): string {
  return myIpv6 === null || isIPv6(myIp) || hostOf(peer) === undefined ? url : withHost(url, myIp, myIpv6);
}
