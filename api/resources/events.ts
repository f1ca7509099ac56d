/** POST /v1/events: events of a network service about its ports. As in Ironic, they are only logged; nothing waits for them. */
import { originFields } from '../../model/origin';
import type { SomeHandlers } from '../pipeline/handler';

export const eventHandlers = {
  postEvents: async ({ body, origin }, { log }) => {
    for (const { event, port_id: port, mac_address: mac, status } of body.events)
      log.debug('external event', { ...originFields(origin), event, port, mac, status });
    return { status: 204 };
  },
} satisfies SomeHandlers;
