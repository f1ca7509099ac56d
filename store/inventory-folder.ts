/** Inventories outside the database: in files of a folder, or nowhere. */
import { constants } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { timestamp, type Clock } from '../model/clock';
import { isUuid } from '../model/idents';
import type { InventoryRecord } from '../model/records';
import { run } from './faults';
import type { Inventories } from './store';

/** Nothing is kept. */
export const noInventories: Inventories = {
  find: async () => undefined,
  put: async () => {},
  remove: async () => {},
};

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';
/** A node has two files. */
const [A, B] = ['a', 'b'] as const;

/**
 * The row in the database says which of its two files is the node's: a writer writes the other, and what it wrote counts when its transaction
 * does. Until then the row is locked, so one at a time writes a node's. A link in a file's place is not followed.
 */
export const inventoriesIn =
  (folder: string) =>
  (db: Knex, clock: Clock): Inventories => {
    // Names come from rows of the database; nothing else becomes a path all the same.
    const fileOf = (nodeUuid: string, file: string): string => {
      if (!isUuid(nodeUuid) || nodeUuid.length !== 36) throw new Error(`${nodeUuid} is no UUID`);
      return join(folder, `${nodeUuid}.${file === B ? B : A}.json`);
    };
    const { O_CREAT, O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
    return {
      async find(nodeUuid) {
        const named = 'SELECT file FROM inventories WHERE node_uuid = ? AND file IS NOT NULL';
        const { rows } = await run(db.raw<{ rows: { file: string }[] }>(named, [nodeUuid]));
        if (!rows[0]) return undefined;
        try {
          const text = await using(await open(fileOf(nodeUuid, rows[0].file), O_RDONLY | O_NOFOLLOW), (file) => file.readFile('utf8'));
          return JSON.parse(text) as InventoryRecord;
        } catch (error) {
          if (isAbsent(error)) return undefined;
          throw error;
        }
      },
      async put(nodeUuid, { inventory, plugin_data }) {
        fileOf(nodeUuid, A);
        const { rows } = await run(
          db.raw<{ rows: { file: string }[] }>(
            `INSERT INTO inventories (node_uuid, file, created_at) VALUES (?, '${A}', ?)
              ON CONFLICT (node_uuid) DO UPDATE SET created_at = excluded.created_at, inventory = NULL, plugin_data = NULL,
                file = CASE inventories.file WHEN '${A}' THEN '${B}' ELSE '${A}' END
              RETURNING file`,
            [nodeUuid, timestamp(clock.now())],
          ),
          { node_uuid: nodeUuid },
        );
        const path = fileOf(nodeUuid, rows[0]!.file);
        await using(await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600), async (file) => {
          await file.writeFile(JSON.stringify({ inventory, plugin_data }));
          await file.sync();
        });
        // A new name too must outlive a power cut.
        await using(await open(folder, O_RDONLY), (file) => file.sync());
      },
      async remove(nodeUuid) {
        for (const file of [A, B]) await rm(fileOf(nodeUuid, file), { force: true });
      },
    };
  };

async function using<T>(file: FileHandle, work: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}
