/** Makes the values that stand in place of a site's own. The same value has the same replacement, of the same kind and form. */
import { createHmac } from 'node:crypto';
import { isIPv4 } from 'node:net';
import type { Kind } from './replace-names';

export type Replaced = Exclude<Kind, 'keep'>;
interface Replacements {
  /** The replacement of a value. MAC addresses come and go as twelve digits in small letters. */
  of(kind: Replaced, value: string): string;
  /** A number with as many digits. */
  ofNumber(value: number): number;
  /** Counts a value that is left out. */
  count(kind: Replaced, value: string): void;
  /** Kind → distinct values so far. */
  summary(): Readonly<Record<string, number>>;
}

const DIGITS = '0123456789';
const SMALL = 'abcdefghijklmnopqrstuvwxyz';
const isHex = (value: string): boolean => value.length >= 8 && /^(?:0x)?[0-9a-f:. -]+$/i.test(value);
/** A text of the same length, with digits for digits and letters for letters. Hexadecimal numbers stay such. */
function shaped(value: string, digest: Buffer): string {
  const letters = isHex(value) ? 'abcdef' : SMALL;
  const one = (character: string, index: number): string => {
    const byte = digest[index % digest.length]! ^ ((index / digest.length) | 0);
    if (/\d/.test(character)) return DIGITS[byte % 10]!;
    // The x of 0x.
    if (/[a-z]/.test(character)) return character === 'x' && index === 1 ? 'x' : letters[byte % letters.length]!;
    return /[A-Z]/.test(character) ? letters[byte % letters.length]!.toUpperCase() : character;
  };
  return Array.from(value, one).join('');
}

/** Addresses for documentation (RFC 5737, RFC 3849). */
const NETWORKS = ['192.0.2', '198.51.100', '203.0.113'];
/** @param number of the value among those of its kind, from 1 */
const MAKERS: Readonly<Record<Replaced, (value: string, digest: Buffer, number: number) => string>> = {
  'serial number': shaped,
  // Locally administered (IEEE 802c), so that it is nobody's.
  'MAC address': (_value, digest) => `02${digest.toString('hex', 0, 5)}`,
  'IP address': (value, _digest, number) =>
    isIPv4(value) ? `${NETWORKS[(number >> 8) % NETWORKS.length]!}.${number % 256}` : `2001:db8::${number.toString(16)}`,
  'host name': (value, _digest, number) =>
    /^(?:iqn|nqn)\./i.test(value) ? `${value.slice(0, 11)}.example:${number}` : `host-${number}.example`,
  account: (value, _digest, number) => (value.includes('@') ? `user-${number}@example.org` : `user-${number}`),
  secret: (_value, _digest, number) => `replaced-${number}`,
  place: (_value, _digest, number) => `place-${number}`,
  file: (value, _digest, number) => `file-${number}${/\.\w{1,4}$/.exec(value)?.[0] ?? ''}`,
};
/** Replacements that are tried until one differs from all values. Few short serial numbers need a second. */
const ATTEMPTS = 20;

/**
 * @param key makes the replacements unguessable: random bytes
 * @param isOwn whether a text in small letters is one of the site's own values
 */
export function createReplacements(key: Buffer, isOwn: (text: string) => boolean): Replacements {
  const made = new Map<string, string>();
  const taken = new Set<string>();
  const counts = new Map<Replaced, Set<string>>();
  const idOf = (kind: Replaced, value: string): string => (kind === 'secret' ? value : value.toLowerCase());
  const digestOf = (text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const count = (kind: Replaced, value: string): void => {
    const seen = counts.get(kind) ?? new Set<string>();
    counts.set(kind, seen.add(idOf(kind, value)));
  };
  return {
    count,
    of: (kind, value) => {
      count(kind, value);
      const id = idOf(kind, value);
      // Links may have a serial number in small letters: its replacement has them too.
      const name = `${kind} ${kind === 'serial number' ? value : id}`;
      const before = made.get(name);
      if (before !== undefined) return before;
      const number = counts.get(kind)!.size;
      let text = '';
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        text = MAKERS[kind](value, digestOf(`${kind} ${id} ${attempt}`), number);
        if (!taken.has(text) && !isOwn(text.toLowerCase())) break;
      }
      taken.add(text);
      made.set(name, text);
      return text;
    },
    ofNumber: (value) => {
      count('serial number', String(value));
      return Number(shaped(String(value), digestOf(String(value))));
    },
    summary: () => Object.fromEntries([...counts].map(([kind, values]) => [kind, values.size])),
  };
}
