/** BMCs are slow, and some lose their way when two ask at once: what asks many of them in the background takes turns at each. */
import type { NodeRecord } from '../../model/records';

export interface BmcTurns {
  /** Runs it when nothing else runs under that name; throws the signal's reason when it is not to begin any more. */
  alone<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** By what a node's BMC is told from others: nodes may share one. Power states are asked for under the node's UUID: of thousands behind one address too. */
export function bmcOf({ uuid, driver_info: info }: Pick<NodeRecord, 'uuid' | 'driver_info'>): string {
  const { redfish_address: redfish, ipmi_address: ipmi, ipmi_port: port } = info;
  if (typeof redfish === 'string') return redfish.toLowerCase();
  if (typeof ipmi === 'string') return `${ipmi.toLowerCase()} ${typeof port === 'number' || typeof port === 'string' ? port : ''}`;
  return `of ${uuid}`;
}

export function createBmcTurns(): BmcTurns {
  /** The last of those who wait. */
  const last = new Map<string, Promise<unknown>>();
  return {
    alone: async (name, signal, work) => {
      const before = last.get(name);
      const mine = (async () => {
        await before?.catch(() => {});
        signal.throwIfAborted();
        return work();
      })();
      last.set(name, mine);
      try {
        return await mine;
      } finally {
        if (last.get(name) === mine) last.delete(name);
      }
    },
  };
}
