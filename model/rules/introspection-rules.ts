/** Rules of the introspection service: their conditions and actions, and the checks of rules from clients. */
import { invalid } from '../errors';
import { parseNetwork } from '../idents';
import { isObject } from '../json';
import { parseJsonPath } from './json-path';
import { pformat, repr } from '../python';
import { fromPython } from './python-regex';
import type { IntrospectionRuleRecord, JsonObject } from '../records';

interface Signature {
  readonly required: readonly string[];
  readonly optional?: readonly string[];
  /** The member must be present, but may be null. */
  readonly present?: string;
  /** @throws Error that describes the invalid parameters */
  readonly check?: (params: JsonObject) => void;
}
const hasRegex = ({ value }: JsonObject): void => {
  try {
    fromPython(String(value));
  } catch (error) {
    throw new Error(`invalid regular expression: ${(error as Error).message}`, { cause: error });
  }
};
const hasNetwork = ({ value }: JsonObject): void => {
  if (!parseNetwork(String(value))) throw new Error(`invalid value: invalid IPNetwork ${String(value)}`);
};
const value: Signature = { required: ['value'] };
/** In the order in which messages list them. @internal */
export const CONDITIONS: Readonly<Record<string, Signature>> = {
  contains: { ...value, check: hasRegex },
  eq: value,
  ge: value,
  gt: value,
  'in-net': { ...value, check: hasNetwork },
  'is-empty': { required: [] },
  le: value,
  lt: value,
  matches: { ...value, check: hasRegex },
  ne: value,
};
/** @internal */
export const ACTIONS: Readonly<Record<string, Signature>> = {
  'add-trait': { required: ['name'] },
  'extend-attribute': { required: ['path', 'value'], optional: ['unique'] },
  fail: { required: ['message'] },
  'remove-trait': { required: ['name'] },
  'set-attribute': { required: ['path'], optional: ['value', 'reset_interfaces'], present: 'value' },
  'set-capability': { required: ['name'], optional: ['value'] },
};

/** JSON schemas as the messages quote them. */
const CONDITION_ITEM = {
  type: 'object',
  required: ['op', 'field'],
  properties: {
    op: { description: 'condition operator', enum: Object.keys(CONDITIONS) },
    field: { description: 'JSON path to field for matching', type: 'string' },
    multiple: { description: 'how to treat multiple values', enum: ['all', 'any', 'first'] },
    invert: { description: 'whether to invert the result', type: 'boolean' },
  },
  additionalProperties: true,
} as const;
const ACTION_ITEM = {
  type: 'object',
  required: ['action'],
  properties: { action: { description: 'action to take', enum: Object.keys(ACTIONS) } },
  additionalProperties: true,
} as const;
interface ListSchema {
  readonly title: string;
  readonly type: 'array';
  readonly minItems: number;
  readonly items: {
    readonly required: readonly string[];
    readonly properties: Readonly<Record<string, { readonly enum?: readonly string[]; readonly type?: string }>>;
  };
}
const SCHEMAS: Readonly<Record<'conditions' | 'actions', ListSchema>> = {
  conditions: { title: 'Inspector rule conditions schema', type: 'array', minItems: 0, items: CONDITION_ITEM },
  actions: { title: 'Inspector rule actions schema', type: 'array', minItems: 1, items: ACTION_ITEM },
};

const indented = (item: unknown): string => `    ${pformat(item, 72).replaceAll('\n', '\n    ')}`;

