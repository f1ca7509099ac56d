/**
 * Sensors of machines with a Redfish service, in the shape that Ironic's consumers know: kind → sensor → fields. Read from Thermal and
 * Power, or, where a chassis lacks them, from their successors ThermalSubsystem and PowerSubsystem (DSP2046).
 */
import { Fault, reasonOf } from '../../model/errors';
import type { Json, JsonObject } from '../../model/records';
import {
  RedfishError,
  collection,
  linkOf,
  linkedCollection,
  listOf,
  member,
  numberOf,
  readLinked,
  readResource,
  textOf,
  type SendRedfishRequest,
  type RedfishResource,
} from '../../wire/redfish';
import { withoutEndSlashes } from '../../wire/urls';
import type { SensorNotes, Task } from '../interfaces';
import { onSystem, type SystemView } from './target';

/** Sensors that are read of one kind. Reports of thousands are not plausible. */
const MAX = 256;
/** Characters of one text. */
const MAX_CHARACTERS = 255;

const text = (value: unknown): string | null => textOf(value)?.slice(0, MAX_CHARACTERS) ?? null;
const number = (value: unknown): number | null => numberOf(value) ?? null;
const whole = (value: unknown): number | null => {
  const parsed = number(value);
  return parsed === null ? null : Math.trunc(parsed);
};
type FieldReader = (value: unknown) => Json;
/** Field of a sensor → the path of its Redfish property, and the function that converts the value. */
type SensorFields = Readonly<Record<string, readonly [property: string | readonly string[], read: FieldReader]>>;
const STATUS: SensorFields = { state: [['Status', 'State'], text], health: [['Status', 'Health'], text] };

const FAN: SensorFields = {
  identity: ['MemberId', text],
  max_reading_range: ['MaxReadingRange', whole],
  min_reading_range: ['MinReadingRange', whole],
  reading: ['Reading', whole],
  reading_units: ['ReadingUnits', text],
  serial_number: ['SerialNumber', text],
  physical_context: ['PhysicalContext', text],
  ...STATUS,
};
const TEMPERATURE: SensorFields = {
  identity: ['MemberId', text],
  max_reading_range_temp: ['MaxReadingRangeTemp', number],
  min_reading_range_temp: ['MinReadingRangeTemp', number],
  reading_celsius: ['ReadingCelsius', number],
  physical_context: ['PhysicalContext', text],
  sensor_number: ['SensorNumber', whole],
  ...STATUS,
};
const POWER: SensorFields = {
  power_capacity_watts: ['PowerCapacityWatts', whole],
  line_input_voltage: ['LineInputVoltage', whole],
  last_power_output_watts: ['LastPowerOutputWatts', whole],
  serial_number: ['SerialNumber', text],
  ...STATUS,
};
const DRIVE: SensorFields = { name: ['Name', text], model: ['Model', text], capacity_bytes: ['CapacityBytes', whole], ...STATUS };

const fieldsOf = (fields: SensorFields, body: unknown): Record<string, Json> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, [property, read]]) => [
      name,
      read(member(body, ...(typeof property === 'string' ? [property] : property))),
    ]),
  );
type Sensors = Record<string, JsonObject>;
/** Uses Object.fromEntries because a name from the service may be `__proto__`. */
const named = (entries: readonly (readonly [string, JsonObject])[]): Sensors => Object.fromEntries(entries.slice(0, MAX));

/** The resources of a machine that sensors are read from. */
interface Machine {
  readonly ask: SendRedfishRequest;
  readonly system: SystemView;
  readonly chassis: RedfishResource | undefined;
  readonly log: Task['log'];
  readonly notes: SensorNotes | undefined;
}
/** The last part of a path. */
const lastOf = (path: string): string => withoutEndSlashes(path).split('/').pop() ?? '';
const idOf = (resource: RedfishResource | undefined): string => text(member(resource?.body, 'Id')) ?? lastOf(resource?.path ?? '');

