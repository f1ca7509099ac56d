/** Requests whose sources are forged, to the boot services: what a client acknowledges is served to the end, and its requests meanwhile. */
import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeTftp } from '../../wire/tftp';
import { getFile } from '../boot/tftp-client';
import { until } from '../support/until';
import { expectBounded, useAttackedServer } from './watchdog';

const PORT = 20_000 + (process.pid % 10_000);
const root = mkdtempSync(join(tmpdir(), 'bloomery-datagrams-'));
const FILE = Buffer.alloc(200_000, 'boot loader');
writeFileSync(join(root, 'loader'), FILE);
writeFileSync(join(root, 'small'), FILE.subarray(0, 100));
const server = useAttackedServer(undefined, '', `tftp_host = 127.0.0.1\ntftp_port = ${PORT}\n[pxe]\ntftp_root = ${root}`);
afterAll(() => rmSync(root, { recursive: true }));

const SOURCES = 500;
const REQUESTS = 4000;
let forged: Socket[] = [];
beforeAll(async () => {
  forged = await Promise.all(
    Array.from(
      { length: SOURCES },
      (_, n) =>
        new Promise<Socket>((done) =>
          createSocket('udp4').bind(0, `127.9.${n >> 7}.${(n & 127) + 1}`, function (this: Socket) {
            done(this);
          }),
        ),
    ),
  );
});
afterAll(() => Promise.all(forged.map((socket) => new Promise<void>((closed) => socket.close(closed)))));

/** Sends requests from all sources in turn; each differs, so that none is a repetition. */
async function flood(requestOf: (n: number) => Buffer): Promise<void> {
  for (let n = 0; n < REQUESTS; n++) {
    await new Promise<void>((sent) => forged[n % SOURCES]!.send(requestOf(n), PORT, '127.0.0.1', () => sent()));
    if (n % 20 === 0) await new Promise((turn) => setImmediate(turn));
  }
}
const request = (file: string, options: Readonly<Record<string, string>> = {}, mode = 'octet') =>
  encodeTftp({ kind: 'rrq', file, mode, options: new Map(Object.entries(options)) });
/** Asks again and again, as boot ROMs do. */
const served = (file: string): Promise<unknown> =>
  until(`${file} is served`, () =>
    getFile({ port: PORT, file, timeoutMs: 3000 }).then(
      ({ data }) => data.length === (file === 'small' ? 100 : FILE.length),
      () => false,
    ),
  );

/** Name → the request of that number. */
const FLOODS: readonly (readonly [name: string, requestOf: (n: number) => Buffer])[] = [
  ['of a file without options', (n) => request('loader', { x: String(n) })],
  ['of a file with large blocks and windows', (n) => request('loader', { blksize: '1468', windowsize: '64', tsize: String(n) })],
  ['of a file with the smallest blocks', (n) => request('loader', { blksize: '8', windowsize: '64', x: String(n) })],
  ['of a file as a text', (n) => request('loader', { x: String(n) }, 'netascii')],
  ['of files that do not exist', (n) => request(`nothing-${n}`)],
  ['of configuration files of made-up machines', (n) => request(`pxelinux.cfg/01-52-54-00-00-${(n >> 8) & 15}0-${String((n % 90) + 10)}`)],
  ['to write', (n) => encodeTftp({ kind: 'wrq', file: `new-${n}`, mode: 'octet', options: new Map() })],
  ['that are malformed', (n) => Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(n % 1000, 'x')])],
];
it.each(FLOODS)('serves a client in a flood of requests %s at bounded cost', async (_, requestOf) => {
  let isOver = false;
  const cost = await server.attack(async () => {
    const flooding = flood(requestOf).finally(() => (isOver = true));
    await served('small');
    // A transfer that began in the flood goes on.
    if (!isOver) await served('loader');
    await flooding;
  });
  expectBounded(cost);
});
