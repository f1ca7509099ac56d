/** The addresses that the TFTP and HTTP boot services listen on. */
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';

/** A link-local address (fe80::/10) is usable only with a zone, which the URLs do not have. */
const isLinkLocal = ({ address, family }: NetworkInterfaceInfo): boolean => family === 'IPv6' && /^fe[89ab]/i.test(address);

/**
 * The configured address. Without one: the addresses of [boot]interface, and [DEFAULT]my_ip if this host has it, since machines get it in
 * their URLs. Without an interface: all addresses; IPv6 is included only if [DEFAULT]my_ip or my_ipv6 is an IPv6 address.
 * @param option the option of the configured address, for messages
 * @throws Error for the operator
 */
export function bootHosts(
  option: string,
  given: {
    readonly configured: string | null;
    readonly interfaceName: string | null;
    /** Interfaces of further subnets. */
    readonly further?: readonly string[];
    readonly myIp: string;
    readonly myIpv6?: string | null;
  },
  interfaces: () => NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces,
): readonly string[] {
  const { configured, interfaceName, further = [], myIp, myIpv6 = null } = given;
  if (configured !== null) return [configured];
  if (interfaceName === null) return [myIpv6 !== null || myIp.includes(':') ? '::' : '0.0.0.0'];
  const all = interfaces();
  const addressesOf = (name: string): readonly string[] =>
    (all[name] ?? []).filter((info) => !isLinkLocal(info)).map(({ address }) => address);
  const own = addressesOf(interfaceName);
  if (own.length === 0)
    throw new Error(
      `[boot]interface = ${interfaceName}: there is no such interface, or it has no address; set ${option} to listen elsewhere`,
    );
  const isHere = Object.values(all).some((infos) => infos?.some(({ address }) => address === myIp));
  return [...new Set([...own, ...further.flatMap(addressesOf), ...(isHere ? [myIp] : [])])];
}
