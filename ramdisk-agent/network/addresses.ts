/** Addresses and masks of network_data.json. */
import { isIP, isIPv4 } from 'node:net';
import { addressBytes } from '../../wire/ipv6';

/** The bytes of an address; undefined: the text is not an address. A scope (`%eth0`) is not part of it. */
function bytesOf(address: string): readonly number[] | undefined {
  return isIP(address) !== 0 && !address.includes('%') ? [...addressBytes(address)] : undefined;
}

/** The length of a mask's prefix; undefined: its ones are not at the front, or it is not a mask. */
function lengthOf(mask: string): number | undefined {
  const bits = bytesOf(mask)
    ?.map((byte) => byte.toString(2).padStart(8, '0'))
    .join('');
  const ones = /^(1*)0*$/.exec(bits ?? 'x')?.[1];
  return ones?.length;
}

interface Subnet {
  readonly address: string;
  readonly prefix: number;
  readonly family: 4 | 6;
}

/**
 * @param address may carry the length of its prefix: `192.0.2.1/24`
 * @param mask an address (`255.255.255.0`, `ffff::`), or a length
 * @returns undefined when there is no address, or no mask of its family
 */
export function subnetOf(address: unknown, mask: unknown): Subnet | undefined {
  if (typeof address !== 'string') return undefined;
  const [host = '', given, ...more] = address.split('/');
  const family = isIPv4(host) ? 4 : 6;
  if (bytesOf(host) === undefined || more.length > 0) return undefined;
  const text = typeof mask === 'number' ? String(mask) : (mask ?? given);
  if (typeof text !== 'string') return undefined;
  const isLength = /^\d{1,3}$/.test(text);
  if (!isLength && isIPv4(text) !== (family === 4)) return undefined;
  const prefix = isLength ? Number(text) : lengthOf(text);
  return prefix === undefined || prefix > (family === 4 ? 32 : 128) ? undefined : { address: host, prefix, family };
}

/** The address without a scope; undefined: it is not an address of this family. */
export function hostOf(address: unknown, family?: 4 | 6): string | undefined {
  if (typeof address !== 'string') return undefined;
  const host = address.split('%')[0]!;
  if (bytesOf(host) === undefined || (family !== undefined && isIPv4(host) !== (family === 4))) return undefined;
  return host;
}
