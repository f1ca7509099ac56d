import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyPieces, readPieces } from '../../boot/read-pieces';

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

it('copyPieces gives each of many downloads its bytes, while others begin and end', async () => {
  const handle = await open(path);
  const content = Buffer.alloc(4 * MIB, 7);
  for (let at = 0; at < content.length; at += 4) content.writeUInt32LE(at, at);
  writeFileSync(path, content);
  const rooms = new Set<ArrayBufferLike>();
  const one = async (index: number): Promise<boolean> => {
    const [start, end] = [index * 1000, content.length - 1 - index];
    const got: Buffer[] = [];
    const write = async (piece: Buffer): Promise<void> => {
      await new Promise((done) => setImmediate(done));
      rooms.add(piece.buffer);
      got.push(Buffer.from(piece));
    };
    await copyPieces(handle, start, end, write);
    return Buffer.concat(got).equals(content.subarray(start, end + 1));
  };
  const all: Promise<boolean>[] = [];
  for (let index = 0; index < 60; index++) {
    all.push(one(index));
    if (index % 7 === 0) await new Promise((done) => setImmediate(done));
  }
  expect(new Set(await Promise.all(all))).toEqual(new Set([true]));
  // Far fewer than pieces, of which there are hundreds.
  expect(rooms.size).toBeLessThanOrEqual(4 * 60);
  await handle.close();
});
