/**
 * JSON paths as ironic-inspector's rules write them (the grammar of the Python package jsonpath-rw, without `where` and filters): `a.b`,
 * `a[0]`, `a[*].b`, `a[1:3]`, `a..b`, `$`, `*`, `'any name'`, `` `this` ``, `a,b` and `a|b`.
 */
import { isObject } from '../json';

/** One step: from a value to its descendants. `$` selects the root, at any place. */
type Step = (value: unknown, root: unknown) => readonly unknown[];
type JsonPath = (root: unknown) => readonly unknown[];

const member =
  (names: readonly string[]): Step =>
  (value) =>
    isObject(value) ? names.flatMap((name) => (Object.hasOwn(value, name) ? [value[name]] : [])) : [];
const everyMember: Step = (value) => (isObject(value) ? Object.values(value) : []);
/** For a value that is not a list, `[*]` selects the value itself. */
const everyItem: Step = (value) => (Array.isArray(value) ? (value as unknown[]) : [value]);
const item =
  (at: number): Step =>
  (value) =>
    Array.isArray(value) && value.at(at) !== undefined ? [value.at(at) as unknown] : [];
const slice =
  (from: number | undefined, to: number | undefined): Step =>
  (value) =>
    (Array.isArray(value) ? (value as unknown[]) : [value]).slice(from, to);
/** The value and all its descendants. */
const below =
  (step: Step): Step =>
  (value, root) => {
    const members = Array.isArray(value) ? (value as unknown[]) : isObject(value) ? Object.values(value) : [];
    return [...step(value, root), ...members.flatMap((child) => below(step)(child, root))];
  };
/** Limit of the values that a path selects. Each step of `$|$.$|$` doubles their number. */
const MAX_FOUND = 100_000;
const chain =
  (first: Step, second: Step): Step =>
  (value, root) => {
    const found: unknown[] = [];
    for (const match of first(value, root)) {
      for (const more of second(match, root)) found.push(more);
      if (found.length > MAX_FOUND) throw new Error(`the JSON path selects more than ${MAX_FOUND} values`);
    }
    return found;
  };
const either =
  (first: Step, second: Step): Step =>
  (value, root) => [...first(value, root), ...second(value, root)];

const TOKEN = /\s*(?:([a-zA-Z_@][\w@-]*)|(-?\d+)|'([^']*)'|"([^"]*)"|`([^`]*)`|(\.\.|[.*$[\]:,|]))\s*/y;
interface Token {
  readonly kind: 'name' | 'number' | 'special' | 'sign';
  readonly text: string;
}
function tokensOf(text: string): readonly Token[] {
  const found: Token[] = [];
  const token = new RegExp(TOKEN);
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const [, name, number, single, double, special, sign] = token.exec(text) ?? [];
    const quoted = name ?? single ?? double;
    if (quoted !== undefined) found.push({ kind: 'name', text: quoted });
    else if (number !== undefined) found.push({ kind: 'number', text: number });
    else if (special !== undefined) found.push({ kind: 'special', text: special });
    else if (sign !== undefined) found.push({ kind: 'sign', text: sign });
    else throw new Error(`Error on line 1, col ${at}: Unexpected character: ${text[at]} `);
  }
  return found;
}

/** Limit for paths from clients. */
const MAX_LENGTH = 1024;

/** @throws Error with the reason */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > MAX_LENGTH) throw new Error(`it is longer than ${MAX_LENGTH} characters`);
  const tokens = tokensOf(text);
  let at = 0;
  const peek = (): Token | undefined => tokens[at];
  const isSign = (sign: string): boolean => peek()?.kind === 'sign' && peek()!.text === sign;
  const unexpected = (): Error => {
    const token = peek();
    return new Error(token ? `Parse error near token ${token.text}` : 'Parse error near the end of string!');
  };
  const take = (sign: string): boolean => isSign(sign) && ++at > 0;
  const demand = (sign: string): void => {
    if (!take(sign)) throw unexpected();
  };
  const names = (): readonly string[] => {
    const all: string[] = [];
    do {
      if (peek()?.kind !== 'name') throw unexpected();
      all.push(tokens[at++]!.text);
    } while (take(','));
    return all;
  };
  const number = (): number | undefined => (peek()?.kind === 'number' ? Number(tokens[at++]!.text) : undefined);
  /** After `[`. */
  const bracket = (): Step => {
    if (take('*')) return everyItem;
    if (peek()?.kind === 'name') return member(names());
    const from = number();
    if (!take(':')) {
      if (from === undefined) throw unexpected();
      return item(from);
    }
    return slice(from, number());
  };
  const step = (): Step => {
    if (take('*')) return everyMember;
    if (take('$')) return (_, root) => [root];
    if (take('[')) {
      const inner = bracket();
      demand(']');
      return inner;
    }
    if (peek()?.kind === 'special') {
      if (peek()!.text !== 'this') throw new Error(`Unknown named operator \`${peek()!.text}\``);
      at++;
      return (value) => [value];
    }
    return member(names());
  };
  // In this grammar, `|` binds tighter than `.` and `..`, and brackets apply to all that precedes them: `a.b|c[0].d` is `((a.(b|c))[0]).d`.
  const alternatives = (): Step => {
    let all = step();
    while (take('|')) all = either(all, step());
    return all;
  };
  let path = alternatives();
  for (;;) {
    if (take('..')) path = chain(path, below(alternatives()));
    else if (take('.')) path = chain(path, alternatives());
    else if (isSign('[')) path = chain(path, step());
    else if (take('|')) path = either(path, step());
    else break;
  }
  if (at < tokens.length) throw unexpected();
  return (root) => path(root, root);
}
