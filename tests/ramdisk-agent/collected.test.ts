import { Readable } from 'node:stream';
import { collected } from '../../ramdisk-agent/disk/download';

const MiB = 2 ** 20;
/** A stream of so many bytes in chunks of many lengths, each with its place in it. It breaks off at the end if `error` is given. */
function arriving(size: number, error?: Error): Readable {
  const content = Buffer.alloc(size);
  for (let at = 0; at + 4 <= size; at += 4) content.writeUInt32LE(at, at);
  function* chunks(): Generator<Buffer> {
    for (let at = 0, length = 1; at < size; at += length, length = (length * 7) % 70_001) yield content.subarray(at, at + length);
    if (error) throw error;
  }
  return Readable.from(chunks(), { objectMode: false });
}

it('the bytes of a stream come in pieces of a MiB, also for a reader that works meanwhile', async () => {
  const pieces: Buffer[] = [];
  for await (const piece of collected(arriving(5 * MiB + 1234))) {
    await new Promise((done) => setImmediate(done));
    pieces.push(piece);
  }
  expect(pieces.map((piece) => piece.length)).toEqual([...Array<number>(5).fill(MiB), 1234]);
  const whole = Buffer.concat(pieces);
  for (let at = 0; at + 4 <= whole.length; at += 4) if (whole.readUInt32LE(at) !== at) throw new Error(`other bytes at ${at}`);
});

it.each([0, 1, MiB, MiB + 1])('a stream of %i bytes is complete', async (size) => {
  let length = 0;
  for await (const piece of collected(arriving(size))) length += piece.length;
  expect(length).toBe(size);
});

it('an error comes after the pieces before it, and a reader that stops ends the stream', async () => {
  let count = 0;
  const read = async (): Promise<void> => {
    for await (const piece of collected(arriving(2 * MiB + 5, new Error('gone')))) count += piece.length;
  };
  await expect(read()).rejects.toThrow('gone');
  expect(count).toBe(2 * MiB);
  const source = arriving(4 * MiB);
  for await (const piece of collected(source)) if (piece.length > 0) break;
  expect(source.destroyed).toBe(true);
});
