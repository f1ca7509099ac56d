/** GET /v1/state_counts: how many nodes were in each state over the last day. An extension; the page draws it. */
import { timestamp } from '../../model/clock';
import { STATE_COUNTS_KEPT_MS } from '../../model/records';
import { checkPolicy } from '../pipeline/access';
import type { SomeHandlers } from '../pipeline/handler';

export const stateCountHandlers = {
  listStateCounts: async (request, context) => {
    // The counts cover all nodes, so callers that see only the nodes of their project may not read them.
    checkPolicy(request, context, 'node:list_all');
    const { store, clock } = context;
    const now = clock.now();
    const samples = await store.stateCounts.list(timestamp(now - STATE_COUNTS_KEPT_MS));
    return { status: 200, body: { now: timestamp(now), state_counts: samples } };
  },
} satisfies SomeHandlers;
