/** Lets in the events of BMCs: those with the key of their node, and of each node so many a minute. */
import type { Options } from '../../config/options';
import { EVENT_SECRET, eventKey } from '../../model/rules/bmc-events';
import type { Clock } from '../../model/clock';
import { isUuid } from '../../model/idents';
import { isSameSecret, newSecret } from '../../model/masks';
import type { Store } from '../../store/store';

const MINUTE_MS = 60_000;
/** Requests of one node that are read; the conductor reads the machine less often than that. */
const MOST_A_MINUTE = 30;

export interface BmcEventDoor {
  /** Whether the key is that of the node. Needs no query of the database, except once. */
  isKeyOf(nodeUuid: string, key: string): Promise<boolean>;
  /** Counts a request. Returns whether it is within the node's limit. */
  mayPass(nodeUuid: string): boolean;
}
interface DoorParts {
  readonly store: Pick<Store, 'secrets'>;
  readonly clock: Clock;
  readonly options: Options;
  readonly random: (bytes: number) => Buffer;
}
export function createBmcEventDoor({ store, clock, options, random }: DoorParts): BmcEventDoor {
  let secret: string | undefined;
  let minute = { until: -Infinity, counts: new Map<string, number>() };
  return {
    async isKeyOf(nodeUuid, key) {
      if (options['health.event_address'] === null || !options['health.enabled'] || !isUuid(nodeUuid)) return false;
      secret ??= await store.secrets.shared(EVENT_SECRET, () => newSecret(random));
      return isSameSecret(eventKey(secret, nodeUuid), key);
    },
    mayPass(nodeUuid) {
      if (clock.now() >= minute.until) minute = { until: clock.now() + MINUTE_MS, counts: new Map() };
      const count = (minute.counts.get(nodeUuid) ?? 0) + 1;
      minute.counts.set(nodeUuid, count);
      return count <= MOST_A_MINUTE;
    },
  };
}
