/** The TFTP service with clients that we did not write (curl, atftp, busybox): at full speed, and over a network that loses packets. */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
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
const MOST_CPU_MS = 5000;
it('the TFTP service sends 100 MB with a window of 16 blocks in less than 5 s of CPU time', async () => {
  expect(await cpuMsOf(() => fetched('atftp, window 16, blocks of 1428', 'large', port), MOST_CPU_MS)).toBeLessThan(MOST_CPU_MS);
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
