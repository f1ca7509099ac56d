/** The pipeline of every PATCH: check the patch, find the record, apply the patch, check the result, store what differs. */
import type { Inputs } from '../schema/operations';
import { invalid, notAcceptable } from '../../model/errors';
import { applyPatch, equalJson, valuesAt, type PatchOperation } from '../../model/patch';
import type { ChangesOf, ResourceRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { FieldRow } from '../schema/document';
import { checkedRecord, columnsOf, emptyOf, type Values } from './fields';
import type { ApiContext, OperationTypes, Request } from './handler';
import { notificationName, withNotifications } from './notifications';

export type PatchRequest = Request<OperationTypes & { readonly body: readonly PatchOperation[] }>;

/** The record of the path, and what else the later steps need. */
export interface Found<RecordType> {
  readonly record: RecordType;
}
/** The steps of a PATCH, in their order. Each throws a Fault. */
export interface PatchSteps<
  RecordType extends ResourceRecord,
  Name extends keyof Inputs,
  FoundType extends Found<RecordType>,
  RequestType extends PatchRequest = PatchRequest,
> {
  /** The schema of the resource in openapi.yaml. */
  readonly schema: Name;
  /** Checks the patch alone. Absent: `checkPatch`. */
  checkPatch?(patch: readonly PatchOperation[], request: RequestType, context: ApiContext): void;
  /** Finds the record and checks the policies. */
  find(patch: readonly PatchOperation[], request: RequestType, context: ApiContext): Promise<FoundType>;
  /** Checks the patched record before the schema does. Returns the record to use. */
  patched?(
    values: Values,
    found: FoundType,
    patch: readonly PatchOperation[],
    request: RequestType,
    context: ApiContext,
  ): Promise<Values> | Values;
  /** Checks the patched record after the schema. Returns the values to store. */
  checkPatched?(
    values: Inputs[Name],
    found: FoundType,
    patch: readonly PatchOperation[],
    request: RequestType,
    context: ApiContext,
  ): Promise<object> | object;
  /** Checks the fields that change. Returns those to store. */
  checkChanges?(
    changes: ChangesOf<RecordType>,
    found: FoundType,
    request: RequestType,
    context: ApiContext,
  ): Promise<ChangesOf<RecordType>>;
  /** A patch without changes is executed too, because the conductor may refuse it. */
  readonly alwaysUpdates?: true;
  update(before: RecordType, changes: ChangesOf<RecordType>, context: ApiContext, request: RequestType): Promise<RecordType>;
}

/** Refuses operations on fields that are not patchable. */
export function checkPaths(patch: readonly PatchOperation[], rows: readonly FieldRow[]): void {
  const isPatchable = ({ path }: PatchOperation): boolean => rows.some(({ name, patch: may }) => may && name === path.split('/')[1]);
  const wrong = patch.find((candidate) => !isPatchable(candidate));
  if (!wrong) return;
  const allowed = rows
    .filter((row) => row.patch)
    .sort((a, b) => a.patchOrder - b.patchOrder || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
  throw invalid(`Cannot patch ${wrong.path}. Only the following can be updated: ${allowed.join(', ')}`);
}
/** Refuses operations on fields that are not patchable, or newer than the request. */
export function checkPatch(patch: readonly PatchOperation[], rows: readonly FieldRow[], minor: number): void {
  checkPaths(patch, rows);
  if (rows.some(({ name, named }) => !isGateOpen(named, minor) && valuesAt(patch, `/${name}`).length > 0)) throw notAcceptable();
}

function differences<RecordType extends ResourceRecord>(
  before: RecordType,
  after: Readonly<Values>,
  rows: readonly FieldRow[],
): ChangesOf<RecordType> {
  const columns = columnsOf(before);
  const changes: Values = {};
  for (const row of rows) {
    if (row.hidden || !row.patch) continue;
    const value = after[row.name] ?? emptyOf(row);
    if (!equalJson(value, columns[row.name])) changes[row.name] = value;
  }
  return changes as ChangesOf<RecordType>;
}

/** Executes the PATCH. `record`: afterwards. */
export async function patchRecord<
  RecordType extends ResourceRecord,
  Name extends keyof Inputs,
  FoundType extends Found<RecordType>,
  RequestType extends PatchRequest,
>(
  steps: PatchSteps<RecordType, Name, FoundType, RequestType>,
  request: RequestType,
  context: ApiContext,
): Promise<{ readonly record: RecordType; readonly found: FoundType }> {
  const { schema } = steps;
  const patch = request.body;
  const rows = context.document.fields(schema);
  if (steps.checkPatch) steps.checkPatch(patch, request, context);
  else checkPatch(patch, rows, request.minor);
  const found = await steps.find(patch, request, context);
  const before = found.record;
  const applied = applyPatch(columnsOf(before), patch);
  const patched = (await steps.patched?.(applied, found, patch, request, context)) ?? applied;
  const patchable = rows.filter(({ create, patch: may }) => create || may);
  const own: Values = {};
  for (const { name } of patchable) if (Object.hasOwn(patched, name)) own[name] = patched[name];
  const checked = checkedRecord('patch', schema, patchable, own, context);
  const values = (await steps.checkPatched?.(checked, found, patch, request, context)) ?? checked;
  const different = differences(before, columnsOf(values), patchable);
  const changes = (await steps.checkChanges?.(different, found, request, context)) ?? different;
  const record = await withNotifications(context, request, notificationName(schema), 'update', { ...before, ...changes }, async () =>
    steps.alwaysUpdates || Object.keys(changes).length > 0 ? steps.update(before, changes, context, request) : before,
  );
  return { record, found };
}
