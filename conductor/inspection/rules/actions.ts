/** The actions of inspection rules: name → handler that changes the draft. Effects beyond the draft (log, api-call) are passed in. */
import { Fault, reasonOf } from '../../../model/errors';
import { NODE_FIELDS, PORT_FIELDS } from '../../../model/fields';
import { isObject } from '../../../model/json';
import type { Log } from '../../../model/log';
import { repr, str, toBoolean } from '../../../model/python';
import { INTERFACE_KINDS } from '../../../model/records';
import { isTrait, MAX_TRAITS } from '../../../model/traits';
import { inspectionFailure } from '../hooks/hook';
import { joinCapabilities, readCapabilities } from '../hooks/capabilities';
import { equal } from './operators';
import { actionFailure, executionFailure, type Draft, type RuleArguments } from './rule';

export interface ApiCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly proxies: Readonly<Record<string, string>>;
  readonly timeoutSeconds: number;
  readonly retries: number;
  readonly backoffFactor: number;
}
export interface RuleEffects {
  readonly log: Log;
  /** Throws unless the response is a success. */
  call(request: ApiCall): Promise<void>;
}
type Action = (draft: Draft, args: RuleArguments, effects: RuleEffects) => void | Promise<void>;

interface Field {
  readonly kind: 'text' | 'boolean' | 'json';
  /** A rule may set it to null. */
  readonly nullable: boolean;
}
type Fields = Readonly<Record<string, Field>>;
/** The fields that a rule may set, with their kinds in the table of the resource. */
const settable = <Name extends string>(
  kinds: Readonly<Record<NoInfer<Name>, Field['kind']>>,
  { nullable, others }: { readonly nullable: readonly Name[]; readonly others: readonly Name[] },
): Fields =>
  Object.fromEntries([
    ...nullable.map((name): [string, Field] => [name, { kind: kinds[name], nullable: true }]),
    ...others.map((name): [string, Field] => [name, { kind: kinds[name], nullable: false }]),
  ]);
/** Fields of the state machine, of locks and of the store are excluded. */
const NODE = settable(NODE_FIELDS, {
  nullable: ['name', 'resource_class', 'description', 'owner', 'lessee', 'shard', 'chassis_uuid', 'parent_node', 'retired_reason'],
  others: [
    ...INTERFACE_KINDS.map((kind) => `${kind}_interface` as const),
    ...(['driver', 'conductor_group', 'automated_clean', 'retired', 'disable_power_off'] as const),
    ...(['driver_info', 'properties', 'instance_info', 'extra', 'network_data'] as const),
  ],
});
const PORT = settable(PORT_FIELDS, {
  nullable: ['name', 'physical_network', 'description', 'vendor', 'category'],
  others: ['address', 'pxe_enabled', 'is_smartnic', 'available_for_dynamic_portgroup', 'extra', 'local_link_connection'],
});
/** Converts the value to the type of the field. Throws an Error with the reason if that is impossible. */
function converted({ kind, nullable }: Field, value: unknown): unknown {
  if (value === null && nullable) return null;
  if (kind === 'json') {
    if (isObject(value)) return value;
    throw new Error(`an object is needed, not ${repr(value)}`);
  }
  if (kind === 'boolean') {
    const known = toBoolean(value);
    if (known !== undefined) return known;
    throw new Error(`a boolean is needed, not ${repr(value)}`);
  }
  if (value === null || typeof value === 'object') throw new Error(`a string is needed, not ${repr(value)}`);
  return str(value);
}

/** Splits a/b/c or a.b.c. */
const partsOf = (path: unknown): readonly string[] => {
  const text = str(path);
  return text.includes('/') ? text.replace(/^\/+|(?<!\/)\/+$/g, '').split('/') : text.split('.');
};
/**
 * Returns the object that holds the last part of the path.
 * @param make create missing objects on the way
 */
function parentOf(root: Record<string, unknown>, parts: readonly string[], make: boolean): Record<string, unknown> {
  return parts.slice(0, -1).reduce<Record<string, unknown>>((at, part) => {
    if (make && !Object.hasOwn(at, part)) put(at, part, {});
    const next = Object.hasOwn(at, part) ? at[part] : undefined;
    if (!isObject(next)) throw new Error(Object.hasOwn(at, part) ? `${repr(part)} is not an object` : repr(part));
    return next;
  }, root);
}
/** Defines names such as __proto__ as ordinary members. */
const put = (at: Record<string, unknown>, name: string, value: unknown): void => {
  Object.defineProperty(at, name, { value, enumerable: true, configurable: true, writable: true });
};

