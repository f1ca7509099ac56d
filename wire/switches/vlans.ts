/** VLAN numbers as operators write them: `100,102-104`. */

const MAX = 4094;

/** A number of a VLAN, or undefined. White space around it is allowed, as in Python's int(). */
const numberOf = (text: string): number | undefined => (/^\s*[+-]?\d{1,9}\s*$/.test(text) ? Number(text) : undefined);

/**
 * @param given one text, or its parts
 * @returns sorted
 * @throws Error with Ironic's reason
 */
export function parseVlans(given: string | readonly string[]): readonly number[] {
  const items = (typeof given === 'string' ? given.split(',') : given).map((item) => item.trim()).filter((item) => item !== '');
  const found = new Set<number>();
  for (const item of items) {
    const [first, ...rest] = item.split('-');
    const last = rest.length === 0 ? first : rest.join('-');
    const [start, end] = [numberOf(first!), numberOf(last!)];
    if (start === undefined || end === undefined) {
      const wrong = start === undefined ? first! : last!;
      const what = rest.length === 0 ? `Invalid VLAN ID "${item}"` : `Invalid VLAN range format "${item}"`;
      throw new Error(`${what}: invalid literal for int() with base 10: '${wrong.trim()}'`);
    }
    if (start < 1 || end > MAX)
      throw new Error(
        rest.length === 0
          ? `VLAN ID must be between 1 and ${MAX}, got ${start}`
          : `VLAN IDs must be between 1 and ${MAX}, got range ${start}-${end}`,
      );
    if (start > end) throw new Error(`Invalid VLAN range ${start}-${end}: start must be less than or equal to end`);
    for (let vlan = start; vlan <= end; vlan++) found.add(vlan);
  }
  return [...found].sort((a, b) => a - b);
}
