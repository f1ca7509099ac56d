/** Sensors by a Redfish service: Thermal and Power, the subsystems that replace them, drives, and invalid responses. */
import { redfishManagement } from '../../../drivers/redfish/steps/management';
import type { JsonObject } from '../../../model/records';
import { createRedfishPool, type RedfishPool } from '../../../wire/redfish';
import { SYSTEM, redfishError, redfishService, type RedfishService } from '../../wire/redfish/service';
import { bmcTask } from '../bmc-task';

const CHASSIS = '/redfish/v1/Chassis/C1';
const link = (path: string): JsonObject => ({ '@odata.id': path });
const OK = { State: 'Enabled', Health: 'OK' };
const SEEN = { state: 'Enabled', health: 'OK' };

let service: RedfishService;
let pool: RedfishPool;
beforeEach(async () => {
  service = await redfishService();
  pool = createRedfishPool();
  Object.assign(service.resources[SYSTEM] as object, { Manufacturer: 'M', Model: 'N', UUID: 'u', Links: { Chassis: [link(CHASSIS)] } });
});
afterEach(async () => {
  await pool.close();
  await service.close();
});
const read = (isWanted?: (kind: string) => boolean): Promise<JsonObject> =>
  redfishManagement.sensors!(
    bmcTask({
      node: { driver: 'redfish', driver_info: { redfish_address: service.url, redfish_system_id: SYSTEM } },
      options: { 'redfish.connection_attempts': 1 },
      connections: { redfish: pool },
    }).task,
    isWanted,
  );
const put = (path: string, body: JsonObject): void => void (service.resources[path] = body);
const paths = (): readonly string[] => service.asked.map(({ path }) => path);

const older = (): void => {
  put(CHASSIS, { Id: 'C1', Thermal: link(`${CHASSIS}/Thermal`), Power: link(`${CHASSIS}/Power`) });
  put(`${CHASSIS}/Thermal`, {
    Fans: [
      { MemberId: 'F1', Reading: 4200, ReadingUnits: 'RPM', PhysicalContext: 'CPU', Status: OK },
      { MemberId: 'F2', Reading: '7.9', Status: 'x' },
    ],
    Temperatures: [
      { MemberId: 'T1', ReadingCelsius: 41.5, SensorNumber: 3, MaxReadingRangeTemp: 100, PhysicalContext: 'Intake', Status: OK },
    ],
  });
  put(`${CHASSIS}/Power`, {
    Id: 'Power',
    PowerSupplies: [
      { MemberId: '0', PowerCapacityWatts: 750, LineInputVoltage: 230, LastPowerOutputWatts: 90, SerialNumber: 'P', Status: OK },
    ],
  });
};

it('reads Thermal and Power in the format of Ironic', async () => {
  older();
  expect(await read()).toEqual({
    Extra: { Manufacturer: 'M', Model: 'N', UUID: 'u' },
    Fan: {
      'F1@C1': {
        identity: 'F1',
        max_reading_range: null,
        min_reading_range: null,
        reading: 4200,
        reading_units: 'RPM',
        serial_number: null,
        physical_context: 'CPU',
        ...SEEN,
      },
      'F2@C1': {
        identity: 'F2',
        max_reading_range: null,
        min_reading_range: null,
        reading: 7,
        reading_units: null,
        serial_number: null,
        physical_context: null,
        state: null,
        health: null,
      },
    },
    Temperature: {
      'T1@C1': {
        identity: 'T1',
        max_reading_range_temp: 100,
        min_reading_range_temp: null,
        reading_celsius: 41.5,
        physical_context: 'Intake',
        sensor_number: 3,
        ...SEEN,
      },
    },
    Power: {
      '0:Power@C1': { power_capacity_watts: 750, line_input_voltage: 230, last_power_output_watts: 90, serial_number: 'P', ...SEEN },
    },
    Drive: {},
  });
  expect(paths().filter((path) => path.endsWith('/Thermal'))).toHaveLength(1);
});

it('reads only the requested kinds of sensors', async () => {
  older();
  expect(Object.keys(await read((kind) => kind === 'Power'))).toEqual(['Power']);
  expect(paths().filter((path) => /Thermal|Storage/.test(path))).toEqual([]);
  service.asked.length = 0;
  await read((kind) => kind === 'Drive');
  expect(paths().filter((path) => path.includes('Chassis'))).toEqual([]);
});

