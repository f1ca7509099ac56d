/** Records as JSON for one version: selects fields, rewrites values for old versions, and masks secrets. */
import { Fault } from '../../model/errors';
import { NODE_MASKS } from '../../model/masks';
import type { ConductorRecord, JsonObject, NodeRecord, PortRecord } from '../../model/records';
import { conductorOf } from '../../model/ring';
import { isGateOpen, REWRITES, type Rewrite } from '../../model/versions';
import type { FieldRow } from '../schema/document';
import { shapeOf } from './fragments';
import { linksTo } from './links';
import { REDACTED, type NodeAccess } from './node-access';

/** All rows of a response, by those of its resource and the microversion: most requests select no fields. */
const allShown = new WeakMap<readonly FieldRow[], Map<number, readonly FieldRow[]>>();
function allToShow(rows: readonly FieldRow[], minor: number): readonly FieldRow[] {
  const byMinor = allShown.get(rows) ?? new Map<number, readonly FieldRow[]>();
  allShown.set(rows, byMinor);
  const shown = byMinor.get(minor) ?? rows.filter((row) => !row.hidden && isGateOpen(row.gate, minor));
  byMinor.set(minor, shown);
  return shown;
}
/** The rows of a response, in order. `fields`: the selected fields; absent: all. */
export function rowsToShow(rows: readonly FieldRow[], minor: number, fields?: readonly string[]): readonly FieldRow[] {
  const all = allToShow(rows, minor);
  return fields ? all.filter(({ name }) => name === 'links' || fields.includes(name)) : all;
}

/** Fields of a node that Ironic puts after the others. */
const LAST = ['links', 'conductor', 'allocation_uuid', 'chassis_uuid'];
/** Selected fields of a node come in the order of the request, the UUID first, because command-line clients print them so. */
export function nodeRowsToShow(rows: readonly FieldRow[], minor: number, fields?: readonly string[]): readonly FieldRow[] {
  const shown = rowsToShow(rows, minor, fields);
  if (!fields) return shown;
  const place = ({ name }: FieldRow): number =>
    name === 'uuid' ? -1 : LAST.includes(name) ? fields.length + LAST.indexOf(name) : fields.indexOf(name);
  return [...shown].sort((left, right) => place(left) - place(right));
}

export const rewritesFor = (minor: number): readonly Rewrite[] => REWRITES.filter(({ before }) => minor < before);
/** The value for older versions. */
export function rewrite(rules: readonly Rewrite[], field: string, value: unknown): unknown {
  const rule = rules.find((one) => one.field === field && one.from === value);
  return rule ? rule.to : value;
}

/** Refuses fields that `fields` may not name. */
export function checkNodeFields(fields: readonly string[] | undefined, rows: readonly FieldRow[]): void {
  for (const field of fields ?? [])
    if (!rows.some(({ name, selectable }) => name === field && selectable))
      throw new Fault('Invalid', { message: `Field ${field} is not a valid field.` });
}
/** The same for the other resources, with their message. */
export function checkFields(fields: readonly string[] | undefined, rows: readonly FieldRow[]): void {
  const unknown = (fields ?? []).filter((field) => !rows.some(({ name, hidden }) => name === field && !hidden));
  if (unknown.length > 0) throw new Fault('InvalidParameterValue', { message: `Field(s) "${unknown.join(', ')}" are not valid` });
}

/** The parameters of a presentation, shared by all records of a list. */
interface View {
  readonly base: string;
  readonly minor: number;
  readonly rows: readonly FieldRow[];
}
/** The key of cached responses (fragments.ts): everything they depend on besides the row. `also`: other sources of the fields. */
export function viewShape(resource: string, { base, minor, rows }: View, also = ''): string {
  const key = `${resource} ${base} ${minor} ${also}`;
  const last = lastShape.get(rows);
  if (last?.key === key) return last.shape;
  const names = rows.map(({ name }) => name);
  const shape = shapeOf(resource, base, minor, names, also);
  lastShape.set(rows, { key, shape });
  return shape;
}
/** The last shape of these rows: most requests for a resource have the same. */
const lastShape = new WeakMap<readonly FieldRow[], { readonly key: string; readonly shape: string }>();

/** Traits in responses are sorted. */
export const sortedTraits = ({ traits }: NodeRecord): readonly string[] => [...traits].sort();

/** @param conductors the alive ones; needed when the field `conductor` is shown */
export function nodePresenter(
  { base, minor, rows }: View,
  access: NodeAccess,
  conductors: readonly ConductorRecord[],
): (node: Partial<NodeRecord> & Pick<NodeRecord, 'uuid' | 'owner' | 'lessee'>) => Record<string, unknown> {
  const rules = rewritesFor(minor);
  return (node) => {
    const shown: Record<string, unknown> = {};
    const record = node as unknown as Readonly<Record<string, unknown>>;
    const { unreadable, unmasked } = access.to(node);
    for (const row of rows) {
      const { name } = row;
      if (row.links) shown[name] = linksTo(base, name === 'links' ? `nodes/${node.uuid}` : `nodes/${node.uuid}/${name}`);
      else if (name === 'traits') shown[name] = sortedTraits(node as NodeRecord);
      else if (name === 'conductor') shown[name] = conductorOf(conductors, node as NodeRecord)?.hostname ?? null;
      else if (unreadable.has(name)) shown[name] = REDACTED[name];
      else {
        const mask = unmasked.has(name) ? undefined : NODE_MASKS[name];
        shown[name] = mask ? mask(record[name] as JsonObject) : rules.length > 0 ? rewrite(rules, name, record[name]) : record[name];
      }
    }
    return shown;
  };
}

/** VTEP switches exist from 1.90 to 1.104 only. */
const VTEP = ['vtep-logical-switch', 'vtep-physical-switch'];
export const hasVtep = (minor: number): boolean => minor >= 90 && minor < 105;

export function portPresenter({ base, minor, rows }: View): (port: PortRecord) => Record<string, unknown> {
  return (port) => {
    const shown: Record<string, unknown> = {};
    const record = port as unknown as Readonly<Record<string, unknown>>;
    for (const { name, links } of rows) shown[name] = links ? linksTo(base, `ports/${port.uuid}`) : record[name];
    if (shown['local_link_connection'] && !hasVtep(minor) && VTEP.some((key) => key in port.local_link_connection))
      shown['local_link_connection'] = {};
    return shown;
  };
}
