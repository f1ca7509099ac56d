/**
 * The operations of all resources but nodes and ports: list with fields, sorting and pages; show, create, update, delete.
 * A resource is a record of its properties, with functions for its own rules.
 */
import { Fault } from '../../model/errors';
import { newUuid } from '../../model/idents';
import { isAnnounced, type NotifiedResource } from '../../model/notifications';
import { applyPatch, equalJson, valuesAt, type PatchOperation } from '../../model/patch';
import { repr } from '../../model/python';
import type { ResourceRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { Table, TableFilter } from '../../store/store';
import type { FieldRow } from '../schema/document';
import { checkedPatch, checkedRecord, emptyOf, refuseNewer, type Values } from './fields';
import { linksTo, location } from './links';
import { checkFieldsAllowed, checkNewer, checkSortable, envelopeOf, fieldsToShow, pageOf, recordSlices } from './lists';
import { withNotifications } from './notifications';
import { checkFields, rowsToShow } from './present';
import { checkInPlaceOf, checkPolicy } from './access';
import type { Target } from '../../policy/vocabulary';
import type { Answer, ApiContext, Handlers, Request } from './handler';

export interface Resource<RecordType extends ResourceRecord> {
  /** Its schema in openapi.yaml. */
  readonly schema: string;
  /** Its path below /v1. */
  readonly path: string;
  /** The key of its list in responses. */
  readonly list: string;
  /** The name of the body in messages. */
  readonly bodyLabel: string;
  /** Its path parameter in openapi.yaml. */
  readonly ident: string;
  /** Its policies are `POLICY:get` and so on. */
  readonly policy: string;
  /** Fields in lists without `fields` and `detail`; absent: all. */
  readonly brief?: readonly string[];
  /** Columns by which lists cannot be sorted. */
  readonly unsortable: readonly string[];
  /** Fields that are not columns, so lists cannot be sorted by them either. */
  readonly computed: readonly string[];
  /** Whether a schema checks `fields` and `sort_dir` first, with its own messages; `versioned`: the schema depends on the version. */
  readonly strict: boolean | 'versioned';
  /** Further checks of a list's query by such a schema. */
  checkQuery?(request: Request): void;
  /** The path in links and next pages, if it differs. */
  readonly linked?: string;
  /** The first parameters of the next page's query. */
  next?(request: Request): readonly (readonly [string, unknown])[];
  /** Before this version another schema checks bodies, and later fields are unknown. */
  readonly older?: { readonly before: number; readonly schema: string };
  /** A patch may name any field. Changes of fields that are not patchable are ignored. */
  readonly lenient?: true;
  /** Lists show all fields at every version. */
  readonly wholeLists?: true;
  table(context: ApiContext): Pick<Table<RecordType>, 'find' | 'sizes' | 'byUuids'>;
  /** The projects that a record belongs to, directly or by its node. Absent: none; its policies depend on the caller alone. */
  readonly projects?: (record: RecordType, context: ApiContext) => Promise<Target>;
  /** A caller without this policy gets the fault that `missing` returns. Absent: 403. */
  readonly hidden?: readonly [policy: string, missing: (ident: string) => Fault];
  /** A list is refused if it has a record that the caller may not read. For tables with the column `owner`. */
  readonly checksEach?: true;
  /** Everybody may read the record. */
  isPublic?(record: RecordType): boolean;
  /** The policies of a patch. Absent: `POLICY:update`. */
  policiesOf?(patch: readonly PatchOperation[]): readonly string[];
  /** The filter of a list, from the resource's own parameters. */
  filter?(request: Request, context: ApiContext): Promise<TableFilter<RecordType>['where']>;
  /** The filter by the nodes that the records belong to. */
  ofNodes?(request: Request, context: ApiContext): TableFilter<RecordType>['nodeScope'];
  /** The project whose records, beside the public ones, are listed; undefined: all. */
  ownedOrPublic?(request: Request, context: ApiContext): string | undefined;
  /** Fields whose value differs from the column's. */
  readonly values?: Readonly<Record<string, (record: RecordType, request: Request, context: ApiContext) => unknown>>;
  /** The same in the response to a creation. */
  readonly valuesOfNew?: Readonly<Record<string, (record: RecordType) => unknown>>;
  /** A patch without changes is executed too, because the conductor may refuse it. */
  readonly alwaysUpdates?: true;
  /** Checks a new record, or a changed one (`before`). Returns the values to store. Throws a Fault. */
  check?(values: Values, request: Request, context: ApiContext, before?: RecordType): Promise<Values> | Values;
  /** Checks the patch and the patched record before the schema does. Returns the record to use. Throws a Fault. */
  patched?(patched: Values, patch: readonly PatchOperation[], before: RecordType, request: Request, context: ApiContext): Promise<Values>;
  create(record: Values & { readonly uuid: string }, context: ApiContext): Promise<RecordType>;
  update(before: RecordType, changes: Values, context: ApiContext): Promise<RecordType>;
  remove(record: RecordType, context: ApiContext): Promise<void>;
}

const refuse = (value: unknown, known: readonly string[]): never => {
  throw new Fault('InvalidParameterValue', { message: `Schema error: ${repr(value)} is not one of ${repr(known)}` });
};
/** Checks `sort_dir` as Ironic's schema of the query does. */
export function checkDirection({ query }: Request): void {
  const direction = query['sort_dir'];
  if (direction !== undefined && direction !== 'asc' && direction !== 'desc') refuse(direction, ['asc', 'desc']);
}
/** Checks `fields` and `sort_dir` as Ironic's schema of the query does. */
export function checkStrict(request: Request, rows: readonly FieldRow[], strict: boolean | 'versioned' = true): void {
  const ordered = [...rows].sort((left, right) => (left.name < right.name ? -1 : 1));
  // Fields of later versions come last.
  if (strict === 'versioned') ordered.sort((left, right) => left.gate.since - right.gate.since);
  const names = ordered.map(({ name }) => name);
  const unknown = ((request.query['fields'] as readonly string[] | null | undefined) ?? []).find((field) => !names.includes(field));
  if (unknown !== undefined && !request.isFieldOfPath) refuse(unknown, names);
  checkDirection(request);
}
/** The fields in the schema of a query: fields that are shown, and hidden fields that are patchable. */
const strictRows = <RecordType extends ResourceRecord>(
  { schema, strict }: Resource<RecordType>,
  minor: number,
  { document }: ApiContext,
): readonly FieldRow[] =>
  document.fields(schema).filter(({ hidden, patch, gate }) => (!hidden || patch) && (strict !== 'versioned' || isGateOpen(gate, minor)));
/** The fields that a request of this version may name. Later fields are refused as newer, or unknown (`older`, `versioned`). */
function nameableRows<RecordType extends ResourceRecord>(
  { schema, older, strict }: Resource<RecordType>,
  minor: number,
  { document }: ApiContext,
): readonly FieldRow[] {
  return document.fields(schema).filter(({ hidden, gate }) => !hidden && ((!older && strict !== 'versioned') || isGateOpen(gate, minor)));
}

/** Undefined: Ironic has no notifications about the resource. */
function notificationName<RecordType extends ResourceRecord>({ schema }: Resource<RecordType>): NotifiedResource | undefined {
  const name = schema.toLowerCase();
  return isAnnounced(name) ? name : undefined;
}

/** One record as this caller sees it. */
export function presenterOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
  fields?: readonly string[],
  minor = request.minor,
): (record: RecordType) => Record<string, unknown> {
  const { schema, values } = resource;
  const path = resource.linked ?? resource.path;
  const rows = rowsToShow(context.document.fields(schema), minor, fields);
  return (record) => {
    const columns = record as unknown as Readonly<Record<string, unknown>>;
    const shown: Record<string, unknown> = {};
    for (const { name, links } of rows) {
      const own = values && Object.hasOwn(values, name) ? values[name] : undefined;
      if (own) shown[name] = own(record, request, context);
      else if (links) shown[name] = linksTo(request.base, `${path}/${record.uuid}${name === 'links' ? '' : `/${name}`}`);
      else shown[name] = columns[name];
    }
    return shown;
  };
}

