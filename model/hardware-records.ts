/**
 * Hardware records of recorders on running hosts, and their comparison: which values of two records are compared, and by which keys. The
 * records are informational; no decision depends on them.
 */
import { createHash } from 'node:crypto';
import { isObject, objectOf } from './json';
import type { Json, JsonObject } from './records';

export type ChangeKind = 'appeared' | 'vanished' | 'changed';
export const CHANGE_KINDS: readonly ChangeKind[] = ['appeared', 'vanished', 'changed'];
export type HardwareRecord = JsonObject;
/** What noticed a change: two inspections, or two records of a recorder. */
export type ChangeSource = 'inspection' | 'recorder';

interface ComponentRow {
  /** The components of this kind in a record; undefined: the record does not contain them. */
  readonly of: (record: HardwareRecord) => readonly JsonObject[] | undefined;
  /** The first present member identifies the component. Empty: a machine has at most one component of this kind. */
  readonly keys: readonly string[];
  /** The compared members. All others are volatile or depend on the operating system. */
  readonly compared: readonly string[];
}
const objects = (value: Json): readonly JsonObject[] | undefined => (Array.isArray(value) ? value.filter(isObject) : undefined);
const objectsOf = (value: Json): readonly JsonObject[] => (isObject(value) ? [value] : []);
const UNKNOWN_ADDRESSES: readonly Json[] = [undefined, null, '', '0.0.0.0', '::/0'];

/** Not compared: names of disks and interfaces, IP addresses of interfaces, link states, and the kernel's rounded memory size. */
export const COMPONENTS = {
  disk: {
    of: ({ disks }) => objects(disks),
    keys: ['wwn_with_extension', 'wwn', 'serial', 'by_path', 'name'],
    compared: ['model', 'vendor', 'size', 'serial', 'firmware', 'rotational', 'logical_sectors', 'physical_sectors'],
  },
  interface: {
    of: ({ interfaces }) => objects(interfaces),
    keys: ['mac_address'],
    compared: ['vendor', 'product', 'pci_address', 'firmware'],
  },
  pci_device: {
    of: ({ pci_devices: devices }) => objects(devices),
    keys: ['bus'],
    compared: ['vendor_id', 'product_id', 'class', 'revision'],
  },
  cpu: { of: ({ cpu }) => objectsOf(cpu), keys: [], compared: ['model_name', 'architecture', 'count', 'socket_count'] },
  memory: { of: ({ memory }) => objectsOf(memory), keys: [], compared: ['physical_mb', 'present_mb'] },
  memory_module: {
    of: ({ memory }) => objects(objectOf(memory)['modules']),
    keys: ['locator'],
    compared: ['size_mb', 'manufacturer', 'part_number', 'serial_number', 'speed_mts'],
  },
  system: { of: ({ system_vendor: system }) => objectsOf(system), keys: [], compared: ['manufacturer', 'product_name', 'serial_number'] },
  firmware: {
    of: ({ system_vendor: system }) => objectsOf(objectOf(system)['firmware']),
    keys: [],
    compared: ['vendor', 'version', 'build_date'],
  },
  bmc: {
    // A record without BMC addresses does not mean that the BMC vanished.
    of: (record) => {
      const known = ['bmc_address', 'bmc_v6address', 'bmc_mac', 'bmc_firmware'].flatMap((name): [string, Json][] =>
        UNKNOWN_ADDRESSES.includes(record[name]) ? [] : [[name, record[name]!]],
      );
      return known.length === 0 ? [] : [Object.fromEntries(known)];
    },
    keys: [],
    compared: ['bmc_address', 'bmc_v6address', 'bmc_mac', 'bmc_firmware'],
  },
} as const satisfies Readonly<Record<string, ComponentRow>>;
export type Component = keyof typeof COMPONENTS;

export interface HardwareChange {
  readonly kind: ChangeKind;
  readonly component: Component;
  /** The identifying value; for a component without keys, its name. */
  readonly key: string;
  /** For `changed`: only the changed members. */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
}

