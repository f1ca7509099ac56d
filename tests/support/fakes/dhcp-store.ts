/** The part of the store that the DHCP service uses, in memory. Ports and boot rows are given by their MAC addresses. */
import type { BootMethod, ServedBoot, LeaseRecord } from '../../../model/records';
import type { Store } from '../../../store/store';
import type { DhcpSetup } from '../../../boot/dhcp/service';

export interface DhcpRows {
  /** MAC addresses that a port has. */
  readonly ports: readonly string[];
  /** Those among them whose node is being inspected by the agent. */
  readonly inspected?: readonly string[];
  /** MAC addresses that a boot row names. */
  readonly boots: readonly string[];
  /** How those among them boot that do not boot by the method ipxe. */
  readonly methods?: Readonly<Record<string, BootMethod>>;
}
export interface DhcpStore {
  readonly store: DhcpSetup['store'];
  readonly leases: Map<string, LeaseRecord>;
  /** The numbers of queries for the status of addresses, and for boot rows. */
  readonly queries: { ports: number; boots: number };
}

export function dhcpStore(rows: DhcpRows, known: readonly LeaseRecord[] = []): DhcpStore {
  const leases = new Map(known.map((lease) => [lease.address, lease]));
  const queries = { ports: 0, boots: 0 };
  const store = {
    discoveries: {
      addressStatuses: async (macs: readonly string[]) => {
        queries.ports += 1;
        return rows.ports
          .filter((address) => macs.includes(address))
          .map((mac) => ({ mac, inspectedBy: rows.inspected?.includes(mac) ? 'agent' : null, introspected: false }));
      },
    },
    boots: {
      forMac: async (mac: string) => {
        queries.boots += 1;
        return rows.boots.includes(mac) ? ({ macs: [mac], method: rows.methods?.[mac] ?? 'ipxe' } as unknown as ServedBoot) : undefined;
      },
    },
    leases: {
      list: async () => [...leases.values()],
      ofNode: async () => [],
      put: async (lease: LeaseRecord) => {
        leases.set(lease.address, lease);
      },
      remove: async (address: string) => void leases.delete(address),
    },
    transaction: async <T>(work: (inner: Store) => Promise<T>): Promise<T> => work(store as unknown as Store),
  };
  return { store: store, leases, queries };
}
