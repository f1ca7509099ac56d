/** Partners of a network burn-in find each other by a real etcd: two of our agents, and ours with the real agent in both orders. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../../model/clock';
import { pairUp } from '../../../ramdisk-agent/burnin/pairing';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';
import { needs } from '../support/needs';
import { programs } from '../support/venv';

/** Seconds. */
const PATIENCE = 60;
jest.setTimeout(2 * PATIENCE * 1000);
let folder: string;
let etcd: ChildProcess;
let client: string;
let python: string;

beforeAll(async () => {
  needs({ etcd: 'etcd-server' });
  python = join(await programs('agent-pairing', ['ironic-python-agent==13.0.0', 'etcd3gw==2.4.2', 'tooz==6.3.0']), 'python');
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
async function theirs(group: string, name: string): Promise<unknown> {
  const words = [join(__dirname, 'burnin-pairing.py'), `etcd3+http://${client}?api_version=v3`, group, name, String(PATIENCE)];
  const { stdout } = await promisify(execFile)(python, words, { timeout: PATIENCE * 1000 });
  return JSON.parse(stdout) as unknown;
}
const both = [
  { host: 'b', role: 'writer' },
  { host: 'a', role: 'reader' },
];
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
it('ours first, then the real agent', async () => {
  const first = ours('two', 'a');
  const second = theirs('two', 'b');
  expect(byRole(await Promise.all([first, second]))).toEqual(both);
});
it('the real agent first, then ours', async () => {
  const first = theirs('three', 'a');
  await until('the real agent to enter', async () => {
    const key = Buffer.from('tooz/groups/three/a').toString('base64');
    const answer = await fetch(`http://${client}/v3/kv/range`, { method: 'POST', body: JSON.stringify({ key }) });
    return 'kvs' in ((await answer.json()) as object);
  });
  expect(byRole(await Promise.all([first, ours('three', 'b')]))).toEqual(both);
});
it('nobody comes, the backend is away, the backend is of another kind', async () => {
  await expect(ours('four', 'a', 1)).rejects.toThrow('fio (network) timed out to find partner');
  client = '127.0.0.1:9';
  await expect(ours('five', 'a', 1)).rejects.toThrow('fio (network) failed to find partner: ');
  const other = pairUp('redis://x', 'six', 1, {} as Parameters<typeof pairUp>[3]);
  await expect(other).rejects.toThrow('must begin with etcd3+http:// or etcd3+https://');
});
