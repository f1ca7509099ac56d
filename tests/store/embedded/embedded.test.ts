import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { buildSync } from 'esbuild';
import { systemClock, type Clock } from '../../../model/clock';
import type { Log } from '../../../model/log';
import { silentLog } from '../../../model/log';
import { Client } from 'pg';
import { findEmbedded, startEmbedded } from '../../../store/embedded/embedded';
import { restoreLinks } from '../../../store/embedded/binaries';
import { openStore } from '../../../store/postgres';
import { describeProcess, readPidFile } from '../../../store/embedded/postmaster';
import { until } from '../../support/until';

const root = mkdtempSync(join(tmpdir(), 'bloomery-embedded-'));
const script = join(root, 'supervisor.cjs');
type Embedded = Awaited<ReturnType<typeof startEmbedded>>;
const started: Embedded[] = [];
const children: ChildProcess[] = [];
/** Databases that supervisors in other processes started. */
const servers: number[] = [];
let stateDir: string;
let said: string[];
const note = (text: string): void => void said.push(text);
const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };

const made = join(root, 'made');
/** A state directory with a database that was stopped in good order; without one: `empty`. */
const withData = (folder: string): string => {
  mkdirSync(folder, { recursive: true });
  execFileSync('cp', ['-a', join(made, 'postgres'), folder]);
  return folder;
};
const empty = (): string => (stateDir = mkdtempSync(join(root, 'empty-')));

beforeAll(async () => {
  mkdirSync(made);
  await (await startEmbedded({ stateDir: made, log: silentLog, clock: systemClock, durable: false })).stop();
});
beforeEach(() => {
  said = [];
  stateDir = withData(mkdtempSync(join(root, 'state-')));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGTERM');
    if (running(child)) await new Promise((done) => child.once('exit', done));
  }
  for (const server of started.splice(0)) await server.stop();
  for (const pid of servers.splice(0)) await until('the end of the process', async () => !(await alive(pid)));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const start = async (folder = stateDir, more: { signal?: AbortSignal; durable?: boolean; clock?: Clock } = {}): Promise<Embedded> => {
  const server = await startEmbedded({ stateDir: folder, log, clock: systemClock, durable: false, ...more });
  started.push(server);
  return server;
};
const open = (server: { readonly connection: string }) =>
  openStore({ connection: server.connection, poolSize: 2, clock: systemClock, log: silentLog });
const nodesIn = async (server: { readonly connection: string }, create = false): Promise<number> => {
  const store = await open(server);
  if (create) await store.nodes.create({ uuid: randomUUID(), driver: 'x' });
  const { length } = await store.nodes.list({});
  await store.close();
  return length;
};
const data = (): string => join(stateDir, 'postgres', 'data');
const alive = async (pid: number): Promise<boolean> => (await describeProcess(pid)) !== undefined;
const running = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;
/** Starts the database with a supervisor in another process; answers what the supervisor printed. */
const supervisor = async (ending: string): Promise<{ child: ChildProcess; connection: string; pid: number; error?: string }> => {
  if (!existsSync(script)) {
    const bundle = { bundle: true, platform: 'node', format: 'cjs', outfile: script, logLevel: 'error' } as const;
    buildSync({ ...bundle, entryPoints: [join(__dirname, 'supervisor.ts')] });
  }
  // The bundle is outside the project, so it needs the path of the packages.
  const env = { ...process.env, NODE_PATH: join(__dirname, '../..', '..', 'node_modules') };
  const child = spawn(process.execPath, [script, stateDir, ending], { stdio: ['ignore', 'pipe', 'ignore'], env });
  children.push(child);
  const lines = createInterface({ input: child.stdout });
  const line = await new Promise<string>((done, fail) => {
    lines.once('line', done);
    lines.once('close', () => fail(new Error('the supervisor ended without a word')));
  });
  const answer = JSON.parse(line) as { connection: string; pid: number; error?: string };
  if (!answer.error) servers.push(answer.pid);
  return { child, ...answer };
};

it('creates a database, keeps its data over a restart, and leaves no process after stop', async () => {
  empty();
  const first = await start();
  expect(await nodesIn(first, true)).toBe(1);
  expect(await alive(first.pid)).toBe(true);
  await Promise.all([first.stop(), first.stop()]);
  expect(await alive(first.pid)).toBe(false);
  expect(existsSync(join(data(), 'postmaster.pid'))).toBe(false);
  const second = await start();
  expect(await nodesIn(second)).toBe(1);
  expect(said.filter((line) => line.startsWith('Creating'))).toHaveLength(1);
});

it('listens on no TCP port, and restricts its directories to its user', async () => {
  await start();
  expect(readFileSync(join(data(), 'postmaster.pid'), 'utf8').split('\n')[5]).toBe('');
  for (const folder of ['data', 'run']) expect(statSync(join(stateDir, 'postgres', folder)).mode & 0o077).toBe(0);
  expect(statSync(join(stateDir, 'postgres')).mode & 0o066).toBe(0);
});

/** Only root starts the database as another user; otherwise it runs as the user of the test. */
const isRoot = process.getuid?.() === 0;
it('runs as a user of its own, so that other users cannot access its socket and data', async () => {
  const server = await start();
  const { uid } = statSync(data());
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  expect(users.some((user) => Number(user[2]) === uid)).toBe(!isRoot);
  const socket = join(new URLSearchParams(server.connection.split('?')[1]).get('host')!, '.s.PGSQL.5432');
  const others = users.filter(([name]) => isRoot && (name === 'postgres' || name === 'nobody'));
  expect(others.length > 0).toBe(isRoot);
  for (const [, , id, group] of others) {
    const attempt = (code: string): string =>
      execFileSync(process.execPath, ['-e', code], { uid: Number(id), gid: Number(group), cwd: '/', encoding: 'utf8' }).trim();
    chmodSync(root, 0o755);
    expect(
      attempt(
        `require('net').connect(${JSON.stringify(socket)}).on('error', (e) => console.log(e.code)).on('connect', () => process.exit())`,
      ),
    ).toBe('EACCES');
    expect(attempt(`try { require('fs').readdirSync(${JSON.stringify(data())}) } catch (e) { console.log(e.code) }`)).toBe('EACCES');
    expect(attempt(`try { process.kill(${server.pid}, 0) } catch (e) { console.log(e.code) }`)).toBe('EPERM');
  }
});

it('changes the owner of data that another user owns', async () => {
  const first = await start();
  await nodesIn(first, true);
  await first.stop();
  const shared = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === 'nobody')!;
  const before = statSync(data()).uid;
  if (isRoot) execFileSync('chown', ['-R', `${shared[2]!}:${shared[3]!}`, data()]);
  expect(await nodesIn(await start())).toBe(1);
  expect(statSync(data()).uid).toBe(before);
  expect(statSync(join(data(), 'base')).uid).toBe(before);
});

