/** The collector dmi-decode: firmware, processors and memory modules with the names of dmidecode(8). */
import type { JsonObject } from '../../model/records';

type DmiFields = Readonly<Record<string, string | readonly string[]>>;
/** DSP0134 §7: BIOS information, processor, memory array, memory device. */
const TYPES = { bios: 0, cpu: 4, memory: 16, device: 17 } as const;

export function readDmi(output: string): JsonObject {
  const blocks = output.split(/\n\s*\n/).flatMap((block) => {
    const type = /^Handle 0x[0-9A-F]+, DMI type (\d+)/m.exec(block)?.[1];
    return type === undefined ? [] : [{ type: Number(type), fields: fieldsOf(block.slice(block.indexOf('Handle 0x'))) }];
  });
  const of = (type: number): readonly DmiFields[] => blocks.filter((block) => block.type === type).map(({ fields }) => fields);
  const arrays = of(TYPES.memory);
  const devices = of(TYPES.device);
  return { bios: of(TYPES.bios).at(-1) ?? {}, cpu: of(TYPES.cpu), memory: { ...memoryOf(arrays), devices } };
}

/** The memory arrays as one: the fields of the first, with the sum of all numbers of devices. */
function memoryOf(arrays: readonly DmiFields[]): DmiFields | JsonObject {
  if (arrays.length === 0) return {};
  const first = Object.fromEntries(Object.entries(arrays[0]!).filter(([name]) => name !== 'Handle'));
  const places = arrays.reduce((sum, array) => sum + Number(array['Number Of Devices']), 0);
  return { ...first, 'Number Of Devices': Number.isFinite(places) ? places : null };
}

/** `name: value`, or `name:` and a line for each value. */
function fieldsOf(block: string): DmiFields {
  const found: Record<string, string | string[]> = {};
  let list: string[] | undefined;
  for (const line of block.split('\n').map((item) => item.trim())) {
    const at = line.indexOf(':');
    if (line.startsWith('Handle 0x')) found['Handle'] = line;
    else if (at >= 0) {
      const [name, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      list = value === '' ? [] : undefined;
      found[name] = list ?? value;
    } else list?.push(line);
  }
  return found;
}
