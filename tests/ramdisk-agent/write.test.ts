import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { expectedChecksum } from '../../model/agent/checksum';
import type { Device } from '../../ramdisk-agent/disk/device';
import { readPartitions } from '../../ramdisk-agent/disk/partitions';
import { writeImage } from '../../ramdisk-agent/disk/write';
import { dynamicVhd, fixedVhd, vhdx, vmdkStream } from './image-builders';
import { CLUSTER, qcow2 } from './qcow2-builder';
import { fileDevice, isFull } from './support';

type WriteOptions = Parameters<typeof writeImage>[0];
const MiB = 2 ** 20;
const sha = (algorithm: string, bytes: Buffer): string => createHash(algorithm).update(bytes).digest('hex');

/** A whole disk of 6 MiB: an MBR, one partition from 1 to 3 MiB, noise in it. */
const disk = Buffer.alloc(6 * MiB);
disk.writeUInt32LE(0xcafe1234, 440);
disk[446 + 4] = 0x83;
disk.writeUInt32LE(2048, 446 + 8);
disk.writeUInt32LE(4096, 446 + 12);
disk.writeUInt16LE(0xaa55, 510);
randomBytes(2 * MiB).copy(disk, MiB);
const asQcow2 = qcow2({
  clusters: Object.fromEntries(
    Array.from(
      { length: disk.length / CLUSTER },
      (_, number) => [number, disk.subarray(number * CLUSTER, (number + 1) * CLUSTER)] as const,
    ).filter(([, content]) => content.some((byte) => byte !== 0)),
  ),
  size: disk.length,
  order: ['data', 'l2', 'l1'],
});
const iso = Buffer.alloc(300 * 1024, 7);
iso.write('CD001', 32769);
iso.write('config-2', 32808);

type Answer = (response: ServerResponse, request: IncomingMessage) => void;
let server: Server;
let url: string;
let served: Record<string, Answer>;
let requests: string[];
beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(request.url!);
    const answer = served[request.url!];
    if (answer) answer(response, request);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
const bytes =
  (content: Buffer | string): Answer =>
  (response) =>
    response.writeHead(200, { 'content-length': Buffer.byteLength(content) }).end(content);
beforeEach(() => {
  requests = [];
  served = { '/disk.raw': bytes(disk), '/disk.qcow2': bytes(asQcow2) };
});

interface Run {
  readonly device: Device;
  readonly result: ReturnType<typeof writeImage>;
  readonly rescans: () => number;
  readonly percents: readonly number[];
}
async function write(image: JsonObject, more: Partial<WriteOptions> = {}, size = 16 * MiB): Promise<Run> {
  const device = more.device ?? (await fileDevice(size));
  // Data of an earlier system.
  await device.write(Buffer.alloc(MiB, 0x55), 0);
  await device.write(Buffer.alloc(MiB, 0x55), size - MiB);
  let rescans = 0;
  const percents: number[] = [];
  const result = writeImage({
    image: {
      id: 'the image',
      urls: [`${url}/disk.raw`],
      disk_format: 'raw',
      os_hash_algo: 'sha256',
      os_hash_value: sha('sha256', disk),
      ...image,
    },
    configDrive: null,
    device,
    fetching: { trust: { insecure: false }, timeoutMs: 20_000, signal: new AbortController().signal },
    retries: 2,
    retryIntervalMs: 1,
    md5Allowed: true,
    permittedFormats: ['raw', 'gpt', 'qcow2', 'iso'],
    inspects: true,
    allowsZstd: true,
    rescan: async () => {
      rescans++;
    },
    conversion: { run: async () => Promise.reject(new Error('no mount')), temporary: '/nowhere' },
    newGuid: () => '99999999-8888-7777-6666-555555555555',
    progress: (percent) => percents.push(percent),
    clock: { now: () => 0, sleep: async () => {} },
    log: silentLog,
    ...more,
  });
  result.catch(() => undefined);
  return { device, result, rescans: () => rescans, percents };
}
const qcow2Image = (): JsonObject => ({ urls: [`${url}/disk.qcow2`], disk_format: 'qcow2', os_hash_value: sha('sha256', asQcow2) });

