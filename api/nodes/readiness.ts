/** GET /v1/nodes/X/readiness: what prevents the deployment of a node now. An extension. */
import { Fault, reasonOf } from '../../model/errors';
import { readiness, waitEnd, type Facts, type Probes } from '../../model/readiness';
import { conductorOf } from '../../model/ring';
import { stepListOf } from '../../model/rules/step-list';
import type { NodeRecord } from '../../model/records';
import { isWaiting } from '../../model/states';
import { nodeAccess, readableNode, REDACTED } from '../pipeline/node-access';
import { nodeOf } from '../pipeline/node-find';
import type { ApiContext, SomeHandlers, Request } from '../pipeline/handler';

/** A conductor that is offline or does not answer is part of the result. Other errors are errors of the request. */
const probesOf = (uuid: string, { conductor }: ApiContext): Promise<Probes | { readonly error: string }> =>
  conductor.probe(uuid).catch((error: unknown) => {
    if (!(error instanceof Fault)) throw error;
    return { error: reasonOf(error) };
  });

/** Hides errors of the BMC and of images from callers that may not read `driver_info` or `last_error`, because they contain addresses. */
function readableProbes(given: Probes, node: NodeRecord, request: Request, context: ApiContext): Probes {
  const probes = context.auth.allowed(request.caller, 'node:default_config:get', node) ? given : { ...given, differences: [] };
  const { unreadable } = nodeAccess(request, context, context.document.fields('Node'), false).to(node);
  if (!unreadable.has('driver_info') && !unreadable.has('last_error')) return probes;
  const hidden = String(REDACTED['last_error']);
  const own = new Set(Object.values(node.instance_info));
  return {
    ...probes,
    ...(probes.power && 'error' in probes.power ? { power: { error: hidden } } : {}),
    images: probes.images.map((image) =>
      own.has(image.href) || image.error === undefined ? image : { ...image, href: hidden, error: hidden },
    ),
  };
}

export const readinessHandlers = {
  showReadiness: async (request, context) => {
    const { store, current } = context;
    const node = await nodeOf(request, context, 'node:validate');
    const [ports, { conductors }, probes, bootRequests] = await Promise.all([
      store.ports.ofNode(node.uuid),
      current.conductors(),
      probesOf(node.uuid, context),
      isWaiting(node.provision_state) ? store.boots.requestsOf(node.uuid) : undefined,
    ]);
    const allocation =
      node.allocation_uuid === null ? undefined : (await store.allocations.list({ where: { uuid: node.allocation_uuid } }))[0];
    const isVisible = allocation && context.auth.allowed(request.caller, 'allocation:get', { owner: allocation.owner, lessee: null });
    const facts: Facts = {
      node: readableNode(node, request, context),
      ports,
      bootRequests,
      waitEnd: waitEnd(node, context.options),
      // Only the name is hidden: the allocation's UUID is a field of the node.
      allocation: allocation && (isVisible ? allocation : { ...allocation, name: null }),
      conductor: conductorOf(conductors, node)?.hostname,
      probes: 'error' in probes ? probes : readableProbes(probes, node, request, context),
    };
    return { status: 200, body: { ...readiness(facts), steps: stepListOf(facts.node) } };
  },
} satisfies SomeHandlers;
