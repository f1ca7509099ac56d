/** /v1/drivers: the hardware types that the alive conductors offer together. */
import { Fault, invalid, invalidParameter, notFound } from '../../model/errors';
import { INTERFACE_KINDS, type ConductorRecord, type EnabledHardware, type InterfaceKind } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { FieldRow } from '../schema/document';
import { refuseWord } from '../pipeline/resource';
import { checkFields, linksTo, rowsToShow } from '../pipeline/present';
import type { Answer, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

/** The conductors that offer a hardware type, with the interfaces that they enable. */
type Offers = readonly (readonly [host: string, offer: EnabledHardware])[];

const offersOf = (conductors: readonly ConductorRecord[], type: string): Offers =>
  conductors.flatMap(({ hostname, drivers }) => (Object.hasOwn(drivers, type) ? [[hostname, drivers[type]!] as const] : []));

/** Lists show interfaces only with `detail`. */
const isInterface = ({ name }: FieldRow): boolean => /^(default|enabled)_/.test(name);
function interfaceField(name: string, offers: Offers): unknown {
  const kind = INTERFACE_KINDS.find(
    (interfaceKind) => name === `default_${interfaceKind}_interface` || name === `enabled_${interfaceKind}_interfaces`,
  ) as InterfaceKind;
  if (name.startsWith('default_')) return offers.map(([, { defaults }]) => defaults[kind]).find((value) => value !== null) ?? null;
  return [...new Set(offers.flatMap(([, { enabled }]) => enabled[kind]))];
}

function present(name: string, offers: Offers, rows: readonly FieldRow[], base: string): Record<string, unknown> {
  const values: Readonly<Record<string, () => unknown>> = {
    name: () => name,
    hosts: () => offers.map(([host]) => host),
    links: () => linksTo(base, `drivers/${name}`),
    properties: () => linksTo(base, `drivers/${name}/properties`),
    type: () => 'dynamic',
  };
  return Object.fromEntries(rows.map((row) => [row.name, (values[row.name] ?? (() => interfaceField(row.name, offers)))()]));
}

/** The names of all fields, in the order of the error message. */
function fieldNames(rows: readonly FieldRow[], minor: number): string[] {
  const late = ['storage', 'rescue', 'bios', 'firmware'];
  const kinds = [...INTERFACE_KINDS.filter((kind) => !late.includes(kind)), ...late];
  const interfaces = kinds.flatMap((kind) => [`default_${kind}_interface`, `enabled_${kind}_interfaces`]);
  return ['hosts', 'links', 'name', ...interfaces, 'properties', 'type'].filter((name) =>
    rows.some((row) => row.name === name && isGateOpen(row.gate, minor)),
  );
}
function checkKnown(fields: readonly string[] | undefined, rows: readonly FieldRow[], minor: number): void {
  const names = fieldNames(rows, minor);
  const unknown = fields?.find((field) => !names.includes(field));
  if (unknown !== undefined) refuseWord(unknown, names);
}

async function listDrivers(request: RequestOf<'listDrivers'>, context: ApiContext): Promise<Answer> {
  const { query, minor, base } = request;
  const all = context.document.fields('Driver');
  const { fields, detail, type = 'dynamic' } = query;
  if (minor >= 77) checkKnown(fields, all, minor);
  if (fields?.length && detail === true) throw invalidParameter('Can not specify ?detail=True and fields in the same request.');
  if (type !== 'classic' && type !== 'dynamic') throw invalid('"type" filter must be one of "classic" or "dynamic", if specified.');
  const conductors = (await context.current.conductors()).conductors;
  // The Rocky release removed classic drivers.
  const names = type === 'classic' ? [] : [...new Set(conductors.flatMap(({ drivers }) => Object.keys(drivers)))].sort();
  const rows = rowsToShow(all, minor, fields).filter((row) => detail === true || !isInterface(row));
  if (names.length > 0) checkFields(fields, rows);
  return { status: 200, body: { drivers: names.map((name) => present(name, offersOf(conductors, name), rows, base)) } };
}

async function showDriver(request: RequestOf<'showDriver'>, context: ApiContext): Promise<Answer> {
  const { minor, base, params } = request;
  const all = context.document.fields('Driver');
  const { fields } = request.query;
  if (!request.isFieldOfPath) checkKnown(fields, all, minor);
  const name = params.driver_name;
  const offers = offersOf((await context.current.conductors()).conductors, name);
  if (offers.length === 0) throw new Fault('DriverNotFound', { driver_name: name });
  checkFields(fields, rowsToShow(all, minor));
  return { status: 200, body: present(name, offers, rowsToShow(all, minor, fields), base) };
}

/** Throws NotFound when no alive conductor has the hardware type. */
export async function checkDriverServed(name: string, context: ApiContext): Promise<void> {
  if (offersOf((await context.current.conductors()).conductors, name).length === 0) throw notFound(`The driver '${name}' is unknown.`);
}

export const driverHandlers = {
  listDrivers,
  showDriver,
  showDriverProperties: async ({ params }, context) => {
    const name = params.driver_name;
    await checkDriverServed(name, context);
    return { status: 200, body: await context.conductor.driverProperties(name) };
  },
} satisfies SomeHandlers;
