/**
 * The rule language of oslo.policy. A rule is parsed into a tree, and the tree is compiled into functions that allocate nothing.
 *
 *     or     = and { "or" and }
 *     and    = not { "and" not }
 *     not    = "not" not | "(" or ")" | check
 *     check  = "@" | "!" | kind ":" match
 *     match  = text with %(name)s, the value of the target
 */
import { isObject } from '../model/json';
import { repr } from '../model/python';

/** Text and names of the target in turn: texts[0] names[0] texts[1] … */
interface Template {
  readonly texts: readonly string[];
  readonly names: readonly string[];
}
export type Rule =
  | { readonly kind: 'always' | 'never' }
  /** The rule of that name. */
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'role'; readonly match: Template }
  /** Compares a literal with a value of the target. */
  | { readonly kind: 'literal'; readonly written: string; readonly value: string; readonly match: Template }
  /** Compares a credential, or any member of a list, with a text or a value of the target. */
  | { readonly kind: 'credential'; readonly path: readonly string[]; readonly match: Template }
  | { readonly kind: 'not'; readonly rule: Rule }
  | { readonly kind: 'and' | 'or'; readonly rules: readonly Rule[] };

/** A rule that cannot be used. The message says why, without the rule's name. */
export class RuleError extends Error {}

/** Longer texts in messages are cut. */
const SHOWN = 100;
const quoted = (text: string): string => `"${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}"`;

const MAX_RULE_LENGTH = 16_384;
/** The deepest nesting of parentheses and `not`. */
const MAX_RULE_DEPTH = 64;

const LEADING = /^\(+/;
/** Refused, because Python splits text at other control characters than JavaScript does. */
// eslint-disable-next-line no-control-regex
const CONTROL = /[\0-\u0008\u000e-\u001f\u007f-\u009f\ufeff]/;
const STRING = /^(?:'[^'\\]*'|"[^"\\]*")$/;
const INTEGER = /^(?:0|-?[1-9]\d{0,15})$/;
const PATH = /^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*$/;
const CONSTANTS: readonly string[] = ['None', 'True', 'False'];
/** oslo.policy fails at each evaluation of a check with such a name. */
const KEYWORDS: readonly string[] =
  'and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  );

/** @throws RuleError */
function parseTemplate(text: string): Template {
  const texts = [''];
  const names: string[] = [];
  let at = 0;
  for (;;) {
    const percent = text.indexOf('%', at);
    texts[names.length] += text.slice(at, percent < 0 ? undefined : percent);
    if (percent < 0) return { texts, names };
    if (text[percent + 1] === '%') {
      texts[names.length] += '%';
      at = percent + 2;
      continue;
    }
    const close = text.indexOf(')', percent);
    const name = text.slice(percent + 2, close < 0 ? undefined : close);
    if (text[percent + 1] !== '(' || close < 0 || text[close + 1] !== 's' || name === '' || name.includes('('))
      throw new RuleError(`${quoted(text)} has a % that is neither %(name)s nor %%`);
    names.push(name);
    texts.push('');
    at = close + 2;
  }
}

/** @throws RuleError */
function parseCheck(text: string): Rule {
  if (text === '@') return { kind: 'always' };
  if (text === '!') return { kind: 'never' };
  const colon = text.indexOf(':');
  if (colon < 0) throw new RuleError(`${quoted(text)} is not a check: it has no colon`);
  const [kind, match] = [text.slice(0, colon), text.slice(colon + 1)];
  if (kind === 'rule') return { kind, name: match };
  if (kind === 'role') return { kind, match: parseTemplate(match) };
  if (kind === 'http' || kind === 'https') throw new RuleError(`${quoted(text)} asks another server, which is not supported`);
  if (STRING.test(kind)) return { kind: 'literal', written: kind, value: kind.slice(1, -1), match: parseTemplate(match) };
  if (CONSTANTS.includes(kind) || INTEGER.test(kind)) return { kind: 'literal', written: kind, value: kind, match: parseTemplate(match) };
  const path = kind.split('.');
  if (!PATH.test(kind) || path.some((name) => KEYWORDS.includes(name)))
    throw new RuleError(`${quoted(kind)} is neither the name of a credential nor a literal`);
  return { kind: 'credential', path, match: parseTemplate(match) };
}

type Token = '(' | ')' | 'and' | 'or' | 'not' | Rule;

/** Parentheses are tokens at the beginning and the end of a word only: %(name)s has its own. @throws RuleError */
function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const word of text.split(/\s+/)) {
    if (word === '') continue;
    const opening = LEADING.exec(word)?.[0].length ?? 0;
    let end = word.length;
    while (end > opening && word[end - 1] === ')') end--;
    for (let count = 0; count < opening; count++) tokens.push('(');
    const inner = word.slice(opening, end);
    const lower = inner.toLowerCase();
    if (lower === 'and' || lower === 'or' || lower === 'not') tokens.push(lower);
    else if (inner !== '') {
      const rest = word.slice(opening);
      if (rest.length >= 2 && (rest.startsWith("'") || rest.startsWith('"')) && rest.endsWith(rest[0]!))
        throw new RuleError(`${quoted(rest)} is not a check`);
      tokens.push(parseCheck(inner));
    }
    for (let count = end; count < word.length; count++) tokens.push(')');
  }
  return tokens;
}

