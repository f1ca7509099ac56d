/** /v1/shards: the shards and the number of their nodes. */
import type { SomeHandlers } from '../pipeline/handler';

export const shardHandlers = {
  listShards: async (_, { store }) => {
    const shards = await store.nodes.shards();
    // Ironic lists nodes without a shard under this name.
    return { status: 200, body: { shards: shards.map(({ name, count }) => ({ name: name ?? 'None', count })) } };
  },
} satisfies SomeHandlers;
