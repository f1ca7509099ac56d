/** Router advertisements and solicitations of IPv6 (RFC 4861): a host tells machines how to configure themselves. */
import { ipv6Bytes } from '../ipv6';

export const ROUTER_SOLICITATION = 133;
const ROUTER_ADVERTISEMENT = 134;
export const ALL_NODES = 'ff02::1';
export const ALL_ROUTERS = 'ff02::2';

/** RFC 4861 §4.2. */
const MANAGED = 0x80;
const OTHER = 0x40;
/** §4.6.2. */
const ON_LINK = 0x80;
const AUTONOMOUS = 0x40;
/** §6.2.1: the defaults, in seconds. */
const VALID_SECONDS = 2_592_000;
const PREFERRED_SECONDS = 604_800;

interface AdvertisedPrefix {
  readonly network: string;
  readonly width: number;
  /** Machines may configure addresses of the prefix themselves (RFC 4862). */
  readonly autonomous: boolean;
}
export interface Advertisement {
  /** Machines get addresses and further configuration by DHCPv6. */
  readonly dhcp: boolean;
  /** Seconds for which the sender is a default router; 0: it is not a default router. */
  readonly routerSeconds: number;
  readonly prefixes: readonly AdvertisedPrefix[];
  readonly mtu: number | null;
  readonly dns: readonly string[];
}

/** §4.2: hop limit and timers are unspecified. The kernel adds the checksum. */
export function routerAdvertisement({ dhcp, routerSeconds, prefixes, mtu, dns }: Advertisement): Buffer {
  const head = Buffer.alloc(16);
  head[0] = ROUTER_ADVERTISEMENT;
  head[5] = dhcp ? MANAGED | OTHER : 0;
  head.writeUInt16BE(routerSeconds, 6);
  const prefix = ({ network, width, autonomous }: AdvertisedPrefix): Buffer => {
    const bytes = Buffer.alloc(32);
    bytes.set([3, 4, width, ON_LINK | (autonomous ? AUTONOMOUS : 0)]);
    bytes.writeUInt32BE(VALID_SECONDS, 4);
    bytes.writeUInt32BE(PREFERRED_SECONDS, 8);
    ipv6Bytes(network).copy(bytes, 16);
    return bytes;
  };
  const mtuOption = Buffer.from([5, 1, 0, 0, 0, 0, 0, 0]);
  mtuOption.writeUInt32BE(mtu ?? 0, 4);
  // RFC 8106 §5.1.
  const dnsHead = Buffer.from([25, 1 + 2 * dns.length, 0, 0, 0, 0, 0, 0]);
  dnsHead.writeUInt32BE(PREFERRED_SECONDS, 4);
  return Buffer.concat([
    head,
    ...(mtu === null ? [] : [mtuOption]),
    ...prefixes.map(prefix),
    ...(dns.length === 0 ? [] : [dnsHead, ...dns.map(ipv6Bytes)]),
  ]);
}

/** RFC 4861 §6.1.1, as far as the message alone shows it: type, code, length, and the options' lengths. */
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
