/** Whether a caller takes what is answered, by its Accept header (RFC 9110 §12.5.1). */

const RANGE = /^\s*([\w!#$&^.+*-]+\/[\w!#$&^.+*-]+)\s*((?:;[^;,]*)*)$/;

/** A header that cannot be read does not bind anybody; neither does one that begins with the type, whatever it says of it. */
export function accepts(header: string | undefined, type: string): boolean {
  if (!header || header.startsWith(type)) return true;
  const ranges = header.split(',').filter((part) => part.trim() !== '');
  const read = ranges.map((part) => RANGE.exec(part));
  if (read.some((match) => match === null)) return true;
  const qualities = new Map(
    read.map((match) => {
      const quality = /;\s*q=([\d.]+)/i.exec(match![2]!)?.[1];
      return [match![1]!.toLowerCase(), quality === undefined ? 1 : Number(quality)] as const;
    }),
  );
  const mostSpecific = [type, `${type.split('/')[0]!}/*`, '*/*'];
  const range = mostSpecific.find((name) => qualities.has(name));
  return range !== undefined && qualities.get(range)! > 0;
}
