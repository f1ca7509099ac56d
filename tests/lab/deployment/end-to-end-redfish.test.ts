import { testMachines } from './end-to-end';

testMachines('bloomery-e2e-r', [
  { name: 'bios-redfish', bmc: 'sushy-tools', firmware: 'bios', format: 'qcow2', boot: 'ipxe', fastTrack: true },
  { name: 'bios-cd', bmc: 'sushy-tools', firmware: 'bios', format: 'raw', boot: 'redfish-virtual-media', fastTrack: true },
  { name: 'uefi-cd', bmc: 'sushy-tools', firmware: 'uefi', format: 'qcow2', boot: 'redfish-virtual-media', fastTrack: false },
]);
