/**
 * The operations of resources: list with fields, sorting and pages; show, create, update, delete. A resource is a record of its properties,
 * with functions for its own rules. What one operation of one resource has alone is in that operation's handler.
 */
import { Fault, invalidParameter } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { Inputs } from '../schema/operations';
import { repr } from '../../model/python';
import type { ResourceRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { Table, TableFilter } from '../../store/store';
import type { FieldRow } from '../schema/document';
import { checkedRecord, columnsOf, presentOf, refuseNewer, type Present } from './fields';
import type { Fragment } from './fragments';
import {
  checkFieldsAllowed,
  checkNewer,
  checkSortable,
  envelopeOf,
  fieldsToShow,
  pageOf,
  recordSlices,
  repeated,
  type ListQuery,
  type Page,
  type Parameter,
} from './lists';
import { notificationName, withNotifications } from './notifications';
import { patchRecord, type Found, type PatchRequest, type PatchSteps } from './patch';
import { checkFields, linksTo, location, rowsToShow, type View } from './present';
import { checkInPlaceOf } from './access';
import type { Target } from '../../policy/vocabulary';
import type { Answer, ApiContext, OperationTypes, Request } from './handler';

export type ListRequest<Query extends ListQuery = ListQuery> = Request<OperationTypes & { readonly query: Query }>;
export type ShowRequest = Request<OperationTypes & { readonly query: { readonly fields?: readonly string[] } }>;

/** The filter of a list. */
export interface ListFilter<RecordType> extends Pick<TableFilter<RecordType>, 'where' | 'nodeScope' | 'ownedOrPublic'> {
  readonly descriptionContains?: string;
}
type NewRecord = { readonly uuid?: string };
type Presenter<RecordType> = (record: RecordType) => Record<string, unknown>;
type PlainTable<RecordType extends ResourceRecord> = Pick<Table<RecordType>, 'find' | 'sizes' | 'byUuids'>;
/** A table whose lists are answered from cached JSON (fragments.ts). What is presented depends on nothing but the record and the view. */
interface CachedTable<RecordType extends ResourceRecord> extends Pick<Table<RecordType>, 'find'> {
  page(
    filter: ListFilter<RecordType> & Page,
    present: Presenter<RecordType>,
    view: View,
  ): Promise<{ readonly count: number; readonly slices: AsyncIterable<readonly Fragment[]> }>;
}

/**
 * `New`: what `check` makes of the body of a creation, and `create` stores. `Query`: the parameters that its lists read. `Before`: what the
 * steps of its PATCH find.
 */
export interface Resource<
  RecordType extends ResourceRecord,
  Name extends keyof Inputs,
  New extends NewRecord = Present<Inputs[Name]> & NewRecord,
  Query extends ListQuery = ListQuery,
  Before extends Found<RecordType> = Found<RecordType>,
> extends Omit<PatchSteps<RecordType, Name, Before>, 'find'> {
  /** Finds what the steps of a PATCH need, and checks its policies. Absent: the record alone, by `POLICY:update`. */
  readonly find?: PatchSteps<RecordType, Name, Before>['find'];
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
  /** A schema checks `fields` and `sort_dir` first, with its own messages. */
  readonly strict: boolean;
  /** Fields of later versions are unknown. Absent: they are refused as newer. */
  readonly ignoresLater?: true;
  table(context: ApiContext): PlainTable<RecordType> | CachedTable<RecordType>;
  /** The projects that a record belongs to, directly or by its node. Absent: none; its policies depend on the caller alone. */
  readonly projects?: (record: RecordType, context: ApiContext) => Promise<Target>;
  /** A caller without this policy gets the fault that `missing` returns. Absent: 403. */
  readonly hidden?: readonly [policy: string, missing: (ident: string) => Fault];
  /** The project that a list is limited to, by the caller's policies; undefined: the list shows all. */
  projectOf?(request: ListRequest<Query>, context: ApiContext): string | undefined;
  /** The filter of a list, from the resource's own parameters and the project. */
  filter?(request: ListRequest<Query>, context: ApiContext, project: string | undefined): Promise<ListFilter<RecordType>>;
  /** Fields whose value differs from the column's. */
  readonly values?: Readonly<Record<string, (record: RecordType, request: Request, context: ApiContext) => unknown>>;
  /** Checks a new record. Returns the values to store. Throws a Fault. */
  check(values: Present<Inputs[Name]>, request: Request, context: ApiContext): Promise<New> | New;
  create(record: New & { readonly uuid: string }, context: ApiContext): Promise<RecordType>;
  remove(record: RecordType, context: ApiContext): Promise<void>;
}

/** What all resources with these records have in common. */
type Some<RecordType extends ResourceRecord> = Resource<RecordType, keyof Inputs, NewRecord>;

/** Refuses a word as Ironic's schema of the query does. */
export const refuseWord = (value: unknown, known: readonly string[]): never => {
  throw invalidParameter(`Schema error: ${repr(value)} is not one of ${repr(known)}`);
};
/** Checks `sort_dir` as Ironic's schema of the query does. */
export function checkDirection(direction: unknown): void {
  if (direction !== undefined && direction !== 'asc' && direction !== 'desc') refuseWord(direction, ['asc', 'desc']);
}
type FieldsRequest = Request<OperationTypes & { readonly query: Partial<ListQuery> }>;
/** Checks `fields` and `sort_dir` as Ironic's schema of the query does. */
export function checkStrict({ query, isFieldOfPath }: FieldsRequest, rows: readonly FieldRow[], ofVersion = false): void {
  const ordered = [...rows].sort((left, right) => (left.name < right.name ? -1 : 1));
  // Fields of later versions come last.
  if (ofVersion) ordered.sort((left, right) => left.gate.since - right.gate.since);
  const names = ordered.map(({ name }) => name);
  const unknown = (query.fields ?? []).find((field) => !names.includes(field));
  if (unknown !== undefined && !isFieldOfPath) refuseWord(unknown, names);
  checkDirection(query.sort_dir);
}
/** Checks the names of fields in a query. @returns the fields that the request may name */
function nameableRows(
  { schema, ignoresLater, strict }: Pick<Some<never>, 'ignoresLater' | 'schema' | 'strict'>,
  request: FieldsRequest,
  { document }: ApiContext,
) {
  const rows = document.fields(schema).filter(({ gate }) => !ignoresLater || isGateOpen(gate, request.minor));
  const ofSchema = rows.filter(({ hidden, patch }) => !hidden || patch);
  if (strict) checkStrict(request, ofSchema, ignoresLater);
  return rows.filter(({ hidden }) => !hidden);
}

/** One record as this caller sees it. */
export function presenterOf<RecordType extends ResourceRecord>(
  { schema, path, values = {} }: Pick<Some<RecordType>, 'path' | 'schema' | 'values'>,
  request: Request,
  context: ApiContext,
  fields?: readonly string[],
  minor = request.minor,
): Presenter<RecordType> {
  const rows = rowsToShow(context.document.fields(schema), minor, fields).map(({ name, links }) => ({
    name,
    links,
    own: Object.hasOwn(values, name) ? values[name] : undefined,
  }));
  return (record) => {
    const columns = columnsOf(record);
    const shown: Record<string, unknown> = {};
    for (const { name, links, own } of rows) {
      if (own) shown[name] = own(record, request, context);
      else if (links) shown[name] = linksTo(request.base, `${path}/${record.uuid}${name === 'links' ? '' : `/${name}`}`);
      else shown[name] = columns[name];
    }
    return shown;
  };
}

/** What the policies of one operation of a resource are, if they depend on the record. */
type PoliciesOf<RecordType> = (record: RecordType) => readonly string[];
/**
 * The record of the path. Callers that may not see it get the same response as for one that does not exist, or 403.
 * @param policy of the operation
 * @param policiesOf the policies that are checked in its place
 */
export async function recordOf<RecordType extends ResourceRecord>(
  resource: Pick<Some<RecordType>, 'hidden' | 'ident' | 'projects' | 'table'>,
  policy: string,
  request: Request,
  context: ApiContext,
  policiesOf: PoliciesOf<RecordType> = () => [policy],
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

interface ListOptions {
  /** All fields. */
  readonly detail?: true;
  /** The path of the next page, if it differs. */
  readonly path?: string;
  /** The first parameters of the next page's query. */
  readonly first?: readonly Parameter[];
  /** The version whose fields are shown, if it is not the request's. */
  readonly minor?: number;
  /** Checks each record by its owner. For tables with the column `owner`. */
  readonly checkEach?: (owner: string | null) => void;
}
export async function listOf<RecordType extends ResourceRecord, Query extends ListQuery>(
  resource: Resource<RecordType, keyof Inputs, NewRecord, Query>,
  request: ListRequest<Query>,
  context: ApiContext,
  { detail, first = [], minor = request.minor, checkEach, ...given }: ListOptions = {},
): Promise<Answer> {
  const { base } = request;
  const query: ListQuery = request.query;
  const { schema, list, brief, unsortable, computed } = resource;
  const all = nameableRows(resource, request, context);
  const project = resource.projectOf?.(request, context);
  checkFieldsAllowed(query.fields ?? undefined, request.minor);
  checkNewer([...(query.fields ?? []), query.sort_key], all, request.minor);
  const fields = detail ? undefined : fieldsToShow(query, brief);
  const page = pageOf(query, unsortable, context.options);
  const filter = (await resource.filter?.(request, context, project)) ?? {};
  const columns = context.document.fields(schema).filter(({ hidden, links, name }) => !hidden && !links && !computed.includes(name));
  checkSortable(page.sortKey, ['id', ...columns.map(({ name }) => name)]);
  checkFields(fields, all);
  const present = presenterOf(resource, request, context, fields, minor);
  const path = given.path ?? (detail ? `${resource.path}/detail` : resource.path);
  const next = { base, path, page, limit: page.limit, first, also: repeated(query, fields) };
  const table = resource.table(context);
  if ('page' in table) {
    const rows = rowsToShow(context.document.fields(schema), minor, fields);
    const { count, slices } = await table.page({ ...filter, ...page }, present, { base, minor, rows });
    return { status: 200, slices: envelopeOf(list, slices, count, next) };
  }
  const sizes = await table.sizes({ ...filter, ...page });
  if (checkEach) for (const { owner = null } of sizes) checkEach(owner);
  return { status: 200, slices: envelopeOf(list, recordSlices(table, sizes, present), sizes.length, next) };
}

export async function showOf<RecordType extends ResourceRecord>(
  resource: Some<RecordType>,
  request: ShowRequest,
  context: ApiContext,
  policiesOf?: PoliciesOf<RecordType>,
): Promise<Answer> {
  const { minor, query } = request;
  const all = nameableRows(resource, request, context);
  checkFieldsAllowed(query.fields, minor);
  checkNewer(query.fields ?? [], all, minor);
  const record = await recordOf(resource, `${resource.policy}:get`, request, context, policiesOf);
  checkFields(query.fields, all);
  return { status: 200, body: presenterOf(resource, request, context, query.fields)(record) };
}

/** Creates the record of checked values. */
export async function createRecord<RecordType extends ResourceRecord, Name extends keyof Inputs, New extends NewRecord>(
  resource: Resource<RecordType, Name, New>,
  values: New,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const record = { ...values, uuid: values.uuid?.toLowerCase() ?? newUuid(context.random) };
  const created = await withNotifications(context, request, notificationName(resource.schema), 'create', record, () =>
    resource.create(record, context),
  );
  return {
    status: 201,
    body: presenterOf(resource, request, context)(created),
    headers: location(request.base, `${resource.path}/${created.uuid}`),
  };
}
/** Other fields of a creation's body than those of the resource. `key`: of their schema among those of the resource. */
export interface Variant {
  readonly key: string;
  readonly rows: readonly FieldRow[];
}
export async function createOf<RecordType extends ResourceRecord, Name extends keyof Inputs, New extends NewRecord>(
  resource: Resource<RecordType, Name, New>,
  request: Request,
  context: ApiContext,
  variant?: Variant,
): Promise<Answer> {
  const rows = variant?.rows ?? context.document.fields(resource.schema).filter(({ create }) => create);
  const record = checkedRecord(resource.bodyLabel, resource.schema, rows, request.body, context, variant?.key);
  refuseNewer(columnsOf(record), rows, request.minor);
  return createRecord(resource, await resource.check(presentOf(record), request, context), request, context);
}

export async function updateOf<RecordType extends ResourceRecord, Name extends keyof Inputs, Before extends Found<RecordType>>(
  resource: Resource<RecordType, Name, NewRecord, ListQuery, Before>,
  request: PatchRequest,
  context: ApiContext,
): Promise<Answer> {
  // A resource without a step of its own finds nothing but the record.
  const find = async () => ({ record: await recordOf(resource, `${resource.policy}:update`, request, context) }) as Before;
  const { record } = await patchRecord({ find, ...resource }, request, context);
  return { status: 200, body: presenterOf(resource, request, context)(record) };
}

export async function removeOf<RecordType extends ResourceRecord>(
  resource: Some<RecordType>,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const record = await recordOf(resource, `${resource.policy}:delete`, request, context);
  await withNotifications(context, request, notificationName(resource.schema), 'delete', record, () => resource.remove(record, context));
  return { status: 204 };
}