/**
 * The record of the path. Callers that may not see it get the same response as for one that does not exist, or 403.
 * @param policy of the operation
 * @param policiesOf the policies that are checked in its place
 */
export async function recordOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  policy: string,
  request: Request,
  context: ApiContext,
  policiesOf: (record: RecordType) => readonly string[] = () => [policy],
): Promise<RecordType> {
  const { hidden, projects } = resource;
  const ident = request.params[resource.ident]!;
  const record = await resource.table(context).find(ident);
  if (!projects) return record;
  const target = await projects(record, context);
  if (hidden && !context.auth.allowed(request.caller, hidden[0], target)) throw hidden[1](ident);
  checkInPlaceOf(policy, policiesOf(record), request, context, target);
  return record;
}

/** @param given of a sub-collection: its path for the next page, and its filter; `detail`: all fields */
export async function listOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
  given: { readonly detail?: true; readonly path?: string; readonly where?: TableFilter<RecordType>['where'] } = {},
): Promise<Answer> {
  const { query, base, minor } = request;
  const { schema, list, brief, unsortable, computed, strict } = resource;
  const all = nameableRows(resource, minor, context);
  if (strict) checkStrict(request, strictRows(resource, minor, context), strict);
  resource.checkQuery?.(request);
  const ofNodes = resource.ofNodes?.(request, context);
  const owner = resource.ownedOrPublic?.(request, context);
  checkFieldsAllowed((query['fields'] as readonly string[] | null | undefined) ?? undefined, minor);
  checkNewer([...((query['fields'] as readonly string[] | null | undefined) ?? []), query['sort_key'] as string], all, minor);
  const fields = given.detail ? undefined : fieldsToShow(query, brief);
  const page = pageOf(query, unsortable, context.options);
  const where = { ...(await resource.filter?.(request, context)), ...given.where } as NonNullable<TableFilter<RecordType>['where']>;
  const columns = context.document.fields(schema).filter(({ hidden, links, name }) => !hidden && !links && !computed.includes(name));
  checkSortable(page.sortKey, ['id', ...columns.map(({ name }) => name)]);
  checkFields(fields, all);
  const table = resource.table(context);
  const sizes = await table.sizes({
    where,
    ...(ofNodes ? { nodeScope: ofNodes } : {}),
    ...(owner === undefined ? {} : { ownedOrPublic: owner }),
    ...page,
  });
  if (resource.checksEach)
    for (const { owner = null } of sizes) checkPolicy(request, context, `${resource.policy}:get`, { owner, lessee: null });
  const also = [
    ...(typeof query['detail'] === 'boolean' ? [['detail', query['detail']] as const] : []),
    ...(fields ? [['fields', fields.join(',')] as const] : []),
  ];
  const path = given.path ?? resource.linked ?? (given.detail ? `${resource.path}/detail` : resource.path);
  const first = resource.next?.(request) ?? [];
  const present = presenterOf(resource, request, context, fields, resource.wholeLists ? context.document.max : minor);
  const items = recordSlices(table, sizes, present);
  return { status: 200, slices: envelopeOf(list, items, sizes.length, { base, path, page, limit: page.limit, first, also }) };
}

