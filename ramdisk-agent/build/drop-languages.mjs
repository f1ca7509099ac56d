/**
 * Empties the tables of languages in a copy of Node's program, in place. They are a third of it, and the agent writes English only.
 * What stays is about what Node's own build "small-icu" has.
 *
 *   node drop-languages.mjs PROGRAM
 *
 * The program has the tables as a package of ICU (udata.h): a header, the number of items, for each item the places of its name and its
 * data, then names and data. The list gets shorter, the rest stays where it is: what nothing names becomes zeros, which compress to nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** UDataInfo of a little-endian package. The 16-bit size of the header precedes it. */
const PACKAGE = Buffer.from([0xda, 0x27, 20, 0, 0, 0, 0, 0, 2, 0, ...Buffer.from('CmnD')]);
/** Character sets, transliteration, dictionaries of word breaks, names of characters; resources of any language but English. */
const DROPPED = /\.cnv$|^translit\/|\.dict$|^unames\.icu$|^(?:\w+\/)?(?!en[_.])[a-z]{2,3}(?:_\w+)?\.res$/;

const program = process.argv[2] ?? '';
const bytes = readFileSync(program);
const info = bytes.indexOf(PACKAGE);
if (info < 2) throw new Error(`${program} has no tables of ICU`);
const list = info - 2 + bytes.readUInt16LE(info - 2);
const count = bytes.readUInt32LE(list);
const items = Array.from({ length: count }, (_, index) => {
  const place = list + 4 + 8 * index;
  const name = list + bytes.readUInt32LE(place);
  const path = bytes.toString('latin1', name, bytes.indexOf(0, name)); // such as icudt78l/coll/de.res
  return { place, start: bytes.readUInt32LE(place + 4), kept: !DROPPED.test(path.slice(path.indexOf('/') + 1)) };
});
let kept = 0;
for (const [index, { place, start, kept: stays }] of items.entries()) {
  const next = items[index + 1];
  if (stays) bytes.copy(bytes, list + 4 + 8 * kept++, place, place + 8);
  else if (next) bytes.fill(0, list + start, list + next.start);
}
bytes.fill(0, list + 4 + 8 * kept, list + 4 + 8 * count);
bytes.writeUInt32LE(kept, list);
writeFileSync(program, bytes);
