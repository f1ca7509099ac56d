/** GET /v1/nodes/X/readiness: what keeps a node from being deployed now. An extension. */
import { Fault, reasonOf } from '../../model/errors';
import { readiness, type Facts, type Probes } from '../../model/readiness';
import { conductorOf } from '../../model/ring';
import { nodeOf } from '../resource/node-find';
import type { Handlers, ApiContext } from '../resource/handler';

/** Its conductor may be gone, or not answer: then that is the answer. (A database that is away is not.) */
const probesOf = (uuid: string, { conductor }: ApiContext): Promise<Probes | { readonly error: string }> =>
  conductor.probe(uuid).catch((error: unknown) => {
    if (!(error instanceof Fault)) throw error;
    return { error: reasonOf(error) };
  });

export const readinessHandlers: Handlers = {
  showReadiness: async (request, context) => {
    const { store, current } = context;
    const node = await nodeOf(request, context, 'node:validate');
    const [ports, { conductors }, probes] = await Promise.all([
      store.ports.ofNode(node.uuid),
      current.conductors(),
      probesOf(node.uuid, context),
    ]);
    const allocation =
      node.allocation_uuid === null ? undefined : (await store.allocations.list({ where: { uuid: node.allocation_uuid } }))[0];
    const facts: Facts = { node, ports, allocation, conductor: conductorOf(conductors, node)?.hostname, probes };
    return { status: 200, body: readiness(facts) };
  },
};
