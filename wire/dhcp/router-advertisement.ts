/** The little of IPv6 neighbour discovery (RFC 4861) that tells machines at once that no router here configures them. */

export const ROUTER_SOLICITATION = 133;
const ROUTER_ADVERTISEMENT = 134;
export const ALL_NODES = 'ff02::1';
export const ALL_ROUTERS = 'ff02::2';

/**
 * RFC 4861 §4.2: hop limit and timers unspecified, neither DHCPv6 flag, lifetime 0 (not a default router), no prefix. The checksum is left
 * to the kernel.
 */
export const emptyRouterAdvertisement = (): Buffer => Buffer.from([ROUTER_ADVERTISEMENT, ...Array<number>(15).fill(0)]);

/** RFC 4861 §6.1.1, as far as the message itself shows it: type, code, length, and options that have one. */
export function isRouterSolicitation(message: Buffer): boolean {
  if (message.length < 8 || message[0] !== ROUTER_SOLICITATION || message[1] !== 0) return false;
  let at = 8;
  while (at < message.length) {
    const length = (message[at + 1] ?? 0) * 8;
    if (length === 0) return false;
    at += length;
  }
  return at === message.length;
}
