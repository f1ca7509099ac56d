/** The table `bmc_watches`: what the server keeps of each BMC that it watches. The row of a node goes with the node. */
import type { Knex } from 'knex';
import { storableJson } from '../../model/text';
import { run } from '../sql/faults';

interface BmcWatch {
  readonly node_uuid: string;
  /** The path of the server's subscription to events; null: there is none. */
  readonly subscription: string | null;
  /** Paths of the parts that events named and that were not well; null: none. */
  readonly origins: readonly string[] | null;
  /** By log: how far it was read (LogPosition of the drivers); null: not yet. */
  readonly logs: Readonly<Record<string, unknown>> | null;
}
type WatchChanges = Partial<Omit<BmcWatch, 'node_uuid'>>;
interface BmcWatches {
  find(nodeUuid: string): Promise<BmcWatch | undefined>;
  /** The nodes with a subscription. */
  subscribed(): Promise<readonly string[]>;
  /** Throws NodeNotFound. */
  put(nodeUuid: string, changes: WatchChanges): Promise<void>;
}

export function bmcWatchesOn(db: Knex): BmcWatches {
  const rows = () => db<BmcWatch>('bmc_watches');
  return {
    find: async (nodeUuid) => (await run(rows().select('*').where('node_uuid', nodeUuid)))[0],
    subscribed: async () => (await run(rows().select('node_uuid').whereNotNull('subscription'))).map(({ node_uuid: uuid }) => uuid),
    async put(nodeUuid, changes) {
      const { origins, logs } = changes;
      const row = {
        ...changes,
        ...(origins ? { origins: storableJson(origins) } : {}),
        ...(logs ? { logs: storableJson(logs) } : {}),
      };
      await run(
        db('bmc_watches')
          .insert({ node_uuid: nodeUuid, ...row })
          .onConflict('node_uuid')
          .merge(row),
        { node_uuid: nodeUuid },
      );
    },
  };
}
