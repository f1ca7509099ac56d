/** The PXE filter, as a table: who boots what. */
import { chooseBoots } from '../../boot/discovery';
import type { ServedBoot } from '../../model/records';
import { filterWith, type FilterOptions } from '../support/pxe-filter';

const MAC = '52:54:00:aa:bb:cc';
const ON: Partial<FilterOptions> = { 'auto_discovery.enabled': true };
type Stands = { readonly inspectedBy: string | null; readonly introspected?: true } | undefined;
const IDLE: Stands = { inspectedBy: null };
const row = (...macs: string[]): ServedBoot => ({
  node_uuid: 'u',
  token: 't',
  macs,
  method: 'ipxe',
  purpose: 'ramdisk',
  kernel_args: '',
  files: {},
});
const OWN = row(MAC);
/** Of a node without ports that is booted by its boot interface. */
const OPEN = row();

it.each<[string, Partial<FilterOptions>, Stands, ServedBoot | undefined, ServedBoot | 'discovery' | 'introspection' | undefined]>([
  ['unknown, discovery off', {}, undefined, undefined, undefined],
  ['unknown, discovery on', ON, undefined, undefined, 'discovery'],
  ['unknown, discovery on for the network alone', { 'boot.dhcp_unknown_macs': 'discover' }, undefined, undefined, 'discovery'],
  ['unknown, off for the network alone', { ...ON, 'boot.dhcp_unknown_macs': 'ignore' }, undefined, undefined, undefined],
  ['unknown and denied', { ...ON, 'pxe_filter.deny_macs': ['52:54:00'] }, undefined, undefined, undefined],
  ['unknown and allowed', { ...ON, 'pxe_filter.allow_macs': ['52:54:00'] }, undefined, undefined, 'discovery'],
  ['unknown and not among the allowed', { ...ON, 'pxe_filter.allow_macs': ['52:54:01'] }, undefined, undefined, undefined],
  ['allowed and denied', { ...ON, 'pxe_filter.allow_macs': ['*'], 'pxe_filter.deny_macs': [MAC] }, undefined, undefined, undefined],
  ['unknown, while a node without ports is inspected', {}, undefined, OPEN, OPEN],
  ['denied, while a node without ports is inspected', { 'pxe_filter.deny_macs': [MAC] }, undefined, OPEN, undefined],
  ['unknown, with its own boot record', { 'pxe_filter.deny_macs': [MAC] }, undefined, OWN, OWN],
  ['known, discovery on', ON, IDLE, undefined, undefined],
  ['known and allowed, discovery on', { ...ON, 'pxe_filter.allow_macs': [MAC] }, IDLE, undefined, undefined],
  ['known, with a boot record', {}, IDLE, OWN, OWN],
  ['known, inspected by its boot interface', ON, { inspectedBy: 'agent' }, OWN, OWN],
  ['known, inspected by the agent without a boot record', {}, { inspectedBy: 'agent' }, undefined, 'discovery'],
  ['known, inspected by its BMC', ON, { inspectedBy: 'redfish' }, undefined, undefined],
  ['known, the introspection service waits for it', {}, { inspectedBy: null, introspected: true }, undefined, 'introspection'],
  [
    'known, the same with the inspect interface discoverd',
    {},
    { inspectedBy: 'discoverd', introspected: true },
    undefined,
    'introspection',
  ],
  ['known, the same with its own boot record', {}, { inspectedBy: null, introspected: true }, OWN, OWN],
  ['known, inspected by an external introspection service', {}, { inspectedBy: 'discoverd' }, undefined, undefined],
  [
    'known, inspected by an external introspection service that is allowed',
    { 'pxe_filter.supported_inspect_interfaces': ['agent', 'discoverd'] },
    { inspectedBy: 'discoverd' },
    undefined,
    'introspection',
  ],
  ['known, denied, inspected', { 'pxe_filter.deny_macs': [MAC] }, { inspectedBy: 'agent' }, undefined, 'discovery'],
])('chooseBoots for a MAC address: %s', async (_, options, stands, boot, expected) => {
  const store = {
    discoveries: { addressStatuses: async () => (stands ? [{ mac: MAC, introspected: false, ...stands }] : []) },
    boots: { forMac: async () => boot },
  };
  expect((await chooseBoots(store, filterWith(options), [MAC])).get(MAC)).toEqual({ known: stands !== undefined, boots: expected });
});
