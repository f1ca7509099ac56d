/** BMCs are slow, and some fail under two requests at once: background work sends one request at a time to each BMC. */
import { isIPv6 } from 'node:net';
import { canonicalHost } from '../../model/idents';
import type { NodeRecord } from '../../model/records';

export interface BmcTurns {
  /** Waits for earlier work under the same name. Throws the signal's reason if it is aborted before the work begins. */
  alone<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

/** Host and port of a service, however its address is written. */
function serviceOf(address: string): string {
  const url = address.includes('://') ? address : `https://${isIPv6(address) ? `[${address}]` : address}`;
  if (!URL.canParse(url)) return address.toLowerCase();
  const { hostname, port } = new URL(url);
  return `${canonicalHost(hostname) ?? hostname} ${port}`;
}
/** The name of a node's BMC: nodes may share a BMC. Reads of power states use the UUID instead: thousands of nodes may share an address. */
export function bmcOf({ uuid, driver_info: info }: Pick<NodeRecord, 'uuid' | 'driver_info'>): string {
  const { redfish_address: redfish, ipmi_address: ipmi, ipmi_port: port } = info;
  if (typeof redfish === 'string') return serviceOf(redfish);
  if (typeof ipmi === 'string')
    return `${canonicalHost(ipmi) ?? ipmi.toLowerCase()} ${typeof port === 'number' || typeof port === 'string' ? port : ''}`;
  return `of ${uuid}`;
}

export function createBmcTurns(): BmcTurns {
  /** By name: the work that was queued last. */
  const last = new Map<string, Promise<unknown>>();
  return {
    alone: async (name, signal, work) => {
      const before = last.get(name);
      const queued = (async () => {
        await before?.catch(() => {});
        signal.throwIfAborted();
        return work();
      })();
      last.set(name, queued);
      try {
        return await queued;
      } finally {
        if (last.get(name) === queued) last.delete(name);
      }
    },
  };
}
