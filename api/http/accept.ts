/** What a caller takes, by its Accept header (RFC 9110 §12.5.1). */

const RANGE = /^\s*([\w!#$&^.+*-]+\/[\w!#$&^.+*-]+)\s*((?:;[^;,]*)*)$/;

/** Range → quality; undefined: the header is not there, or cannot be read, and binds nobody. */
function qualitiesOf(header: string | undefined): ReadonlyMap<string, number> | undefined {
  if (!header) return undefined;
  const ranges = header.split(',').filter((part) => part.trim() !== '');
  const read = ranges.map((part) => RANGE.exec(part));
  if (read.some((match) => match === null)) return undefined;
  return new Map(
    read.map((match) => {
      const quality = /;\s*q=([\d.]+)/i.exec(match![2]!)?.[1];
      return [match![1]!.toLowerCase(), quality === undefined ? 1 : Number(quality)] as const;
    }),
  );
}
/** By the range that says most of the type. */
const qualityOf = (qualities: ReadonlyMap<string, number>, type: string): number => {
  const range = [type, `${type.split('/')[0]!}/*`, '*/*'].find((name) => qualities.has(name));
  return range === undefined ? 0 : qualities.get(range)!;
};

/** A header that cannot be read does not bind anybody; neither does one that begins with the type, whatever it says of it. */
export function accepts(header: string | undefined, type: string): boolean {
  if (!header || header.startsWith(type)) return true;
  const qualities = qualitiesOf(header);
  return qualities === undefined || qualityOf(qualities, type) > 0;
}

/** The offer that the caller likes best, of equals the first; undefined: it takes none. */
export function preferred(header: string | undefined, offers: readonly string[]): string | undefined {
  const qualities = qualitiesOf(header);
  if (!qualities) return offers[0];
  const liked = offers.map((offer) => ({ offer, quality: qualityOf(qualities, offer) })).filter(({ quality }) => quality > 0);
  return liked.sort((a, b) => b.quality - a.quality)[0]?.offer;
}
