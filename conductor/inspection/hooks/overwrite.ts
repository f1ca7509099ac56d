/**
 * What an inspection may overwrite. Anybody who reaches the API can post an inventory for a node that waits for one, so a callback fills in
 * what is missing, as ironic-discoverd did, unless the operator says otherwise. What a BMC tells is not held to it.
 */
import { isObject } from '../../../model/json';
import type { NodeRecord, PortChanges, PortRecord } from '../../../model/records';
import { readCapabilities } from './capabilities';
import type { Change, HookOptions } from './hook';

/** Whether this hook's changes replace what is there. */
export type Overwrites = (hook: string) => boolean;
export const overwritesAll: Overwrites = () => true;
export const overwritesAsConfigured =
  (options: Pick<HookOptions, 'inspector.overwrite_existing' | 'inspector.overwrite_existing_hooks'>): Overwrites =>
  (hook) =>
    options['inspector.overwrite_existing'] || options['inspector.overwrite_existing_hooks'].includes(hook);

const isMissing = (value: unknown): boolean => value === undefined || value === null;

/** Members that are there stay. A boolean is never missing: [inspector]update_pxe_enabled speaks for it. */
function missingOfPort(port: PortRecord, changes: PortChanges): PortChanges {
  const kept = Object.entries(changes).flatMap(([name, value]) => {
    const before = port[name as keyof PortRecord] as unknown;
    if (typeof value === 'boolean' || isMissing(before)) return [[name, value] as const];
    if (!isObject(before) || !isObject(value) || Object.keys(value).every((key) => Object.hasOwn(before, key))) return [];
    return [[name, { ...value, ...before }] as const];
  });
  return Object.fromEntries(kept);
}

/** The change as far as it adds to what was there before the inspection; undefined: it adds nothing. */
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
