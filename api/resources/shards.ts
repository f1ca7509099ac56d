/** /v1/shards: how many nodes each has. */
import type { Handlers } from '../resource/handler';

export const shardHandlers: Handlers = {
  listShards: async (_, { store }) => {
    const shards = await store.nodes.shards();
    // Nodes without a shard are told of under this name, which clients know.
    return { status: 200, body: { shards: shards.map(({ name, count }) => ({ name: name ?? 'None', count })) } };
  },
};
