/** The results of inspections and recorders, as rows of tables. Pure. */
import { isObject, type JsonObject } from '../../model/json';

const listIn = (value: JsonObject, name: string): readonly JsonObject[] => (Array.isArray(value[name]) ? value[name].filter(isObject) : []);
const objectIn = (value: JsonObject, name: string): JsonObject => (isObject(value[name]) ? value[name] : {});
const shown = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

/** The parts of the machine, each with a line of its most important facts. */
export function partsOf({ inventory }: JsonObject): readonly JsonObject[] {
  const found = isObject(inventory) ? inventory : {};
  const line = (part: string, name: unknown, ...details: readonly (readonly [unknown, string])[]): readonly JsonObject[] => {
    const text = details.flatMap(([value, unit]) =>
      value === undefined || value === null || value === '' ? [] : [`${shown(value)}${unit}`],
    );
    return name === undefined && text.length === 0 ? [] : [{ part, name: name ?? '', details: text.join(', ') }];
  };
  const [vendor, cpu, memory, boot] = ['system_vendor', 'cpu', 'memory', 'boot'].map((name) => objectIn(found, name)) as [
    JsonObject,
    JsonObject,
    JsonObject,
    JsonObject,
  ];
  const gib = (bytes: unknown): number | undefined => (typeof bytes === 'number' ? Math.round(bytes / 2 ** 30) : undefined);
  return [
    ...line('system', vendor['product_name'], [vendor['manufacturer'], ''], [vendor['serial_number'], '']),
    ...line('processor', cpu['model_name'], [cpu['count'], ' CPUs'], [cpu['architecture'], '']),
    ...line('memory', undefined, [memory['physical_mb'], ' MiB']),
    ...line('boot', undefined, [boot['current_boot_mode'], '']),
    ...line('BMC', found['bmc_address'], [found['bmc_v6address'], '']),
    ...listIn(found, 'disks').flatMap((disk) =>
      line('disk', disk['name'], [gib(disk['size']), ' GiB'], [disk['vendor'], ''], [disk['model'], ''], [disk['serial'], '']),
    ),
    ...listIn(found, 'interfaces').flatMap((port) =>
      line('interface', port['name'], [port['mac_address'], ''], [port['ipv4_address'], ''], [port['speed_mbps'], ' Mb/s']),
    ),
  ];
}

/** The switches that the hook parse-lldp found, with an entry for each interface. */
export const neighboursOf = ({ plugin_data: data }: JsonObject): readonly JsonObject[] =>
  Object.entries(isObject(data) ? objectIn(data, 'parsed_lldp') : {}).flatMap(([name, facts]) =>
    isObject(facts) ? [{ interface: name, ...facts }] : [],
  );

interface Difference {
  readonly field: string;
  /** Undefined: the field had no value. */
  readonly before?: string;
  readonly after?: string;
}
/** The fields whose values differ. `before` is null for a component that appeared, `after` for one that vanished. */
export function differencesOf(before: unknown, after: unknown): readonly Difference[] {
  const [old, now] = [before, after].map((value) => (isObject(value) ? value : value === null || value === undefined ? {} : { value })) as [
    JsonObject,
    JsonObject,
  ];
  const sideOf = (name: 'before' | 'after', value: unknown): Partial<Difference> =>
    value === undefined || value === null ? {} : { [name]: shown(value) };
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((field) => shown(old[field]) !== shown(now[field]))
    .map((field) => ({ field, ...sideOf('before', old[field]), ...sideOf('after', now[field]) }));
}

/** The interfaces in the response of /v1/nodes/X/validate, the invalid ones first. */
export const validationsOf = (response: JsonObject): readonly JsonObject[] =>
  Object.entries(response)
    .flatMap(([name, result]) =>
      isObject(result)
        ? [
            {
              interface: name,
              valid: result['result'] === null ? 'not supported' : result['result'] === true ? 'yes' : 'no',
              reason: result['reason'] ?? '',
            },
          ]
        : [],
    )
    .sort((left, right) => Number(left.valid !== 'no') - Number(right.valid !== 'no'));
