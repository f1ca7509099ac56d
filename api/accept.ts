/** Whether a caller takes JSON, by its Accept header (RFC 9110 §12.5.1). */

const RANGE = /^\s*([\w!#$&^.+*-]+\/[\w!#$&^.+*-]+)\s*((?:;[^;,]*)*)$/;
const MOST_SPECIFIC = ['application/json', 'application/*', '*/*'];

/** A header that cannot be read does not bind anybody; neither does one that begins with JSON, whatever it says of it. */
export function acceptsJson(header: string | undefined): boolean {
  if (!header || header.startsWith('application/json')) return true;
  const ranges = header.split(',').filter((part) => part.trim() !== '');
  const read = ranges.map((part) => RANGE.exec(part));
  if (read.some((match) => match === null)) return true;
  const qualities = new Map(
    read.map((match) => {
      const quality = /;\s*q=([\d.]+)/i.exec(match![2]!)?.[1];
      return [match![1]!.toLowerCase(), quality === undefined ? 1 : Number(quality)] as const;
    }),
  );
  const range = MOST_SPECIFIC.find((name) => qualities.has(name));
  return range !== undefined && qualities.get(range)! > 0;
}
