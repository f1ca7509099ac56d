/** Writes a VHD image (Microsoft, Virtual Hard Disk Image Format Specification 1.0) to a disk while it arrives. */
import { readVhdFooter, readVhdHeader, VHD_FOOTER, VHD_HEADER } from '../../wire/images/vhd';
import { type ImageWriter, rawWriter, type Sink } from '../disk/image';
import { layOn, type Part, rangesWriter } from './ranges';

const refuse = (reason: string): Error => new Error(`the vhd image cannot be used: ${reason}`);
const sound = <T>(value: T | string): T => {
  if (typeof value === 'string') throw refuse(value);
  return value;
};

const SECTOR = 512;
const NOWHERE = 0xffffffff;
const MAX_TABLE = 32 * 2 ** 20;

/** A bitmap of its sectors precedes each block. */
function* partsOf(table: Buffer, size: number, blockSize: number): Generator<Part> {
  const bitmap = Math.ceil(blockSize / SECTOR / 8 / SECTOR) * SECTOR;
  for (let to = 0, at = 0; to < size; to += blockSize, at += 4) {
    const sector = table.readUInt32BE(at);
    yield { to, length: Math.min(blockSize, size - to), from: sector === NOWHERE ? null : sector * SECTOR + bitmap };
  }
}

/** A dynamic disk: a copy of its footer, a header, and a table of blocks. */
const dynamicVhdWriter = (sink: Sink): ImageWriter =>
  rangesWriter({
    offset: 0,
    length: VHD_FOOTER,
    async take(bytes) {
      const { kind, size, headerOffset } = sound(readVhdFooter(bytes));
      if (kind !== 'dynamic') throw refuse('its footer is at its beginning');
      if (size > sink.size) throw new Error(`the image of ${size} bytes is larger than the disk of ${sink.size} bytes`);
      return [
        {
          offset: headerOffset,
          length: VHD_HEADER,
          async take(header) {
            const { tableOffset, blockSize } = sound(readVhdHeader(header, size));
            const length = Math.ceil(size / blockSize) * 4;
            if (length > MAX_TABLE) throw refuse('its block allocation table makes no sense');
            return [{ offset: tableOffset, length, take: (table) => layOn(sink)(partsOf(table, size, blockSize)) }];
          },
        },
      ];
    },
  });

/** A fixed disk: the content, and a footer behind it. */
function fixedVhdWriter(sink: Sink): ImageWriter {
  const raw = rawWriter(sink);
  let held: Buffer = Buffer.alloc(0);
  let written = 0;
  return {
    async take(chunk) {
      const bytes = Buffer.concat([held, chunk]);
      const content = bytes.subarray(0, Math.max(0, bytes.length - VHD_FOOTER));
      held = bytes.subarray(content.length);
      written += content.length;
      await raw.take(content);
    },
    async end() {
      const { kind, size } = sound(readVhdFooter(held));
      if (kind !== 'fixed' || size !== written) throw refuse('its footer does not match its content');
      return raw.end();
    },
  };
}

/** Only a dynamic disk says at its beginning what it is. */
export const vhdWriter = (sink: Sink, isDynamic: boolean): ImageWriter => (isDynamic ? dynamicVhdWriter(sink) : fixedVhdWriter(sink));
