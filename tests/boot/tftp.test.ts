import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createRetransmissionTimer } from '../../boot/retransmission-timer';
import { negotiate, startTftp } from '../../boot/tftp';
import type { BootFiles } from '../../boot/boot-files';
import { openFile } from '../../wire/local-files';
import { systemClock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import { decodeTftp, encodeTftp } from '../../wire/tftp';
import { getFile, type TransferRequest } from './tftp-client';
import { testClock } from '../support/clock';
import { until } from '../support/until';

type TftpService = Awaited<ReturnType<typeof startTftp>>;
type TftpSetup = Parameters<typeof startTftp>[0];
type BootFile = NonNullable<Awaited<ReturnType<BootFiles['open']>>>;
const folder = mkdtempSync(join(tmpdir(), 'tftp-'));
const root = join(folder, 'root');
const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) & 255));
const FILES: Readonly<Record<string, Buffer>> = {
  empty: Buffer.alloc(0),
  short: bytes(100),
  exact: bytes(1024),
  long: bytes(700_001),
  'sub/file': bytes(600),
  text: Buffer.from('a\nb\rc\r\n'),
};
const lines: string[] = [];
const log: Log = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => lines.push(`${message} ${JSON.stringify(fields)}`),
  error: (message) => lines.push(message),
  child: () => log,
};
let service: TftpService;
const start = (extra: Partial<TftpSetup> = {}): Promise<TftpService> =>
  startTftp({
    hosts: ['127.0.0.1'],
    options: {
      'boot.tftp_port': 0,
      'pxe.tftp_root': root,
      'files.own': [],
      'pxe.loader_file_paths': { 'undionly.kpxe': join(folder, 'loader'), 'gone.efi': join(folder, 'gone') },
    },
    log,
    clock: systemClock,
    ...extra,
  });
const get = (file: string, asked: Partial<TransferRequest> = {}) => getFile({ port: service.port, file, ...asked });

