/** What the conductor sees of an image before it touches the machine: in a file, at a web server, in Glance. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { Options } from '../../../config/options';
import { inspectImage } from '../../../drivers/common/image-formats';
import type { ImageSource } from '../../../drivers/common/images';
import { HEAD_LENGTH } from '../../../wire/images/inspection';
import type { ServiceClient } from '../../../wire/keystone/services';
import { header, qcow2 } from '../../ramdisk-agent/qcow2-builder';
import { descriptor, vhdx, vmdkStream } from '../../ramdisk-agent/image-builders';
import { optionsOf } from '../../support/options';
import { testTask } from '../../support/task';

const ID = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';
const DISK = Buffer.alloc(2 ** 20);
DISK[450] = 0x83;
DISK.writeUInt16LE(0xaa55, 510);
const good = qcow2({ clusters: { 0: 1 }, size: 4096 });
const backed = Buffer.concat([header(4096, 1, 4096), Buffer.alloc(8192)]);
backed.writeBigUInt64BE(512n, 8);

const FILES: Readonly<Record<string, Buffer>> = {
  raw: DISK,
  iso: Buffer.concat([Buffer.alloc(32769), Buffer.from('CD001'), Buffer.alloc(2000)]),
  qcow2: good,
  backed,
  flat: Buffer.from(descriptor('monolithicFlat', 1)),
  stream: vmdkStream(DISK),
  vhdx: vhdx(DISK),
  child: vhdx(DISK, { parent: true }),
  gz: gzipSync(DISK),
  'backed.gz': gzipSync(backed),
  zst: Buffer.from('KLUv/aSghgEATQAACAcBAJyGORACjCCZhA==', 'base64'),
  empty: Buffer.alloc(0),
};
let folder: string;
let server: Server;
let base: string;
let asked: string[];
/** Bytes that the server sent. */
let heedsRanges: boolean;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formats-'));
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
  server = createServer((request, response) => {
    const content = FILES[request.url!.slice(1)];
    asked.push(String(request.headers.range));
    const [start, end] = /bytes=(\d+)-(\d+)/.exec(String(request.headers.range))!.slice(1).map(Number) as [number, number];
    if (!content) response.writeHead(403).end();
    else if (!heedsRanges) response.end(content);
    else if (start >= content.length) response.writeHead(416).end();
    else response.writeHead(206).end(content.subarray(start, end + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  asked = [];
  heedsRanges = true;
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
});

const taskWith = (options: Partial<Options> = {}) => {
  const { task } = testTask({});
  return { ...task, options: optionsOf({ 'conductor.file_url_allowed_paths': [folder], ...options }) };
};
const glanceWith = (content: Buffer, status = 206) => {
  const glance: Partial<ServiceClient> = {
    stream: async (path, headers) => {
      asked.push(`${path} ${headers['range']}`);
      return { status, headers: {}, body: Readable.from([content.subarray(0, 1000), content.subarray(1000)], { objectMode: false }) };
    },
  };
  const task = taskWith();
  return { ...task, connections: { ...task.connections, services: { ...task.connections.services, glance: glance as ServiceClient } } };
};
const at = (kind: string, name: string): ImageSource =>
  kind === 'file' ? { kind: 'file', path: join(folder, name) } : { kind: 'http', url: `${base}/${name}` };
const ALL = { 'conductor.permitted_image_formats': ['raw', 'qcow2', 'iso', 'vmdk', 'vhdx'] };

describe.each(['file', 'http'])('an image by %s', (kind) => {
  it.each<[string, unknown, string | undefined]>([
    ['raw', 'raw', 'raw'],
    ['raw', null, 'raw'],
    ['raw', undefined, 'raw'],
    ['iso', null, 'raw'],
    ['qcow2', 'qcow2', 'qcow2'],
    ['qcow2', '', 'qcow2'],
    ['stream', 'vmdk', 'vmdk'],
    ['vhdx', null, 'vhdx'],
    // Only the agent sees what is inside as a whole.
    ['gz', null, undefined],
    ['gz', 'raw', undefined],
    ['zst', null, undefined],
    ['empty', null, 'raw'],
  ])('%s, declared %j, is %s for the agent', async (name, declared, format) => {
    expect(await inspectImage(at(kind, name), declared, taskWith(ALL))).toBe(format);
  });
  it.each<[string, unknown, RegExp]>([
    [
      'backed',
      'qcow2',
      /^The requested image is not valid for use. image_source: Security: Image failed safety check: .*it has a backing file$/,
    ],
    ['qcow2', 'raw', /image_source: Security: Expected format was raw, but image was actually qcow2$/],
    ['raw', 'qcow2', /Expected format was qcow2, but image was actually gpt/],
    ['flat', null, /it is a descriptor without data/],
    ['flat', 'raw', /Expected format was raw, but image was actually vmdk/],
    ['child', 'vhdx', /it has a parent/],
    ['backed.gz', null, /it has a backing file/],
  ])('%s, declared %j, is refused', async (name, declared, message) => {
    await expect(inspectImage(at(kind, name), declared, taskWith(ALL))).rejects.toMatchObject({
      name: 'InvalidImage',
      message: expect.stringMatching(message) as string,
    });
  });
});

it('reads a part of what a server has, and no more if the server ignores Range requests', async () => {
  await inspectImage(at('http', 'raw'), null, taskWith());
  await inspectImage(at('http', 'child'), null, taskWith(ALL)).catch(() => {});
  expect(asked).toEqual([
    `bytes=0-${HEAD_LENGTH - 1}`,
    `bytes=0-${HEAD_LENGTH - 1}`,
    `bytes=0-${320 * 1024 - 1}`,
    `bytes=${3 * 2 ** 20}-${4 * 2 ** 20 - 1}`,
  ]);
  heedsRanges = false;
  expect(await inspectImage(at('http', 'qcow2'), null, taskWith())).toBe('qcow2');
});

it('looks at an image once for many machines, and again after a minute', async () => {
  const task = taskWith();
  let now = 1000;
  const many = { ...task, clock: { ...task.clock, now: () => now } };
  await Promise.all(Array.from({ length: 50 }, () => inspectImage(at('http', 'raw'), null, many)));
  expect(asked).toHaveLength(1);
  now += 61_000;
  await inspectImage(at('http', 'raw'), null, many);
  expect(asked).toHaveLength(2);
});

it('what it cannot read is left to the agent, or refused if the operator says so', async () => {
  expect(await inspectImage(at('http', 'nothing'), null, taskWith())).toBeUndefined();
  const strict = taskWith({ 'conductor.conductor_always_validates_images': true });
  await expect(inspectImage(at('http', 'nothing'), null, strict)).rejects.toThrow(
    'The requested image is not valid for use. image_source: it cannot be inspected: HTTP 403 in response to a request for a range',
  );
  heedsRanges = false;
  await expect(inspectImage(at('http', 'vhdx'), null, { ...strict, options: { ...strict.options, ...ALL } })).rejects.toThrow(/HTTP 200/);
});

it('without deep inspection nothing is refused', async () => {
  const task = taskWith({ 'conductor.disable_deep_image_inspection': true, 'conductor.permitted_image_formats': [] });
  expect(await inspectImage(at('file', 'backed'), 'raw', task)).toBe('qcow2');
});

it('zstd is refused if the operator says so', async () => {
  await expect(inspectImage(at('file', 'zst'), null, taskWith({ 'conductor.disable_zstandard_decompression': true }))).rejects.toThrow(
    'image_source: it is compressed with zstd, and [conductor]disable_zstandard_decompression is set',
  );
});

describe('an image of Glance', () => {
  const source: ImageSource = { kind: 'glance', id: ID };
  it.each([206, 200])('is looked at by its first bytes, status %d', async (status) => {
    expect(await inspectImage(source, 'qcow2', glanceWith(good, status))).toBe('qcow2');
    expect(asked).toEqual([`/images/${ID}/file bytes=0-${HEAD_LENGTH - 1}`]);
  });
  it('is refused if it is something else than Glance says', async () => {
    await expect(inspectImage(source, 'raw', glanceWith(good))).rejects.toThrow(/Expected format was raw, but image was actually qcow2/);
  });
  it('that Glance does not give is left to the agent', async () => {
    expect(await inspectImage(source, 'raw', glanceWith(good, 404))).toBeUndefined();
  });
  describe('that Glance never ends', () => {
    const stalled = (options: Partial<Options>) => {
      const glance: Partial<ServiceClient> = {
        stream: async () => ({
          status: 206,
          headers: {},
          body: new Readable({
            read() {
              this.push('x');
              // Further bytes do not come.
              this._read = () => {};
            },
          }),
        }),
      };
      const task = taskWith(options);
      return { ...task, connections: { ...task.connections, services: { ...task.connections.services, glance: glance as ServiceClient } } };
    };
    it('is left to the agent after a time', async () => {
      expect(await inspectImage(source, 'raw', stalled({ 'DEFAULT.webserver_connection_timeout': 0.05 }))).toBeUndefined();
    });
    it('does not hold another deployment of it that is aborted', async () => {
      const first = new AbortController();
      const second = new AbortController();
      const task = stalled({});
      const [held, other] = [first, second].map(({ signal }) => inspectImage(source, 'raw', { ...task, signal }));
      second.abort(new Error('aborted'));
      await expect(other).rejects.toThrow('aborted');
      first.abort(new Error('also aborted'));
      await expect(held).rejects.toThrow('also aborted');
    });
  });
});
