/**
 * Reads which kernel GRUB starts by default. A grub.cfg is a program, and this is no interpreter: it knows menu entries, assignments and the
 * commands `linux` and `initrd`. A value that depends on a condition is refused (NotUnderstood), so that nothing else is started than GRUB
 * would.
 */
import { type BootEntry, NotUnderstood } from './boot-entry';

/** name → value, of a file `grubenv`. */
export type GrubEnvironment = ReadonlyMap<string, string>;

export const parseGrubEnvironment = (text: string): GrubEnvironment =>
  new Map(
    text
      .split('\n')
      .filter((line) => !line.startsWith('#') && line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );

/** A menu entry, a submenu, or the whole file. */
interface Menu {
  readonly kind: 'menuentry' | 'submenu' | 'other';
  readonly title: string;
  readonly id: string;
  readonly items: Menu[];
  /** The commands in it, not those in its items. */
  readonly lines: string[];
}
const MAX_DEPTH = 8;
const MAX_WORDS = 512;

/** The words of a command. `valueOf` gives the value of a variable; within single quotes there are none. */
function wordsOf(line: string, valueOf: (name: string) => string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < line.length && words.length < MAX_WORDS; at++) {
    const character = line[at]!;
    if (quote === "'") {
      if (character === "'") quote = '';
      else word += character;
    } else if (character === '\\') {
      word = (word ?? '') + (line[++at] ?? '');
    } else if (character === '$') {
      const [taken, name] = variableAt(line, at);
      word = (word ?? '') + valueOf(name);
      at += taken - 1;
    } else if (quote === '"') {
      if (character === '"') quote = '';
      else word += character;
    } else if (character === "'" || character === '"') {
      quote = character;
      word ??= '';
    } else if (character === ' ' || character === '\t' || character === ';') {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === '#' && word === undefined) {
      break;
    } else {
      word = (word ?? '') + character;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}
/** `$name` or `${name}`: its length, and the name. A lone dollar sign has an empty name. */
function variableAt(line: string, start: number): readonly [taken: number, name: string] {
  const braced = line[start + 1] === '{';
  const from = start + (braced ? 2 : 1);
  let end = from;
  while (end < line.length && /\w/.test(line[end]!)) end++;
  return [end - start + (braced && line[end] === '}' ? 1 : 0), line.slice(from, end)];
}

/** The text with the values of its variables. */
export function expanded(text: string, valueOf: (name: string) => string): string {
  let result = '';
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '$') {
      const [taken, name] = variableAt(text, at);
      result += valueOf(name);
      at += taken - 1;
    } else {
      result += text[at]!;
    }
  }
  return result;
}

const asIs = (name: string): string => `\${${name}}`;
const menu = (kind: Menu['kind'], words: readonly string[] = []): Menu => {
  const mark = words.findIndex((word) => word === '--id' || word === '${menuentry_id_option}');
  return { kind, title: words[1] ?? '', id: mark < 0 ? '' : (words[mark + 1] ?? ''), items: [], lines: [] };
};

function parseMenus(text: string): Menu {
  const whole = menu('other');
  const open = [whole];
  for (const raw of text.replaceAll('\\\n', '').split('\n')) {
    const line = raw.trim();
    const current = open.at(-1)!;
    if (line === '}') {
      if (open.length > 1) open.pop();
    } else if (line.endsWith('{')) {
      const words = wordsOf(line.slice(0, -1), asIs);
      const kind = words[0] === 'menuentry' || words[0] === 'submenu' ? words[0] : 'other';
      const inner = menu(kind, words);
      if (open.length >= MAX_DEPTH) throw new NotUnderstood('its menus are nested too deeply');
      if (kind !== 'other') current.items.push(inner);
      open.push(inner);
    } else if (line !== '' && !line.startsWith('#')) {
      current.lines.push(line);
    }
  }
  return whole;
}

