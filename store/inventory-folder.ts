/** Inventories outside the database: in files of a folder, one a node, or nowhere. */
import { constants } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { isUuid } from '../model/idents';
import type { InventoryRecord } from '../model/records';
import type { Inventories } from './store';

/** Nothing is kept. */
export const noInventories: Inventories = {
  find: async () => undefined,
  put: async () => {},
  remove: async () => {},
};

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

/**
 * A file is as it was or as it is to be: written beside its place, brought to the disk, and renamed. Whoever writes holds the node's row, so
 * one at a time writes a node's. A link in a file's place is not followed.
 */
export function inventoriesIn(folder: string): Inventories {
  // Names come from rows of the database; nothing else becomes a path all the same.
  const fileOf = (nodeUuid: string): string => {
    if (!isUuid(nodeUuid) || nodeUuid.length !== 36) throw new Error(`${nodeUuid} is no UUID`);
    return join(folder, `${nodeUuid}.json`);
  };
  const { O_CREAT, O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
  return {
    async find(nodeUuid) {
      try {
        const text = await using(await open(fileOf(nodeUuid), O_RDONLY | O_NOFOLLOW), (file) => file.readFile('utf8'));
        return JSON.parse(text) as InventoryRecord;
      } catch (error) {
        if (isAbsent(error)) return undefined;
        throw error;
      }
    },
    async put(nodeUuid, { inventory, plugin_data }) {
      const path = fileOf(nodeUuid);
      const fresh = `${path}.new`;
      await using(await open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600), async (file) => {
        await file.writeFile(JSON.stringify({ inventory, plugin_data }));
        await file.sync();
      });
      await rename(fresh, path);
      // The new name too must outlive a power cut.
      await using(await open(folder, O_RDONLY), (file) => file.sync());
    },
    async remove(nodeUuid) {
      await rm(fileOf(nodeUuid), { force: true });
    },
  };
}

async function using<T>(file: FileHandle, work: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}
