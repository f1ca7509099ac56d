import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { silentLog } from '../../model/log';
import { qcow2Writer } from '../../ramdisk-agent/formats/qcow2';
import { sendSnapshot } from '../../ramdisk-agent/disk/snapshot';
import { digestOfPart, finishFile, PART_BYTES, sha256, snapshotFile, writePart } from '../../wire/snapshot-files';
import { until } from '../support/until';
import { fileDevice } from './support';

const MiB = 2 ** 20;
const UUID = '7415a720-dcc4-4f1f-a675-337554abdb31';
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'snapshot-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** The API's side of the parts. Answers with these statuses first; `cut`: it closes the connection instead. */
async function withServer<T>(answers: readonly (number | 'cut')[], work: (url: string, positions: number[]) => Promise<T>): Promise<T> {
  const positions: number[] = [];
  let asked = 0;
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      void answerStored(request, response);
      return;
    }
    const answer = answers[asked++] ?? 204;
    if (answer === 'cut') {
      request.socket.destroy();
      return;
    }
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const take = async (): Promise<void> => {
        const body = Buffer.concat(parts);
        const position = Number(/\/parts\/(\d+)\?progress=\d+$/.exec(request.url!)![1]);
        expect(request.headers['x-agent-token']).toBe('secret');
        expect(request.headers['content-digest']).toBe(`sha-256=:${(await sha256(body)).toString('base64')}:`);
        if (answer === 204) {
          expect(body.length).toBeLessThanOrEqual(PART_BYTES);
          positions.push(position);
          const digest = (await sha256(body)).toString('base64');
          expect(await writePart(folder, UUID, { pieces: [body], position, digest })).toBe(true);
        }
        response.writeHead(answer).end(answer === 204 ? undefined : 'no room');
      };
      void take().catch((error: unknown) => response.writeHead(400).end(String(error)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/snapshots/${UUID}`, positions);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
/** Answers what the API says of a part that may be stored. */
async function answerStored(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, position, length] = /\/parts\/(\d+)\?length=(\d+)$/.exec(request.url!)!;
  const digest = await digestOfPart(folder, UUID, Number(position), Number(length));
  response.writeHead(digest ? 204 : 404, digest ? { 'content-digest': `sha-256=:${digest.toString('base64')}:` } : {}).end();
}
const sending = (url: string, device: Awaited<ReturnType<typeof fileDevice>>, percents: number[] = []) =>
  sendSnapshot({
    device,
    url,
    token: 'secret',
    fetching: { trust: { insecure: false }, timeoutMs: 5000, signal: new AbortController().signal },
    retries: 2,
    retryIntervalMs: 1,
    progress: (percent) => percents.push(percent),
    clock: { now: () => 0, sleep: async () => {} },
    log: silentLog,
  });

const CONTENTS: Readonly<Record<string, readonly (readonly [at: number, bytes: Buffer])[]>> = {
  'an empty disk': [],
  'texts, noise and zeros': [
    [0, Buffer.alloc(3 * MiB, 'what a file system holds, ')],
    [5 * MiB + 100, randomBytes(9 * MiB)],
    [17 * MiB, Buffer.alloc(700, 'x')],
    [40 * MiB, randomBytes(512)],
  ],
};

it.each(Object.entries(CONTENTS))('sends a disk from one reading, without a difference: %s', async (_, pieces) => {
  const device = await fileDevice(40 * MiB + 512);
  for (const [at, bytes] of pieces) await device.write(bytes, at);
  const percents: number[] = [];
  const reading: number[] = [];
  const counted = {
    ...device,
    read: async (position: number, length: number) => {
      reading.push(position);
      return device.read(position, length);
    },
  };
  await withServer(['cut', 503], async (url) => {
    const report = await sending(url, counted, percents);
    expect(percents.at(-1)).toBe(100);
    expect(new Set(reading).size).toBe(reading.length);
    const sum = await finishFile(folder, UUID, report, new AbortController().signal);
    expect(await readdir(folder)).toEqual([`${UUID}.qcow2`]);
    // After an interruption of the conductor, it is done again.
    expect(await finishFile(folder, UUID, report, new AbortController().signal)).toBe(sum);
    const file = await readFile(snapshotFile(folder, UUID));
    expect(file.length).toBe(report.size);
    expect(createHash('sha256').update(file).digest('hex')).toBe(sum);

    const written = Buffer.alloc(device.size);
    const writer = qcow2Writer({ size: written.length, write: async (bytes, at) => written.set(bytes, at), zero: async () => {} });
    await writer.take(file);
    expect(await writer.end()).toBe('done');
    expect(written.equals(await device.read(0, device.size))).toBe(true);
  });
});

it('sends the tables last, so that a file without its end is no image', async () => {
  const device = await fileDevice(12 * MiB);
  await device.write(randomBytes(9 * MiB), 0);
  await withServer([], async (url, positions) => {
    const report = await sending(url, device);
    expect(positions.indexOf(0)).toBeGreaterThan(positions.indexOf(report.front));
  });
});

it('finds a part that was lost or damaged', async () => {
  const device = await fileDevice(24 * MiB);
  await device.write(randomBytes(20 * MiB), MiB);
  await withServer([], async (url, positions) => {
    const report = await sending(url, device);
    const other = Buffer.alloc(1);
    const digest = (await sha256(other)).toString('base64');
    await writePart(folder, UUID, { pieces: [other], position: positions[1]! + 5000, digest });
    const { signal } = new AbortController();
    await expect(finishFile(folder, UUID, report, signal)).rejects.toThrow('a part of the file is missing or damaged');
    expect(await readdir(folder)).toEqual([`${UUID}.part`]);
  });
});

it.each([
  ['a refusal, at once', [409], /^.*Sending the snapshot failed: .* answered 409: no room$/],
  ['a full folder, at once', [507], /^.*Sending the snapshot failed: .* answered 507: no room$/],
  ['faults of the server, after the last attempt', Array.from({ length: 40 }, () => 503), /answered 503: no room$/],
])('fails with %s', async (_, answers, message) => {
  await withServer(answers, async (url) => {
    await expect(sending(url, await fileDevice(MiB))).rejects.toThrow(message);
  });
});

it('writes no part that is not what its digest says', async () => {
  const part = { pieces: [Buffer.alloc(1000, 'a'), Buffer.from('b')], position: 5 };
  const digest = (await sha256(Buffer.concat(part.pieces))).toString('base64');
  expect(await writePart(folder, UUID, { ...part, pieces: [Buffer.alloc(1001, 'a')], digest })).toBe(false);
  expect(await readdir(folder)).toEqual([]);
  expect(await writePart(folder, UUID, { ...part, digest })).toBe(true);
  const [name = ''] = await readdir(folder);
  expect((await readFile(join(folder, name))).toString()).toBe(`${'\0'.repeat(5)}${'a'.repeat(1000)}b`);
  await expect(writePart(join(folder, 'missing'), UUID, { pieces: [Buffer.from('b')], position: 0, digest })).resolves.toBe(false);
  const other = (await sha256(Buffer.from('b'))).toString('base64');
  const lost = writePart(join(folder, 'missing'), UUID, { pieces: [Buffer.from('b')], position: 0, digest: other });
  await expect(lost).rejects.toThrow('ENOENT');
});

describe('an agent that is killed', () => {
  const noise = randomBytes(60 * MiB);
  /** A process that sends a disk, as the agent does. Resolves with what it prints, or with the signal that ended it. */
  function startAgent(path: string, url: string): { readonly child: ChildProcess; readonly end: Promise<string> } {
    const program = join(folder, 'agent.js');
    const call = `sendSnapshot({ device, url: process.argv[3], token: 'secret', fetching: { trust: { insecure: false }, timeoutMs: 10000,
      signal: new AbortController().signal }, retries: 0, retryIntervalMs: 1, progress() {}, log: { info() {}, warn() {} },
      clock: { now: () => 0, sleep: async () => {} } })`;
    const contents = `import { openDevice } from './ramdisk-agent/disk/device'; import { sendSnapshot } from './ramdisk-agent/disk/snapshot';
      openDevice({ path: process.argv[2], size: ${64 * MiB}, sectorSize: 512, mode: 'read' })
        .then((device) => ${call}).then((report) => process.stdout.write(JSON.stringify(report)));`;
    const root = join(__dirname, '../..');
    buildSync({
      stdin: { contents, resolveDir: root, loader: 'ts' },
      outfile: program,
      bundle: true,
      platform: 'node',
      external: ['koffi'],
    });
    const child = spawn(process.execPath, [program, path, url], { env: { ...process.env, NODE_PATH: join(root, 'node_modules') } });
    let said = '';
    child.stdout.on('data', (text: Buffer) => (said += text.toString()));
    child.stderr.on('data', (text: Buffer) => (said += text.toString()));
    return { child, end: new Promise((resolve) => child.on('close', (_, signal) => resolve(signal ?? said))) };
  }

  it('goes on where it was, and no byte differs', async () => {
    const device = await fileDevice(64 * MiB);
    await device.write(noise, MiB);
    await withServer([], async (url, positions) => {
      const first = startAgent(device.path, url);
      await until('five parts are stored', () => positions.length >= 5);
      first.child.kill('SIGKILL');
      expect(await first.end).toBe('SIGKILL');
      const before = positions.length;
      expect(before).toBeLessThan(15);

      const second = startAgent(device.path, url);
      const report = JSON.parse(await second.end) as Awaited<ReturnType<typeof sendSnapshot>>;
      // All parts are 60 MiB of data, the end and the tables. Those in flight may have been stored without an answer.
      expect(positions.length - before).toBeLessThanOrEqual(Math.ceil(61 / 4) + 2 + 3 - before);
      await finishFile(folder, UUID, report, new AbortController().signal);
      const written = Buffer.alloc(device.size);
      const writer = qcow2Writer({ size: written.length, write: async (bytes, at) => written.set(bytes, at), zero: async () => {} });
      await writer.take(await readFile(snapshotFile(folder, UUID)));
      expect(await writer.end()).toBe('done');
      expect(written.equals(await device.read(0, device.size))).toBe(true);
    });
  }, 60_000);
});
