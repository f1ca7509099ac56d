/** GET /v1/nodes/X/readiness: what prevents the deployment of a node now. An extension. */
import { Fault, reasonOf } from '../../model/errors';
import { readiness, type Facts, type Probes } from '../../model/readiness';
import { conductorOf } from '../../model/ring';
import { nodeAccess, REDACTED } from '../resource/node-access';
import { nodeOf } from '../resource/node-find';
import type { NodeRecord } from '../../model/records';
import type { Handlers, Request, ApiContext } from '../resource/handler';

/** The node without texts that the caller may not read. */
function readable(node: NodeRecord, request: Request, context: ApiContext): NodeRecord {
  const { unreadable } = nodeAccess(request, context, context.document.fields('Node'), false).to(node);
  const shown = (name: 'last_error' | 'reservation'): string | null =>
    node[name] !== null && unreadable.has(name) ? String(REDACTED[name]) : node[name];
  return { ...node, last_error: shown('last_error'), reservation: shown('reservation') };
}

/** A conductor that is offline or does not answer is part of the result. Other errors are errors of the request. */
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
    const facts: Facts = {
      node: readable(node, request, context),
      ports,
      allocation,
      conductor: conductorOf(conductors, node)?.hostname,
      probes,
    };
    return { status: 200, body: readiness(facts) };
  },
};