async function showOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const { minor, query } = request;
  const all = nameableRows(resource, minor, context);
  const fields = (query['fields'] as readonly string[] | null | undefined) ?? undefined;
  if (resource.strict) checkStrict(request, strictRows(resource, minor, context), resource.strict);
  checkFieldsAllowed(fields, minor);
  checkNewer(fields ?? [], all, minor);
  const policy = `${resource.policy}:get`;
  const record = await recordOf(resource, policy, request, context, (found) => (resource.isPublic?.(found) ? [] : [policy]));
  checkFields(fields, all);
  return { status: 200, body: presenterOf(resource, request, context, fields)(record) };
}

export async function createOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const schema = resource.older && request.minor < resource.older.before ? resource.older.schema : resource.schema;
  const rows = context.document.fields(schema).filter(({ create }) => create);
  const record = checkedRecord(resource.bodyLabel, schema, rows, request.body, context);
  refuseNewer(record, rows, request.minor);
  // null means absent.
  const given = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
  const checked = (await resource.check?.(given, request, context)) ?? given;
  const uuid = (checked['uuid'] as string | undefined)?.toLowerCase() ?? newUuid(context.random);
  const values = { ...checked, uuid };
  const created = await withNotifications(context, request, notificationName(resource), 'create', values, () =>
    resource.create(values, context),
  );
  return {
    status: 201,
    body: presenterOf({ ...resource, values: { ...resource.values, ...resource.valuesOfNew } }, request, context)(created),
    headers: location(request.base, `${resource.path}/${created.uuid}`),
  };
}