/** Sets a field, or a member of an object field. */
function set(record: Record<string, unknown>, fields: Fields, path: unknown, value: unknown): void {
  const parts = partsOf(path);
  const field = Object.hasOwn(fields, parts[0]!) ? fields[parts[0]!] : undefined;
  if (!field) throw new Error(`${repr(parts[0])} cannot be set by a rule`);
  if (parts.length > 1 && field.kind !== 'json') throw new Error(`${repr(parts[0])} has no members`);
  put(parentOf(record, parts, true), parts.at(-1)!, parts.length === 1 ? converted(field, value) : value);
}
function extend(record: Record<string, unknown>, fields: Fields, { path, value, unique }: RuleArguments): void {
  const parts = partsOf(path);
  const at = parts.length > 1 ? parentOf(record, parts, true) : record;
  const before = Object.hasOwn(at, parts.at(-1)!) ? at[parts.at(-1)!] : [];
  if (!Array.isArray(before)) throw actionFailure(`Cannot extend non-list attribute ${str(path)} with value ${str(value)}`);
  set(record, fields, path, extended(before, value, unique));
}
const extended = (list: readonly unknown[], value: unknown, unique: unknown): readonly unknown[] =>
  toBoolean(unique ?? false) && list.some((candidate) => equal(candidate, value)) ? list : [...list, value];
function remove(record: Record<string, unknown>, fields: Fields, path: unknown): void {
  const parts = partsOf(path);
  if (parts.length === 1 || !Object.hasOwn(fields, parts[0]!)) throw new Error(`${repr(parts[0])} cannot be removed by a rule`);
  const at = parentOf(record, parts, false);
  if (!Object.hasOwn(at, parts.at(-1)!)) throw new Error(repr(parts.at(-1)));
  delete at[parts.at(-1)!];
}

/** Wraps an error of the handler in a failure that names the attempted action. */
const reportingFailure =
  (what: (args: RuleArguments) => string, act: Action): Action =>
  async (draft, args, effects) => {
    try {
      await act(draft, args, effects);
    } catch (error) {
      throw actionFailure(`${what(args)}: ${reasonOf(error)}`);
    }
  };
const onPort =
  (what: string, act: (port: Record<string, unknown>, args: RuleArguments) => void): Action =>
  (draft, args, effects) => {
    const port = draft.ports.find(({ uuid }) => uuid === args['port_id']);
    if (!port) throw new Fault('PortNotFound', { port: str(args['port_id']) });
    return reportingFailure(
      ({ path, port_id: id }) => `Failed to ${what} attribute ${str(path)} for port ${str(id)}`,
      () => act(port, args),
    )(draft, args, effects);
  };
function changeCapabilities({ node }: Draft, change: (all: Map<string, string>) => void): void {
  const properties = node['properties'] as Record<string, unknown>;
  const all = readCapabilities(properties['capabilities']);
  change(all);
  properties['capabilities'] = joinCapabilities(all);
}
const LEVELS: Readonly<Record<string, 'debug' | 'info' | 'warn' | 'error'>> = {
  debug: 'debug',
  info: 'info',
  warning: 'warn',
  error: 'error',
  critical: 'error',
};
const texts = (value: unknown): Readonly<Record<string, string>> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, str(entry)])) : {};
const positive = (value: unknown, name: string): number => {
  const number = Number(value);
  if (!(number > 0)) throw actionFailure(`Invalid parameter: ${name} must be greater than zero`);
  return number;
};

