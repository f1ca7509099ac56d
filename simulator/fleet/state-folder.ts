/** Stores the state of simulated machines: a file for each machine, which is written as a whole some time after a change. */
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';

export interface StateFolder {
  /** The state that was stored under this name; undefined: none. */
  read(name: string): unknown;
  /**
   * @param snapshot called when the state is written
   * @returns a function for the caller to call at each change
   */
  keep(name: string, snapshot: () => unknown): () => void;
  /** Writes all pending changes. */
  close(): Promise<void>;
}

/** From a change to its write, so that one write covers many changes. */
const DELAY_MS = 500;
const CONCURRENT_WRITES = 16;
const VERSION = 1;

/** @throws when the folder cannot be made, or when a file in it is not a valid state */
export async function openStateFolder(folder: string, { clock, log }: { readonly clock: Clock; readonly log: Log }): Promise<StateFolder> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stored = new Map<string, unknown>();
  for (const file of await readdir(folder)) {
    // The simulator ended during this write.
    if (file.endsWith('.new')) await rm(join(folder, file), { force: true });
    if (!file.endsWith('.json')) continue;
    stored.set(file.slice(0, -'.json'.length), await readState(join(folder, file)));
  }
  const snapshots = new Map<string, () => unknown>();
  let changed = new Set<string>();
  const closing = new AbortController();
  let writing: Promise<void> | undefined;

  const write = async (name: string): Promise<void> => {
    const path = join(folder, `${name}.json`);
    // 0600: the state has configuration drives and passwords.
    await writeFile(`${path}.new`, JSON.stringify({ version: VERSION, ...(snapshots.get(name)!() as object) }), { mode: 0o600 });
    await rename(`${path}.new`, path);
  };
  const writeAll = async (): Promise<void> => {
    while (changed.size > 0) {
      await clock.sleep(DELAY_MS, closing.signal).catch(() => {});
      const names = [...changed].values();
      changed = new Set();
      const writer = async (): Promise<void> => {
        for (const name of names)
          await write(name).catch((error: unknown) =>
            log.error('the state of a machine cannot be written', { machine: name, error: reasonOf(error) }),
          );
      };
      await Promise.all(Array.from({ length: CONCURRENT_WRITES }, writer));
    }
    writing = undefined;
  };
  return {
    read: (name) => stored.get(name),
    keep: (name, snapshot) => {
      snapshots.set(name, snapshot);
      return () => {
        changed.add(name);
        writing ??= writeAll();
      };
    },
    close: async () => {
      closing.abort();
      await writing;
    },
  };
}

async function readState(path: string): Promise<unknown> {
  try {
    const state = JSON.parse(await readFile(path, 'utf8')) as { readonly version?: unknown };
    if (state.version === VERSION) return state;
  } catch (error) {
    throw new Error(`${path} is not the state of a simulated machine: ${reasonOf(error)}`, { cause: error });
  }
  throw new Error(`${path} is of another version of the simulator`);
}