it('reads ThermalSubsystem and PowerSubsystem into the same format', async () => {
  const [thermal, power] = [`${CHASSIS}/ThermalSubsystem`, `${CHASSIS}/PowerSubsystem`];
  put(CHASSIS, { Id: 'C1', ThermalSubsystem: link(thermal), PowerSubsystem: link(power), Sensors: link(`${CHASSIS}/Sensors`) });
  put(thermal, { Fans: link(`${thermal}/Fans`), ThermalMetrics: link(`${thermal}/ThermalMetrics`) });
  put(`${thermal}/Fans`, { Members: [link(`${thermal}/Fans/1`), link(`${thermal}/Fans/2`)] });
  put(`${thermal}/Fans/1`, { Id: '1', SpeedPercent: { Reading: 45, SpeedRPM: 2200 }, PhysicalContext: 'Chassis', Status: OK });
  put(`${thermal}/Fans/2`, { Id: '2', SpeedPercent: { Reading: 45.7 } });
  put(`${thermal}/ThermalMetrics`, {
    TemperatureReadingsCelsius: [
      { Reading: 24.8, DeviceName: 'Intake', PhysicalContext: 'Intake', DataSourceUri: `${CHASSIS}/Sensors/AmbientTemp` },
    ],
  });
  put(power, { Id: 'PowerSubsystem', PowerSupplies: link(`${power}/PowerSupplies`) });
  put(`${power}/PowerSupplies`, { Members: [link(`${power}/PowerSupplies/Bay1`)] });
  put(`${power}/PowerSupplies/Bay1`, {
    Id: 'Bay1',
    PowerCapacityWatts: 400,
    SerialNumber: 'S',
    Metrics: link(`${power}/PowerSupplies/Bay1/Metrics`),
    Status: OK,
  });
  put(`${power}/PowerSupplies/Bay1/Metrics`, { InputVoltage: { Reading: 230.2 }, OutputPowerWatts: { Reading: 333.9 } });
  const found = await read();
  expect(found['Fan']).toMatchObject({
    '1@C1': { identity: '1', reading: 2200, reading_units: 'RPM', physical_context: 'Chassis', ...SEEN },
    '2@C1': { identity: '2', reading: 45, reading_units: 'Percent' },
  });
  expect(found['Temperature']).toMatchObject({
    'AmbientTemp@C1': { identity: 'AmbientTemp', reading_celsius: 24.8, physical_context: 'Intake' },
  });
  expect(found['Power']).toEqual({
    'Bay1:PowerSubsystem@C1': {
      power_capacity_watts: 400,
      line_input_voltage: 230,
      last_power_output_watts: 333,
      serial_number: 'S',
      ...SEEN,
    },
  });

  delete service.resources[`${thermal}/ThermalMetrics`];
  put(`${CHASSIS}/Sensors`, { Members: [link(`${CHASSIS}/Sensors/CPU`), link(`${CHASSIS}/Sensors/V`)] });
  put(`${CHASSIS}/Sensors/CPU`, {
    Id: 'CPU',
    ReadingType: 'Temperature',
    Reading: 60,
    ReadingRangeMax: 120,
    PhysicalContext: 'CPU',
    Status: OK,
  });
  put(`${CHASSIS}/Sensors/V`, { Id: 'V', ReadingType: 'Voltage', Reading: 12 });
  expect((await read())['Temperature']).toEqual({
    'CPU@C1': {
      identity: 'CPU',
      reading_celsius: 60,
      max_reading_range_temp: 120,
      min_reading_range_temp: null,
      physical_context: 'CPU',
      sensor_number: null,
      ...SEEN,
    },
  });
});

it('reads drives from SimpleStorage, else from Storage, and omits enclosures', async () => {
  older();
  const system = service.resources[SYSTEM] as Record<string, unknown>;
  put(`${SYSTEM}/SimpleStorage`, { Members: [link(`${SYSTEM}/SimpleStorage/1`)] });
  put(`${SYSTEM}/SimpleStorage/1`, {
    Id: 'A',
    Devices: [{ Name: 'disk', Model: 'X', CapacityBytes: 5e11, Status: { Health: 'OK' } }, { Name: 'backplane' }],
  });
  system['SimpleStorage'] = link(`${SYSTEM}/SimpleStorage`);
  expect((await read())['Drive']).toEqual({ 'disk:A@1': { name: 'disk', model: 'X', capacity_bytes: 5e11, ...SEEN } });
  delete system['SimpleStorage'];
  system['Storage'] = link(`${SYSTEM}/Storage`);
  put(`${SYSTEM}/Storage`, { Members: [link(`${SYSTEM}/Storage/1`)] });
  put(`${SYSTEM}/Storage/1`, { Id: 'RAID', Drives: [link(`${SYSTEM}/Storage/1/Drives/1`), 5] });
  put(`${SYSTEM}/Storage/1/Drives/1`, { Name: 'd1', CapacityBytes: 7, Status: { State: 'Absent', Health: null } });
  expect((await read())['Drive']).toEqual({ 'd1:RAID@1': { name: 'd1', model: null, capacity_bytes: 7, state: 'Absent', health: null } });
  put(`${SYSTEM}/Storage/1/Drives/1`, { Id: 'Disk.0', Name: null });
  expect(Object.keys((await read())['Drive'] as object)).toEqual(['Disk.0:RAID@1']);
  put(`${SYSTEM}/Storage/1/Drives/1`, {});
  expect(Object.keys((await read())['Drive'] as object)).toEqual(['1:RAID@1']);
});

it('reads the other kinds when one fails, and fails when the service is unavailable', async () => {
  older();
  service.reply = ({ path }) => (path.endsWith('/Thermal') ? { status: 500, body: redfishError('no') } : undefined);
  expect(await read()).toMatchObject({ Fan: {}, Temperature: {}, Power: { '0:Power@C1': {} } });
  service.reply = () => ({ status: 503 });
  await expect(read()).rejects.toMatchObject({ name: 'FailedToGetSensorData', status: 500 });
});

it.each([null, 5, [], 'x', { Fans: 5, Temperatures: [null, 5, {}], PowerSupplies: { a: 1 } }, { Fans: [{ MemberId: '__proto__' }] }])(
  'tolerates the invalid body %j',
  async (body) => {
    older();
    for (const part of ['Thermal', 'Power']) service.resources[`${CHASSIS}/${part}`] = body;
    expect(Object.keys(await read())).toEqual(['Extra', 'Fan', 'Temperature', 'Power', 'Drive']);
  },
);
it('limits the number of sensors and the length of their names', async () => {
  older();
  put(`${CHASSIS}/Thermal`, { Fans: Array.from({ length: 5000 }, (_, n) => ({ MemberId: `${n}-`.repeat(100), Reading: n })) });
  const fans = (await read())['Fan'] as JsonObject;
  expect(Object.keys(fans)).toHaveLength(256);
  expect(Math.max(...Object.keys(fans).map(({ length }) => length))).toBeLessThan(270);
});
