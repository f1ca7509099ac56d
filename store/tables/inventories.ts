/** The table `inventories`: the hardware of a node as its last inspection saw it. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { InventoryRecord } from '../../model/records';
import { run } from '../sql/faults';
import type { Inventories } from '../store';

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
    async put(nodeUuid, { inventory, plugin_data }) {
      const row = {
        node_uuid: nodeUuid,
        inventory: JSON.stringify(inventory),
        plugin_data: JSON.stringify(plugin_data),
        file: null,
        created_at: timestamp(clock.now()),
      };
      await run(db('inventories').insert(row).onConflict('node_uuid').merge(), { node_uuid: nodeUuid });
    },
    // It goes with the row of the node.
    remove: async () => {},
  };
}
