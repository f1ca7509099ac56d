/** The titles of the tests in the source of a test file, for pages that name a test as a proof. Text elsewhere in the file is no title. */
import { format } from 'node:util';
import { parseSync } from '@swc/core';

type Tree = Readonly<Record<string, unknown>>;
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;
const list = (value: unknown): readonly Tree[] => (Array.isArray(value) ? value.filter(isTree) : []);

/** A value that is not written in the source, such as the result of a call. */
const UNKNOWN = Symbol('unknown');
/** Functions of other files that call `describe.each(rows)(title)` with their second argument. */
const CALLERS: Readonly<Record<string, string>> = { testMachines: '$name' };

/**
 * The titles of `describe`, `it` and `test`: as they are written, and also as `.each` makes them of each row in the file. Tests that are
 * skipped do not count.
 */
export function testTitles(source: string): readonly string[] {
  const module: unknown = parseSync(source, { syntax: 'typescript', target: 'es2023' });
  const constants = new Map<string, unknown>();
  const valueOf = (node: unknown): unknown => {
    if (!isTree(node)) return UNKNOWN;
    switch (node['type']) {
      case 'StringLiteral':
      case 'NumericLiteral':
      case 'BooleanLiteral':
        return node['value'];
      case 'NullLiteral':
        return null;
      case 'Identifier':
        return constants.has(String(node['value'])) ? valueOf(constants.get(String(node['value']))) : UNKNOWN;
      case 'ParenthesisExpression':
      case 'TsAsExpression':
      case 'TsConstAssertion':
      case 'TsSatisfiesExpression':
        return valueOf(node['expression']);
      case 'ArrayExpression':
        return list(node['elements']).map((element) => (element['spread'] ? UNKNOWN : valueOf(element['expression'])));
      case 'ObjectExpression':
        return Object.fromEntries(
          list(node['properties']).map(({ key, value }) => [isTree(key) ? String(key['value']) : UNKNOWN, valueOf(value)]),
        );
      default:
        return UNKNOWN;
    }
  };
  const titles: string[] = [];
  const walk = (node: unknown): void => {
    if (!isTree(node)) return;
    if (node['type'] === 'CallExpression') {
      const call = testCall(node);
      if (call?.isSkipped) return;
      if (call) titles.push(...titlesOf(valueOf(call.title), call.rows === undefined ? undefined : valueOf(call.rows)));
    }
    for (const child of Object.values(node)) walk(child);
  };
  for (const statement of isTree(module) ? list(module['body']) : [])
    for (const { id, init } of list(statement['declarations'])) if (isTree(id)) constants.set(String(id['value']), init);
  walk(module);
  return titles;
}

interface TestCall {
  readonly title: unknown;
  /** The argument of `.each`. */
  readonly rows?: unknown;
  readonly isSkipped: boolean;
}
/** Undefined for a call of anything else. */
function testCall(call: Tree): TestCall | undefined {
  const [first, second] = list(call['arguments']).map(({ expression }) => expression);
  let callee = call['callee'];
  let rows: unknown;
  let isSkipped = false;
  if (isTree(callee) && callee['type'] === 'CallExpression') {
    rows = list(callee['arguments'])[0]?.['expression'];
    callee = callee['callee'];
    if (!isTree(callee) || !isTree(callee['property']) || callee['property']['value'] !== 'each') return undefined;
  }
  while (isTree(callee) && callee['type'] === 'MemberExpression') {
    isSkipped ||= isTree(callee['property']) && ['skip', 'todo', 'failing'].includes(String(callee['property']['value']));
    callee = callee['object'];
  }
  if (!isTree(callee) || callee['type'] !== 'Identifier') return undefined;
  const name = String(callee['value']);
  if (Object.hasOwn(CALLERS, name)) return { title: { type: 'StringLiteral', value: CALLERS[name] }, rows: second, isSkipped };
  return ['describe', 'it', 'test'].includes(name) ? { title: first, rows, isSkipped } : undefined;
}

function titlesOf(title: unknown, rows: unknown): readonly string[] {
  if (typeof title !== 'string') return [];
  return [title, ...(Array.isArray(rows) ? rows.map((row) => titleOfRow(title, row)) : [])].filter((candidate) => candidate !== undefined);
}
/** Undefined if the title needs a value that is not known. */
function titleOfRow(title: string, row: unknown): string | undefined {
  if (isTree(row) && !Array.isArray(row)) {
    const isKnown = [...title.matchAll(/\$(\w+)/g)].every(([, key]) => isPlain(row[key!]));
    return isKnown ? title.replace(/\$(\w+)/g, (_, key: string) => String(row[key])) : undefined;
  }
  const values = (Array.isArray(row) ? row : [row]).slice(0, title.match(/%[a-z#]/g)?.length ?? 0);
  return /%[^sdij%]/.test(title) || !values.every(isPlain) ? undefined : format(title, ...(values as readonly unknown[]));
}
const isPlain = (value: unknown): boolean =>
  value !== UNKNOWN && value !== undefined && (!isTree(value) || Object.values(value).every(isPlain));
