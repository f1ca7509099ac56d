/** POST /v1/events: events of a network service about its ports. As in Ironic, they are only logged; nothing waits for them. */
import { originFields } from '../../model/origin';
import type { Handlers } from '../resource/handler';

interface NetworkEvent {
  readonly event: string;
  readonly port_id: string;
  readonly mac_address: string;
  readonly status: string;
}
export const eventHandlers: Handlers = {
  postEvents: async ({ body, origin }, { log }) => {
    for (const { event, port_id: port, mac_address: mac, status } of (body as { readonly events: readonly NetworkEvent[] }).events)
      log.debug('external event', { ...originFields(origin), event, port, mac, status });
    return { status: 204 };
  },
};
