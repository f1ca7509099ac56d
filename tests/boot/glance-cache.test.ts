/** Images of Glance in the image cache: fetched once, and never whole for a reader unless they have the hash of Glance. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { openCache, type Cache } from '../../boot/cache';
import { systemClock } from '../../model/clock';
import { optionsOf } from '../support/options';
import { silentLog } from '../../model/log';
import { ServiceError, type ServiceClient } from '../../wire/keystone/services';

const ID = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';
const URL_OF_IMAGE = `glance://${ID}`;
const BYTES = Buffer.from('the bytes of an image');
const SHA512 = createHash('sha512').update(BYTES).digest('hex');
const IMAGE = { id: ID, status: 'active', visibility: 'public', size: BYTES.length, os_hash_algo: 'sha512', os_hash_value: SHA512 };

const folder = mkdtempSync(join(tmpdir(), 'bloomery-glance-'));
let caches = 0;
let cache: Cache;
let streams: string[];
/** @param image as Glance describes it, or its error. @param pieces of its data */
async function glanceWith(image: object | Error, pieces: readonly Buffer[] = [BYTES], headers: Record<string, string> = {}): Promise<void> {
  streams = [];
  const glance: Partial<ServiceClient> = {
    request: async () => {
      if (image instanceof Error) throw image;
      return { status: 200, headers: {}, body: image };
    },
    stream: async (path) => {
      streams.push(path);
      return { status: 200, headers, body: Readable.from(pieces, { objectMode: false }) };
    },
  };
  cache = await openCache({
    folder: join(folder, String((caches += 1))),
    maxBytes: 2 ** 20,
    options: optionsOf(),
    glance: glance as ServiceClient,
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
}
afterEach(() => cache.close());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function contentOf(url = URL_OF_IMAGE): Promise<string> {
  const file = await cache.open(url);
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of file.read(0, file.size - 1) as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  } finally {
    await file.release();
  }
}

it('an image is downloaded once for parallel and later readers', async () => {
  await glanceWith(IMAGE);
  expect(await Promise.all([contentOf(), contentOf()])).toEqual([BYTES.toString(), BYTES.toString()]);
  expect(await contentOf()).toBe(BYTES.toString());
  expect(streams).toEqual([`/images/${ID}/file`]);
});

const [start, end] = [BYTES.subarray(0, 5), BYTES.subarray(5)];
it.each([
  ['with an unknown algorithm', { os_hash_algo: 'whirlpool', os_hash_value: 'x' }],
  ['without a hash', { os_hash_algo: null, os_hash_value: null }],
  ['with a hash in capital letters', { os_hash_value: SHA512.toUpperCase() }],
])('an image %s is served', async (_, properties) => {
  await glanceWith({ ...IMAGE, ...properties }, [start, end]);
  expect(await contentOf()).toBe(BYTES.toString());
});

it.each([
  ['has another hash', [start, Buffer.from('x'.repeat(end.length))], {}, 'the sha512 checksum does not match'],
  ['has too many bytes', [start, Buffer.concat([end, start])], {}, 'the server sent more bytes than announced'],
  ['has too few bytes', [start], {}, `the connection ended after ${start.length} bytes`],
  ['has another Content-Length than in Glance', [BYTES], { 'content-length': String(BYTES.length + 1) }, 'the connection ended after'],
])('an image that %s is neither served completely nor stored', async (_, pieces, headers, reason) => {
  await glanceWith(IMAGE, pieces, headers);
  await expect(contentOf()).rejects.toThrow(new RegExp(reason));
  await expect(contentOf()).rejects.toThrow();
  expect(streams).toHaveLength(2);
});

it.each([
  ['that is being uploaded', { ...IMAGE, status: 'saving' }, 'the image has no data in Glance'],
  ['that does not exist', new ServiceError('glance', 'failing', 'HTTP status 404', 404), 'HTTP status 404'],
  ['of a Glance that is unreachable', new ServiceError('glance', 'unreachable', 'connect ECONNREFUSED'), 'connect ECONNREFUSED'],
  ['larger than the cache', { ...IMAGE, size: 2 ** 21 }, 'exceed the size of the image cache'],
  ['of unknown size', { ...IMAGE, size: null }, 'the server does not send Content-Length'],
])('open rejects an image %s', async (_, image, reason) => {
  await glanceWith(image);
  await expect(cache.open(URL_OF_IMAGE)).rejects.toThrow(reason);
});
