import { clientArchitecture, cpuOfIpxe } from '../../../wire/dhcp/client-architectures';

it.each([
  ['a BIOS', { vendorClass: 'PXEClient:Arch:00000:UNDI:002001', clientArchitectures: [0] }, { cpu: 'x86_64', firmware: 'bios' }],
  ['a BIOS without the option', { vendorClass: 'PXEClient:Arch:00000:UNDI:002001' }, { cpu: 'x86_64', firmware: 'bios' }],
  ['a client that says nothing', {}, { cpu: 'x86_64', firmware: 'bios' }],
  ['UEFI on x86_64', { clientArchitectures: [7] }, { cpu: 'x86_64', firmware: 'uefi' }],
  ['UEFI on x86_64, older', { clientArchitectures: [9] }, { cpu: 'x86_64', firmware: 'uefi' }],
  ['UEFI on x86_64 by HTTP', { clientArchitectures: [16] }, { cpu: 'x86_64', firmware: 'uefi', http: true }],
  ['HTTP by its vendor class only', { vendorClass: 'HTTPClient:Arch:00019:UNDI:003001' }, { cpu: 'aarch64', firmware: 'uefi', http: true }],
  ['UEFI on arm64', { clientArchitectures: [11] }, { cpu: 'aarch64', firmware: 'uefi' }],
  ['UEFI on arm64 by HTTP', { clientArchitectures: [19] }, { cpu: 'aarch64', firmware: 'uefi', http: true }],
  ['UEFI on riscv64', { clientArchitectures: [0x1b] }, { cpu: 'riscv64', firmware: 'uefi' }],
  ['UEFI on riscv64 by HTTP', { clientArchitectures: [0x1c] }, { cpu: 'riscv64', firmware: 'uefi', http: true }],
  ['a BIOS by HTTP', { clientArchitectures: [0x14] }, { cpu: 'x86_64', firmware: 'bios', http: true }],
  ['a number without a row', { clientArchitectures: [0xffff] }, { firmware: 'uefi' }],
  ['no architecture in the option', { clientArchitectures: [] }, { cpu: 'x86_64', firmware: 'bios' }],
] as const)('tells the architecture of %s', (_name, options, architecture) => {
  expect(clientArchitecture(options)).toEqual(architecture);
});

it.each([
  ['x86_64', 'x86_64'],
  ['i386', 'x86_64'],
  ['arm64', 'aarch64'],
  ['riscv64', 'riscv64'],
  ['', undefined],
  ['constructor', undefined],
])('tells the processor of an iPXE for %s', (buildarch, cpu) => {
  expect(cpuOfIpxe(buildarch)).toBe(cpu);
});
