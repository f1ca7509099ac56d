/** Partners of a network burn-in find each other by a real etcd. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { pairUp } from '../../../ramdisk-agent/burnin/pairing';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { needs } from '../support/needs';

/** Seconds. */
const PATIENCE = 60;
jest.setTimeout(2 * PATIENCE * 1000);
let folder: string;
let etcd: ChildProcess;
let client: string;

beforeAll(async () => {
  needs({ etcd: 'etcd-server' });
  folder = mkdtempSync(join(tmpdir(), 'burnin-pairing-'));
  const [ours, peers] = [await freePort(), await freePort()];
  client = `127.0.0.1:${ours}`;
  const urls = { client: `http://${client}`, peer: `http://127.0.0.1:${peers}` };
  const places = ['--data-dir', folder, '--listen-client-urls', urls.client, '--advertise-client-urls', urls.client];
  const cluster = [
    '--listen-peer-urls',
    urls.peer,
    '--initial-advertise-peer-urls',
    urls.peer,
    '--initial-cluster',
    `default=${urls.peer}`,
  ];
  etcd = spawn('etcd', [...places, ...cluster], { stdio: 'ignore' });
  await until('etcd to answer', () =>
    fetch(`http://${client}/health`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
}, 900_000);
afterAll(async () => {
  const ended = once(etcd, 'exit');
  etcd.kill('SIGKILL');
  await ended;
  rmSync(folder, { recursive: true, force: true });
});

const ours = (group: string, ownAddress: string, patience = PATIENCE) =>
  pairUp(`etcd3+http://${client}`, group, patience, {
    trust: { insecure: false },
    signal: new AbortController().signal,
    clock: systemClock,
    random: randomBytes,
    ownAddress,
  });
const byRole = (found: readonly unknown[]): readonly unknown[] =>
  [...(found as readonly { readonly role: string }[])].sort((one, other) => other.role.localeCompare(one.role));

it('two of our agents', async () => {
  const found = byRole(await Promise.all([ours('one', 'a'), ours('one', 'b')]));
  const [writer, reader] = found as readonly [{ readonly host: string }, { readonly host: string }];
  expect(found).toEqual([
    { role: 'writer', host: reader.host === 'a' ? 'b' : 'a' },
    { role: 'reader', host: writer.host === 'a' ? 'b' : 'a' },
  ]);
});
it('nobody comes, the backend is away, the backend is of another kind', async () => {
  await expect(ours('four', 'a', 1)).rejects.toThrow('fio (network) timed out to find partner');
  client = '127.0.0.1:9';
  await expect(ours('five', 'a', 1)).rejects.toThrow('fio (network) failed to find partner: ');
  const other = pairUp('redis://x', 'six', 1, {} as Parameters<typeof pairUp>[3]);
  await expect(other).rejects.toThrow('must begin with etcd3+http:// or etcd3+https://');
});