it.each([
  ['with its socket in the state directory', ''],
  ['with its socket elsewhere', 'x'.repeat(100)],
])('restarts after a crash without loss of committed data, %s', async (_, name) => {
  if (name !== '') withData(join(stateDir, name));
  const folder = join(stateDir, name);
  const server = await start(folder, { durable: true });
  await nodesIn(server, true);
  const { pid } = server;
  process.kill(pid, 'SIGKILL');
  const file = join(folder, 'postgres/data');
  await until('another process', async () => server.pid !== pid && ((await readPidFile(file))?.ready ?? false));
  expect(await nodesIn(server)).toBe(1);
  expect(said).toEqual(expect.arrayContaining(['The embedded PostgreSQL ended unexpectedly (SIGKILL); restarting it']));
  await server.stop();
  expect(await alive(server.pid)).toBe(false);
});

it('stops the database of a killed supervisor and starts its own', async () => {
  const orphan = await supervisor('stay');
  await nodesIn(orphan, true);
  orphan.child.kill('SIGKILL');
  await new Promise((done) => orphan.child.once('exit', done));
  expect(await alive(orphan.pid)).toBe(true);
  const server = await start();
  expect(await alive(orphan.pid)).toBe(false);
  expect(await nodesIn(server)).toBe(1);
  expect(said.join()).toContain(`process ${orphan.pid}) outlived its supervisor`);
});

it('refuses a state directory that a running supervisor uses', async () => {
  const owner = await supervisor('stay');
  await expect(start()).rejects.toThrow(`is in use by process ${owner.child.pid}: stop that, or choose another state directory`);
  expect(await nodesIn(owner, true)).toBe(1);
});

it('succeeds only once of two simultaneous starts in an empty state directory', async () => {
  empty();
  const both = await Promise.allSettled([supervisor('stay'), start()]);
  const errors = both.map((item) => (item.status === 'rejected' ? String(item.reason) : ((item.value as { error?: string }).error ?? '')));
  expect(errors.filter((error) => error === '')).toHaveLength(1);
  expect(errors.join('')).toMatch(/is in use by process \d+/);
  expect(readdirSync(join(stateDir, 'postgres')).filter((name) => name.startsWith('data'))).toEqual(['data']);
});