/** Serves a file, and describes it. */
const servedAs = (content: Buffer, declared: string | null): JsonObject => {
  served['/other'] = bytes(content);
  return { urls: [`${url}/other`], disk_format: declared, os_hash_value: sha('sha256', content) };
};
const permitted = ['raw', 'gpt', 'qcow2', 'iso', 'vmdk', 'vhd', 'vhdx'];
it.each<[string, Buffer, string | null]>([
  ['a compressed raw image', gzipSync(disk), 'raw'],
  ['a compressed image of unknown format', gzipSync(asQcow2), null],
  ['VMDK', vmdkStream(disk), 'vmdk'],
  ['compressed VMDK', gzipSync(vmdkStream(disk)), 'vmdk'],
  ['VHDX', vhdx(disk), 'vhdx'],
  ['dynamic VHD', dynamicVhd(disk), 'vhd'],
  ['fixed VHD', fixedVhd(disk), 'vhd'],
])('writes %s, and nothing bootable if its checksum is wrong (CVE-2024-47211)', async (_, content, declared) => {
  const { device, result, percents } = await write(servedAs(content, declared), { permittedFormats: permitted });
  expect(await result).toEqual({ diskIdentifier: '0xcafe1234' });
  expect((await device.read(0, disk.length)).equals(disk)).toBe(true);
  expect(percents.at(-1)).toBe(100);
  const wrong = await write({ ...servedAs(content, declared), os_hash_value: '0'.repeat(64) }, { permittedFormats: permitted });
  await expect(wrong.result).rejects.toMatchObject({ type: 'ImageChecksumError' });
  expect(isFull(await wrong.device.read(0, MiB), 0)).toBe(true);
});

it.each<[string, Buffer, string | null, RegExp]>([
  ['qcow2 that is declared raw', asQcow2, 'raw', /Expected format was raw, but image was actually qcow2/],
  ['compressed qcow2 that is declared raw', gzipSync(asQcow2), 'raw', /Expected format was raw, but image was actually qcow2/],
  ['VMDK that is not permitted', vmdkStream(disk), 'vmdk', /Detected image format was vmdk, but only raw, gpt, qcow2, iso are allowed/],
  ['zstd', Buffer.from('28b52ffd00000000', 'hex'), 'raw', /disable_zstandard_decompression/],
])('refuses %s before it writes anything of it', async (_, content, declared, reason) => {
  const { device, result } = await write(servedAs(content, declared), { allowsZstd: false });
  await expect(result).rejects.toMatchObject({ type: 'InvalidImage', message: expect.stringMatching(reason) as string });
  expect(isFull(await device.read(0, MiB), 0)).toBe(true);
});

it('writes a declared raw image unchanged where the operator wants no inspection', async () => {
  const { device, result } = await write(servedAs(asQcow2, 'raw'), { inspects: false });
  await expect(result).rejects.toThrow(/Unable to find a valid partition table/);
  expect(isFull(await device.read(15 * MiB, MiB), 0)).toBe(true);
});

it.each<[string, JsonObject, string, string]>([
  ['says what the HTTP boot service says', { served_by_conductor: true }, '/full', ' (the disk of the image cache is full)'],
  ['does not say what another server says', {}, '/full', ''],
  ['does not say what a server says to which it is redirected', { served_by_conductor: true }, '/elsewhere', ''],
])('%s', async (_, image, path, reason) => {
  served['/full'] = (response) => response.writeHead(502, { 'content-type': 'text/plain' }).end('the disk of the image cache is full\n');
  served['/elsewhere'] = (response) => response.writeHead(302, { location: '/full' }).end();
  const { result } = await write({ ...image, urls: [`${url}${path}`] });
  await expect(result).rejects.toMatchObject({
    message: expect.stringMatching(
      new RegExp(`Received status code 502 from ${url}${path}, expected 200${reason.replaceAll(/[()]/g, '\\$&')}$`),
    ) as string,
  });
});

it.each<[string, () => JsonObject]>([
  ['raw', () => ({})],
  ['raw without disk_format', () => ({ disk_format: null })],
  ['qcow2, downloaded three times', qcow2Image],
  ['qcow2 without disk_format', () => ({ ...qcow2Image(), disk_format: undefined })],
  ['with only "checksum"', () => ({ os_hash_algo: null, os_hash_value: null, checksum: sha('sha512', disk) })],
  ['with algorithm and checksum in upper case', () => ({ os_hash_algo: 'SHA256', os_hash_value: sha('sha256', disk).toUpperCase() })],
  ['from the second URL after the first failed', () => ({ urls: ['http://127.0.0.1:1/disk.raw', `${url}/disk.raw`] })],
])('writes an image: %s', async (_, image) => {
  const { device, result, rescans, percents } = await write(image());
  expect(await result).toEqual({ diskIdentifier: '0xcafe1234' });
  expect((await device.read(0, disk.length)).equals(disk)).toBe(true);
  expect(isFull(await device.read(15 * MiB, MiB), 0)).toBe(true);
  expect(rescans()).toBe(1);
  expect(percents.at(-1)).toBe(100);
});

