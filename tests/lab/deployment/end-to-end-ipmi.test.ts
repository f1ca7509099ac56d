import { testMachines } from './end-to-end';

testMachines('bloomery-e2e-i', [
  { name: 'bios-ipmi', bmc: 'ipmi_sim', firmware: 'bios', format: 'raw', boot: 'ipxe', fastTrack: false, cleans: 'after', client: 'cli' },
  {
    name: 'bios-virtualbmc',
    bmc: 'virtualbmc',
    firmware: 'bios',
    format: 'raw',
    boot: 'ipxe',
    fastTrack: true,
    kexec: true,
    cleans: 'before',
    client: 'requests',
  },
  {
    name: 'uefi-ipmi',
    bmc: 'ipmi_sim',
    firmware: 'uefi',
    format: 'qcow2',
    boot: 'ipxe',
    fastTrack: true,
    kexec: true,
    cleans: 'both',
    client: 'requests',
  },
]);
