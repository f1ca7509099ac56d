/** The image cache: how often it downloads, what it keeps, and what it does not serve. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Cache, openCache, UpstreamError } from '../../boot/cache';
import { systemClock } from '../../model/clock';
import { silentLog, type Log } from '../../model/log';
import type { ServiceClient } from '../../wire/keystone/services';
import { fakeClock, type FakeClock } from '../ramdisk-agent/support';
import { optionsOf } from '../support/options';
import { until } from '../support/until';

type Setup = Parameters<typeof openCache>[0];
const MIB = 2 ** 20;
const glance = {} as ServiceClient;

let root: string;
let folder: string;
let server: Server;
let base: string;
let clock: FakeClock;
let cache: Cache | undefined;
/** Requests: path and range. */
let asked: string[];
let files: Record<string, Buffer>;
let etag: string | undefined;
/** Answers in place of the usual one. */
let answers: ((response: ServerResponse, content: Buffer, from: number) => void)[];
let warnings: string[];
const log: Log = { ...silentLog, warn: (message) => void warnings.push(message) };
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'cache-'));
  server = createServer((request, response) => {
    const content = files[request.url!.slice(1)];
    const { range, 'if-none-match': known, 'if-range': unchanged } = request.headers;
    asked.push(`${request.url}${range === undefined ? '' : ` ${range}`}`);
    const answer = answers.shift();
    const from = range !== undefined && unchanged === etag ? Number(/\d+/.exec(range)![0]) : 0;
    if (!content) response.writeHead(404).end();
    else if (answer) answer(response, content, from);
    else if (known !== undefined && known === etag) response.writeHead(304).end();
    else {
      response
        .writeHead(from > 0 ? 206 : 200, {
          'content-length': content.length - from,
          ...(from > 0 ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
          ...(etag === undefined ? {} : { etag }),
        })
        .end(content.subarray(from));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  rmSync(root, { recursive: true, force: true });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  folder = mkdtempSync(join(root, 'folder-'));
  clock = fakeClock();
  asked = [];
  answers = [];
  warnings = [];
  etag = '"one"';
  files = { a: randomBytes(300_000), b: randomBytes(300_000), c: randomBytes(300_000), empty: Buffer.alloc(0) };
});
afterEach(async () => {
  await cache?.close();
  cache = undefined;
});
const open = async (more: Partial<Setup> = {}): Promise<void> => {
  await cache?.close();
  cache = await openCache({
    folder,
    maxBytes: 10 * MIB,
    options: optionsOf(),
    glance,
    log,
    clock,
    random: randomBytes,
    freeBytes: async () => 100 * MIB,
    ...more,
  });
};
async function read(name: string): Promise<Buffer> {
  const file = await cache!.open(`${base}/${name}`);
  try {
    const parts: Buffer[] = [];
    for await (const part of file.read(0, file.size - 1) as AsyncIterable<Buffer>) parts.push(part);
    return Buffer.concat(parts);
  } finally {
    await file.release();
  }
}
const check = async (name: string): Promise<void> => expect((await read(name)).equals(files[name]!)).toBe(true);
const stored = (): readonly string[] => readdirSync(folder).toSorted();
const metadataOf = (): { file: string; digest: object } =>
  JSON.parse(
    readFileSync(
      join(
        folder,
        stored().find((name) => name.endsWith('.json'))!,
      ),
      'utf8',
    ),
  ) as { file: string; digest: object };
/** The file is stored after its last reader has it. */
const settled = (count: number): Promise<unknown> =>
  until(
    `${count} files are stored`,
    () => stored().length === 2 * count && stored().filter((name) => name.endsWith('.json')).length === count,
  );

it('a hundred readers cost one download', async () => {
  await open();
  await Promise.all(Array.from({ length: 100 }, () => check('a')));
  expect(asked).toEqual(['/a']);
  await settled(1);
  expect(metadataOf().digest).toEqual({ algorithm: 'sha256', value: createHash('sha256').update(files['a']!).digest('hex') });
});

it('an empty file is served and stored', async () => {
  await open();
  expect((await (await cache!.open(`${base}/empty`)).release(), stored().length)).toBeLessThanOrEqual(2);
  await settled(1);
});

it('long runs of zeros are holes, and are served as zeros', async () => {
  files['a'] = Buffer.concat([randomBytes(100_000), Buffer.alloc(8 * MIB), randomBytes(100_000)]);
  await open();
  await check('a');
  await settled(1);
  const { blocks, size } = statSync(join(folder, metadataOf().file));
  expect(size).toBe(files['a'].length);
  expect(blocks * 512).toBeLessThan(MIB);
});

describe('a file that was changed on the disk', () => {
  const tamper: readonly (readonly [string, (path: string) => void])[] = [
    ['in its content', (path) => writeFileSync(path, Buffer.alloc(300_000, 1), { flag: 'r+' })],
    [
      'in its content, with its old times',
      (path) => {
        const { atime, mtime } = statSync(path);
        writeFileSync(path, Buffer.alloc(300_000, 1), { flag: 'r+' });
        utimesSync(path, atime, mtime);
      },
    ],
    [
      'by another file in its place',
      (path) => {
        writeFileSync(`${path}.new`, Buffer.alloc(300_000, 1));
        renameSync(`${path}.new`, path);
      },
    ],
    ['in its length', (path) => truncateSync(path, 1000)],
    ['by its removal', (path) => rmSync(path)],
  ];
  it.each(tamper)('%s is not served, and is downloaded again', async (_, change) => {
    await open();
    await check('a');
    await settled(1);
    change(join(folder, metadataOf().file));
    await check('a');
    expect(asked).toEqual(['/a', '/a']);
  });
  it.each(tamper)('%s while no process ran', async (_, change) => {
    await open();
    await check('a');
    await settled(1);
    await cache!.close();
    change(join(folder, metadataOf().file));
    await open();
    await check('a');
    expect(asked.length).toBeGreaterThan(1);
  });
  it('is served if its content is the same', async () => {
    await open();
    await check('a');
    await settled(1);
    const path = join(folder, metadataOf().file);
    writeFileSync(`${path}.new`, files['a']!);
    renameSync(`${path}.new`, path);
    // Their comparisons would replace one metadata file at a time.
    await Promise.all(Array.from({ length: 20 }, () => check('a')));
    expect(asked).toEqual(['/a']);
    expect(warnings).toEqual([]);
    await settled(1);
  });
});

it('what a process left that died while it downloaded is removed, and complete files are kept', async () => {
  await open();
  await check('a');
  await settled(1);
  await cache!.close();
  for (const name of ['half-1', 'other.json', `${metadataOf().file}.json.tmp`]) writeFileSync(join(folder, name), '{"url":1}');
  await open();
  expect(stored()).toHaveLength(2);
  await check('a');
  // It is revalidated, not downloaded.
  expect(asked).toEqual(['/a', '/a']);
});

it('a file whose hash nobody can compute is downloaded again', async () => {
  await open();
  await check('a');
  await settled(1);
  await cache!.close();
  const { file, digest, ...rest } = metadataOf();
  writeFileSync(
    join(folder, `${file}.json`),
    JSON.stringify({ ...rest, file, digest: { ...digest, algorithm: 'sha7' }, stamp: 'another' }),
  );
  await open();
  expect(stored()).toEqual([]);
  await check('a');
  expect(asked).toEqual(['/a', '/a']);
});

describe('a download that breaks off', () => {
  const broken = (response: ServerResponse, content: Buffer, start: number): void => {
    response.writeHead(start > 0 ? 206 : 200, {
      'content-length': content.length - start,
      ...(start > 0 ? { 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` } : {}),
      etag: '"one"',
    });
    response.write(content.subarray(start, start + 100_000), () => response.destroy());
  };
  it('continues where it broke off, for all its readers', async () => {
    await open({ clock: systemClock });
    answers = [broken, broken];
    await Promise.all([check('a'), check('a')]);
    // A request may find its connection closed, and is repeated.
    expect(asked[0]).toBe('/a');
    expect(asked.slice(1).every((request) => /^\/a bytes=\d+-$/.test(request))).toBe(true);
  });
  it.each<[string, () => void]>([
    ['changed meanwhile', () => (etag = '"two"')],
    [
      'has a weak entity tag',
      () => {
        answers = [
          (response, content) => {
            response.writeHead(200, { 'content-length': content.length, etag: 'W/"one"' });
            response.write(content.subarray(0, 1000), () => response.destroy());
          },
        ];
      },
    ],
    [
      'breaks off again and again',
      () => (answers = [broken, ...Array.from({ length: 4 }, () => (response: ServerResponse) => void response.destroy())]),
    ],
  ])('fails if the file %s', async (_, prepare) => {
    await open({ clock: systemClock });
    answers = [broken];
    prepare();
    await expect(read('a')).rejects.toThrow();
    await settled(0);
    // The next reader begins anew.
    answers = [];
    await check('a');
  });
});

describe('the disk is full', () => {
  it('a download is refused with the sizes before it is written', async () => {
    await open({ freeBytes: async () => 200_000 });
    const error = await cache!.open(`${base}/a`).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({
      message: 'the disk of the image cache is full: 300000 bytes are required, and 200000 are free',
      detail: `Disk volume where '${folder}' is located doesn't have enough disk space. Required 1 MiB, only 0 MiB available space present.`,
    });
    expect(stored()).toEqual([]);
  });
  it('files stay if their removal would not make enough room', async () => {
    await open({ freeBytes: async () => 1_000_000 });
    await check('a');
    await check('b');
    await settled(2);
    files['huge'] = Buffer.alloc(9 * MIB);
    await expect(cache!.open(`${base}/huge`)).rejects.toThrow(/9437184 bytes are required, and 1000000 are free/);
    await settled(2);
  });
  it('the least recently used files make room', async () => {
    let free = 1_000_000;
    await open({ freeBytes: async () => free - 300_000 * stored().filter((name) => !name.includes('.json')).length });
    for (const name of ['a', 'b', 'c']) {
      await check(name);
      await clock.advance(1000);
    }
    await settled(3);
    free = 1_100_000;
    files['d'] = randomBytes(300_000);
    await check('d');
    await settled(3);
    const urls = stored()
      .filter((name) => name.endsWith('.json'))
      .map((name) => (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { url: string }).url);
    expect(urls.toSorted()).toEqual(['b', 'c', 'd'].map((name) => `${base}/${name}`));
  });
});

describe('old files', () => {
  const HOUR = 3_600_000;
  it('are removed at the start when nobody used them for long', async () => {
    await open();
    await check('a');
    await check('b');
    await settled(2);
    await clock.advance(4 * HOUR);
    await check('b');
    await clock.advance(2 * HOUR);
    await open({ maxAgeMs: 5 * HOUR });
    await settled(1);
    await clock.advance(4 * HOUR);
    await open({ maxAgeMs: 5 * HOUR });
    expect(stored()).toEqual([]);
  });
  it('are looked for again and again', async () => {
    await open({ maxAgeMs: 5 * HOUR, cleanUpMs: HOUR });
    await check('a');
    await settled(1);
    await until('the file is removed', async () => {
      await clock.advance(HOUR);
      return stored().length === 0;
    });
    expect(clock.now() - 1_700_000_000_000).toBeGreaterThan(5 * HOUR);
  });
});

describe('downloads at a time', () => {
  it('are limited, and files that are there do not wait', async () => {
    await open({ downloads: 1 });
    await check('c');
    await settled(1);
    const held: ServerResponse[] = [];
    answers = [
      (response, content) => {
        held.push(response);
        response.writeHead(200, { 'content-length': content.length }).write(content.subarray(0, 10));
      },
    ];
    const first = read('a');
    await until('the download runs', () => held.length === 1);
    const second = read('b');
    await clock.advance(3000);
    await check('c');
    expect(asked).toEqual(['/c', '/a', '/c']);
    held[0]!.end(files['a']!.subarray(10));
    expect((await first).equals(files['a']!)).toBe(true);
    expect((await second).equals(files['b']!)).toBe(true);
    expect(asked).toEqual(['/c', '/a', '/c', '/b']);
  });
  it('give their place back when they fail', async () => {
    await open({ downloads: 1 });
    for (let count = 0; count < 3; count++) await expect(read('none')).rejects.toThrow('the server answers 404');
    answers = [(response) => void response.writeHead(200, { 'content-length': 10 }).write('x', () => response.destroy())];
    await expect(read('a')).rejects.toThrow();
    await check('b');
  });
  it('end if the server sends single bytes, and let others begin', async () => {
    await open({ downloads: 1 });
    const held: ServerResponse[] = [];
    answers = [
      (response, content) => {
        held.push(response);
        response.writeHead(200, { 'content-length': content.length }).write('x');
      },
    ];
    const slow = read('a').catch((error: unknown) => error);
    await until('the download runs', () => held.length === 1);
    const other = read('b');
    await until('the server sends bytes, and the download ends', async () => {
      await clock.advance(10_000);
      held[0]!.write('x');
      return warnings.length > 0;
    });
    expect(await slow).toMatchObject({ message: expect.stringMatching(/^the server sent \d+ bytes in \d+ seconds$/) as string });
    expect((await other).equals(files['b']!)).toBe(true);
  });
});
