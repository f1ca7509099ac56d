/** /v1/nodes/X/out_of_service: a person takes a node out of service for some time. An extension of this server (docs/out-of-service.md). */
import { invalidParameter, notFound } from '../../model/errors';
import { announceNode } from '../../model/notifications';
import type { NodeRecord, Outage } from '../../model/records';
import { declared, endedOutage, outageOf, outageRequestOf } from '../../model/rules/out-of-service';
import { storableOf } from '../schema/arguments';
import { nodeOf, onNode } from '../pipeline/node-find';
import { withMaintenanceNotifications } from '../pipeline/notifications';
import type { Answer, ApiContext, RequestOf, SomeHandlers } from '../pipeline/handler';

function checkedOutage(node: NodeRecord): Outage {
  const outage = outageOf(node);
  if (!outage) throw notFound(`Node ${node.uuid} is in service.`);
  return outage;
}

async function declare(request: RequestOf<'declareOutOfService'>, context: ApiContext): Promise<Answer> {
  const { query, caller, origin } = request;
  const node = await nodeOf(request, context, 'node:out_of_service:set');
  for (const name of ['reason', 'ticket', 'until'] as const) if (typeof query[name] === 'string') storableOf(name, query[name]);
  const asked = outageRequestOf(query, context.clock.now());
  if (typeof asked === 'string') throw invalidParameter(asked);
  const by = caller.userName ?? caller.user;
  const after = { ...node, ...declared(node, asked, by, context.clock.now()) };
  let outage: Outage | undefined;
  await withMaintenanceNotifications(context, request, after, async () => {
    outage = await context.conductor.declareOutOfService(node.uuid, asked, by);
  });
  announceNode(context.notifier, 'ironic-api', 'out_of_service_set', 'end', after, { out_of_service: { ...asked } }, origin);
  return { status: 200, body: outage! };
}

async function end(request: RequestOf<'endOutOfService'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:out_of_service:clear');
  const after = { ...node, ...endedOutage(checkedOutage(node)) };
  await withMaintenanceNotifications(context, request, after, () => context.conductor.endOutOfService(node.uuid));
  announceNode(context.notifier, 'ironic-api', 'out_of_service_set', 'end', after, { out_of_service: null }, request.origin);
  return { status: 204 };
}

export const outOfServiceHandlers = {
  showOutOfService: onNode(async (node) => checkedOutage(node)),
  declareOutOfService: declare,
  endOutOfService: end,
} satisfies SomeHandlers;
