/** Content negotiation by the Accept header (RFC 9110 §12.5.1). */

const RANGE = /^\s*([\w!#$&^.+*-]+\/[\w!#$&^.+*-]+)\s*((?:;[^;,]*)*)$/;

/** Media range → quality. Undefined: the header is absent or malformed, and is ignored. */
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
/** Quality by the most specific range. */
const qualityOf = (qualities: ReadonlyMap<string, number>, type: string): number => {
  const range = [type, `${type.split('/')[0]!}/*`, '*/*'].find((name) => qualities.has(name));
  return range === undefined ? 0 : qualities.get(range)!;
};

/** As in Ironic, a malformed header is ignored, and a header that begins with the type accepts it. */
export function accepts(header: string | undefined, type: string): boolean {
  if (!header || header.startsWith(type)) return true;
  const qualities = qualitiesOf(header);
  return qualities === undefined || qualityOf(qualities, type) > 0;
}

/** The offer with the highest quality, of equals the first. Undefined: the caller accepts none. */
export function preferred(header: string | undefined, offers: readonly string[]): string | undefined {
  const qualities = qualitiesOf(header);
  if (!qualities) return offers[0];
  const liked = offers.map((offer) => ({ offer, quality: qualityOf(qualities, offer) })).filter(({ quality }) => quality > 0);
  return liked.sort((a, b) => b.quality - a.quality)[0]?.offer;
}
