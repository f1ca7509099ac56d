/** Parses the output of `ipmitool sdr -v` into the shape of sensors.ts. */

type Sensors = Record<string, Record<string, Record<string, string>>>;
/** The type is in the first of these fields that a sensor has. */
const TYPES = ['Sensor Type (Analog)', 'Sensor Type (Discrete)', 'Sensor Type (Threshold)'] as const;
/** Maximum number of sensors, more than any machine has. */
const MAX = 4096;

/** Sensor type → sensor → its fields. Blocks without a reading, and lines that are not fields, are left out. */
export function sensorsOfText(text: string): Sensors {
  const found: Sensors = {};
  for (const block of text.split('\n\n').slice(0, MAX)) {
    // A line with a second colon is dropped, as in Ironic.
    const pairs = block.split('\n').flatMap((line) => {
      const [key, value, ...more] = line.split(':');
      return key !== undefined && value !== undefined && more.length === 0 ? [[key.trim(), value.trim()] as const] : [];
    });
    const fields = Object.fromEntries(pairs);
    const type = TYPES.map((key) => fields[key])
      .find((candidate) => candidate !== undefined)
      ?.split(' ')[0];
    const [name, reading] = [fields['Sensor ID'], fields['Sensor Reading']];
    if (type === undefined || name === undefined || reading === undefined) continue;
    (found[type] ??= {})[name] = fields;
  }
  return found;
}
