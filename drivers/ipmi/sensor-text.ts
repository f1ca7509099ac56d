/** What `ipmitool sdr -v` writes of a BMC's sensors, in the shape of ipmi-sensors.ts. */

type Sensors = Record<string, Record<string, Record<string, string>>>;
/** The first of them that a sensor has says its type. */
const TYPES = ['Sensor Type (Analog)', 'Sensor Type (Discrete)', 'Sensor Type (Threshold)'] as const;
/** More than any machine has. */
const MOST = 4096;

/** Sensor type → sensor → its fields; blocks without a reading, and what is no field, are left out. */
export function sensorsOfText(text: string): Sensors {
  const found: Sensors = {};
  for (const block of text.split('\n\n').slice(0, MOST)) {
    // A field that the BMC's own words break in three is not told, as Ironic has it.
    const pairs = block.split('\n').flatMap((line) => {
      const [key, value, ...more] = line.split(':');
      return key !== undefined && value !== undefined && more.length === 0 ? [[key.trim(), value.trim()] as const] : [];
    });
    const fields = Object.fromEntries(pairs);
    const type = TYPES.map((key) => fields[key])
      .find((one) => one !== undefined)
      ?.split(' ')[0];
    const [name, reading] = [fields['Sensor ID'], fields['Sensor Reading']];
    if (type === undefined || name === undefined || reading === undefined) continue;
    (found[type] ??= {})[name] = fields;
  }
  return found;
}
