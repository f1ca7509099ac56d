import { clientArchitecture } from '../../../wire/processors/client-architectures';
import { canRun, cpuNamed, cpuOfIpxe, isSameProcessor } from '../../../wire/processors/processors';

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

it.each([
  ['amd64', 'x86_64'],
  ['x86_64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['loongarch64', 'loongarch64'],
  ['i386', undefined],
  ['ppc64le', undefined],
  ['constructor', undefined],
  ['', undefined],
])('the processor named %s is %s', (name, cpu) => {
  expect(cpuNamed(name)).toBe(cpu);
});

it.each([
  ['x86_64', 'amd64', true, true],
  ['amd64', 'x86-64', true, true],
  ['ppc64le', 'ppc64le', true, true],
  ['x86_64', 'i686', false, true],
  ['amd64', 'i386', false, true],
  ['aarch64', 'armv7l', false, true],
  ['i686', 'x86_64', false, false],
  ['aarch64', 'x86_64', false, false],
  ['ppc64le', 'x86_64', false, false],
  ['ppc64le', 'ppc64', false, false],
])('a machine with %s and a system for %s: the same %s, runs it %s', (machine, system, same, runs) => {
  expect([isSameProcessor(machine, system), canRun(machine, system)]).toEqual([same, runs]);
});
