/** Inventories outside the database: in files of a folder, or not stored. */
import { constants } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { timestamp, type Clock } from '../model/clock';
import { Fault } from '../model/errors';
import { isUuid } from '../model/idents';
import type { InventoryRecord } from '../model/records';
import { run } from './sql/faults';
import { withInterfaces, type Inventories } from './tables/inspection/inventories';

/** Stores nothing. */
export const noInventories: Inventories = withInterfaces({
  find: async () => undefined,
  put: async () => {},
  remove: async () => {},
});

/** The fault for an error of the folder. Errors of an unavailable database may have the same codes (ENOENT), but here no retry helps. */
function refused(node: string, verb: 'read' | 'written' | 'removed', error: unknown): Fault {
  // API callers must not see the path.
  const [reason] = (error as Error).message.split(',');
  return new Fault('InventoryFolderFailure', { node, verb, reason: reason! }, { cause: error });
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';
/** The suffixes of a node's two files. */
const [A, B] = ['a', 'b'] as const;

/**
 * The row in the database names the valid one of the node's two files. A writer writes the other file, which becomes valid when its
 * transaction commits. Until then the row is locked, so that a node has one writer at a time. Symbolic links are not followed.
 */
export const inventoriesIn =
  (folder: string) =>
  (db: Knex, clock: Clock): Inventories => {
    // Defence in depth: only a UUID becomes a path.
    const fileOf = (nodeUuid: string, file: string): string => {
      if (!isUuid(nodeUuid) || nodeUuid.length !== 36) throw new Error(`${nodeUuid} is not a UUID`);
      return join(folder, `${nodeUuid}.${file === B ? B : A}.json`);
    };
    const { O_CREAT, O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
    return withInterfaces({
      async find(nodeUuid) {
        const select = 'SELECT file FROM inventories WHERE node_uuid = ? AND file IS NOT NULL';
        const { rows } = await run(db.raw<{ rows: { file: string }[] }>(select, [nodeUuid]));
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
          // The directory entry of a new file must survive a power failure, too.
          await using(await open(folder, O_RDONLY), (file) => file.sync());
        } catch (error) {
          // The transaction fails, so the partial file would only occupy the disk.
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
    });
  };

async function using<T>(file: FileHandle, work: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}
