/** Inventories outside the database: in files of a folder, or nowhere. */
import { constants } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { timestamp, type Clock } from '../model/clock';
import { Fault } from '../model/errors';
import { isUuid } from '../model/idents';
import type { InventoryRecord } from '../model/records';
import { run } from './sql/faults';
import type { Inventories } from './tables/inventories';

/** Nothing is kept. */
export const noInventories: Inventories = {
  find: async () => undefined,
  put: async () => {},
  remove: async () => {},
};

/** What the folder refuses. Its errors have codes that a database that is away has too, but nobody may wait for it as for that one. */
function refused(node: string, verb: 'read' | 'written' | 'removed', error: unknown): Fault {
  // Without the path, which is nobody's business who asks the API.
  const [reason] = (error as Error).message.split(',');
  return new Fault('InventoryFolderFailure', { node, verb, reason: reason! }, { cause: error });
}

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
          throw refused(nodeUuid, 'read', error);
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
        try {
          await using(await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600), async (file) => {
            await file.writeFile(JSON.stringify({ inventory, plugin_data }));
            await file.sync();
          });
          // A new name too must outlive a power cut.
          await using(await open(folder, O_RDONLY), (file) => file.sync());
        } catch (error) {
          // Half a file would only keep the disk full.
          await rm(path, { force: true }).catch(() => {});
          throw refused(nodeUuid, 'written', error);
        }
      },
      async remove(nodeUuid) {
        const paths = [A, B].map((file) => fileOf(nodeUuid, file));
        try {
          for (const path of paths) await rm(path, { force: true });
        } catch (error) {
          throw refused(nodeUuid, 'removed', error);
        }
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
