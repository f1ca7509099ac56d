import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPieces } from '../../boot/read-pieces';

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-pieces-'));
const path = join(folder, 'image');
writeFileSync(path, Buffer.alloc(4 * MIB, 7));
afterAll(() => rmSync(folder, { recursive: true }));

it('readPieces reads large pieces for a few downloads, and small ones for many that are not consumed', async () => {
  const handle = await open(path);
  const first = async (): Promise<number> => {
    const stream = readPieces(handle, 0, 4 * MIB - 1);
    streams.push(stream);
    const { value } = (await stream[Symbol.asyncIterator]().next()) as { readonly value: Buffer };
    return value.length;
  };
  const streams: ReturnType<typeof readPieces>[] = [];
  expect(await first()).toBe(MIB);
  const sizes: number[] = [];
  for (let count = 0; count < 1100; count++) sizes.push(await first());
  expect(sizes.at(-1)).toBe(16 * 1024);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(100 * MIB);
  // A stream that ends makes room for others.
  for (const stream of streams) {
    stream.destroy();
    if (!stream.closed) await new Promise((done) => stream.once('close', done));
  }
  expect(await first()).toBe(MIB);
  streams.at(-1)!.destroy();
  await handle.close();
});