/** Name → the values that the file assigns to it anywhere. */
function assignments(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const values = new Map<string, Set<string>>();
  for (const raw of text.split('\n')) {
    const [command, assigned = ''] = wordsOf(raw.trim(), asIs);
    const equals = assigned.indexOf('=');
    if (command !== 'set' || equals < 1) continue;
    const name = assigned.slice(0, equals);
    values.set(name, (values.get(name) ?? new Set()).add(assigned.slice(equals + 1)));
  }
  return values;
}

/** Finds `0`, `1>2`, a title, or an identifier, as in GRUB's variable `default`. Undefined: there is no such entry. */
function entryAt(menus: readonly Menu[], wanted: string): Menu | undefined {
  const [first = '', ...rest] = wanted.split('>');
  const found = /^\d+$/.test(first)
    ? menus[Number(first)]
    : menus.find(({ id, title }) => first !== '' && (id === first || title === first));
  return found?.kind === 'submenu' ? (entryAt(found.items, rest.join('>')) ?? found.items[0]) : found;
}

const LINUX = ['linux', 'linux16', 'linuxefi'];
const INITRD = ['initrd', 'initrd16', 'initrdefi'];
/** `(hd0,gpt1)/vmlinuz` → `/vmlinuz`: which partition it is, is found by the path. */
const pathIn = (text: string): string => text.replace(/^\([^)]*\)/, '');
const quoted = (word: string): string => (word.includes(' ') ? `"${word}"` : word);

/** Whether the file takes its entries from files of the Boot Loader Specification. */
export const readsLoaderEntries = (text: string): boolean => text.split('\n').some((line) => line.trim() === 'blscfg');

/** The value of a variable, as the file and its environment say. Throws NotUnderstood if it depends on a condition. */
export function grubVariables(text: string, environment: GrubEnvironment): (name: string) => string {
  const assigned = assignments(text);
  return (name) => {
    const values = new Set(assigned.get(name));
    const saved = environment.get(name);
    if (saved !== undefined) return saved;
    if (values.size > 1) throw new NotUnderstood(`the value of its variable ${name.slice(0, 64)} depends on a condition`);
    const [value = ''] = values;
    // A variable that is never assigned is empty, as for GRUB.
    if (value.includes('${')) throw new NotUnderstood(`the value of its variable ${name.slice(0, 64)} depends on others`);
    return value;
  };
}

/** GRUB's variable `default`: of the environment's next entry, else the last assignment that does not depend on one. */
export function defaultEntry(text: string, environment: GrubEnvironment): string {
  const next = environment.get('next_entry');
  if (next) return next;
  const values = [...(assignments(text).get('default') ?? [])].filter((value) => value !== '${next_entry}');
  const last = values.at(-1) ?? '0';
  return last === '${saved_entry}' ? (environment.get('saved_entry') ?? '0') : last;
}

/** What GRUB starts by default; undefined: the file starts no Linux. Throws NotUnderstood. */
export function grubEntry(text: string, environment: GrubEnvironment): BootEntry | undefined {
  const whole = parseMenus(text);
  const chosen = entryAt(whole.items, defaultEntry(text, environment)) ?? entryAt(whole.items, '0') ?? whole;
  const valueOf = grubVariables(text, environment);
  const entries: { kernel: string; initrds: readonly string[]; commandLine: string }[] = [];
  for (const line of chosen.lines) {
    const command = wordsOf(line, asIs)[0] ?? '';
    if (LINUX.includes(command)) {
      const [, kernel = '', ...parameters] = wordsOf(line, valueOf);
      entries.push({ kernel: pathIn(kernel), initrds: [], commandLine: parameters.map(quoted).filter(Boolean).join(' ') });
    } else if (INITRD.includes(command) && entries.length > 0) {
      entries.at(-1)!.initrds = wordsOf(line, valueOf).slice(1).map(pathIn).filter(Boolean);
    }
  }
  // Some images try without an initrd first, and have a second command with one.
  return entries.find(({ initrds }) => initrds.length > 0) ?? entries[0];
}
