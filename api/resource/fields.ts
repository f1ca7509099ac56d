/** Records that callers send, held against the field rows: shape, then each value as it is stored. */
import { Fault } from '../../model/errors';
import { isDatapath, isMac } from '../../model/idents';
import type { PatchOperation } from '../../model/patch';
import { open } from '../../model/versions';
import { booleanOf, macOf, uuidOf } from '../schema/arguments';
import type { Document, FieldRow, Schema } from '../schema/document';
import type { ApiContext } from './handler';
import { demand, describe, describeFirst, type Validators } from '../schema/schema';

export type Values = Record<string, unknown>;

/** What the field's value must be, for the first look; a schema of its own (x-schema) joins where null and {} must pass too. */
function propertySchema({ schema }: FieldRow, document: Document): Schema {
  if (schema['x-schema'] !== 'NetworkData') return schema;
  return { anyOf: [{ type: 'null' }, { type: 'object', additionalProperties: false }, document.schemas['NetworkData']] };
}
function recordSchema(document: Document, resource: string, rows: readonly FieldRow[]): Schema {
  const { required, oneOf } = document.schemas[resource]!;
  const properties = Object.fromEntries(rows.map((row) => [row.name, propertySchema(row, document)]));
  return { type: 'object', properties, required, ...(oneOf ? { oneOf } : {}), additionalProperties: false };
}

/** The keys of local_link_connection, and a switch named by its MAC address or its OpenFlow datapath, in lower case. */
function localLink(value: unknown, document: Document, validators: Validators): unknown {
  demand('local_link_connection', validators('LocalLink', () => document.schemas['LocalLink']!)(value));
  const { switch_id: id, ...link } = value as { switch_id?: string };
  if (id === undefined) return value;
  if (!isMac(id) && !isDatapath(id)) throw new Fault('InvalidSwitchID', { switch_id: id });
  return { ...link, switch_id: id.toLowerCase() };
}

function stored(row: FieldRow, value: unknown, { document, validators }: ApiContext): unknown {
  const { name, schema, spelled } = row;
  if (value === null) return null;
  if (spelled) return booleanOf(name, value);
  if (schema['format'] === 'uuid') return uuidOf(name, value);
  if (schema['format'] === 'mac') return macOf(name, value);
  if (schema['x-schema'] === 'LocalLink') return localLink(value, document, validators);
  return value;
}

/**
 * @param said what messages call the record
 * @param rows the fields that may be there
 * @returns the same members, as they are stored
 * @throws Fault InvalidParameterValue
 */
export function checkedRecord(said: string, resource: string, rows: readonly FieldRow[], value: unknown, context: ApiContext): Values {
  const { document, validators } = context;
  // A schema that speaks for itself tells the first mistake that it finds.
  const words = said === '' ? describeFirst : describe;
  demand(said, validators(`${resource}.${said}`, () => recordSchema(document, resource, rows), words)(value));
  const record = value as Values;
  const checked: Values = { ...record };
  for (const row of rows) if (Object.hasOwn(record, row.name)) checked[row.name] = stored(row, record[row.name], context);
  return checked;
}

/** A field newer than the request is refused, unless its value is the empty one (absent; for conductor_group ''). */
export function refuseNewer(record: Values, rows: readonly FieldRow[], minor: number): void {
  for (const { name, named } of rows) {
    if (open(named, minor) || !Object.hasOwn(record, name)) continue;
    if (name === 'conductor_group' ? record[name] !== '' : record[name] !== null)
      throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  }
}

/** @returns the operations (held against their schema at the door), each on a field that may be changed */
export function checkedPatch(body: unknown, rows: readonly FieldRow[]): readonly PatchOperation[] {
  const patch = body as PatchOperation[];
  const allowed = rows
    .filter((row) => row.patch)
    .sort((a, b) => a.patchOrder - b.patchOrder || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
  for (const { path } of patch)
    if (!allowed.includes(path.split('/')[1]!))
      throw new Fault('Invalid', { message: `Cannot patch ${path}. Only the following can be updated: ${allowed.join(', ')}` });
  return patch;
}

/** Flags that are never without a value. */
const ALWAYS_SAID = ['maintenance', 'protected'];
/** What a field is when it has no value. */
export function emptyOf({ name, schema }: FieldRow): unknown {
  if (schema['default'] !== undefined) return schema['default'];
  if (schema['type'] === 'object') return {};
  if (name === 'conductor_group') return '';
  return ALWAYS_SAID.includes(name) ? false : null;
}