const MAX_KEY = 255;
const keyOf = (row: ComponentRow, name: Component, thing: JsonObject): string | undefined => {
  if (row.keys.length === 0) return name;
  const key = row.keys.map((member) => thing[member]).find((value) => typeof value === 'string' && value !== '');
  // PostgreSQL refuses U+0000 in texts.
  return (key as string | undefined)?.replaceAll('\0', '').slice(0, MAX_KEY);
};
/** Several entries with the same key (multipath) count as one component. */
function byKey(row: ComponentRow, name: Component, record: HardwareRecord): ReadonlyMap<string, JsonObject> | undefined {
  const components = row.of(record);
  if (!components) return undefined;
  const things = new Map<string, JsonObject>();
  for (const thing of components) {
    const key = keyOf(row, name, thing);
    if (key !== undefined && !things.has(key)) things.set(key, thing);
  }
  return things;
}
/** Characters of a value from a host; longer values are cut. */
const MAX_VALUE = 255;
const shown = (value: Json): Json => {
  const text = typeof value === 'string' ? value : canonical(value);
  return text.length > MAX_VALUE ? text.slice(0, MAX_VALUE) : value;
};
const members = (thing: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.flatMap((name): [string, Json][] => (thing[name] === undefined ? [] : [[name, shown(thing[name])]])));
/** False for null and empty texts, which tools on the host report if they lack permission. */
const isKnown = (value: Json): boolean => value != null && value !== '';

/** The changes between two records, at most `most`. A member that only one record contains is not compared. */
export function changesBetween(before: HardwareRecord, after: HardwareRecord, most: number): readonly HardwareChange[] {
  const changes: HardwareChange[] = [];
  for (const [name, row] of Object.entries<ComponentRow>(COMPONENTS) as [Component, ComponentRow][]) {
    const [was, is] = [byKey(row, name, before), byKey(row, name, after)];
    if (!was || !is) continue;
    const single = row.keys.length === 0;
    for (const key of new Set([...was.keys(), ...is.keys()])) {
      const [old, now] = [was.get(key), is.get(key)];
      if (!old || !now) {
        if (single) continue;
        const told = members((now ?? old)!, [...row.keys, ...row.compared]);
        changes.push({ kind: now ? 'appeared' : 'vanished', component: name, key, before: now ? null : told, after: now ? told : null });
        continue;
      }
      const other = row.compared.filter(
        (member) => isKnown(old[member]) && isKnown(now[member]) && canonical(old[member]) !== canonical(now[member]),
      );
      if (other.length > 0)
        changes.push({ kind: 'changed', component: name, key, before: members(old, other), after: members(now, other) });
    }
  }
  return changes.slice(0, most);
}

/** JSON with sorted members, so that equal records have equal texts. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const pairs = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${pairs.join(',')}}`;
}
/** The digest by which server and recorder detect an unchanged record. */
export const digestOf = (record: HardwareRecord): string => createHash('sha256').update(canonical(record)).digest('hex');

/** A readable text: `disk S4EVNX0 appeared`, `memory changed: present_mb 65536 → 131072`. @internal */
export function describeChange({ kind, component, key, before, after }: HardwareChange): string {
  const name = key === component ? component : `${component} ${key}`;
  if (kind !== 'changed') return `${name} ${kind}`;
  const pairs = Object.entries(after!).map(([member, now]) => `${member} ${JSON.stringify(before![member])} → ${JSON.stringify(now)}`);
  return `${name} changed: ${pairs.join(', ')}`;
}

/** Limit of the changes of one push or inspection. */
export const MAX_CHANGES = 1000;
/** Limit of the changes that an event and an entry of the node's history name. */
const MAX_NAMED = 50;
/** The payload of the event `hardware`, and the text of the entry in the node's history. */
export function announcementOf(
  changes: readonly HardwareChange[],
  source: ChangeSource,
): { readonly payload: JsonObject; readonly text: string } {
  const named = changes.slice(0, MAX_NAMED);
  const more = changes.length > named.length ? `, and ${changes.length - named.length} more` : '';
  return {
    payload: { source, count: changes.length, changes: named.map(({ kind, component, key }) => ({ kind, component, key })) },
    text: `${named.map(describeChange).join('; ')}${more}`,
  };
}