async function updateOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const rows = context.document.fields(resource.schema);
  const known = resource.older ? rows.filter(({ gate }) => isGateOpen(gate, request.minor)) : rows;
  const patch = resource.lenient ? (request.body as readonly PatchOperation[]) : checkedPatch(request.body, known);
  if (rows.some(({ name, named }) => !isGateOpen(named, request.minor) && valuesAt(patch, `/${name}`).length > 0))
    throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  const policy = `${resource.policy}:update`;
  const before = await recordOf(resource, policy, request, context, () => resource.policiesOf?.(patch) ?? [policy]);
  const patchable = rows.filter(({ create, patch: isPatchable }) => create || isPatchable);
  const applied = applyPatch(before as unknown as Values, patch);
  const patched = (await resource.patched?.(applied, patch, before, request, context)) ?? applied;
  const own = Object.fromEntries(Object.entries(patched).filter(([name]) => patchable.some((row) => row.name === name)));
  const record = checkedRecord('patch', resource.schema, patchable, own, context);
  const checked = (await resource.check?.(record, request, context, before)) ?? record;
  const columns = before as unknown as Values;
  if (rows.some(({ name, patch: isPatchable }) => name === 'uuid' && isPatchable) && checked['uuid'] !== before.uuid)
    throw new Fault('Invalid', { message: `Cannot overwrite UUID for an existing ${resource.schema}.` });
  const changes: Values = {};
  for (const row of patchable.filter(({ name, hidden, patch: isPatchable }) => !hidden && isPatchable && name !== 'uuid')) {
    const value = checked[row.name] ?? emptyOf(row);
    if (!equalJson(value, columns[row.name])) changes[row.name] = value;
  }
  const isExecuted = resource.alwaysUpdates || Object.keys(changes).length > 0;
  const changed = await withNotifications(context, request, notificationName(resource), 'update', { ...before, ...changes }, async () =>
    isExecuted ? resource.update(before, changes, context) : before,
  );
  return { status: 200, body: presenterOf(resource, request, context)(changed) };
}

async function removeOf<RecordType extends ResourceRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const record = await recordOf(resource, `${resource.policy}:delete`, request, context);
  await withNotifications(context, request, notificationName(resource), 'delete', record, () => resource.remove(record, context));
  return { status: 204 };
}

/** The handlers of a resource's five operations, by their operationIds in openapi.yaml: `listX` in the plural, `createX`, `showX`, … */
export function handlersOf<RecordType extends ResourceRecord>(resource: Resource<RecordType>, plural = `${resource.schema}s`): Handlers {
  return {
    [`list${plural}`]: (request, context) => listOf(resource, request, context),
    [`create${resource.schema}`]: (request, context) => createOf(resource, request, context),
    [`show${resource.schema}`]: (request, context) => showOf(resource, request, context),
    [`update${resource.schema}`]: (request, context) => updateOf(resource, request, context),
    [`delete${resource.schema}`]: (request, context) => removeOf(resource, request, context),
  };
}