it.each(['exit', 'idle', 'throw'])('stops when its supervisor ends without stop (%s)', async (ending) => {
  const { child, pid } = await supervisor(ending);
  if (running(child)) await new Promise((done) => child.once('exit', done));
  await until('the end of the process', async () => !(await alive(pid)));
  expect(existsSync(join(data(), 'postmaster.pid'))).toBe(false);
});

describe('starts despite the postmaster.pid of a server that no longer runs', () => {
  it.each([
    ['its process ID is free', () => 4_000_000],
    ["its process ID is another process's", () => process.ppid],
  ])('if %s', async (_what, pid) => {
    for (const path of [join(data(), 'postmaster.pid'), join(stateDir, 'postgres', 'run', '.s.PGSQL.5432.lock')]) {
      writeFileSync(path, [pid(), data(), 1, 5432, dirname(path), '', '  1  1', 'ready   ', ''].join('\n'), { mode: 0o600 });
      const { uid, gid } = statSync(data());
      chownSync(path, uid, gid);
    }
    expect(await nodesIn(await start(), true)).toBe(1);
    expect(await alive(process.ppid)).toBe(true);
  });
});

it('refuses data of another major version without changing them', async () => {
  const version = join(data(), 'PG_VERSION');
  writeFileSync(version, '17\n');
  const before = readdirSync(data(), { recursive: true }).map((name) => [name, statSync(join(data(), String(name))).mtimeMs]);
  await expect(start()).rejects.toThrow(/was made by PostgreSQL 17, and this program brings PostgreSQL 18; nothing was changed/);
  expect(readdirSync(data(), { recursive: true }).map((name) => [name, statSync(join(data(), String(name))).mtimeMs])).toEqual(before);
});

it('refuses a data directory without PG_VERSION without changing it', async () => {
  rmSync(join(data(), 'PG_VERSION'));
  const before = readdirSync(data()).sort();
  await expect(start()).rejects.toThrow(/data is not empty and no whole database \(PG_VERSION is missing\); nothing was changed/);
  expect(readdirSync(data()).sort()).toEqual(before);
});

it('fails with the message of PostgreSQL', async () => {
  chmodSync(data(), 0o777);
  const error = (await start().catch((reason: unknown) => reason)) as Error;
  expect(error.message).toMatch(/^The embedded PostgreSQL did not start: data directory ".*" has invalid permissions \(log: .*\)$/);
  chmodSync(data(), 0o700);
  expect(await nodesIn(await start())).toBe(0);
});

it('removes an incomplete data directory and creates a new one', async () => {
  empty();
  mkdirSync(join(stateDir, 'postgres', 'data.new-4000000-abc', 'base'), { recursive: true });
  expect(await nodesIn(await start(), true)).toBe(1);
  expect(readdirSync(join(stateDir, 'postgres')).filter((name) => name.startsWith('data'))).toEqual(['data']);
});

it('works below a directory that its user cannot enter', async () => {
  const folder = join(stateDir, 'closed', 'state');
  withData(folder);
  chmodSync(join(stateDir, 'closed'), 0o700);
  const server = await start(folder);
  expect(await nodesIn(server, true)).toBe(1);
  await server.stop();
  expect(await nodesIn(await start(folder))).toBe(1);
});

it('puts its socket elsewhere if the path is too long, where its user can enter', async () => {
  // PAM can give each user a temporary folder that no other may enter.
  const closed = join(root, 'closed');
  mkdirSync(closed, { mode: 0o700 });
  jest.replaceProperty(process.env, 'TMPDIR', closed);
  const folder = join(stateDir, 'x'.repeat(100));
  withData(folder);
  const server = await start(folder);
  const socket = new URLSearchParams(server.connection.split('?')[1]).get('host')!;
  expect(basename(socket)).toMatch(/^bloomery-postgres-/);
  expect(statSync(socket).mode & 0o077).toBe(0);
  expect(await nodesIn(server, true)).toBe(1);
  await server.stop();
  expect(existsSync(socket)).toBe(false);
  jest.restoreAllMocks();
});

it('an abort before the start or during the creation of the data ends it and leaves no incomplete data', async () => {
  empty();
  await expect(start(stateDir, { signal: AbortSignal.abort(new Error('no more')) })).rejects.toThrow('no more');
  const controller = new AbortController();
  const starting = start(stateDir, { signal: controller.signal }).catch((error: unknown) => (error as Error).message);
  const incomplete = (): readonly string[] => readdirSync(join(stateDir, 'postgres')).filter((name) => name.startsWith('data.new'));
  await until('the incomplete data', () => existsSync(join(stateDir, 'postgres')) && incomplete().length > 0);
  controller.abort(new Error('no more'));
  expect(await starting).toBe('no more');
  expect(incomplete()).toEqual([]);
});

