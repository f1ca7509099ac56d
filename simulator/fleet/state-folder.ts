/** What simulated machines remember when the simulator is started again: a file for each, written whole, some time after a change. */
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';

export interface StateFolder {
  /** What was kept under this name; undefined: nothing. */
  read(name: string): unknown;
  /** @param snapshot is asked for what shall be kept, when it is written. @returns what is to be called at each change */
  keep(name: string, snapshot: () => unknown): () => void;
  /** Writes what is not written yet. */
  close(): Promise<void>;
}

/** Milliseconds that changes are gathered for. */
const GATHER = 500;
const AT_ONCE = 16;
const VERSION = 1;

/** @throws the error of a folder that cannot be made, or a sentence about a file in it that is no state */
export async function openStateFolder(folder: string, { clock, log }: { readonly clock: Clock; readonly log: Log }): Promise<StateFolder> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = new Map<string, unknown>();
  for (const file of await readdir(folder)) {
    // Half written when the simulator ended.
    if (file.endsWith('.new')) await rm(join(folder, file), { force: true });
    if (!file.endsWith('.json')) continue;
    found.set(file.slice(0, -'.json'.length), await readState(join(folder, file)));
  }
  const snapshots = new Map<string, () => unknown>();
  let changed = new Set<string>();
  const closing = new AbortController();
  let writing: Promise<void> | undefined;

  const write = async (name: string): Promise<void> => {
    const path = join(folder, `${name}.json`);
    // Configuration drives and passwords are in it.
    await writeFile(`${path}.new`, JSON.stringify({ version: VERSION, ...(snapshots.get(name)!() as object) }), { mode: 0o600 });
    await rename(`${path}.new`, path);
  };
  const writeAll = async (): Promise<void> => {
    while (changed.size > 0) {
      await clock.sleep(GATHER, closing.signal).catch(() => {});
      const names = [...changed].values();
      changed = new Set();
      const lane = async (): Promise<void> => {
        for (const name of names)
          await write(name).catch((error: unknown) =>
            log.error('the state of a machine cannot be kept', { machine: name, error: reasonOf(error) }),
          );
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
    }
    writing = undefined;
  };
  return {
    read: (name) => found.get(name),
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
    throw new Error(`${path} is no state of a simulated machine: ${reasonOf(error)}`, { cause: error });
  }
  throw new Error(`${path} is of another version of the simulator`);
}