it.each(['text', 'url'])('adds a partition with the config drive: %s', async (kind) => {
  const encoded = gzipSync(iso).toString('base64');
  served['/drive'] = bytes(`${encoded}\n`);
  const { device, result } = await write({}, { configDrive: kind === 'url' ? `${url}/drive` : encoded }, 80 * MiB);
  await result;
  const partition = (await readPartitions(device))!.partitions[1]!;
  expect(partition).toMatchObject({ number: 2, start: 16 * MiB, size: 64 * MiB });
  expect((await device.read(partition.start, iso.length)).equals(iso)).toBe(true);
});

it('writes the config drive into the partition that the image has for it', async () => {
  const image = Buffer.from(disk);
  image.write('config-2', MiB + 32808);
  served['/own.raw'] = bytes(image);
  const wanted = { urls: [`${url}/own.raw`], os_hash_value: sha('sha256', image) };
  const { device, result } = await write(wanted, { configDrive: gzipSync(iso).toString('base64') });
  await result;
  expect((await readPartitions(device))!.partitions).toHaveLength(1);
  expect((await device.read(MiB, iso.length)).equals(iso)).toBe(true);
});

it('follows redirects, and sends credentials only to the first host', async () => {
  const seen: (string | undefined)[] = [];
  served['/moved'] = (response, request) => {
    seen.push(request.headers.authorization);
    response.writeHead(302, { location: url.replace('127.0.0.1', 'localhost') + '/disk.raw' }).end();
  };
  served['/disk.raw'] = (response, request) => {
    seen.push(request.headers.authorization);
    bytes(disk)(response, request);
  };
  const basic = { image_server_auth_strategy: 'http_basic', image_server_user: 'u', image_server_password: 'p' };
  await (
    await write({ urls: [`${url}/moved`], ...basic })
  ).result;
  expect(seen).toEqual([`Basic ${Buffer.from('u:p').toString('base64')}`, undefined]);
});

it('downloads from the beginning again after a broken connection', async () => {
  let tries = 0;
  served['/disk.raw'] = (response, request) => {
    if (++tries === 3) {
      bytes(disk)(response, request);
      return;
    }
    response.writeHead(200, { 'content-length': disk.length });
    response.write(disk.subarray(0, 3 * MiB), () => response.destroy());
  };
  const { device, result } = await write({});
  await result;
  expect(tries).toBe(3);
  expect((await device.read(0, disk.length)).equals(disk)).toBe(true);
});

it('downloads again after a wrong checksum, and asks the checksum file again', async () => {
  const older = Buffer.from(disk);
  older[3 * MiB] = 1;
  let [tries, asked] = [0, 0];
  served['/disk.raw'] = (response, request) => bytes(++tries === 1 ? older : disk)(response, request);
  served['/sums'] = (response, request) => {
    asked++;
    bytes(`${sha('sha256', disk)}  disk.raw\n`)(response, request);
  };
  const { device, result } = await write({ os_hash_value: `${url}/sums` });
  await result;
  expect([tries, asked]).toEqual([2, 2]);
  expect((await device.read(0, disk.length)).equals(disk)).toBe(true);
});

it('verifies a redirected image by a checksum file with the name of the target', async () => {
  served['/latest'] = (response) => response.writeHead(302, { location: '/disk.raw' }).end();
  served['/sums'] = bytes(`${sha('sha256', disk)}  disk.raw\n`);
  await (
    await write({ urls: [`${url}/latest`], os_hash_value: `${url}/sums` })
  ).result;
  expect(requests.filter((path) => path === '/latest')).toHaveLength(2);
});

