/** Checks records of requests with the field rows: first the schema, then each value. */
import { Fault, notAcceptable } from '../../model/errors';
import { isDatapath, isMac } from '../../model/idents';
import { isObject } from '../../model/json';
import type { Inputs } from '../schema/operations';
import { isGateOpen } from '../../model/versions';
import { booleanOf, macOf, storableOf, uuidOf } from '../schema/arguments';
import type { Document, FieldRow, Schema } from '../schema/document';
import type { ApiContext } from './handler';
import { throwIfInvalid, describe, describeFirst, type Validators } from '../schema/schema';

export type Values = Record<string, unknown>;
/** The members of a record by name. */
export const columnsOf = (record: object): Readonly<Values> => record as Readonly<Values>;
/** null means absent. */
export type Present<T> = { readonly [Name in keyof T]: Exclude<T[Name], null> };
export const presentOf = <T extends object>(record: T): Present<T> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null)) as Present<T>;

/** The schema of the field's value. The `network_data` of a node has a second one, and may be null or empty too. */
function propertySchema({ name, schema }: FieldRow, document: Document): Schema {
  if (name !== 'network_data') return schema;
  return { anyOf: [{ type: 'null' }, { type: 'object', additionalProperties: false }, document.schemas['NetworkData']] };
}
function recordSchema(document: Document, resource: string, rows: readonly FieldRow[]): Schema {
  const { required = [], oneOf } = document.schemas[resource]!;
  const properties = Object.fromEntries(rows.map((row) => [row.name, propertySchema(row, document)]));
  return { type: 'object', properties, required, ...(oneOf ? { oneOf } : {}), additionalProperties: false };
}

/** Checks local_link_connection. The switch_id is a MAC address or an OpenFlow datapath ID, and becomes lower case. */
function localLink(value: unknown, document: Document, validators: Validators): unknown {
  throwIfInvalid('local_link_connection', validators('LocalLink', () => document.schemas['LocalLink']!)(value));
  if (!isObject(value) || typeof value['switch_id'] !== 'string') return value;
  const { switch_id: id, ...link } = value;
  if (!isMac(id) && !isDatapath(id)) throw new Fault('InvalidSwitchID', { switch_id: id });
  return { ...link, switch_id: id.toLowerCase() };
}

function stored(row: FieldRow, value: unknown, { document, validators }: ApiContext): unknown {
  const { name, schema, spelled } = row;
  if (value === null) return null;
  if (spelled) return booleanOf(name, value);
  if (schema['format'] === 'uuid') return uuidOf(name, value);
  if (schema['format'] === 'mac') return macOf(name, value);
  if (name === 'local_link_connection') return localLink(value, document, validators);
  return typeof value === 'string' ? storableOf(name, value) : value;
}

/**
 * @param label of the record in messages
 * @param rows the fields that the record may have
 * @param key of the schema, if the rows are not those of the label
 * @returns the record with its values as they are stored
 * @throws Fault InvalidParameterValue
 */
export function checkedRecord<Name extends keyof Inputs>(
  label: string,
  resource: Name,
  rows: readonly FieldRow[],
  value: unknown,
  context: ApiContext,
  key = '',
): Inputs[Name] {
  const { document, validators } = context;
  // Without a label, Ironic reports the first error of the schema.
  const words = label === '' ? describeFirst : describe;
  throwIfInvalid(label, validators(`${resource}.${label}${key}`, () => recordSchema(document, resource, rows), words)(value));
  const checked: Values = { ...(value as object) };
  for (const row of rows) if (Object.hasOwn(checked, row.name)) checked[row.name] = stored(row, checked[row.name], context);
  return checked as Inputs[Name];
}

/** Refuses fields newer than the request, unless their value is empty (null; for conductor_group ''). */
export function refuseNewer(record: Readonly<Values>, rows: readonly FieldRow[], minor: number): void {
  for (const { name, named } of rows) {
    if (isGateOpen(named, minor) || !Object.hasOwn(record, name)) continue;
    if (name === 'conductor_group' ? record[name] !== '' : record[name] !== null) throw notAcceptable();
  }
}

/** Flags that are never null. */
const NEVER_NULL = ['maintenance', 'protected'];
/** The value of a field that was removed. */
export function emptyOf({ name, schema }: FieldRow): unknown {
  if (schema['default'] !== undefined) return schema['default'];
  if (schema['type'] === 'object') return {};
  if (name === 'conductor_group') return '';
  return NEVER_NULL.includes(name) ? false : null;
}
