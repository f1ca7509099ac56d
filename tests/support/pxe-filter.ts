/** The PXE filter with default options, except for those given. */
import { pxeFilter, type PxeFilter } from '../../boot/discovery';

export type FilterOptions = Parameters<typeof pxeFilter>[0];
export const FILTER_DEFAULTS: FilterOptions = {
  'boot.dhcp_unknown_macs': null,
  'auto_discovery.enabled': false,
  'boot.discovery_boot_interface': 'ipxe',
  'pxe_filter.supported_inspect_interfaces': ['agent'],
  'pxe_filter.allow_macs': [],
  'pxe_filter.deny_macs': [],
};
export const filterWith = (given: Partial<FilterOptions> = {}): PxeFilter => pxeFilter({ ...FILTER_DEFAULTS, ...given });
