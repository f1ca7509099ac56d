/**
 * What a machine boots when it asks the network, by its MAC address: what its node is meant to boot, the ramdisk that reports its
 * inventory, or nothing. This is the PXE filter; DHCP, TFTP and HTTP all go by it, at the moment of each request.
 */
import { macLists, type MacListOptions, type MacLists } from '../model/mac-lists';
import type { BootRecord } from '../model/records';
import type { Store } from '../store/store';

export interface FilterOptions extends MacListOptions {
  readonly 'boot.dhcp_unknown_macs': string | null;
  readonly 'auto_discovery.enabled': boolean;
  readonly 'pxe_filter.supported_inspect_interfaces': readonly string[];
}
export interface PxeFilter {
  /** Whether machines that nobody knows are to be discovered. */
  readonly discovers: boolean;
  /** Inspect interfaces whose nodes may boot whatever the network has while they are inspected. */
  readonly inspectInterfaces: readonly string[];
  readonly lists: MacLists;
}
/** Throws an Error for the operator. */
export const pxeFilter = (options: FilterOptions): PxeFilter => ({
  discovers: (options['boot.dhcp_unknown_macs'] ?? (options['auto_discovery.enabled'] ? 'discover' : 'ignore')) === 'discover',
  inspectInterfaces: options['pxe_filter.supported_inspect_interfaces'],
  lists: macLists(options),
});

/** A machine without a boot of its own boots the agent, which reports its inventory: to the API, or to the introspection service. */
export type ReportKind = 'discovery' | 'introspection';
/** What such machines boot; absent: nothing. */
export type ReportBoots = Readonly<Record<ReportKind, BootRecord>>;

export interface BootChoice {
  /** A node has this address. */
  readonly known: boolean;
  readonly boots: BootRecord | ReportKind | undefined;
}
export interface BootChoiceStore {
  readonly discoveries: Pick<Store['discoveries'], 'standing'>;
  readonly boots: Pick<Store['boots'], 'forMac'>;
}

/** For many machines at once: one query for where they stand, and one each for its boot row. */
export async function chooseBoots(
  store: BootChoiceStore,
  filter: PxeFilter,
  macs: readonly string[],
): Promise<ReadonlyMap<string, BootChoice>> {
  const standing = new Map((await store.discoveries.standing(macs)).map((one) => [one.mac, one]));
  const choice = async (mac: string): Promise<BootChoice> => {
    const node = standing.get(mac);
    const row = await store.boots.forMac(mac);
    if (node) {
      const inspected = node.inspectedBy !== null && filter.inspectInterfaces.includes(node.inspectedBy);
      const byService = node.introspected || (inspected && node.inspectedBy === 'discoverd');
      return { known: true, boots: row ?? (byService ? 'introspection' : inspected ? 'discovery' : undefined) };
    }
    // A row without addresses is that of a node without ports, whose machine may be this one; a row with this address is its own.
    const listed = !filter.lists.isDenied(mac) && filter.lists.isAllowed(mac);
    const own = row && (row.macs.length > 0 || listed) ? row : undefined;
    return { known: false, boots: own ?? (filter.discovers && listed ? 'discovery' : undefined) };
  };
  return new Map(await Promise.all(macs.map(async (mac) => [mac, await choice(mac)] as const)));
}
