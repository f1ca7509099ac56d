import { testMachines } from './end-to-end';

testMachines('bloomery-e2e-r', [
  {
    name: 'bios-redfish',
    bmc: 'sushy-tools',
    firmware: 'bios',
    format: 'qcow2',
    boot: 'ipxe',
    fastTrack: true,
    cleans: 'before',
    client: 'requests',
  },
  {
    name: 'bios-cd',
    bmc: 'sushy-tools',
    firmware: 'bios',
    format: 'raw',
    boot: 'redfish-virtual-media',
    fastTrack: true,
    cleans: 'both',
    client: 'requests',
  },
  {
    name: 'uefi-cd',
    bmc: 'sushy-tools',
    firmware: 'uefi',
    format: 'qcow2',
    boot: 'redfish-virtual-media',
    fastTrack: false,
    cleans: 'after',
    client: 'cli',
  },
]);
