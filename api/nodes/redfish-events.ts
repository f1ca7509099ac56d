/** POST /v1/nodes/X/redfish_events/KEY: where the BMCs send their events to ([health]event_address). An extension (docs/health.md). */
import { Fault } from '../../model/errors';
import { eventsOf } from '../../model/rules/bmc-events';
import type { Answer, ApiContext, RequestOf, SomeHandlers } from '../pipeline/handler';

/**
 * A BMC that sends too much, or for a node that cannot be read now, gets no error: it would repeat the event, or end the subscription. The
 * next event, or the next round, has the same effect.
 */
async function receive(request: RequestOf<'receiveRedfishEvents'>, context: ApiContext): Promise<Answer> {
  const { params, body } = request;
  const { eventDoor, conductor, metrics } = context;
  const count = (outcome: 'read' | 'dropped' | 'refused'): void => metrics.count('bloomery_bmc_events_total', { outcome });
  const uuid = params.node_ident;
  // The same answer for an unknown node and a wrong key.
  if (!(await eventDoor.isKeyOf(uuid, params.key))) {
    count('refused');
    throw new Fault('NotAuthorized');
  }
  const events = eventsOf(body);
  if (events.length === 0) return { status: 204 };
  if (!eventDoor.mayPass(uuid)) {
    count('dropped');
    return { status: 204 };
  }
  const isNoted = await conductor.noteBmcEvents(uuid, events).catch((error: unknown) => {
    // Of a node that is gone the BMC learns it: it may end its subscription.
    if (error instanceof Fault && error.name === 'NodeNotFound') throw new Fault('NotAuthorized');
    if (error instanceof Fault) return false;
    throw error;
  });
  count(isNoted ? 'read' : 'dropped');
  return { status: 204 };
}
export const redfishEventHandlers = { receiveRedfishEvents: receive } satisfies SomeHandlers;