it('an abort while the server starts on existing data ends it and leaves no process, and the next start succeeds', async () => {
  let pid: number | undefined;
  // A server that is ready at the first look was not aborted while it started.
  await until('a start that waits for its server', async () => {
    const controller = new AbortController();
    const clock: Clock = {
      ...systemClock,
      sleep: async (milliseconds, signal) => {
        if (signal) {
          await until('its process', async () => (pid = (await readPidFile(data()))?.pid) !== undefined);
          controller.abort(new Error('enough'));
        }
        await systemClock.sleep(milliseconds, signal);
      },
    };
    const result = await start(stateDir, { signal: controller.signal, clock }).catch((error: unknown) => (error as Error).message);
    if (typeof result === 'string') {
      expect(result).toBe('enough');
      return true;
    }
    await result.stop();
    expect(controller.signal.aborted).toBe(false);
    return false;
  });
  expect(await alive(pid!)).toBe(false);
  expect(existsSync(join(data(), 'postmaster.pid'))).toBe(false);
  expect(await nodesIn(await start())).toBe(0);
});

it('findEmbedded distinguishes a state directory with a running, a stopped and no server', async () => {
  const folder = stateDir;
  expect(await findEmbedded(folder)).toEqual({});
  const server = await start(folder);
  const { running: now } = (await findEmbedded(folder))!;
  expect(now!.process).toBe(String(process.pid));
  expect(await nodesIn(now!)).toBe(0);
  await server.stop();
  expect(await findEmbedded(folder)).toEqual({});
  empty();
  expect(await findEmbedded(stateDir)).toBeUndefined();
});

it('fails with the path if a directory is missing or is a file', async () => {
  await expect(start(join(stateDir, 'none'))).rejects.toThrow(/no such file or directory.*none/);
  empty();
  writeFileSync(join(stateDir, 'postgres'), '');
  await expect(start()).rejects.toThrow(/postgres/);
});

it('restoreLinks creates the symbolic links between libraries that npm packages cannot contain', async () => {
  const native = join(stateDir, 'native');
  mkdirSync(join(native, 'lib'), { recursive: true });
  writeFileSync(join(native, 'lib', 'libx.so.1.2'), 'library');
  const link = (target: string) => ({ source: 'native/lib/libx.so.1.2', target: `native/lib/${target}` });
  writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify([link('libx.so'), link('libx.so.1')]));
  symlinkSync('libx.so.1.2', join(native, 'lib', 'libx.so'));
  expect(await restoreLinks(native)).toBe(true);
  expect(readFileSync(join(native, 'lib', 'libx.so.1'), 'utf8')).toBe('library');
  expect(await restoreLinks(native)).toBe(true);
});

describe('the role of the server', () => {
  const as = async <Row extends object>(connection: string, sql: string): Promise<readonly Row[]> => {
    const client = new Client({ connectionString: connection });
    await client.connect();
    try {
      return (await client.query<Row>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  it('is no superuser, so that no statement reads files or runs programs', async () => {
    const { connection } = await start();
    const [role] = await as<object>(
      connection,
      'SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles WHERE rolname = current_user',
    );
    expect(Object.values(role!)).toEqual([false, false, false, false, false]);
    for (const sql of [
      "COPY (SELECT 1) TO PROGRAM 'cat'",
      "COPY (SELECT 1) TO '/tmp/x'",
      "SELECT pg_read_file('/etc/passwd')",
      "SELECT lo_import('/etc/passwd')",
      'CREATE EXTENSION dblink',
      'SET ROLE bloomery',
      'SET SESSION AUTHORIZATION bloomery',
      'INSERT INTO pg_proc SELECT * FROM pg_proc LIMIT 1',
      "ALTER SYSTEM SET archive_command = 'x'",
    ])
      await expect(as(connection, sql)).rejects.toThrow(/permission denied|must be superuser|must be able to/);
  });
  it('gets the tables that an earlier version made as a superuser', async () => {
    const server = await start();
    const earlier = { connection: server.superuserConnection };
    expect(await nodesIn(earlier, true)).toBe(1);
    await as(earlier.connection, 'CREATE VIEW seen AS SELECT 1; ALTER SCHEMA public OWNER TO pg_database_owner');
    await server.stop();
    const later = await start();
    expect(await nodesIn(later)).toBe(1);
    const owners = await as<{ owner: string }>(
      later.connection,
      `SELECT DISTINCT relowner::regrole::text AS owner FROM pg_class WHERE relnamespace = 'public'::regnamespace
       UNION SELECT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
    );
    expect(owners).toEqual([{ owner: 'bloomery_server' }]);
    expect(await nodesIn(later, true)).toBe(2);
  });
});
