/** The sensors of a chassis (DSP2046), in Redfish's three forms: Thermal and Power, the subsystems, and Sensors. */
import { decodeSdr, type SensorRecord } from '../../../wire/ipmi/records/sdr';
import { valueOf } from '../../../wire/ipmi/records/sensors';
import { MANUFACTURER } from '../../hardware/description';
import { fullRecord } from '../../ipmi/sdr';
import { healthIn, type PartCondition } from '../../hardware/parts';
import { ANALOG, type AnalogSensor } from '../../hardware/sensors';
import { HEALTHY, ROOT, collectionRoute, link, resource, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';

const CHASSIS = '/Chassis/{system}';
interface ChassisSensor {
  readonly id: string;
  readonly name: string;
  readonly type: (typeof TYPES)[number][1];
  readonly units: string;
  readonly context: string;
  /** The reading while the machine is on, and while it is off (absent: there is none). */
  readonly on: number;
  readonly off?: number | undefined;
  readonly caution?: number | undefined;
  readonly critical?: number | undefined;
  /** The largest value that the sensor can measure. */
  readonly most: number;
}
/** [IPMI sensor type, ReadingType, ReadingUnits] */
const TYPES = [
  [1, 'Temperature', 'Cel'],
  [2, 'Voltage', 'V'],
  [4, 'Rotational', '{rev}/min'],
  [8, 'Power', 'W'],
] as const;
/** Converts a sensor's raw values by its IPMI record, so that IPMI and Redfish report the same values. */
function chassisSensor(analog: AnalogSensor, { context, most }: NonNullable<AnalogSensor['redfish']>): ChassisSensor {
  const { name, sensorType, on, off, thresholds = {} } = analog;
  const record = decodeSdr(fullRecord(1, { ...analog, number: 1 })) as SensorRecord;
  // Rounded: factors such as 10^-3 leave rounding errors in the last digits.
  const value = (raw: number): number => Number(valueOf(record, raw).toFixed(6));
  const [, type, units] = TYPES.find(([number]) => number === sensorType)!;
  return {
    id: name.replaceAll(' ', ''),
    name,
    type,
    units,
    context,
    on: value(on),
    most: most ?? value(record.analog!.maximum),
    off: off === undefined ? undefined : value(off),
    caution: thresholds.unc === undefined ? undefined : value(thresholds.unc),
    critical: thresholds.ucr === undefined ? undefined : value(thresholds.ucr),
  };
}
const SENSORS: readonly ChassisSensor[] = ANALOG.flatMap((row) => (row.redfish ? [chassisSensor(row, row.redfish)] : []));
const CAPACITY_WATTS = 750;
const MAINS_VOLTS = 230;
const ofType = (type: ChassisSensor['type']): readonly ChassisSensor[] => SENSORS.filter((candidate) => candidate.type === type);
const [SUPPLY] = ofType('Power') as [ChassisSensor];

const conditionsOf = ({ system }: SystemContext, part: string): readonly PartCondition[] => system.conditions?.(part) ?? [];
/** The part of a sensor, by its name: `CPU1 Temp` is of CPU1. */
const partOf = ({ name }: ChassisSensor): string => name.split(' ')[0]!;
const isGone = (at: SystemContext, part: string): boolean => conditionsOf(at, part).includes('gone');
/** The status of a part, such as PSU1. */
export const partStatus = (at: SystemContext, part: string): ResourceBody => {
  const health = healthIn(conditionsOf(at, part));
  return { ...HEALTHY, Health: health, HealthRollup: health };
};
const isStopped = ({ system }: SystemContext, { type, name }: ChassisSensor): boolean =>
  type === 'Rotational' && system.isOn() && (system.isStopped?.(name) ?? false);
const reading = (at: SystemContext, row: ChassisSensor): number | null => {
  if (isStopped(at, row)) return 0;
  return at.system.isOn() ? row.on : (row.off ?? null);
};
/** Which conditions of their part sensors of a type show. */
const SHOWN: Readonly<Partial<Record<ChassisSensor['type'], readonly PartCondition[]>>> = {
  Temperature: ['hot', 'warm'],
  Rotational: ['slow', 'failed'],
  Voltage: ['low'],
};
const statusOf = (at: SystemContext, row: ChassisSensor): ResourceBody => {
  if (isStopped(at, row)) return { State: 'Enabled', Health: 'Critical' };
  if (reading(at, row) === null) return { State: 'StandbyOffline', Health: 'OK' };
  const shown = conditionsOf(at, partOf(row)).filter((condition) => SHOWN[row.type]?.includes(condition));
  return { State: 'Enabled', Health: healthIn(shown) };
};
const percent = (read: number | null, { most }: ChassisSensor): number | null => (read === null ? null : Math.round((read * 100) / most));
const sensorPath = ({ system }: SystemContext, { id }: ChassisSensor): string => `/Chassis/${system.name}/Sensors/${id}`;
/** A sensor's excerpt in the resources of the subsystems. */
const excerpt = (at: SystemContext, row: ChassisSensor): ResourceBody => ({
  DataSourceUri: `${ROOT}${sensorPath(at, row)}`,
  Reading: reading(at, row),
});
/** A member of an array in Thermal or Power. */
const member = (at: SystemContext, list: string, index: number, row: ChassisSensor, more: ResourceBody): ResourceBody => ({
  '@odata.id': `${ROOT}${at.path}#/${list}/${index}`,
  MemberId: String(index),
  Name: row.name,
  Status: statusOf(at, row),
  ...more,
});
const thresholds = ({ caution, critical }: ChassisSensor): ResourceBody => ({
  UpperThresholdNonCritical: caution,
  UpperThresholdCritical: critical,
});

const thermal = (at: SystemContext): ResourceBody =>
  resource(at.path, 'Thermal', 'Thermal', 'Temperatures and fans', {
    Temperatures: ofType('Temperature').map((row, index) =>
      member(at, 'Temperatures', index, row, {
        ReadingCelsius: reading(at, row),
        SensorNumber: SENSORS.indexOf(row) + 1,
        MinReadingRangeTemp: 0,
        MaxReadingRangeTemp: row.most,
        PhysicalContext: row.context,
        ...thresholds(row),
      }),
    ),
    Fans: ofType('Rotational')
      .filter((row) => !isGone(at, row.id))
      .map((row, index) =>
        member(at, 'Fans', index, row, {
          Reading: reading(at, row),
          ReadingUnits: 'RPM',
          MinReadingRange: 0,
          MaxReadingRange: row.most,
          PhysicalContext: row.context,
          Manufacturer: MANUFACTURER,
          SerialNumber: `${row.id}-${at.system.description.serial}`,
        }),
      ),
  });
const supply = ({ system }: SystemContext): ResourceBody => ({
  Manufacturer: MANUFACTURER,
  Model: 'Simulated power supply',
  SerialNumber: `PSU1-${system.description.serial}`,
  PowerCapacityWatts: CAPACITY_WATTS,
});
const power = (at: SystemContext): ResourceBody =>
  resource(at.path, 'Power', 'Power', 'Power', {
    PowerControl: [
      member(at, 'PowerControl', 0, SUPPLY, {
        Name: 'System power',
        PowerConsumedWatts: reading(at, SUPPLY),
        PowerCapacityWatts: CAPACITY_WATTS,
      }),
    ],
    PowerSupplies: [
      member(at, 'PowerSupplies', 0, SUPPLY, {
        Name: 'PSU1',
        Status: partStatus(at, 'PSU1'),
        ...supply(at),
        PowerSupplyType: 'AC',
        LineInputVoltage: MAINS_VOLTS,
        LineInputVoltageType: 'AC240V',
        LastPowerOutputWatts: reading(at, SUPPLY),
      }),
    ],
    Voltages: ofType('Voltage').map((row, index) =>
      member(at, 'Voltages', index, row, { ReadingVolts: reading(at, row), MaxReadingRange: row.most, PhysicalContext: row.context }),
    ),
  });

function sensor(at: SystemContext): ResourceBody | undefined {
  const row = SENSORS.find(({ id }) => id === at.values[1]);
  if (!row) return undefined;
  const { id, name, type, units, context, caution, critical, most } = row;
  return resource(at.path, 'Sensor', id, name, {
    Reading: reading(at, row),
    ReadingType: type,
    ReadingUnits: units,
    PhysicalContext: context,
    ReadingRangeMin: 0,
    ReadingRangeMax: most,
    Status: statusOf(at, row),
    Thresholds: {
      UpperCaution: caution === undefined ? undefined : { Reading: caution, Activation: 'Increasing' },
      UpperCritical: critical === undefined ? undefined : { Reading: critical, Activation: 'Increasing' },
    },
  });
}
function fan(at: SystemContext): ResourceBody | undefined {
  const row = ofType('Rotational').find(({ id }) => id === at.values[1]);
  return (
    row &&
    resource(at.path, 'Fan', row.id, row.name, {
      Status: statusOf(at, row),
      PhysicalContext: row.context,
      Manufacturer: MANUFACTURER,
      SerialNumber: `${row.id}-${at.system.description.serial}`,
      SpeedPercent: {
        DataSourceUri: `${ROOT}${sensorPath(at, row)}`,
        SpeedRPM: reading(at, row),
        Reading: percent(reading(at, row), row),
      },
    })
  );
}

export const SENSOR_ROUTES: readonly Route<SystemContext>[] = [
  { path: `${CHASSIS}/Thermal`, get: thermal },
  { path: `${CHASSIS}/Power`, get: power },
  collectionRoute(`${CHASSIS}/Sensors`, 'Sensor', () => SENSORS.map(({ id }) => id)),
  { path: `${CHASSIS}/Sensors/{sensor}`, get: sensor },
  {
    path: `${CHASSIS}/ThermalSubsystem`,
    get: ({ path }) =>
      resource(path, 'ThermalSubsystem', 'ThermalSubsystem', 'Thermal subsystem', {
        Status: HEALTHY,
        Fans: link(`${path}/Fans`),
        ThermalMetrics: link(`${path}/ThermalMetrics`),
      }),
  },
  {
    path: `${CHASSIS}/ThermalSubsystem/ThermalMetrics`,
    get: (at) =>
      resource(at.path, 'ThermalMetrics', 'ThermalMetrics', 'Temperatures', {
        TemperatureReadingsCelsius: ofType('Temperature').map((row) => ({ ...excerpt(at, row), DeviceName: row.name })),
        'TemperatureReadingsCelsius@odata.count': ofType('Temperature').length,
      }),
  },
  collectionRoute(`${CHASSIS}/ThermalSubsystem/Fans`, 'Fan', (at) =>
    ofType('Rotational')
      .map(({ id }) => id)
      .filter((id) => !isGone(at, id)),
  ),
  { path: `${CHASSIS}/ThermalSubsystem/Fans/{fan}`, get: fan },
  {
    path: `${CHASSIS}/PowerSubsystem`,
    get: ({ path }) =>
      resource(path, 'PowerSubsystem', 'PowerSubsystem', 'Power subsystem', {
        Status: HEALTHY,
        CapacityWatts: CAPACITY_WATTS,
        PowerSupplies: link(`${path}/PowerSupplies`),
      }),
  },
  collectionRoute(`${CHASSIS}/PowerSubsystem/PowerSupplies`, 'PowerSupply', () => ['PSU1']),
  {
    path: `${CHASSIS}/PowerSubsystem/PowerSupplies/PSU1`,
    get: (at) =>
      resource(at.path, 'PowerSupply', 'PSU1', 'PSU1', {
        ...supply(at),
        PowerSupplyType: 'AC',
        Status: partStatus(at, 'PSU1'),
        Metrics: link(`${at.path}/Metrics`),
      }),
  },
  {
    path: `${CHASSIS}/PowerSubsystem/PowerSupplies/PSU1/Metrics`,
    get: (at) =>
      resource(at.path, 'PowerSupplyMetrics', 'Metrics', 'Metrics of PSU1', { InputPowerWatts: excerpt(at, SUPPLY), Status: HEALTHY }),
  },
];
