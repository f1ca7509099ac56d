/** What the events and the history of a node say, for tests of the whole server. */
import type { TestDatabase } from './database';
import type { WholeServer } from './whole-server';

type Payload = Readonly<Record<string, unknown>>;
interface NodeEvents {
  readonly eventsOf: (uuid: string, kind: string) => Promise<readonly Payload[]>;
  /** How often the machine's firmware has started. */
  readonly powerOns: (uuid: string) => Promise<number>;
  /** The entries of this type in the node's history. */
  readonly entriesOf: (uuid: string, type: string) => Promise<readonly string[]>;
}
export function nodeEvents(database: TestDatabase, whole: () => WholeServer): NodeEvents {
  const eventsOf: NodeEvents['eventsOf'] = async (uuid, kind) => {
    await database.eventsReadable();
    const { body } = await whole().call('GET', `/v1/events?node=${uuid}&kind=${kind}&limit=1000`);
    return (body['events'] as readonly { readonly payload: Payload }[]).map(({ payload }) => payload);
  };
  return {
    eventsOf,
    powerOns: async (uuid) =>
      (await eventsOf(uuid, 'power')).filter(
        ({ power_state: now, previous_power_state: before }) => now === 'power on' && before !== 'power on',
      ).length,
    entriesOf: async (uuid, wanted) => {
      const { body } = await whole().call('GET', `/v1/nodes/${uuid}/history?detail=True`);
      const entries = body['history'] as readonly { readonly event_type: string; readonly event: string }[];
      return entries.filter(({ event_type: type }) => type === wanted).map(({ event }) => event);
    },
  };
}