beforeAll(async () => {
  mkdirSync(join(root, 'sub'), { recursive: true });
  for (const [name, data] of Object.entries(FILES)) writeFileSync(join(root, name), data);
  writeFileSync(join(folder, 'loader'), 'the loader');
  writeFileSync(join(folder, 'secret'), 'secret');
  symlinkSync(join(folder, 'secret'), join(root, 'out'));
  symlinkSync(folder, join(root, 'away'));
  symlinkSync('short', join(root, 'within'));
  service = await start();
});
beforeEach(() => {
  lines.length = 0;
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

it.each(['empty', 'short', 'exact', 'long', 'sub/file', '/short'])('sends the complete file %s', async (file) => {
  const { data, granted } = await get(file);
  expect(data.equals(FILES[file.replace('/short', 'short')]!)).toBe(true);
  expect(granted).toEqual({});
});

it('sends a loader by name, and the target of a link within the root', async () => {
  expect((await get('undionly.kpxe')).data.toString()).toBe('the loader');
  expect((await get('within')).data).toEqual(FILES.short);
});

it.each([
  ['a window of 16', { windowsize: '16', blksize: '1428' }],
  ['a window larger than the piece that is read at once', { windowsize: '64', blksize: '1468' }],
  ['small blocks', { blksize: '100', windowsize: '5' }],
])('sends a file with %s', async (_, options) => {
  const { data, granted } = await get('long', { options });
  expect(data.equals(FILES.long!)).toBe(true);
  expect(granted).toEqual(options);
});

it('continues after block 65535', async () => {
  const { data, packets } = await get('long', { options: { blksize: '10', windowsize: '64' } });
  expect(packets).toBeGreaterThan(70_000);
  expect(data.equals(FILES.long!)).toBe(true);
});

it.each([
  [
    'the requested options',
    { blksize: '1432', tsize: '0', windowsize: '8', timeout: '3' },
    { blksize: '1432', tsize: '1024', windowsize: '8', timeout: '3' },
  ],
  ['smaller values than requested', { blksize: '65464', windowsize: '65535' }, { blksize: '1468', windowsize: '64' }],
  ['no unknown option', { multicast: '', blksize: '512' }, { blksize: '512' }],
  ['no option out of bounds', { blksize: '7', windowsize: '0', timeout: '256', tsize: '0' }, { tsize: '1024' }],
  ['no option that is not a number', { blksize: '1e3', windowsize: '-1', timeout: '' }, {}],
])('negotiate grants %s', (_, asked, granted) => {
  expect(Object.fromEntries(negotiate(new Map(Object.entries(asked)), { size: 1024 }, 'octet').granted)).toEqual(granted);
});

it('converts line ends in netascii mode, and does not grant tsize', async () => {
  const { data, granted } = await get('text', { mode: 'netascii', options: { tsize: '0', blksize: '8' } });
  expect(data.toString()).toBe('a\r\nb\r\0c\r\0\r\n');
  expect(granted).toEqual({ blksize: '8' });
});

it.each([
  ['a file that does not exist', 'nothing', 1],
  ['a folder', 'sub', 1],
  ['the root', '/', 1],
  ['a path upwards', '../secret', 1],
  ['a path upwards from within', 'sub/../../secret', 1],
  ['a link out of the root', 'out', 1],
  ['a path through a link out of the root', 'away/secret', 1],
  ['an absolute path', join(folder, 'secret'), 1],
  ['a loader that is not installed', 'gone.efi', 1],
  ['a name of the object prototype', 'constructor', 1],
])('refuses %s', async (_, file, code) => {
  expect((await get(file)).error).toEqual({ kind: 'error', code, message: 'File not found' });
  expect(lines).toHaveLength(1);
});

it('refuses write requests and the mode "mail"', async () => {
  expect((await get('new', { kind: 'wrq' })).error?.code).toBe(2);
  expect((await get('short', { mode: 'mail' })).error?.code).toBe(4);
});

it('sends lost packets again', async () => {
  let seed = 3;
  const lose = (): boolean => (seed = (seed * 48271) % 2147483647) / 2147483647 < 0.1;
  const { data } = await get('exact', { lose, options: { blksize: '64' } });
  expect(data.equals(FILES.exact!)).toBe(true);
  const windows = await get('long', { lose, options: { blksize: '1428', windowsize: '16' } });
  expect(windows.data.equals(FILES.long!)).toBe(true);
});

it('does not answer repeated acknowledgments without windows', async () => {
  const { data, packets } = await get('exact', {
    answer: (packet) => (packet.kind === 'data' ? Array.from({ length: 3 }, () => ({ kind: 'ack', block: packet.block })) : []),
  });
  expect(data.equals(FILES.exact!)).toBe(true);
  expect(packets).toBe(3);
});

it('ignores malformed packets and acknowledgments of blocks that were not sent', async () => {
  const noise = createSocket('udp4');
  await new Promise<void>((done) => noise.bind(0, '127.0.0.1', done));
  for (const hex of ['', '00', '0001', '000161', '0003000161', '00040001', '00050001ff', '0006', 'ffff'])
    await new Promise((sent) => noise.send(Buffer.from(hex, 'hex'), service.port, '127.0.0.1', sent));
  await new Promise<void>((closed) => noise.close(closed));
  const wild = await get('exact', {
    timeoutMs: 1000,
    answer: () => [{ kind: 'ack', block: 500 }],
  }).catch(reasonOf);
  expect(wild).toMatch(/block 2 is missing/);
  expect((await get('short')).data).toEqual(FILES.short);
});

it.each([
  ['instead of accepting the options', { tsize: '0', blksize: '8', windowsize: '4' }, 0],
  ['after a window', { blksize: '8', windowsize: '4' }, 4],
  ['after a block, without options', {}, 1],
])('sends no block after an error packet of the client %s', async (_, options, last) => {
  const outcomes: unknown[] = [];
  const metrics: Metrics = { ...silentMetrics, count: (...given) => void outcomes.push(given) };
  const own = await start({ metrics });
  const socket = createSocket('udp4');
  try {
    await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
    const blocks: number[] = [];
    socket.on('message', (bytes, { port, address }) => {
      const packet = decodeTftp(bytes)!;
      const block = packet.kind === 'data' ? packet.block : 0;
      if (block > 0) blocks.push(block);
      const isEnd = packet.kind === 'data' && packet.data.length === 0;
      // The acknowledgment would get the next block from a server that ignores the error.
      if (block === last) socket.send(encodeTftp({ kind: 'error', code: 8, message: 'only the size' }), port, address);
      if (block % 4 === 0 || block === last || isEnd) socket.send(encodeTftp({ kind: 'ack', block }), port, address);
    });
    const request = { kind: 'rrq', file: 'exact', mode: 'octet', options: new Map(Object.entries(options)) } as const;
    socket.send(encodeTftp(request), own.port, '127.0.0.1');
    await until('the end of the transfer', () => outcomes.length > 0);
    expect(outcomes).toEqual([['bloomery_tftp_transfers_total', { outcome: 'ended by client' }]]);
    // Meanwhile, everything that was sent before arrives.
    await getFile({ port: own.port, file: 'short' });
    expect(blocks).toEqual(Array.from({ length: last }, (__, index) => index + 1));
  } finally {
    socket.close();
    await own.stop();
  }
});

/** A client that sends requests and shows what comes back; it never acknowledges by itself. */
async function silentClient(address = '127.0.0.1') {
  const socket = createSocket('udp4');
  await new Promise<void>((done) => socket.bind(0, address, done));
  const came: { readonly octets: number; readonly port: number }[] = [];
  socket.on('message', (packet, { port }) => came.push({ octets: packet.length, port }));
  return {
    came,
    send: (packet: Parameters<typeof encodeTftp>[0], port: number): Promise<void> =>
      new Promise((sent) => socket.send(encodeTftp(packet), port, '127.0.0.1', () => sent())),
    close: () => new Promise<void>((closed) => socket.close(closed)),
  };
}
const requestOf = (file: string, options: Readonly<Record<string, string>> = {}) =>
  ({ kind: 'rrq', file, mode: 'octet', options: new Map(Object.entries(options)) }) as const;

describe('a client that acknowledges nothing', () => {
  it.each([
    ['one block', requestOf('exact'), 516],
    ['no more than three times what it sent', requestOf('exact', { blksize: '1468', windowsize: '64' }), 3 * 48],
    ['one block of a text', { ...requestOf('text'), mode: 'netascii' }, 3 * 16],
  ])('gets %s', async (_, request, most) => {
    const outcomes: unknown[] = [];
    const metrics: Metrics = { ...silentMetrics, count: (__, labels) => void outcomes.push(labels) };
    // Time passes only when the first packet was sent: before, the file has to be read.
    const clock = testClock(0, 0);
    const own = await start({ metrics, clock });
    const client = await silentClient();
    try {
      await client.send(request, own.port);
      await until('a packet', () => client.came.length > 0);
      await clock.advance(10);
      await until('the end of the transfer', () => outcomes.length > 0);
      expect(outcomes).toEqual([{ outcome: 'silent' }]);
      expect(client.came.reduce((sum, { octets }) => sum + octets, 0)).toBeLessThanOrEqual(most);
    } finally {
      await client.close();
      await own.stop();
    }
  });
  it('gets the first packet of a file that is read slowly, however often the timeout expires meanwhile', async () => {
    const reads: (() => void)[] = [];
    const read = (): Readable => Readable.from(later(), { objectMode: false });
    async function* later(): AsyncGenerator<Buffer> {
      await new Promise<void>((resolve) => reads.push(resolve));
      yield bytes(100);
    }
    const file = { size: 100, modified: 0, read, release: async () => {} };
    const open = async (): Promise<BootFile> => ({ kind: 'remote', file });
    const clock = testClock(0, 0);
    const own = await start({ clock, boots: { recordFor: async () => undefined, open } });
    const client = await silentClient();
    try {
      await client.send(requestOf(`boot/${'0'.repeat(32)}/kernel`), own.port);
      await until('the reading', () => reads.length === 1);
      await clock.advance(2);
      expect(reads).toHaveLength(1);
      reads[0]!();
      await until('the packet', () => client.came.length === 1);
    } finally {
      await client.close();
      await own.stop();
    }
  });
  it('gets the packet again when it repeats its request, from the same port', async () => {
    const clock = testClock(0, 0);
    const own = await start({ clock });
    const client = await silentClient();
    try {
      await client.send(requestOf('exact'), own.port);
      await until('the first packet', () => client.came.length === 1);
      // At once, the packet and the request have crossed.
      await client.send(requestOf('exact'), own.port);
      await clock.advance(1);
      await client.send(requestOf('exact'), own.port);
      await until('the packet again', () => client.came.length === 2);
      expect(new Set(client.came.map(({ port }) => port)).size).toBe(1);
    } finally {
      await client.close();
      await own.stop();
    }
  });
});

it('serves a client at once after a thousand requests with forged sources, and logs only some lines about them', async () => {
  const own = await start();
  const forged = await Promise.all(Array.from({ length: 200 }, (_, index) => silentClient(`127.9.0.${index + 1}`)));
  try {
    for (const file of ['exact', 'short', 'long', 'empty', 'nothing'])
      for (const client of forged) await client.send(requestOf(file), own.port);
    expect((await getFile({ port: own.port, file: 'exact' })).data).toEqual(FILES.exact);
    expect(lines.length).toBeLessThan(45);
  } finally {
    await Promise.all(forged.map((client) => client.close()));
    await own.stop();
  }
});

it('fails to start on a port that is in use', async () => {
  const options = { 'boot.tftp_port': service.port, 'pxe.tftp_root': root, 'files.own': [], 'pxe.loader_file_paths': {} };
  await expect(startTftp({ options, hosts: ['127.0.0.1'], log, clock: systemClock })).rejects.toThrow(
    /^cannot listen on 127\.0\.0\.1 port \d+ \(TFTP, \[boot\]tftp_host and tftp_port; .*\): the port is in use$/,
  );
});

it('the retransmission timer follows the round-trip time, and backs off to 6 s', () => {
  const pace = createRetransmissionTimer();
  expect(pace.timeout()).toBe(250);
  for (let i = 0; i < 50; i++) pace.measured(100);
  expect(pace.timeout()).toBeCloseTo(100, 0);
  pace.expired();
  expect(pace.timeout()).toBeCloseTo(400, 0);
  for (let i = 0; i < 3; i++) pace.expired();
  expect(pace.timeout()).toBe(6000);
  pace.acknowledged();
  expect(pace.timeout()).toBeCloseTo(100, 0);
  expect(createRetransmissionTimer(10_000).timeout()).toBe(250);
});

describe('with boot records', () => {
  const UUID = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
  const TOKEN = '0123456789abcdef0123456789abcdef';
  const remote = bytes(600_000);
  const released: string[] = [];
  /** As the cache gives it: in pieces of its own size. */
  const cached = (name: string): BootFile => ({
    kind: 'remote',
    file: {
      size: remote.length,
      modified: 0,
      read: (from, end) =>
        Readable.from(
          (function* () {
            for (let at = from; at <= end; at += 7000) yield remote.subarray(at, Math.min(at + 7000, end + 1));
          })(),
        ),
      release: async () => void released.push(name),
    },
  });
  const boots: BootFiles = {
    recordFor: async (mac) =>
      mac === '52:54:00:aa:bb:01'
        ? { node_uuid: UUID, token: TOKEN, macs: [mac], method: 'pxe', purpose: 'ramdisk', kernel_args: 'a=1', files: {} }
        : undefined,
    open: async (token, name) => {
      if (token !== TOKEN) return undefined;
      if (name === 'ramdisk') return cached(name);
      const file = name === 'kernel' ? await openFile(join(root, 'long')) : undefined;
      return file && { kind: 'local', file };
    },
  };
  let own: TftpService;
  beforeAll(async () => {
    writeFileSync(join(root, 'grub.cfg-01-52-54-00-aa-bb-02'), 'of the root');
    own = await start({ boots });
  });
  afterAll(() => own.stop());
  const ask = (file: string, asked: Partial<TransferRequest> = {}) => getFile({ port: own.port, file, ...asked });

  it('sends configurations to PXELINUX and GRUB', async () => {
    expect((await ask('pxelinux.cfg/01-52-54-00-aa-bb-01')).data.toString()).toContain(`kernel /boot/${TOKEN}/kernel`);
    expect((await ask('/grub/grub.cfg-01-52-54-00-AA-BB-01')).data.toString()).toContain(`linux /boot/${TOKEN}/kernel`);
    expect((await ask('52:54:00:aa:bb:01.conf')).data.toString()).toContain(`linux /boot/${TOKEN}/kernel`);
    expect((await ask('/grub/grub.cfg')).data.toString()).toBe('source /$net_default_mac.conf\n');
  });
  it('prefers a boot record to the TFTP root, and falls back to the root', async () => {
    expect((await ask('grub.cfg-01-52-54-00-aa-bb-02')).data.toString()).toBe('of the root');
    expect((await ask('pxelinux.cfg/01-52-54-00-aa-bb-03')).error?.message).toBe('File not found');
    expect((await ask(`boot/${TOKEN}/passwords`)).error?.message).toBe('File not found');
    expect((await get('pxelinux.cfg/01-52-54-00-aa-bb-01')).error?.message).toBe('File not found');
  });
  it.each([
    ['kernel', 'long'],
    ['ramdisk', undefined],
  ] as const)('sends the complete %s', async (name, file) => {
    const { data, granted } = await ask(`/boot/${TOKEN}/${name}`, { options: { blksize: '1468', windowsize: '8', tsize: '0' } });
    const whole = file === undefined ? remote : FILES[file]!;
    expect(data.equals(whole)).toBe(true);
    expect(granted).toMatchObject({ tsize: String(whole.length) });
  });
  it('releases a cached file after the transfer', async () => {
    await until('the release', () => released.length > 0);
    expect(released).toEqual(['ramdisk']);
  });
});