const broken: Answer = (response) => {
  response.writeHead(200, { 'content-length': disk.length });
  response.write(disk.subarray(0, 3 * MiB), () => response.destroy());
};
const large = { os_hash_value: sha('sha256', Buffer.alloc(17 * MiB)) };
const noTable = Buffer.alloc(2 * MiB, 1);
const noPartitions = Buffer.alloc(2 * MiB);
noPartitions.writeUInt16LE(0xaa55, 510);
const image = (content: Buffer, more: JsonObject = {}): (() => JsonObject) => {
  return () => {
    served['/x'] = bytes(content);
    return { urls: [`${url}/x`], os_hash_value: sha('sha256', content), ...more };
  };
};
it.each<[string, () => JsonObject, string, RegExp]>([
  ['a wrong checksum', () => ({ os_hash_value: '0'.repeat(64) }), 'ImageChecksumError', /image checksum: 0{64}; verification checksum: /],
  ['a wrong checksum of qcow2', () => ({ ...qcow2Image(), os_hash_value: '0'.repeat(64) }), 'ImageChecksumError', /failed to verify/],
  ['no checksum', () => ({ os_hash_algo: null, os_hash_value: null }), 'InvalidCommandParamsError', /checksum is not available/],
  ['a missing file', () => ({ urls: [`${url}/nothing`] }), 'ImageDownloadError', /Received status code 404 from .*\/nothing, expected 200/],
  ['an unreachable server', () => ({ urls: ['http://127.0.0.1:1/x'] }), 'ImageDownloadError', /ECONNREFUSED/],
  ['an unknown protocol', () => ({ urls: ['ftp://127.0.0.1/x'] }), 'ImageDownloadError', /Unsupported protocol/],
  ['no URL', () => ({ urls: [] }), 'ImageDownloadError', /no URL is given/],
  ['a connection that always breaks', () => ((served['/disk.raw'] = broken), {}), 'ImageDownloadError', /broke off/],
  [
    'an image larger than the disk',
    image(Buffer.alloc(17 * MiB), large),
    'ImageWriteError',
    /image of 17825792 bytes is larger than the disk/,
  ],
  [
    'an image larger than the disk without Content-Length',
    () => ((served['/x'] = (response) => response.writeHead(200).end(Buffer.alloc(17 * MiB))), { urls: [`${url}/x`], ...large }),
    'ImageWriteError',
    /the image is larger than the disk of 16777216 bytes/,
  ],
  [
    'a qcow2 larger than the disk',
    image(qcow2({ clusters: {}, size: 17 * MiB }), { disk_format: 'qcow2' }),
    'ImageWriteError',
    /larger than the disk/,
  ],
  [
    'another format than disk_format',
    () => ({ disk_format: 'qcow2' }),
    'InvalidImage',
    /Expected format was qcow2, but image was actually gpt/,
  ],
  [
    'a format that is not allowed',
    image(Buffer.from('KDMV'.padEnd(70_000)), { disk_format: 'vmdk' }),
    'InvalidImage',
    /Detected image format was vmdk/,
  ],
  ['an image without a partition table', image(noTable), 'DeploymentError', /Unable to find a valid partition table/],
  ['an image without partitions', image(noPartitions), 'DeploymentError', /No partitions found on the device/],
  ['an empty image', image(Buffer.alloc(0)), 'DeploymentError', /Unable to find a valid partition table/],
])('rejects %s, and leaves the disk unbootable or unchanged', async (_, given, type, reason) => {
  const { device, result, rescans } = await write(given());
  await expect(result).rejects.toMatchObject({ type, message: expect.stringMatching(reason) as string });
  // A command that is refused before anything is fetched leaves the disk unchanged.
  const left = type === 'InvalidCommandParamsError' ? 0x55 : 0;
  for (const position of [0, 15 * MiB]) expect(isFull(await device.read(position, MiB), left)).toBe(true);
  expect(rescans()).toBe(0);
});

it.each<[string, string, RegExp]>([
  ['is not base64', '!!!', /not base64 encoded gzip/],
  ['is too large', gzipSync(Buffer.alloc(65 * MiB)).toString('base64'), /exceeds maximum limit of 64MiB/],
])('rejects a config drive that %s before it changes the disk', async (_, configDrive, reason) => {
  const { device, result } = await write({}, { configDrive });
  await expect(result).rejects.toThrow(reason);
  expect(isFull(await device.read(0, 512), 0x55)).toBe(true);
});

it('rejects a config drive that does not fit onto the disk', async () => {
  const { device, result } = await write({}, { configDrive: gzipSync(randomBytes(14 * MiB)).toString('base64') });
  await expect(result).rejects.toThrow(/Failed to create config drive on disk .*: no room/);
  expect(isFull(await device.read(0, MiB), 0)).toBe(true);
});

