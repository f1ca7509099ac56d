/** IPv6 addresses as numbers, and as texts in the form of RFC 5952. */
import { isIPv4, isIPv6 } from 'node:net';

/** Undefined: not an address, or one with a zone. */
export function parseIpv6(text: string): bigint | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined;
  // RFC 4291 §2.2: the last four bytes may be written as IPv4.
  const dotted = text.slice(text.lastIndexOf(':') + 1);
  const ipv4 = isIPv4(dotted) ? dotted.split('.').map(Number) : undefined;
  const words = ipv4
    ? `${text.slice(0, -dotted.length)}${((ipv4[0]! << 8) | ipv4[1]!).toString(16)}:${((ipv4[2]! << 8) | ipv4[3]!).toString(16)}`
    : text;
  const [head = '', tail] = words.split('::');
  const parts = (part: string): readonly string[] => (part === '' ? [] : part.split(':'));
  const [before, after] = [parts(head), parts(tail ?? '')];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return BigInt(`0x${[...before, ...zeros, ...after].map((word) => word.padStart(4, '0')).join('')}`);
}

export function formatIpv6(value: bigint): string {
  const words = value
    .toString(16)
    .padStart(32, '0')
    .match(/.{4}/g)!
    .map((word) => Number.parseInt(word, 16).toString(16));
  // §4.2: the longest run of zeros is shortened, the first of equal ones, and none of a single word.
  let [start, length] = [0, 1];
  for (let at = 0; at < words.length; at += 1) {
    let end = at;
    while (words[end] === '0') end += 1;
    if (end - at > length) [start, length] = [at, end - at];
  }
  if (length === 1) return words.join(':');
  return `${words.slice(0, start).join(':')}::${words.slice(start + length).join(':')}`;
}

export const ipv6At = (bytes: Buffer, offset = 0): string => formatIpv6(BigInt(`0x${bytes.toString('hex', offset, offset + 16)}`));
export const ipv6Bytes = (address: string): Buffer => Buffer.from((parseIpv6(address) ?? 0n).toString(16).padStart(32, '0'), 'hex');
/** The bytes of an IPv4 or IPv6 address. */
export const addressBytes = (address: string): Buffer =>
  isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);

/** The MAC address in an interface identifier (RFC 4291, appendix A); undefined: the identifier has none. */
export function macOfAddress(address: string): string | undefined {
  const value = parseIpv6(address);
  if (value === undefined) return undefined;
  const hex = (value & 0xffffffffffffffffn).toString(16).padStart(16, '0');
  if (hex.slice(6, 10) !== 'fffe') return undefined;
  const first = (Number.parseInt(hex.slice(0, 2), 16) ^ 2).toString(16).padStart(2, '0');
  return [first, hex.slice(2, 4), hex.slice(4, 6), hex.slice(10, 12), hex.slice(12, 14), hex.slice(14)].join(':');
}
