/**
 * What an inspection may overwrite. Any client that reaches the API can post an inventory for a waiting node. So a callback only fills in
 * missing values, as in ironic-discoverd, unless options allow more. Inventories of BMCs may overwrite everything.
 */
import { isObject } from '../../../model/json';
import type { NodeRecord, PortChanges, PortRecord } from '../../../model/records';
import { readCapabilities } from './capabilities';
import type { Change, HookOptions } from './hook';

/** Whether the changes of this hook replace existing values. */
export type Overwrites = (hook: string) => boolean;
export const overwritesAll: Overwrites = () => true;
export const overwritesAsConfigured =
  (options: Pick<HookOptions, 'inspector.overwrite_existing' | 'inspector.overwrite_existing_hooks'>): Overwrites =>
  (hook) =>
    options['inspector.overwrite_existing'] || options['inspector.overwrite_existing_hooks'].includes(hook);

const isMissing = (value: unknown): boolean => value === undefined || value === null;

/** Existing members stay. Booleans are always set: [inspector]update_pxe_enabled decides about them. */
function missingOfPort(port: PortRecord, changes: PortChanges): PortChanges {
  const remaining = Object.entries(changes).flatMap(([name, value]) => {
    const before = port[name as keyof PortRecord] as unknown;
    if (typeof value === 'boolean' || isMissing(before)) return [[name, value] as const];
    if (!isObject(before) || !isObject(value) || Object.keys(value).every((key) => Object.hasOwn(before, key))) return [];
    return [[name, { ...value, ...before }] as const];
  });
  return Object.fromEntries(remaining);
}

/** Reduces a change to what was missing before the inspection; undefined if nothing is left. */
export function onlyMissing(
  change: Change,
  { node, ports }: { readonly node: NodeRecord; readonly ports: readonly PortRecord[] },
): Change | undefined {
  const { properties } = node;
  if (change.on === 'property') return isMissing(properties[change.name]) ? change : undefined;
  if (change.on === 'capability') return readCapabilities(properties.capabilities).has(change.name) ? undefined : change;
  if (change.on !== 'port update') return change;
  const port = ports.find(({ address }) => address === change.mac);
  if (!port) return change;
  const changes = missingOfPort(port, change.changes);
  return Object.keys(changes).length > 0 ? { ...change, changes } : undefined;
}
