/** Records as JSON for one version: selects fields, rewrites values for old versions, masks secrets, and adds links. */
import { Fault, invalid, invalidParameter } from '../../model/errors';
import { NODE_MASKS } from '../../model/masks';
import { isObject } from '../../model/json';
import type { ConductorRecord, NodeRecord } from '../../model/records';
import { conductorOf } from '../../model/ring';
import { isGateOpen, REWRITES, type Rewrite } from '../../model/versions';
import type { AliveConductors, NodeSummary } from '../../store/store';
import type { FieldRow } from '../schema/document';
import { columnsOf } from './fields';
import { shapeOf } from './fragments';
import type { ApiContext, Request } from './handler';
import { nodeAccess, REDACTED, type NodeAccess } from './node-access';

interface Link {
  readonly href: string;
  readonly rel: string;
  readonly type?: string;
}

/** The links of a resource: `self` under /v1 and `bookmark` without a version. */
export const linksTo = (base: string, path: string): readonly Link[] => [
  { href: `${base}/v1/${path}`, rel: 'self' },
  { href: `${base}/${path}`, rel: 'bookmark' },
];
/** The Location header of a created or changing resource. */
export const location = (base: string, path: string): Readonly<Record<string, string>> => ({ Location: `${base}/v1/${path}` });

/** The rows of responses: those that `fields` may select from, and those of responses without `fields`. */
interface Rows {
  readonly all: readonly FieldRow[];
  readonly usual: readonly FieldRow[];
}
/** By the rows of the resource and the version. */
const ofVersions = new WeakMap<readonly FieldRow[], Map<number, Rows>>();
function rowsOf(rows: readonly FieldRow[], minor: number): Rows {
  let versions = ofVersions.get(rows);
  if (!versions) ofVersions.set(rows, (versions = new Map<number, Rows>()));
  const known = versions.get(minor);
  if (known) return known;
  const all = rows.filter((row) => !row.hidden && isGateOpen(row.gate, minor));
  const shown = { all, usual: all.filter(({ asked }) => !asked) };
  versions.set(minor, shown);
  return shown;
}
/** The rows of a response, in order. `fields`: the selected fields; absent: all. */
export function rowsToShow(rows: readonly FieldRow[], minor: number, fields?: readonly string[]): readonly FieldRow[] {
  const { all, usual } = rowsOf(rows, minor);
  return fields ? all.filter(({ name }) => name === 'links' || fields.includes(name)) : usual;
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
  const rule = rules.find((candidate) => candidate.field === field && candidate.from === value);
  return rule ? rule.to : value;
}

/** Refuses fields that `fields` may not name. */
export function checkNodeFields(fields: readonly string[] | undefined, rows: readonly FieldRow[]): void {
  for (const field of fields ?? [])
    if (!rows.some(({ name, selectable }) => name === field && selectable)) throw invalid(`Field ${field} is not a valid field.`);
}
/** The same for the other resources, with their message. */
export function checkFields(fields: readonly string[] | undefined, rows: readonly FieldRow[]): void {
  const unknown = (fields ?? []).filter((field) => !rows.some(({ name, hidden }) => name === field && !hidden));
  if (unknown.length > 0) throw invalidParameter(`Field(s) "${unknown.join(', ')}" are not valid`);
}

/** The parameters of a presentation, shared by all records of a list. */
export interface View {
  readonly base: string;
  readonly minor: number;
  readonly rows: readonly FieldRow[];
}
/** The last shape of these rows: most requests for a resource have the same. */
const lastShapes = new WeakMap<readonly FieldRow[], { readonly from: string; readonly shape: string }>();
/** The key of cached responses (fragments.ts): everything they depend on besides the row. `also`: other sources of the fields. */
export function viewShape(resource: string, { base, minor, rows }: View, also = ''): string {
  const from = `${resource} ${minor} ${base} ${also}`;
  const last = lastShapes.get(rows);
  if (last?.from === from) return last.shape;
  const shape = shapeOf(
    resource,
    base,
    minor,
    rows.map(({ name }) => name),
    also,
  );
  lastShapes.set(rows, { from, shape });
  return shape;
}

/** Traits in responses are sorted. */
export const sortedTraits = ({ traits = [] }: Partial<Pick<NodeRecord, 'traits'>>): readonly string[] => [...traits].sort();

/** @param conductors the alive ones; needed when the field `conductor` is shown */
export function nodePresenter(
  { base, minor, rows }: View,
  access: NodeAccess,
  conductors: readonly ConductorRecord[],
): (node: Partial<NodeRecord> & Pick<NodeRecord, 'uuid' | 'owner' | 'lessee'>) => Record<string, unknown> {
  const rules = rewritesFor(minor);
  return (node) => {
    const shown: Record<string, unknown> = {};
    const record = columnsOf(node);
    const { unreadable, unmasked } = access.to(node);
    for (const row of rows) {
      const { name } = row;
      if (row.links) shown[name] = linksTo(base, name === 'links' ? `nodes/${node.uuid}` : `nodes/${node.uuid}/${name}`);
      else if (name === 'traits') shown[name] = sortedTraits(node);
      else if (name === 'conductor') shown[name] = conductorOf(conductors, node as NodeRecord)?.hostname ?? null;
      else if (unreadable.has(name)) shown[name] = REDACTED[name];
      else {
        const mask = unmasked.has(name) ? undefined : NODE_MASKS[name];
        const value = record[name];
        shown[name] = mask && isObject(value) ? mask(value) : rules.length > 0 ? rewrite(rules, name, value) : value;
      }
    }
    return shown;
  };
}

/**
 * The JSON of the node, or of some of its fields, for this caller. Rendered fragments are cached.
 * @param node the record, or its head if the cached fragment may be enough
 * @param alive the conductors, if the request has read them
 */
export async function nodeBytes(
  node: NodeSummary | NodeRecord,
  request: Request,
  context: ApiContext,
  { fields, alive }: { readonly fields?: readonly string[] | undefined; readonly alive?: AliveConductors } = {},
): Promise<readonly Buffer[]> {
  const { document, current, fragments, store } = context;
  const { base, minor } = request;
  const rows = nodeRowsToShow(document.fields('Node'), minor, fields);
  const view = { base, minor, rows };
  const access = nodeAccess(request, context, rows, false);
  const { version: word, conductors } =
    alive ?? (await current.conductors('conductors_version' in node ? node.conductors_version : undefined));
  const shape = viewShape('nodes', view, rows.some(({ name }) => name === 'conductor') ? word : '');
  const fragment = await fragments.of<NodeRecord, NodeSummary | NodeRecord>(node, {
    shape: (value) => shape + access.to(value).key,
    read: async (ids) => ('driver' in node ? [node] : store.nodes.list({ ids, children: 'all' })),
    renderer: () => nodePresenter(view, access, conductors),
  });
  if (!fragment) throw new Fault('NodeNotFound', { node: node.uuid });
  return [fragment.bytes];
}
