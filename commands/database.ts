/** The database of a command: the one that a server with the same settings uses. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { LoadedOptions } from '../config/options';
import { systemClock } from '../model/clock';
import type { Log } from '../model/log';
import { findEmbedded, startEmbedded } from '../store/embedded/embedded';
import { connect, type Connected } from '../store/sql/connection';
import { databaseUrl, readOptions, type SetupArguments } from './setup';
import { printError } from './output';

export const printProgress = (line: string): void => printError(`bloomery: ${line}`);
const log: Log = { debug: () => {}, info: () => {}, warn: printProgress, error: printProgress, child: () => log };

/** Aborts at Ctrl-C, so that the command can clean up. A second Ctrl-C ends the process at once. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => controller.abort(new Error(`stopped by ${name}`)));
  return controller.signal;
}

interface DatabaseJob {
  readonly connected: Connected;
  /** The database's name in messages. */
  readonly what: string;
  /** The command started the database, so nobody else uses it. */
  readonly own: boolean;
  readonly options: LoadedOptions;
  readonly signal: AbortSignal;
}
interface DatabaseNeeds {
  /** Creates the embedded database if there is none. */
  readonly make?: boolean;
  /** Refuses an embedded database that a server uses. */
  readonly alone?: boolean;
}

/** @throws Error: root would make a database in the folder of another user, whose server could not open it */
async function checkMaker(stateDir: string): Promise<void> {
  let place = stateDir;
  let found = await stat(place).catch(() => undefined);
  for (; !found && dirname(place) !== place; found = await stat(place).catch(() => undefined)) place = dirname(place);
  const owner = found?.uid ?? 0;
  if (process.getuid?.() === 0 && owner !== 0)
    throw new Error(
      `${place} belongs to user ID ${owner}, and that user could not open a database that root creates there: ` +
        'run this command as that user, for example with `runuser -u NAME -- bloomery …`',
    );
}

/**
 * Connects to the database that a server with these settings would use. Starts the embedded database for the duration of the command,
 * unless a server runs it.
 */
export async function onDatabase<T>(
  given: SetupArguments,
  { make = false, alone = false }: DatabaseNeeds,
  work: (job: DatabaseJob) => Promise<T>,
): Promise<T> {
  const { options } = readOptions(given);
  const signal = interrupted();
  const on = async (connection: string, what: (where: string) => string, own = false): Promise<T> => {
    const connected = await connect({ connection, poolSize: 1, log, patient: true });
    try {
      return await work({ connected, what: what(connected.where), own, options, signal });
    } finally {
      await connected.db.destroy();
    }
  };
  const url = databaseUrl(options);
  if (url !== undefined) return on(url, (where) => where);

  const stateDir = resolve(given.stateDir);
  const what = (): string => `The embedded database in ${stateDir}`;
  const found = await findEmbedded(stateDir);
  if (!found && !make)
    throw new Error(`there is no embedded database in ${stateDir} yet, and DATABASE_URL and [database]connection are not set`);
  if (found?.running) {
    const { process: user, connection } = found.running;
    if (alone) throw new Error(`the embedded database in ${stateDir} is used by the server with process ID ${user}: stop it first`);
    return on(connection, what);
  }
  if (!found) await checkMaker(stateDir);
  await mkdir(stateDir, { recursive: true });
  const server = await startEmbedded({ stateDir, log, clock: systemClock, signal });
  try {
    return await on(server.connection, what, true);
  } finally {
    await server.stop();
  }
}
