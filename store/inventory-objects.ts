/** Inventories as objects of an object store, with the names that Ironic gives them. They take no part in transactions. */
import { Fault, reasonOf } from '../model/errors';
import type { InventoryRecord } from '../model/records';
import { withInterfaces, type Inventories } from './tables/inspection/inventories';

/** A container of an object store. */
interface ObjectContainer {
  readonly put: (name: string, data: Uint8Array) => Promise<void>;
  /** Undefined: there is no such object. */
  readonly get: (name: string) => Promise<Buffer | undefined>;
  /** A missing object is not an error. */
  readonly remove: (name: string) => Promise<void>;
}

const namesOf = (nodeUuid: string): readonly [inventory: string, plugin: string] => [
  `inspector_data-${nodeUuid}-inventory`,
  `inspector_data-${nodeUuid}-plugin`,
];
const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

async function attempt<T>(operation: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Fault('SwiftOperationError', { operation, error: reasonOf(error) }, { cause: error });
  }
}

export const inventoriesAmong = ({ put, get, remove }: ObjectContainer): Inventories =>
  withInterfaces({
    find: (nodeUuid) =>
      attempt('get object', async () => {
        const [inventory, plugin] = await Promise.all(namesOf(nodeUuid).map(get));
        if (!inventory || !plugin) return undefined;
        const record: Record<keyof InventoryRecord, unknown> = {
          inventory: JSON.parse(inventory.toString('utf8')),
          plugin_data: JSON.parse(plugin.toString('utf8')),
        };
        return record as InventoryRecord;
      }),
    // Writes the inventory last, so that no inventory exists without its plugin data.
    put: (nodeUuid, { inventory, plugin_data: plugin }) =>
      attempt('put object', async () => {
        const [inventoryName, pluginName] = namesOf(nodeUuid);
        await put(pluginName, bytesOf(plugin));
        await put(inventoryName, bytesOf(inventory));
      }),
    remove: (nodeUuid) =>
      attempt('delete object', async () => {
        for (const name of namesOf(nodeUuid)) await remove(name);
      }),
  });
