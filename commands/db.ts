/** `bloomery db …`: manages the database, embedded or external. */
import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, stat, statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline as piped, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { Command } from 'commander';
import { systemClock, timestamp } from '../model/clock';
import { backup, type Progress, type Summary } from '../store/backup/backup';
import { unusable } from '../store/sql/connection';
import { restore } from '../store/backup/restore';
import { migrate, schemaState, stepsDone, LATEST, type SchemaState } from '../store/sql/schema';
import { onDatabase, printProgress } from './database';
import { withSetup, type SetupArguments } from './setup';
import { print } from './output';

export async function sync(given: SetupArguments): Promise<void> {
  await onDatabase(given, { make: true }, async ({ connected: { db, where }, what }) => {
    const change = await migrate(db).catch((error: unknown) => {
      throw unusable(where, error);
    });
    print(
      change
        ? `${what}: its schema went from ${change.from ?? 'nothing'} to ${change.to}`
        : `${what}: its schema is up to date (${LATEST})`,
    );
  });
}

const SCHEMA_STATES: Readonly<Record<SchemaState, string>> = {
  none: 'it has no schema yet: "bloomery db sync" or the start of the server creates it',
  older: 'older than this program: "bloomery db sync" or the start of the server updates it',
  current: 'up to date',
  newer: 'newer than this program, which cannot use it: install the version that created it, or a later one',
};
export async function version(given: SetupArguments): Promise<void> {
  await onDatabase(given, {}, async ({ connected: { db }, what }) => {
    const done = await stepsDone(db);
    const state = schemaState(done);
    const { rows } = await db.raw<{ rows: { name: string }[] }>("SELECT current_setting('server_version') AS name");
    print(`database: ${what.replace(/^The /, 'the ')}, PostgreSQL ${rows[0]!.name}`);
    print(`schema:   ${done.at(-1) ?? 'none'}`);
    print(`program:  ${LATEST}`);
    print(`the schema is ${SCHEMA_STATES[state]}`.replace('the schema is it has', 'the database has'));
    if (state !== 'current') process.exitCode = 1;
  });
}

const counted = (count: number, what: string): string => `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
/** Reports each table with rows, and the progress of large tables. */
function progress(): (progress: Progress) => void {
  let last = performance.now();
  return ({ table, rows, done }) => {
    if (done ? rows === 0 : performance.now() - last < 2000) return;
    last = performance.now();
    printProgress(`${table}: ${counted(rows, 'row')}${done ? '' : ' …'}`);
  };
}

/** Captures the return value of a generator, which a pipeline does not pass on. */
async function* capturingSummary(pieces: AsyncGenerator<Buffer, Summary>, note: (summary: Summary) => void): AsyncGenerator<Buffer> {
  note(yield* pieces);
}

async function backupTo(file: string, given: SetupArguments): Promise<void> {
  if (file !== '-' && (await stat(file).catch(() => undefined))) throw new Error(`${file} exists already: choose another file`);
  await onDatabase(given, {}, async ({ connected: { db, where }, signal }) => {
    let summary: Summary | undefined;
    const pieces = capturingSummary(backup(db, timestamp(systemClock.now()), progress(), signal), (result) => (summary = result));
    const write = (target: NodeJS.WritableStream): Promise<void> =>
      pipeline(Readable.from(pieces, { objectMode: false }), createGzip({ level: 6 }), target);
    try {
      if (file === '-') await write(process.stdout);
      else await writeComplete(file, write);
    } catch (error) {
      throw new Error(`the backup failed: ${messageOf(error)}`, { cause: error });
    }
    printProgress(
      `saved ${where.replace(/^The /, 'the ')} to ${file}: ${counted(summary!.rows, 'row')} of ${counted(summary!.tables, 'table')}, schema ${summary!.schema}`,
    );
  });
}
const messageOf = (error: unknown): string => (error instanceof Error ? error.message.split('\n')[0]! : String(error));
/** Whether the error is zlib's for a file that is not in the format of gzip. */
const isNotGzip = (error: unknown): boolean => messageOf(error) === 'incorrect header check';

/** Writes under a temporary name until the file is complete and on disk. Only the owner may read it, because it contains passwords. */
async function writeComplete(file: string, write: (target: NodeJS.WritableStream) => Promise<void>): Promise<void> {
  const unfinished = `${file}.${process.pid}.unfinished`;
  try {
    await write(createWriteStream(unfinished, { flags: 'wx', mode: 0o600, flush: true }));
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Bytes between two looks at the disk, and bytes that must stay free. A small file may unpack to a thousand times its size. */
const LOOK_EVERY = 16 << 20;
const LEAST_FREE = 256 << 20;
/** @throws Error while the disk of the folder is almost full: the database could not even undo its work */
async function* whileRoom(pieces: AsyncIterable<Buffer>, folder: string): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const piece of pieces) {
    read += piece.length;
    if (read > LOOK_EVERY) {
      read = 0;
      const { bavail, bsize } = await statfs(folder);
      if (bavail * bsize < LEAST_FREE) throw new Error(`there is not enough space in ${folder}`);
    }
    yield piece;
  }
}

async function restoreFrom(file: string, { force = false, ...given }: SetupArguments & { readonly force?: boolean }): Promise<void> {
  // An unreadable file fails before the database is started.
  if (file !== '-') await (await open(file)).close();
  await onDatabase(given, { make: true, alone: true }, async ({ connected: { db }, what, own, options, signal }) => {
    // An error in the restore also ends the reading of `source`.
    const unpacked = piped(file === '-' ? process.stdin : createReadStream(file), createGunzip(), () => {});
    const source = own ? whileRoom(unpacked, resolve(given.stateDir)) : unpacked;
    const heartbeatTimeout = own ? 0 : options['conductor.heartbeat_timeout'];
    const summary = await restore(db, source, { force, heartbeatTimeout, tell: progress(), signal }).catch((error: unknown) => {
      throw new Error(
        `${file} was not restored, and the database is unchanged: ${isNotGzip(error) ? 'it is not a backup of Bloomery' : messageOf(error)}`,
        {
          cause: error,
        },
      );
    });
    printProgress(
      `restored ${what.replace(/^The /, 'the ')} from ${file}: ${counted(summary.rows, 'row')} of ${counted(summary.tables, 'table')}, schema ${summary.schema}`,
    );
  });
}

export function addDatabaseCommands(program: Command): void {
  const db = program
    .command('db')
    .description('Manage the database: the embedded one, or the one in [database]connection or DATABASE_URL.');
  withSetup(
    db
      .command('version')
      .description('Print the version of the schema in the database and the one that this program needs (exit status 1 if they differ).'),
  ).action(version);
  withSetup(db.command('sync').description('Update the schema. The server also does this when it starts.')).action(sync);
  withSetup(
    db
      .command('backup')
      .description('Write the whole database to a new file. Servers may be running. The file contains passwords: keep it safe.')
      .argument('<file>', 'the file; "-" for standard output'),
  ).action(backupTo);
  withSetup(
    db
      .command('restore')
      .description('Restore a backup into an empty database that no server uses. If it fails, nothing is restored.')
      .argument('<file>', 'the file; "-" for standard input')
      .option('--force', 'replace the contents of the database'),
  ).action(restoreFrom);
}
