/** Formats of UUIDs, names and addresses. */
import { isIP } from 'node:net';

/** Accepts all spellings of Ironic: with or without hyphens, braces or `urn:uuid:`, in either case. */
const UUID = /^[0-9a-f]{32}$/;
const bare = (text: string): string =>
  text
    .toLowerCase()
    .replace(/^urn:/, '')
    .replace(/^uuid:/, '')
    .replace(/^\{+|(?<!\})\}+$/g, '')
    .replaceAll('-', '');
export const isUuid = (value: unknown): value is string => typeof value === 'string' && UUID.test(bare(value));

/** Names since 1.10: RFC 3986 §2.3 unreserved characters. */
export const isLogicalName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 255 && /^[A-Za-z0-9\-._~]+$/.test(value);
/** Names before 1.10: host names. */
export const isHostName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 255 && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9\-_]{0,62}[a-z0-9])*\.?$/.test(value);
/** Paths below /v1/nodes; a node must not have such a name. */
export const RESERVED_NODE_NAMES = ['maintenance', 'management', 'states', 'vendor_passthru', 'detail', 'validate'] as const;

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

/** Whether an IP address names the host itself. */
export const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1';
