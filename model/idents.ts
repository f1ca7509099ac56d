/** Formats of UUIDs, names, addresses and networks. */
import { BlockList, isIP, isIPv4 } from 'node:net';

/** Accepts all spellings of Ironic: with or without hyphens, braces or `urn:uuid:`, in either case. */
const UUID = /^[0-9a-f]{32}$/;
const bare = (text: string): string =>
  text
    .toLowerCase()
    .replace(/^urn:/, '')
    .replace(/^uuid:/, '')
    .replace(/^\{+|(?<!\})\}+$/g, '')
    .replaceAll('-', '');
/** The usual spelling, which is recognised faster. */
const USUAL = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
export const isUuid = (value: unknown): value is string => typeof value === 'string' && (USUAL.test(value) || UUID.test(bare(value)));

/** The UUID of `snapshot://UUID`. */
export const snapshotId = (href: unknown): string | undefined =>
  typeof href === 'string' ? /^snapshot:\/\/([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/.exec(href)?.[1] : undefined;

/** Names since 1.10: RFC 3986 §2.3 unreserved characters. */
export const isLogicalName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 255 && /^[A-Za-z0-9\-._~]+$/.test(value);
/** Names before 1.10: host names. */
export const isHostName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 255 && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9\-_]{0,62}[a-z0-9])*\.?$/.test(value);
/** Paths below /v1/nodes; a node must not have such a name. */
export const RESERVED_NODE_NAMES: readonly string[] = ['maintenance', 'management', 'states', 'vendor_passthru', 'detail', 'validate'];

/** Six octets with colons. */
export const isMac = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(value);
/** An OpenFlow datapath: 16 digits. */
export const isDatapath = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{16}$/i.test(value);

/** IPv6 addresses that contain an IPv4 address (RFC 4291 §2.5.5.2), as the URL standard writes them. */
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;
/**
 * An IP address in one spelling, so that equal addresses are equal texts: IPv4 where IPv6 contains it, IPv6 as in RFC 5952, no brackets,
 * no zone. Undefined: not an IP address.
 */
export function canonicalAddress(text: string): string | undefined {
  const bracketed = /^\[([^\]]*)\]$/.exec(text)?.[1] ?? text;
  const [address = ''] = bracketed.split('%', 1);
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const mapped = MAPPED.exec(short)
    ?.slice(1)
    .map((group) => parseInt(group, 16));
  return mapped ? mapped.flatMap((group) => [group >> 8, group & 0xff]).join('.') : short;
}

/**
 * @param random returns the given number of random bytes
 * @returns a UUID of version 4 (RFC 9562 §5.4)
 */
export function newUuid(random: (bytes: number) => Buffer): string {
  const bytes = random(16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Characters that no host has: with them, a text names another host than it seems to. */
const NO_HOST = /[\s/\\?#@]/;
/**
 * The host of a URL, an option or a Host header in one spelling: an IP address as `canonicalAddress` writes it, also one in octal,
 * hexadecimal or with fewer numbers; a name in lower case without its last dot. A port is ignored. Undefined: not a host.
 */
export function canonicalHost(text: string): string | undefined {
  const address = canonicalAddress(text);
  if (address !== undefined) return address;
  if (NO_HOST.test(text) || !URL.canParse(`http://${text}`)) return undefined;
  const { hostname } = new URL(`http://${text}`);
  return canonicalAddress(hostname) ?? hostname.replace(/\.$/, '');
}

const isLoopbackAddress = (address: string): boolean => address === '::1' || (address.startsWith('127.') && isIPv4(address));
/** Whether a host, in any spelling that `canonicalHost` reads, is this host itself. Other names may resolve to it nevertheless. */
export function isLoopback(host: string): boolean {
  if (isLoopbackAddress(host)) return true;
  const canonical = canonicalHost(host);
  return canonical !== undefined && (canonical === 'localhost' || isLoopbackAddress(canonical));
}

/** The family of an IP address without a zone; 0: it is none. */
const familyOf = (text: string): number => (text.includes('%') ? 0 : isIP(text));
/** The prefix length of an IPv4 netmask such as 255.255.0.0; NaN: not a netmask. */
export function netmaskLength(mask: string): number {
  const bits = mask
    .split('.')
    .map((byte) => Number(byte).toString(2).padStart(8, '0'))
    .join('');
  return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : NaN;
}
/** The same of a netmask, or of a host mask such as 0.0.255.255. */
function maskLength(mask: string): number {
  const inverted = mask.split('.').map((byte) => 255 - Number(byte));
  const length = netmaskLength(mask);
  return Number.isNaN(length) ? netmaskLength(inverted.join('.')) : length;
}
/** The length of a prefix, as a network has it after the slash; NaN: it is none. */
function prefixLength(text: string, family: number): number {
  if (family === 4 && isIPv4(text)) return maskLength(text);
  return /^\d{1,3}$/.test(text) ? Number(text) : NaN;
}

export interface Network {
  /** False for addresses of the other family, and for texts that are not IP addresses. */
  contains(address: string): boolean;
}
/** `192.0.2.0/24`, `192.0.2.0/255.255.255.0`, `2001:db8::/64` or one address. Undefined: not a network. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', size, ...more] = text.split('/');
  const family = familyOf(address);
  const longest = family === 4 ? 32 : 128;
  const length = size === undefined ? longest : prefixLength(size, family);
  if (family === 0 || more.length > 0 || !(length <= longest)) return undefined;
  const list = new BlockList();
  const type = family === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(address, length, type);
  return { contains: (other) => familyOf(other) === family && list.check(other, type) };
}
/** The bits of an IPv6 address before the IPv4 address that it contains. */
const MAPPED_BITS = 96;
/** An IPv6 network of addresses that contain IPv4 addresses, as the IPv4 network; any other text as it is. */
function unmapped(text: string): string {
  const [address = '', size = ''] = text.split('/');
  const bits = size === '' ? 0 : Number(size) - MAPPED_BITS;
  const ipv4 = isIP(address) === 6 && bits >= 0 ? canonicalAddress(address) : undefined;
  if (ipv4 === undefined || !isIPv4(ipv4)) return text;
  return size === '' ? ipv4 : `${ipv4}/${bits}`;
}
/**
 * One of several networks. An IPv6 address that contains an IPv4 address counts as this one. Throws a TypeError if one of the texts is not
 * a network.
 */
export function networksOf(texts: readonly string[]): Network {
  const networks = texts.map((text) => {
    const network = parseNetwork(unmapped(text));
    if (!network) throw new TypeError(`${text} is not a network`);
    return network;
  });
  return {
    contains: (text) => {
      const address = canonicalAddress(text);
      return address !== undefined && networks.some((network) => network.contains(address));
    },
  };
}