/** @throws RuleError */
function parseText(text: string): Rule {
  if (text === '') return { kind: 'always' };
  if (text.length > MAX_RULE_LENGTH) throw new RuleError(`it is longer than ${MAX_RULE_LENGTH} characters`);
  if (CONTROL.test(text)) throw new RuleError('it has a control character');
  const tokens = tokenize(text);
  if (tokens.length === 0) throw new RuleError('it is blank; an empty text, or @, allows everybody');
  let next = 0;
  const unexpected = (): RuleError => {
    const token = tokens[next];
    return new RuleError(
      token === undefined
        ? 'it ends where a check is missing, or a parenthesis is not closed'
        : `${quoted(typeof token === 'string' ? token : formatRule(token))} is not expected there`,
    );
  };
  const several = (operator: 'and' | 'or', operand: (depth: number) => Rule, depth: number): Rule => {
    const rules = [operand(depth)];
    for (; tokens[next] === operator;) {
      next++;
      rules.push(operand(depth));
    }
    return rules.length === 1 ? rules[0]! : { kind: operator, rules };
  };
  const parseNot = (depth: number): Rule => {
    if (depth > MAX_RULE_DEPTH) throw new RuleError(`it is nested more than ${MAX_RULE_DEPTH} times`);
    const token = tokens[next];
    if (token === 'not') {
      next++;
      return { kind: 'not', rule: parseNot(depth + 1) };
    }
    if (token === '(') {
      next++;
      const rule = parseOr(depth + 1);
      if (tokens[next] !== ')') throw unexpected();
      next++;
      return rule;
    }
    if (token === undefined || typeof token === 'string') throw unexpected();
    next++;
    return token;
  };
  const parseAnd = (depth: number): Rule => several('and', parseNot, depth);
  const parseOr = (depth: number): Rule => several('or', parseAnd, depth);
  const rule = parseOr(0);
  if (next < tokens.length) throw unexpected();
  return rule;
}

/** The older form: a list of alternatives, each a check or a list of checks that must all be true. @throws RuleError */
function parseList(list: readonly unknown[]): Rule {
  if (list.length === 0) return { kind: 'always' };
  let length = 0;
  const add = (characters: number): void => {
    length += characters;
    if (length > MAX_RULE_LENGTH) throw new RuleError(`it is longer than ${MAX_RULE_LENGTH} characters`);
  };
  const check = (text: unknown): Rule => {
    if (typeof text !== 'string') throw new RuleError('a list of checks has a member that is not a text');
    add(text.length + 1);
    if (CONTROL.test(text)) throw new RuleError('it has a control character');
    return parseCheck(text);
  };
  const rules: Rule[] = [];
  for (const alternative of list) {
    const checks: readonly unknown[] = Array.isArray(alternative) ? alternative : alternative === '' ? [] : [alternative];
    if (checks.length === 1) rules.push(check(checks[0]));
    else if (checks.length > 1) rules.push({ kind: 'and', rules: checks.map(check) });
    else add(1);
  }
  if (rules.length === 0) return { kind: 'never' };
  return rules.length === 1 ? rules[0]! : { kind: 'or', rules };
}