/** `ThermalSubsystem` has a resource for each fan, whose speed is a sensor's reading. */
async function newerFans({ ask, chassis }: Machine, thermal: RedfishResource): Promise<Sensors> {
  const fans = (await linkedCollection(ask, thermal, 'Fans')) ?? [];
  return named(
    fans.map(({ body }) => {
      const [rpm, percent] = [number(member(body, 'SpeedPercent', 'SpeedRPM')), number(member(body, 'SpeedPercent', 'Reading'))];
      const identity = text(member(body, 'Id')) ?? '';
      return [
        `${identity}@${idOf(chassis)}`,
        { ...fieldsOf(FAN, body), identity, reading: whole(rpm ?? percent), reading_units: rpm === null ? 'Percent' : 'RPM' },
      ];
    }),
  );
}
/** ThermalMetrics lists all temperatures; without it they are among the chassis' sensors. */
async function newerTemperatures({ ask, chassis }: Machine, thermal: RedfishResource): Promise<Sensors> {
  const metrics = await readLinked(ask, thermal, 'ThermalMetrics');
  const list = listOf(member(metrics?.body, 'TemperatureReadingsCelsius'));
  const listed = list.map((item, index) => ({
    identity: text(member(item, 'DataSourceUri'))?.split('/').pop() ?? text(member(item, 'DeviceName')) ?? String(index),
    body: item,
  }));
  const sensors = list.length > 0 || chassis === undefined ? [] : ((await linkedCollection(ask, chassis, 'Sensors')) ?? []);
  const read = sensors
    .filter(({ body }) => member(body, 'ReadingType') === 'Temperature')
    .map((sensor) => ({ identity: idOf(sensor), body: sensor.body }));
  return named(
    [...listed, ...read].map(({ identity, body }) => [
      `${identity}@${idOf(chassis)}`,
      {
        ...fieldsOf(TEMPERATURE, body),
        identity,
        reading_celsius: number(member(body, 'Reading')),
        max_reading_range_temp: number(member(body, 'ReadingRangeMax')),
        min_reading_range_temp: number(member(body, 'ReadingRangeMin')),
      },
    ]),
  );
}
async function newerPower({ ask, chassis }: Machine, power: RedfishResource): Promise<Sensors> {
  const supplies = (await linkedCollection(ask, power, 'PowerSupplies')) ?? [];
  const found: (readonly [string, JsonObject])[] = [];
  for (const supply of supplies.slice(0, MAX)) {
    const metrics = (await readLinked(ask, supply, 'Metrics'))?.body;
    found.push([
      `${idOf(supply)}:${idOf(power)}@${idOf(chassis)}`,
      {
        ...fieldsOf(POWER, supply.body),
        line_input_voltage: whole(member(metrics, 'InputVoltage', 'Reading')),
        last_power_output_watts: whole(member(metrics, 'OutputPowerWatts', 'Reading')),
      },
    ]);
  }
  return named(found);
}

/** Reads a list in a resource of the chassis, or in the resource's successor. */
const listOfChassis =
  (
    link: string,
    list: string,
    fields: SensorFields,
    successor: readonly [string, (machine: Machine, newer: RedfishResource) => Promise<Sensors>],
  ) =>
  async (machine: Machine): Promise<Sensors> => {
    const { ask, chassis } = machine;
    if (chassis === undefined) return {};
    const found = await readLinked(ask, chassis, link);
    if (found === undefined) {
      const [other, read] = successor;
      const newer = await readLinked(ask, chassis, other);
      return newer === undefined ? {} : read(machine, newer);
    }
    const within = link === 'Power' ? `:${idOf(found)}` : '';
    return named(
      listOf(member(found.body, list)).map((item, index) => [
        `${text(member(item, 'MemberId')) ?? String(index)}${within}@${idOf(chassis)}`,
        fieldsOf(fields, item),
      ]),
    );
  };