describe('expectedChecksum', () => {
  const value = sha('sha256', disk);
  const files: Record<string, string> = {
    lone: `${value}\n`,
    gnu: `# comment\n${'1'.repeat(64)}  other.raw\n${value} *disk.raw\n`,
    bsd: `SHA256 (other.raw) = ${'1'.repeat(64)}\nSHA256 (disk.raw) = ${value}\n`,
    without: `${'1'.repeat(64)}  other.raw\n`,
  };
  const expected = (given: JsonObject, md5 = true): ReturnType<typeof expectedChecksum> =>
    expectedChecksum({ urls: ['http://x/disk.raw?y'], ...given }, md5, {
      fetchText: async (file) => files[file.slice('http://s/'.length)]!,
      targetOf: async (from) => (from === 'http://x/latest.raw' ? 'http://y/disk.raw' : from),
    });
  it.each(['lone', 'gnu', 'bsd'])('reads a checksum file in the format: %s', async (file) => {
    expect(await expected({ checksum: `http://s/${file}` })).toEqual({ algorithm: 'sha256', value });
    expect(await expected({ os_hash_algo: 'sha256', os_hash_value: `http://s/${file}` })).toEqual({ algorithm: 'sha256', value });
  });
  it('finds the name of the file to which the image is redirected', async () => {
    const latest = { urls: ['http://x/latest.raw'], os_hash_algo: 'sha256', os_hash_value: 'http://s/gnu' };
    expect(await expected(latest)).toEqual({ algorithm: 'sha256', value });
    await expect(expected({ ...latest, os_hash_value: 'http://s/without' })).rejects.toThrow(
      'does not contain name latest.raw or disk.raw',
    );
  });
  it.each<[JsonObject, RegExp]>([
    [{ checksum: 'http://s/without' }, /does not contain name disk.raw/],
    [{ checksum: 'abc' }, /of no known algorithm/],
    [{ checksum: 'a'.repeat(32) }, /MD5 support is disabled/],
    [{ os_hash_algo: 'rot13', os_hash_value: 'x' }, /checksum is not available/],
  ])('rejects %j', async (given, reason) => {
    await expect(expected(given, false)).rejects.toThrow(reason);
  });
  it('accepts MD5 if it is allowed', async () => {
    expect(await expected({ checksum: 'a'.repeat(32) })).toEqual({ algorithm: 'md5', value: 'a'.repeat(32) });
  });
});

it('says which disk cannot be written, whatever fails: a write, or the flush before the partition table', async () => {
  for (const name of ['write', 'flush'] as const) {
    const device = await fileDevice(16 * MiB);
    let calls = 0;
    // The first operations wipe the edges.
    const failing: Device = {
      ...device,
      [name]: (...given: Parameters<Device[typeof name]>) =>
        ++calls > (name === 'write' ? 3 : 1)
          ? Promise.reject(new Error('EIO: i/o error'))
          : (device[name] as (...args: typeof given) => Promise<void>)(...given),
    };
    const { result } = await write({}, { device: failing });
    await expect(result).rejects.toMatchObject({
      type: 'ImageWriteError',
      message: expect.stringContaining(`Writing image to device ${device.path} failed: EIO: i/o error`) as string,
    });
  }
});

/** A generator of numbers from 0 to 1 that repeats itself (mulberry32). */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
it.each([1, 2, 3, 4])('memory that is used again changes no byte of the disk, whatever is slow or breaks off: seed %i', async (seed) => {
  const chance = chances(seed);
  const pause = async (): Promise<void> => {
    for (let turns = Math.floor(chance() * 6); turns > 0; turns--) await new Promise((done) => setImmediate(done));
  };
  const large = Buffer.concat([disk, randomBytes(18 * MiB + 777)]);
  let attempts = 0;
  served['/large'] = (response) => {
    const breaksAt = ++attempts < 4 ? chance() * large.length : Infinity;
    if (chance() < 0.5) response.setHeader('content-length', large.length);
    const send = async (): Promise<void> => {
      for (let at = 0; at < large.length;) {
        const length = Math.ceil(chance() * (chance() < 0.5 ? 3 * MiB : 70_000));
        if (at + length >= breaksAt) return void response.destroy();
        await new Promise((sent) => response.write(large.subarray(at, at + length), sent));
        at += length;
        await pause();
      }
      response.end();
    };
    void send();
  };
  const real = await fileDevice(32 * MiB);
  let changed = 0;
  const device: Device = {
    ...real,
    write: async (part, position) => {
      const before = sha('sha1', Buffer.from(part));
      await pause();
      await real.write(part, position);
      await pause();
      if (sha('sha1', Buffer.from(part)) !== before) changed++;
    },
  };
  const image = { urls: [`${url}/large`], os_hash_value: sha('sha256', large) };
  const { result } = await write(image, { device, retries: 5 }, 32 * MiB);
  await result;
  expect([attempts, changed]).toEqual([4, 0]);
  expect((await real.read(0, large.length)).equals(large)).toBe(true);
});