/**
 * @param given a text, or a list in the older form
 * @throws RuleError for what oslo.policy would turn into a rule that nobody passes, or that fails at each evaluation
 */
export function parseRule(given: unknown): Rule {
  if (typeof given === 'string') return parseText(given);
  if (Array.isArray(given)) return parseList(given);
  throw new RuleError('it is neither a text nor a list');
}

const formatTemplate = ({ texts, names }: Template): string =>
  texts.map((text, index) => text.replaceAll('%', '%%') + (index < names.length ? `%(${names[index]!})s` : '')).join('');

/** The rule as oslo.policy writes it. */
export function formatRule(rule: Rule): string {
  switch (rule.kind) {
    case 'always':
      return '@';
    case 'never':
      return '!';
    case 'rule':
      return `rule:${rule.name}`;
    case 'role':
      return `role:${formatTemplate(rule.match)}`;
    case 'literal':
      return `${rule.written}:${formatTemplate(rule.match)}`;
    case 'credential':
      return `${rule.path.join('.')}:${formatTemplate(rule.match)}`;
    case 'not':
      return `not ${formatRule(rule.rule)}`;
    case 'and':
    case 'or':
      return `(${rule.rules.map(formatRule).join(` ${rule.kind} `)})`;
  }
}

/** The value of a credential or of the target. Undefined: there is none, and no check of it is true. */
export type PolicyValue = string | number | boolean | null | undefined | readonly PolicyValue[] | { readonly [name: string]: PolicyValue };
/** Where rules find values. */
export interface Vocabulary<Caller, Target> {
  readonly roles: (caller: Caller) => readonly string[];
  /** Undefined: no caller has this credential. */
  readonly credential: (name: string) => ((caller: Caller) => PolicyValue) | undefined;
  /** Undefined: no target has this value. */
  readonly target: (name: string) => ((caller: Caller, target: Target) => PolicyValue) | undefined;
}
export type PolicyCheck<Caller, Target> = (caller: Caller, target: Target) => boolean;

/** Values in rules are as Python writes them. */
const textOf = (value: Exclude<PolicyValue, undefined>): string => (typeof value === 'string' ? value : repr(value));

/**
 * oslo.policy compares everything as text, so that a project with the ID "None" owns what has no owner. Here a value equals values of its
 * own kind only.
 */
const isSame = (left: Exclude<PolicyValue, undefined>, right: Exclude<PolicyValue, undefined>): boolean =>
  left === right ||
  (typeof left === 'object' && typeof right === 'object' && left !== null && right !== null && repr(left) === repr(right));
/** Whether a rule names the value. `None`, `True` and `False` are not texts. */
const isNamed = (value: Exclude<PolicyValue, undefined>, written: string): boolean =>
  textOf(value) === written && !(typeof value === 'string' && CONSTANTS.includes(written));
type Compare = (value: Exclude<PolicyValue, undefined>, given: Exclude<PolicyValue, undefined>) => boolean;

/** Whether the value at the path is the given one. Of a list on the way, one matching member is enough. */
function matches(
  value: PolicyValue,
  path: readonly string[],
  at: number,
  given: Exclude<PolicyValue, undefined>,
  compare: Compare,
): boolean {
  if (!Array.isArray(value)) return memberMatches(value, path, at, given, compare);
  for (const member of value as readonly PolicyValue[]) if (memberMatches(member, path, at, given, compare)) return true;
  return false;
}
function memberMatches(
  value: PolicyValue,
  path: readonly string[],
  at: number,
  given: Exclude<PolicyValue, undefined>,
  compare: Compare,
): boolean {
  if (value === undefined) return false;
  if (at === path.length) return compare(value, given);
  if (!isObject(value) || !Object.hasOwn(value, path[at]!)) return false;
  return matches((value as Readonly<Record<string, PolicyValue>>)[path[at]!], path, at + 1, given, compare);
}

