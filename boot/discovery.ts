/**
 * The PXE filter: decides by MAC address what a machine boots from the network. That is its node's boot record, the ramdisk that reports
 * its inventory, or nothing. DHCP, TFTP and HTTP use it at each request.
 */
import type { Options } from '../config/options';
import { macLists, type MacListOptions, type MacLists } from '../wire/mac-lists';
import type { BootMethod, ServedBoot } from '../model/records';
import type { Store } from '../store/store';

type FilterOptions = Pick<
  Options,
  'boot.dhcp_unknown_macs' | 'boot.discovery_boot_interface' | 'auto_discovery.enabled' | 'pxe_filter.supported_inspect_interfaces'
> &
  MacListOptions;
export interface PxeFilter {
  /** Whether unknown machines are discovered. */
  readonly discovers: boolean;
  /** Inspect interfaces whose nodes boot the reporting ramdisk while they are inspected. */
  readonly inspectInterfaces: readonly string[];
  readonly lists: MacLists;
  /** How machines without a boot record boot the reporting ramdisk. */
  readonly reportsBy: BootMethod;
}
/** Throws an Error for the operator. */
export const pxeFilter = (options: FilterOptions): PxeFilter => ({
  discovers: (options['boot.dhcp_unknown_macs'] ?? (options['auto_discovery.enabled'] ? 'discover' : 'ignore')) === 'discover',
  inspectInterfaces: options['pxe_filter.supported_inspect_interfaces'],
  lists: macLists(options),
  reportsBy: options['boot.discovery_boot_interface'],
});

/** A machine without a boot record may boot the agent, which reports its inventory to the API or to the introspection service. */
type ReportKind = 'discovery' | 'introspection';
/** The boot records of such machines; absent: they boot nothing. Any machine may boot them, so their tokens are not secret. */
export type ReportBoots = Readonly<Record<ReportKind, ServedBoot>>;

interface BootChoice {
  /** A node has this address. */
  readonly known: boolean;
  readonly boots: ServedBoot | ReportKind | undefined;
}
export interface BootChoiceStore {
  readonly discoveries: Pick<Store['discoveries'], 'addressStatuses'>;
  readonly boots: Pick<Store['boots'], 'forMac'>;
}

/** Uses one query for the nodes of all addresses, and one per address for its boot record. */
export async function chooseBoots(
  store: BootChoiceStore,
  filter: PxeFilter,
  macs: readonly string[],
): Promise<ReadonlyMap<string, BootChoice>> {
  const statuses = new Map((await store.discoveries.addressStatuses(macs)).map((addressStatus) => [addressStatus.mac, addressStatus]));
  const choice = async (mac: string): Promise<BootChoice> => {
    const node = statuses.get(mac);
    const row = await store.boots.forMac(mac);
    if (node) {
      const inspected = node.inspectedBy !== null && filter.inspectInterfaces.includes(node.inspectedBy);
      const byService = node.introspected || (inspected && node.inspectedBy === 'discoverd');
      return { known: true, boots: row ?? (byService ? 'introspection' : inspected ? 'discovery' : undefined) };
    }
    // A boot record without addresses belongs to a node without ports, whose machine may be this one. A record with this address is
    // certainly its own.
    const listed = !filter.lists.isDenied(mac) && filter.lists.isAllowed(mac);
    const own = row && (row.macs.length > 0 || listed) ? row : undefined;
    return { known: false, boots: own ?? (filter.discovers && listed ? 'discovery' : undefined) };
  };
  return new Map(await Promise.all(macs.map(async (mac) => [mac, await choice(mac)] as const)));
}