/** What drives say of their future (DSP0268, Drive). */
function noteFuture({ notes }: Machine, key: string, body: unknown): void {
  if (!notes) return;
  const left = numberOf(member(body, 'PredictedMediaLifeLeftPercent'));
  const isFailing = member(body, 'FailurePredicted') === true;
  if (isFailing || left !== undefined)
    notes.part('Drive', key, isFailing ? ['predicted failure'] : [], left === undefined ? undefined : { value: left, unit: 'percent' });
}
/** @param place names a drive that has neither a name nor an identifier */
const drive = (body: unknown, place: string, storage: string, system: SystemView): readonly [string, JsonObject] => {
  const fields = fieldsOf(DRIVE, body);
  const name = text(member(body, 'Name')) ?? text(member(body, 'Id')) ?? place;
  // Some vendors leave the state out.
  const state = fields['state'] ?? (fields['health'] === null ? null : 'Enabled');
  return [`${name}:${storage}@${lastOf(system.path)}`, { ...fields, state }];
};
/** The drives of Storage, each with its key and its fields. */
async function storedDrives(machine: Machine): Promise<readonly (readonly [string, JsonObject])[]> {
  const { ask, system } = machine;
  const place = linkOf(member(system.body, 'Storage'));
  const found: (readonly [string, JsonObject])[] = [];
  for (const storage of place === undefined ? [] : await collection(ask, place))
    for (const item of listOf(member(storage.body, 'Drives'))) {
      const path = linkOf(item);
      if (path === undefined || found.length >= MAX) continue;
      const resource = await readResource(ask, path).catch((error: unknown) => {
        // The other drives are still of use.
        if (isAnswered(error)) return undefined;
        throw error;
      });
      // It may be there all the same.
      if (!resource) machine.notes?.unread('Drive');
      else {
        const [key, fields] = drive(resource.body, lastOf(path), idOf(storage), system);
        found.push([key, fields]);
        noteFuture(machine, key, resource.body);
      }
    }
  return found;
}
/** SimpleStorage returns all drives of a controller in one response, and nothing of their future; Storage has a resource for each. */
async function drives(machine: Machine): Promise<Sensors> {
  const { ask, system, notes } = machine;
  const simple = await linkedCollection(ask, system, 'SimpleStorage');
  if (simple === undefined) return named(await storedDrives(machine));
  if (notes)
    await storedDrives(machine).catch((error: unknown) => {
      if (!isAnswered(error)) throw error;
    });
  return named(
    simple.flatMap((storage) =>
      listOf(member(storage.body, 'Devices'))
        // A device without a capacity is an enclosure.
        .filter((device) => whole(member(device, 'CapacityBytes')))
        .map((device, index) => drive(device, String(index), idOf(storage), system)),
    ),
  );
}

/** Kind of sensor → the function that reads all sensors of this kind. */
const KINDS: Readonly<Record<string, (machine: Machine) => Promise<Sensors>>> = {
  Fan: listOfChassis('Thermal', 'Fans', FAN, ['ThermalSubsystem', newerFans]),
  Temperature: listOfChassis('Thermal', 'Temperatures', TEMPERATURE, ['ThermalSubsystem', newerTemperatures]),
  Power: listOfChassis('Power', 'PowerSupplies', POWER, ['PowerSubsystem', newerPower]),
  Drive: drives,
};
const ASSEMBLIES: readonly string[] = ['Fan', 'Temperature', 'Power'];

/** Sends each request once, however many kinds need its response. */
function withCache(ask: SendRedfishRequest): SendRedfishRequest {
  const responses = new Map<string, ReturnType<SendRedfishRequest>>();
  return (method, path, more) => {
    const response = responses.get(path) ?? ask(method, path, more);
    responses.set(path, response);
    return response;
  };
}

/** The service answered, with an error or with something that is not Redfish. */
const isAnswered = (error: unknown): boolean => error instanceof RedfishError && (error.kind === 'status' || error.kind === 'protocol');
async function readKind(machine: Machine, kind: string): Promise<Sensors> {
  try {
    return await KINDS[kind]!(machine);
  } catch (error) {
    // Other kinds may still be readable. An unreachable service ends the whole reading.
    if (!isAnswered(error)) throw error;
    machine.log.debug(`sensors of kind ${kind} cannot be read`, { reason: reasonOf(error) });
    machine.notes?.unread(kind);
    return {};
  }
}

/** Throws FailedToGetSensorData. @param isWanted selects the kinds; absent: all */
export async function redfishSensors(
  task: Task,
  isWanted: (kind: string) => boolean = () => true,
  notes?: SensorNotes,
): Promise<JsonObject> {
  try {
    return await onSystem(task, undefined, async (system) => {
      const ask = withCache(system.ask);
      const kinds = Object.keys(KINDS).filter(isWanted);
      const housed = linkOf(listOf(member(system.body, 'Links', 'Chassis'))[0]);
      const chassis = housed !== undefined && kinds.some((kind) => ASSEMBLIES.includes(kind)) ? await readResource(ask, housed) : undefined;
      const machine: Machine = { ask, system: { ...system, ask }, chassis, log: task.log, notes };
      const found: Record<string, JsonObject> = {};
      if (isWanted('Extra'))
        found['Extra'] = fieldsOf({ Manufacturer: ['Manufacturer', text], Model: ['Model', text], UUID: ['UUID', text] }, system.body);
      for (const kind of kinds) found[kind] = await readKind(machine, kind);
      return found;
    });
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'DriverOperationError') throw error;
    throw new Fault('FailedToGetSensorData', { node: task.node.uuid, error: error.message }, { cause: error });
  }
}
