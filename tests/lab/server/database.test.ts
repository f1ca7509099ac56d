/**
 * The embedded database in difficulties: a full disk, a read-only disk, a silent server, a killed server; and the commands beside a running
 * server. Needs root.
 */
import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startEmbedded } from '../../../store/embedded/embedded';
import { openStore, type OpenStore } from '../../../store/postgres';
import { childrenOf } from '../../support/cpu-time';
import { freePort } from '../../support/free-port';
import { needs } from '../support/needs';
import { startServerProcess } from '../../../demo/lab/server';
import { root } from '../support/venv';

beforeAll(() => needs({ mount: 'mount' }));
const folder = mkdtempSync(join(tmpdir(), 'bloomery-lab-database-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (stateDir: string): ReturnType<typeof startEmbedded> => startEmbedded({ stateDir, log: silentLog, clock: systemClock });
const open = ({ connection }: { readonly connection: string }): Promise<OpenStore> =>
  openStore({ connection, poolSize: 3, clock: systemClock, log: silentLog });
const until = async <T>(work: () => Promise<T>, seconds = 240): Promise<T> => {
  for (const end = Date.now() + seconds * 1000; ;) {
    try {
      return await work();
    } catch (error) {
      if (Date.now() > end) throw error;
      await systemClock.sleep(200);
    }
  }
};

describe('the embedded database on a file system of 90 MB', () => {
  const disk = join(folder, 'disk');
  const filler = join(disk, 'filler');
  const fill = (): void => {
    execFileSync('sh', ['-c', `dd if=/dev/zero of=${filler} bs=8k 2>/dev/null || true`]);
  };
  beforeAll(() => {
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=90m,mode=755', 'tmpfs', disk]);
  });
  afterAll(() => execFileSync('umount', ['-l', disk]));

  it('loses no row when the disk is full: writes fail with 503 and the reason, and succeed when there is space again', async () => {
    const server = await start(disk);
    const store = await open(server);
    const kept: string[] = [];
    const create = async (): Promise<void> => {
      const uuid = randomUUID();
      await store.nodes.create({ uuid, driver: 'x', extra: { large: Array.from({ length: 500 }, () => randomUUID()).join('') } });
      kept.push(uuid);
    };
    await create();
    fill();
    let refusal: unknown;
    // Until the allocated pages and the write-ahead log are used up.
    for (let tries = 0; tries < 2000 && refusal === undefined; tries++) await create().catch((error: unknown) => (refusal = error));
    expect(refusal).toMatchObject({ name: 'TemporaryFailure', status: 503 });
    expect((refusal as Error).message).toMatch(/no space left|cannot be reached/);
    // The disk stays full for a while; reads may work, writes do not.
    await expect(create()).rejects.toMatchObject({ status: 503 });
    rmSync(filler);
    await until(create);
    const before = kept.length;
    expect((await store.nodes.list({})).map(({ uuid }) => uuid)).toEqual(expect.arrayContaining(kept));
    await store.close();
    await server.stop();

    const again = await start(disk);
    const reopened = await open(again);
    const found = (await reopened.nodes.list({})).map(({ uuid }) => uuid);
    expect(found).toEqual(expect.arrayContaining(kept));
    // A refused row may exist: the error came after the commit, instead of its response.
    expect(found.length - before).toBeLessThanOrEqual(2);
    await reopened.close();
    await again.stop();
  });

  it('does not start on a full or read-only disk, names the reason, and keeps its rows', async () => {
    fill();
    await expect(start(disk)).rejects.toThrow(/^The embedded PostgreSQL did not start: .*No space left on device/);
    rmSync(filler);
    execFileSync('mount', ['-o', 'remount,ro', disk]);
    await expect(start(disk)).rejects.toThrow(/EROFS: read-only file system.*disk/);
    execFileSync('mount', ['-o', 'remount,rw', disk]);
    const server = await start(disk);
    const store = await open(server);
    expect((await store.nodes.list({})).length).toBeGreaterThan(0);
    await store.close();
    await server.stop();
  });

  it('reports too little space when it is created, and leaves no data folder', async () => {
    const other = join(disk, 'other');
    mkdirSync(other);
    fill();
    await expect(start(other)).rejects.toThrow(/the embedded database cannot be created in .*other\/postgres: .*No space left on device/);
    expect(readdirSync(join(other, 'postgres')).filter((name) => name.startsWith('data'))).toEqual([]);
    rmSync(filler);
  });
});

/** A server and its children, each of which is in a session of its own. */
const family = (pid: number): readonly number[] => [pid, ...childrenOf(pid)];

it('requests fail with 503 while the database server does not respond, and succeed when it responds again', async () => {
  const stateDir = join(folder, 'silent');
  mkdirSync(stateDir);
  const server = await start(stateDir);
  const store = await open(server);
  await Promise.all([1, 2, 3].map(() => store.nodes.list({})));
  const stopped = family(server.pid);
  for (const pid of stopped) process.kill(pid, 'SIGSTOP');
  try {
    // More requests than the pool has connections.
    const asked = await Promise.allSettled(Array.from({ length: 6 }, () => store.nodes.list({})));
    for (const item of asked) expect(item).toMatchObject({ status: 'rejected', reason: { status: 503 } });
  } finally {
    for (const pid of stopped) process.kill(pid, 'SIGCONT');
  }
  expect(await until(() => store.nodes.list({}))).toEqual([]);
  await store.close();
  await server.stop();
});

describe('bloomery db', () => {
  const place = join(folder, 'commands');
  const state = join(place, 'state');
  const db = (...words: readonly string[]): Promise<{ code: number; out: string; error: string }> =>
    new Promise((done) => {
      const environment = { ...process.env, DATABASE_URL: undefined };
      const all = [join(root, 'bin/bloomery'), 'db', words[0]!, '--state-dir', state, ...words.slice(1)];
      const child = execFile(process.execPath, all, { env: environment }, (_, out, error) => done({ code: child.exitCode!, out, error }));
    });
  const serve = async () => {
    const [api, http] = [await freePort(), await freePort()];
    const server = await startServerProcess(place, {
      DEFAULT: { enabled_hardware_types: 'fake-hardware', my_ip: '127.0.0.1' },
      api: { host_ip: '127.0.0.1', port: api },
      boot: { http_port: http, tftp: 'false' },
    });
    return { ...server, url: `http://127.0.0.1:${api}/v1/nodes` };
  };
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' };
  const names = async (url: string): Promise<readonly string[]> =>
    ((await (await fetch(url, { headers })).json()) as { nodes: { name: string }[] }).nodes.map(({ name }) => name);
  const create = async (url: string, name: string): Promise<void> => {
    const body = JSON.stringify({ name, driver: 'fake-hardware' });
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(201);
  };

  it('backs up the database of a running server, and restores it only after the server was killed', async () => {
    const file = join(folder, 'backup');
    expect(await db('version')).toMatchObject({
      code: 1,
      error: expect.stringMatching(/there is no embedded database in .*state yet/) as string,
    });
    const server = await serve();
    await create(server.url, 'one');
    expect(await db('version')).toMatchObject({ code: 0, out: expect.stringMatching(/PostgreSQL 18.*\n.*up to date\n$/s) as string });
    expect(await db('backup', file)).toMatchObject({ code: 0, error: expect.stringMatching(/nodes: 1 row\n/) as string });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await db('backup', file)).toMatchObject({ code: 1, error: `bloomery: ${file} exists already: choose another file\n` });
    await create(server.url, 'two');
    expect(await db('restore', file, '--force')).toMatchObject({
      code: 1,
      error: expect.stringMatching(/is used by the server with process ID \d+: stop it first\n$/) as string,
    });
    expect([...(await names(server.url))].sort()).toEqual(['one', 'two']);
    await server.kill();

    // The server's database outlived it; the command ends that database and starts its own.
    expect(await db('restore', file)).toMatchObject({
      code: 1,
      error: expect.stringMatching(/the database is not empty .*--force/) as string,
    });
    expect(await db('restore', file, '--force')).toMatchObject({ code: 0 });
    writeFileSync(`${file}.short`, readFileSync(file).subarray(0, 500));
    expect(await db('restore', `${file}.short`, '--force')).toMatchObject({
      code: 1,
      error: expect.stringMatching(/was not restored, and the database is unchanged: /) as string,
    });
    expect(await db('sync')).toMatchObject({ code: 0, out: expect.stringMatching(/is up to date/) as string });
    const second = await serve();
    expect(await names(second.url)).toEqual(['one']);
    expect(await second.stop()).toBe(0);
  });

  it("does not create a database as root in another user's folder", async () => {
    const foreign = join(folder, 'foreign');
    mkdirSync(foreign);
    chownSync(foreign, 65_534, 65_534);
    const file = join(folder, 'any');
    writeFileSync(file, '');
    const child = execFile(process.execPath, [join(root, 'bin/bloomery'), 'db', 'restore', file, '--state-dir', foreign]);
    const [errors] = await Promise.all([child.stderr!.toArray(), once(child, 'exit')]);
    expect(child.exitCode).toBe(1);
    expect(errors.join('')).toContain(`${foreign} belongs to user ID 65534`);
    expect(readdirSync(foreign)).toEqual([]);
  });
});