/** Throws Invalid with the messages of ironic-inspector's validator. */
function demandSchema(part: 'conditions' | 'actions', list: unknown): asserts list is readonly JsonObject[] {
  const schema = SCHEMAS[part];
  const { items } = schema;
  const refuse = (what: string, keyword: string, where: string, quoted: unknown, at: string, instance: unknown): never => {
    throw invalid(
      `Validation failed for ${part}: ${what}\n\nFailed validating ${repr(keyword)} in schema${where}:\n${indented(quoted)}\n\nOn instance${at}:\n${indented(instance)}`,
    );
  };
  if (!Array.isArray(list)) return refuse(`${repr(list)} is not of type 'array'`, 'type', '', schema, '', list);
  if (list.length < schema.minItems) refuse(`${repr(list)} should be non-empty`, 'minItems', '', schema, '', list);
  for (const [index, entry] of (list as unknown[]).entries()) {
    const at = `[${index}]`;
    if (!isObject(entry)) return refuse(`${repr(entry)} is not of type 'object'`, 'type', "['items']", items, at, entry);
    for (const name of items.required)
      if (!Object.hasOwn(entry, name)) refuse(`${repr(name)} is a required property`, 'required', "['items']", items, at, entry);
    for (const [name, { enum: words, type }] of Object.entries(items.properties)) {
      if (!Object.hasOwn(entry, name)) continue;
      const where = `['items']['properties'][${repr(name)}]`;
      const given = entry[name];
      if (words && !words.includes(given as string))
        refuse(`${repr(given)} is not one of ${repr(words)}`, 'enum', where, items.properties[name], `${at}[${repr(name)}]`, given);
      if (type !== undefined && typeof given !== type)
        refuse(`${repr(given)} is not of type ${repr(type)}`, 'type', where, items.properties[name], `${at}[${repr(name)}]`, given);
    }
  }
}

/** Throws an Error that lists missing, unexpected or invalid parameters. */
function checkParameters(params: JsonObject, { required, optional = [], present, check }: Signature): void {
  const passed = Object.keys(params).filter((name) => params[name] !== null);
  const isAbsent = present !== undefined && !Object.hasOwn(params, present);
  const missing = isAbsent ? [present] : required.filter((name) => !passed.includes(name));
  const unexpected = isAbsent ? [] : passed.filter((name) => !required.includes(name) && !optional.includes(name));
  const wrong = [
    ...(missing.length > 0 ? [`missing required parameter(s): ${missing.join(', ')}`] : []),
    ...(unexpected.length > 0 ? [`unexpected parameter(s): ${unexpected.join(', ')}`] : []),
  ];
  if (wrong.length > 0) throw new Error(wrong.join('; '));
  check?.(params);
}
const without = (item: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));

/** Splits the field of a condition into scheme and path. */
export function fieldOf(field: string): { readonly scheme: string; readonly path: string } {
  const end = field.indexOf('://');
  return end < 0 ? { scheme: 'data', path: field } : { scheme: field.slice(0, end), path: field.slice(end + 3) };
}
const RESERVED = ['op', 'field', 'multiple', 'invert'];

/** Checks conditions and actions, and adds defaults. Throws Invalid. */
export function checkedIntrospectionRule(conditions: unknown, actions: unknown): Pick<IntrospectionRuleRecord, 'conditions' | 'actions'> {
  const wrongly = (what: string, work: () => void): void => {
    try {
      work();
    } catch (error) {
      throw invalid(`${what}: ${(error as Error).message}`);
    }
  };
  demandSchema('conditions', conditions);
  const checked = conditions.map((condition) => {
    const { op, field, multiple = 'any', invert = false } = condition as { op: string; field: string; multiple?: string; invert?: boolean };
    const { scheme, path } = fieldOf(field);
    if (scheme !== 'node' && scheme !== 'data')
      throw invalid(`Unsupported scheme for field: ${scheme}, valid values are node:// or data://`);
    wrongly(`Unable to parse field JSON path ${field}`, () => void parseJsonPath(path));
    const params = without(condition, RESERVED);
    wrongly(`Invalid parameters for operator ${op}`, () => checkParameters(params, CONDITIONS[op]!));
    return { ...params, op, field, multiple, invert };
  });
  demandSchema('actions', actions);
  for (const item of actions) {
    const action = item['action'] as string;
    wrongly(`Invalid parameters for action ${action}`, () => checkParameters(without(item, ['action']), ACTIONS[action]!));
  }
  return { conditions: checked, actions };
}