/** Each throws the Fault of a failed inspection. */
export const ACTION_HANDLERS: Readonly<Record<string, Action>> = {
  fail: (_, { msg }) => {
    throw inspectionFailure(str(msg));
  },
  log: (_, { msg, level = 'info' }, { log }) => {
    const name = str(level).toLowerCase();
    if (!Object.hasOwn(LEVELS, name)) throw executionFailure(`Invalid log level: ${name}. Choose from ${repr(Object.keys(LEVELS))}`);
    log[LEVELS[name]!](str(msg));
  },
  'set-attribute': reportingFailure(
    ({ path, value }) => `Failed to set attribute ${str(path)} with value ${str(value)}`,
    ({ node }, { path, value }) => set(node, NODE, path, value),
  ),
  'extend-attribute': reportingFailure(
    ({ path }) => `Failed to extend attribute ${str(path)}`,
    ({ node }, args) => extend(node, NODE, args),
  ),
  'del-attribute': reportingFailure(
    ({ path }) => `Failed to delete attribute at ${str(path)}`,
    ({ node }, { path }) => remove(node, NODE, path),
  ),
  'set-capability': reportingFailure(
    ({ name }) => `Failed to set capability ${str(name)}`,
    (draft, { name, value }) => changeCapabilities(draft, (all) => all.set(str(name), str(value))),
  ),
  'unset-capability': reportingFailure(
    ({ name }) => `Failed to unset capability ${str(name)}`,
    (draft, { name }) => changeCapabilities(draft, (all) => all.delete(str(name))),
  ),
  'add-trait': reportingFailure(
    ({ name }) => `Failed to add new trait ${str(name)}`,
    ({ node }, { name }) => {
      const traits = new Set(node['traits'] as readonly string[]).add(str(name));
      if (!isTrait(str(name))) throw new Error('it is neither a standard trait nor CUSTOM_ with A-Z, 0-9 and _');
      if (traits.size > MAX_TRAITS) throw new Error(`a node has at most ${MAX_TRAITS} traits`);
      node['traits'] = [...traits].sort();
    },
  ),
  'remove-trait': ({ node }, { name }) => {
    node['traits'] = (node['traits'] as readonly string[]).filter((trait) => trait !== name);
  },
  'set-plugin-data': reportingFailure(
    ({ path }) => `Failed to set plugin data at ${str(path)}`,
    ({ pluginData }, { path, value }) => put(parentOf(pluginData, str(path).split('.'), true), str(path).split('.').at(-1)!, value),
  ),
  'extend-plugin-data': reportingFailure(
    ({ path }) => `Failed to extend plugin data at ${str(path)}`,
    ({ pluginData }, { path, value, unique }) => {
      const parts = str(path).split('.');
      const at = parentOf(pluginData, parts, true);
      const before = Object.hasOwn(at, parts.at(-1)!) ? (at[parts.at(-1)!] ?? []) : [];
      if (!Array.isArray(before)) throw new Error('it is not a list');
      put(at, parts.at(-1)!, extended(before, value, unique));
    },
  ),
  'unset-plugin-data': ({ pluginData }, { path }, { log }) => {
    const parts = str(path).split('.');
    try {
      const at = parentOf(pluginData, parts, false);
      if (!Object.hasOwn(at, parts.at(-1)!)) throw new Error('it is not there');
      delete at[parts.at(-1)!];
      // An object that becomes empty is removed.
      if (parts.length > 1 && Object.keys(at).length === 0) delete parentOf(pluginData, parts.slice(0, -1), false)[parts.at(-2)!];
    } catch {
      log.warn(`an inspection rule unsets ${str(path)}, which is not in the plugin data`);
    }
  },
  'set-port-attribute': onPort('set', (port, { path, value }) => set(port, PORT, path, value)),
  'extend-port-attribute': onPort('extend', (port, args) => extend(port, PORT, args)),
  'del-port-attribute': onPort('delete', (port, { path }) => remove(port, PORT, path)),
  'api-call': async (_, { url, headers, proxies, timeout = 5, retries = 3, backoff_factor: backoff = 0.3 }, effects) => {
    const call: ApiCall = {
      url: str(url),
      headers: texts(headers),
      proxies: texts(proxies),
      timeoutSeconds: positive(timeout, 'timeout'),
      retries: Number(retries),
      backoffFactor: Number(backoff),
    };
    if (!Number.isInteger(call.retries) || call.retries < 0 || !(call.backoffFactor >= 0))
      throw actionFailure('Invalid parameter: retries and backoff_factor must be numbers of zero or more');
    try {
      await effects.call(call);
    } catch (error) {
      throw actionFailure(`Request to ${call.url} failed: ${reasonOf(error)}`);
    }
  },
};