/**
 * The text of a template, or the value of one that is a single name. Undefined: the target lacks a value, or a value that is not a text is
 * in a text.
 */
function compileTemplate<Caller, Target>(
  { texts, names }: Template,
  vocabulary: Vocabulary<Caller, Target>,
): (caller: Caller, target: Target) => PolicyValue {
  const values = names.map((name) => vocabulary.target(name));
  if (values.includes(undefined)) return () => undefined;
  const known = values as ((caller: Caller, target: Target) => PolicyValue)[];
  const [text, value] = [texts[0]!, known[0]];
  if (!value) return () => text;
  if (texts.length === 2 && text === '' && texts[1] === '') return value;
  return (caller, target) => {
    let whole = text;
    for (let index = 0; index < known.length; index++) {
      const found = known[index]!(caller, target);
      if (typeof found !== 'string' && typeof found !== 'number') return undefined;
      whole += String(found) + texts[index + 1]!;
    }
    return whole;
  };
}

/** @param refer the check of another rule */
export function compileRule<Caller, Target>(
  rule: Rule,
  vocabulary: Vocabulary<Caller, Target>,
  refer: (name: string) => PolicyCheck<Caller, Target>,
): PolicyCheck<Caller, Target> {
  switch (rule.kind) {
    case 'always':
      return () => true;
    case 'never':
      return () => false;
    case 'rule':
      return refer(rule.name);
    case 'role': {
      const { roles } = vocabulary;
      const { texts, names } = rule.match;
      if (names.length === 0) {
        const role = texts[0]!.toLowerCase();
        return (caller) => roles(caller).includes(role);
      }
      const template = compileTemplate(rule.match, vocabulary);
      return (caller, target) => {
        const role = template(caller, target);
        return typeof role === 'string' && roles(caller).includes(role.toLowerCase());
      };
    }
    case 'literal': {
      const { value, written, match } = rule;
      const template = compileTemplate(match, vocabulary);
      const isText = match.names.length === 0 || written !== value;
      return (caller, target) => {
        const given = template(caller, target);
        return given !== undefined && (isText ? given === value : isNamed(given, value));
      };
    }
    case 'credential': {
      const { path, match } = rule;
      const credential = vocabulary.credential(path[0]!);
      if (!credential) return () => false;
      const template = compileTemplate(match, vocabulary);
      const compare: Compare = match.names.length === 0 ? (found, written) => isNamed(found, written as string) : isSame;
      return (caller, target) => {
        const given = template(caller, target);
        return given !== undefined && matches(credential(caller), path, 1, given, compare);
      };
    }
    case 'not': {
      const check = compileRule(rule.rule, vocabulary, refer);
      return (caller, target) => !check(caller, target);
    }
    case 'and': {
      const checks = rule.rules.map((item) => compileRule(item, vocabulary, refer));
      return (caller, target) => {
        for (const check of checks) if (!check(caller, target)) return false;
        return true;
      };
    }
    case 'or': {
      const checks = rule.rules.map((item) => compileRule(item, vocabulary, refer));
      return (caller, target) => {
        for (const check of checks) if (check(caller, target)) return true;
        return false;
      };
    }
  }
}

/** The checks of a rule, without those of the rules that it refers to. */
export function checksOf(rule: Rule): readonly Rule[] {
  switch (rule.kind) {
    case 'not':
      return checksOf(rule.rule);
    case 'and':
    case 'or':
      return rule.rules.flatMap(checksOf);
    default:
      return [rule];
  }
}
/** The names of the rules that a rule refers to. */
export const referencesOf = (rule: Rule): readonly string[] =>
  checksOf(rule).flatMap((check) => (check.kind === 'rule' ? [check.name] : []));
