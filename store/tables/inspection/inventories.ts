/** The table `inventories`: the inventory of a node from its last inspection. */
import type { Knex } from 'knex';
import type { Clock } from '../../../model/clock';
import { timestamp } from '../../../model/clock';
import type { Inventory, InventoryRecord } from '../../../model/records';
import { storableJson } from '../../../model/text';
import { run } from '../../sql/faults';
import { isReadable } from '../../sql/sizes';

export interface Inventories {
  find(nodeUuid: string): Promise<InventoryRecord | undefined>;
  /** The interfaces of the inventory; none if there is no inventory. */
  interfaces(nodeUuid: string): Promise<Inventory['interfaces']>;
  put(nodeUuid: string, record: InventoryRecord): Promise<void>;
  /** Called last in the transaction that removes the node. */
  remove(nodeUuid: string): Promise<void>;
}

/** For storages that read inventories whole. */
export const withInterfaces = (whole: Omit<Inventories, 'interfaces'>): Inventories => ({
  ...whole,
  interfaces: async (nodeUuid) => (await whole.find(nodeUuid))?.inventory.interfaces ?? [],
});

export function inventoriesOn(db: Knex, clock: Clock): Inventories {
  return {
    async find(nodeUuid) {
      const [record] = await run(
        db<InventoryRecord>('inventories')
          .select('inventory', 'plugin_data')
          .whereRaw('node_uuid = ? AND inventory IS NOT NULL', [nodeUuid]),
      );
      return record;
    },
    async interfaces(nodeUuid) {
      const [record] = await run(
        db('inventories')
          .select(db.raw(`CASE WHEN ${isReadable('inventory')} THEN inventory -> 'interfaces' END AS interfaces`))
          .where('node_uuid', nodeUuid) as unknown as PromiseLike<{ readonly interfaces: Inventory['interfaces'] | null }[]>,
      );
      return record?.interfaces ?? [];
    },
    async put(nodeUuid, { inventory, plugin_data }) {
      const row = {
        node_uuid: nodeUuid,
        inventory: storableJson(inventory),
        plugin_data: storableJson(plugin_data),
        file: null,
        created_at: timestamp(clock.now()),
      };
      await run(db('inventories').insert(row).onConflict('node_uuid').merge(), { node_uuid: nodeUuid });
    },
    // The foreign key removes the row together with the node.
    remove: async () => {},
  };
}
