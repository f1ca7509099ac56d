/** Values of a site that are replaced wherever they stand: inside of links, names and messages. */
import { isIPv4, isIPv6 } from 'node:net';
import { GENERIC, PLACEHOLDER, type Kind } from './replace-names';
import type { Replaced } from './replacements';

interface Known {
  /** In small letters, unless it is a secret. */
  readonly value: string;
  readonly kind: Replaced;
  /** Only between characters that are no letters and digits. */
  readonly isWord: boolean;
}
interface KnownValues {
  /** Notes the value of a property of this kind, if it tells enough to be found again. */
  note(kind: Kind | undefined, value: string): void;
  /** In small letters. */
  has(value: string): boolean;
  /**
   * Replaces the values inside of a text, from the left, the longest first.
   * @param isName the text is the name of a property: words of letters only are the schema's there
   */
  replaceIn(text: string, isName: boolean, replacement: (kind: Replaced, value: string) => string): string;
}

type Index = ReadonlyMap<string, ReadonlyMap<number, ReadonlyMap<string, Known>>>;

/** Limits, whatever a service has: values, and characters of one. Longer ones are replaced in their own property only. */
const MOST = { values: 50_000, characters: 128 } as const;
/** Characters of the shortest values. Shorter ones stand in other texts by chance. */
const SHORTEST = { serial: 5, letters: 7, word: 4, secret: 6 } as const;
/** The first characters of a value, by which it is found. */
const START = 4;

/** As long as before: toLowerCase makes two characters of some. */
const inSmallLetters = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
export const isMacText = (value: string): boolean => /^[0-9a-f]{2}(?:([-:]|%3a|)[0-9a-f]{2}(?:\1[0-9a-f]{2}){4})$/i.test(value);
export const bareHex = (value: string): string => value.replace(/%3a|[^0-9a-f]/gi, '').toLowerCase();

/** @param isProduct whether a text in small letters is the name of a product */
export function createKnownValues(isProduct: (text: string) => boolean): KnownValues {
  const known = new Map<string, Known>();
  let index: Index | undefined;

  const add = (value: string, kind: Replaced, isWord: boolean): void => {
    const text = kind === 'secret' ? value : inSmallLetters(value);
    if (known.has(text) || known.size >= MOST.values || text.length > MOST.characters) return;
    known.set(text, { value: text, kind, isWord });
    index = undefined;
  };
  const addWord = (value: string, kind: Replaced): void => {
    if (value.length >= SHORTEST.word && !GENERIC.has(value.toLowerCase()) && !PLACEHOLDER.test(value)) add(value, kind, true);
  };
  const NOTES: { readonly [kind in Kind]?: (value: string) => void } = {
    'serial number': (value) => {
      const isTelling =
        value.length >= SHORTEST.serial && (/\d/.test(value) || (value.length >= SHORTEST.letters && /^[A-Z-]+$/.test(value)));
      if (isTelling && !PLACEHOLDER.test(value)) add(value, 'serial number', false);
    },
    'MAC address': (value) => {
      if (isMacText(value) && !/^[0:-]*$/.test(value)) add(bareHex(value), 'MAC address', false);
    },
    'host name': (value) => {
      if (isIPv4(value) || isIPv6(value)) return;
      addWord(value, 'host name');
      addWord(value.split('.', 1)[0]!, 'host name');
    },
    account: (value) => addWord(value, 'account'),
    secret: (value) => {
      if (value.length >= SHORTEST.secret && /\d/.test(value)) add(value, 'secret', false);
    },
  };
  /** First characters → length of a value → the values. A place in a text is compared by length, however many values begin alike. */
  const indexed = (): Index => {
    if (index) return index;
    const made: Map<string, Map<number, Map<string, Known>>> = new Map();
    // The longest first.
    for (const item of [...known.values()].sort((left, right) => right.value.length - left.value.length)) {
      // Some SKUs name a product.
      if (item.kind === 'serial number' && isProduct(item.value)) continue;
      const start = inSmallLetters(item.value.slice(0, START));
      const byLength = made.get(start) ?? new Map<number, Map<string, Known>>();
      const values = byLength.get(item.value.length) ?? new Map<string, Known>();
      made.set(start, byLength.set(item.value.length, values.set(item.value, item)));
    }
    return (index = made);
  };
  return {
    note: (kind, value) => kind && NOTES[kind]?.(value.trim()),
    has: (value) => known.has(value),
    replaceIn: (text, isName, replacement) => {
      if (text.length < START) return text;
      const [small, byStart] = [inSmallLetters(text), indexed()];
      const isThere = ({ value, isWord }: Known, at: number): boolean => {
        if (isWord && isName && /^[a-z]+$/i.test(value)) return false;
        return !isWord || !(/[a-z0-9]/i.test(text[at - 1] ?? '') || /[a-z0-9]/i.test(text[at + value.length] ?? ''));
      };
      const findAt = (at: number): Known | undefined => {
        for (const [length, values] of byStart.get(small.slice(at, at + START)) ?? []) {
          const item = values.get(text.slice(at, at + length)) ?? values.get(small.slice(at, at + length));
          if (item && isThere(item, at)) return item;
        }
        return undefined;
      };
      let [result, from] = ['', 0];
      for (let at = 0; at + START <= text.length; at++) {
        const found = findAt(at);
        if (!found) continue;
        const end = at + found.value.length;
        result += text.slice(from, at) + replacement(found.kind, text.slice(at, end));
        from = end;
        at = end - 1;
      }
      return result + text.slice(from);
    },
  };
}
