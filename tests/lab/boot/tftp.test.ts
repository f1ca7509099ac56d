/** The TFTP service with clients that we did not write (curl, atftp, busybox, tftp-hpa): at full speed, over a network that loses
 * packets, and in a flood. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startTftp } from '../../../boot/tftp';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { cpuMsOf } from '../../support/cpu-time';
import { lossyRelay } from '../ipmi/lossy-udp';

type TftpService = Awaited<ReturnType<typeof startTftp>>;
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'tftp-lab-'));
const sum = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
const large = join(folder, 'large');
const small = join(folder, 'small');
let service: TftpService;
let port: number;

beforeAll(async () => {
  writeFileSync(large, randomBytes(100_000_000));
  writeFileSync(small, randomBytes(1_000_000));
  service = await startTftp({
    hosts: ['127.0.0.1'],
    options: { 'boot.tftp_port': 0, 'pxe.tftp_root': folder, 'files.own': [], 'pxe.loader_file_paths': {} },
    log: silentLog,
    clock: systemClock,
  });
  ({ port } = service);
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

type Client = (name: string, port: number, to: string) => readonly [string, readonly string[]];
const CLIENTS: Readonly<Record<string, Client>> = {
  'curl, blocks of 512': (name, on, to) => ['curl', ['-sS', '-o', to, `tftp://127.0.0.1:${on}/${name}`]],
  'curl, blocks of 1428': (name, on, to) => ['curl', ['-sS', '--tftp-blksize', '1428', '-o', to, `tftp://127.0.0.1:${on}/${name}`]],
  'busybox, blocks of 1428': (name, on, to) => ['busybox', ['tftp', '-g', '-b', '1428', '-r', name, '-l', to, '127.0.0.1', `${on}`]],
  'tftp-hpa': (name, on, to) => ['tftp', ['-m', 'binary', '127.0.0.1', `${on}`, '-c', 'get', name, to]],
  'atftp, window 16, blocks of 1428': (name, on, to) => [
    'atftp',
    ['-g', '-r', name, '-l', to, '--option', 'windowsize 16', '--option', 'blksize 1428', '127.0.0.1', `${on}`],
  ],
  'atftp, window 16, blocks of 512': (name, on, to) => [
    'atftp',
    ['-g', '-r', name, '-l', to, '--option', 'windowsize 16', '127.0.0.1', `${on}`],
  ],
};
/** Fetches a file whole with the client, and prints how long that took. */
async function fetched(client: string, name: string, on: number): Promise<void> {
  const to = join(folder, 'got');
  rmSync(to, { force: true });
  const started = Date.now();
  const [command, args] = CLIENTS[client]!(name, on, to);
  // atftp prints a line for each packet out of order, and on a busy machine there are many.
  await run(command, args, { timeout: 280_000, maxBuffer: 1 << 30 });
  console.log(`TFTP: ${name} to ${client} in ${((Date.now() - started) / 1000).toFixed(1)} s`);
  expect(sum(to)).toBe(sum(join(folder, name)));
}

/** CPU milliseconds. A quiet machine needs 1000 to 2000; without windows it takes a multiple. */
const MAX_CPU_MS = 5000;
it('the TFTP service sends 100 MB with a window of 16 blocks in less than 5 s of CPU time', async () => {
  expect(await cpuMsOf(() => fetched('atftp, window 16, blocks of 1428', 'large', port), MAX_CPU_MS)).toBeLessThan(MAX_CPU_MS);
}, 900_000);

it.each(['curl, blocks of 1428', 'busybox, blocks of 1428', 'curl, blocks of 512'])(
  'the TFTP service sends 100 MB, so that the block numbers wrap around, to %s',
  (client) => fetched(client, 'large', port),
);

describe('the TFTP service, with 2 % of the packets lost,', () => {
  it.each(Object.keys(CLIENTS))('sends 1 MB to %s', async (client) => {
    const relay = await lossyRelay(port, 0.02);
    try {
      await fetched(client, 'small', relay.port);
      expect(relay.lost()).toBeGreaterThan(0);
    } finally {
      await relay.close();
    }
  });
});

it('the TFTP service serves twenty clients at once', async () => {
  const all = Array.from({ length: 20 }, async (_, i) => {
    const to = join(folder, `got-${i}`);
    await run('curl', ['-sS', '--tftp-blksize', '1428', '-o', to, `tftp://127.0.0.1:${port}/small`], { timeout: 240_000 });
    return sum(to);
  });
  expect(new Set(await Promise.all(all))).toEqual(new Set([sum(small)]));
});

/** Sends requests from 2000 addresses until it is killed, and answers nothing. */
const FLOOD = `
const { createSocket } = require('node:dgram');
const port = Number(process.argv[1]);
(async () => {
  const sockets = [];
  for (let n = 0; n < 2000; n++) {
    const socket = createSocket('udp4');
    await new Promise((bound) => socket.bind(0, \`127.9.\${n >> 7}.\${(n & 127) + 1}\`, bound));
    sockets.push(socket);
  }
  process.stdout.write('ready');
  for (let n = 0; ; n++) {
    const request = Buffer.from(\`\\0\\x01large\\0octet\\0x\\0\${n}\\0\`, 'latin1');
    await new Promise((sent) => sockets[n % sockets.length].send(request, port, '127.0.0.1', sent));
    if (n % 10 === 0) await new Promise((pause) => setTimeout(pause, 1));
  }
})();`;
describe('the TFTP service, in a flood of requests with forged sources,', () => {
  let flood: ChildProcess;
  beforeAll(async () => {
    // Attackers would be on another host.
    flood = spawn('nice', ['-n', '19', process.execPath, '-e', FLOOD, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(flood.stdout!, 'data');
  });
  afterAll(async () => {
    const ended = once(flood, 'exit');
    flood.kill('SIGKILL');
    await ended;
  });
  it.each(['curl, blocks of 512', 'busybox, blocks of 1428', 'atftp, window 16, blocks of 1428', 'tftp-hpa'])(
    'sends 1 MB to %s',
    (client) => fetched(client, 'small', port),
  );
});
