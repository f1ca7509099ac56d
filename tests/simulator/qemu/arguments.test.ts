import { qemuArguments, type QemuCommand } from '../../../simulator/qemu/arguments';
import { describeMachine } from '../../../simulator/hardware/description';

const machine = describeMachine(7, '127.0.0.1', { cpus: 2, memoryGiB: 0.5, nics: 2, disks: [['virtio', 2, 10]] });
const command: QemuCommand = {
  machine,
  vendor: { manufacturer: 'Smith, Sons', product: 'Anvil' },
  boot: { device: 'none' },
  accelerator: 'tcg',
  backends: ['user', 'user'],
  diskFiles: ['/state/a,b/vda.qcow2', '/state/a,b/vdb.qcow2'],
  monitorSocket: '/run/monitor',
  serialSocket: '/run/serial',
  consoleFile: '/state/console.log',
  pidFile: '/state/qemu.pid',
};
const uefi = { code: '/ovmf/code.fd', variables: '/state/vars.fd' };
/** The devices in the boot order, by bootindex. */
const order = (words: readonly string[]): readonly string[] =>
  words
    .map((word) => /(?:netdev|drive)=(\w+),.*bootindex=(\d+)/.exec(word))
    .filter((found) => found !== null)
    .sort((a, b) => Number(a[2]) - Number(b[2]))
    .map((found) => found[1]!);

it.each([
  ['none', ['d0', 'd1', 'n0', 'n1', 'cd']],
  ['disk', ['d0', 'd1', 'n0', 'n1', 'cd']],
  ['pxe', ['n0', 'n1', 'd0', 'd1', 'cd']],
  ['uefi-http', ['n0', 'n1', 'd0', 'd1', 'cd']],
  ['cdrom', ['cd', 'd0', 'd1', 'n0', 'n1']],
] as const)('qemuArguments sets the boot order for %s', (device, expected) => {
  const words = qemuArguments({ ...command, boot: { device }, cdFile: '/state/cd.iso' });
  expect(order(words)).toEqual(expected);
  expect(order(qemuArguments({ ...command, boot: { device } }))).toEqual(expected.filter((candidate) => candidate !== 'cd'));
});

it('qemuArguments describes the machine, and escapes commas in values', () => {
  const words = qemuArguments(command);
  const after = (word: string): string => words[words.indexOf(word) + 1]!;
  expect([after('-smp'), after('-m'), after('-uuid')]).toEqual(['2', '512', machine.uuid]);
  expect(after('-smbios')).toBe(`type=1,manufacturer=Smith,, Sons,product=Anvil,serial=SIM000007,uuid=${machine.uuid}`);
  expect(words.join(' ')).toContain('file=/state/a,,b/vdb.qcow2');
  expect(words.join(' ')).toMatch(/mac=52:54:00:b1:00:07.*mac=52:54:01:b1:00:07/);
});

it.each([
  ['BIOS', {}, [], ['pflash', 'opt/org.tianocore', 'romfile=']],
  ['UEFI', { uefi }, ['IPv6PXESupport', 'file=/ovmf/code.fd', 'file=/state/vars.fd', 'romfile='], ['IPv4PXESupport']],
  ['UEFI with CA certificates', { uefi, authoritiesFile: '/a,b' }, ['-fw_cfg name=etc/edk2/https/cacerts,file=/a,,b'], []],
  ['BIOS without CA certificates', { authoritiesFile: '/a' }, [], ['cacerts']],
  ['a screen', { screenSocket: '/s/a,b.sock' }, ['-vga std -vnc unix:/s/a,,b.sock'], ['graphics=off', '-vga none']],
  ['no screen', {}, ['-vga none', 'graphics=off'], ['-vnc']],
  ['UEFI HTTP boot', { uefi, boot: { device: 'uefi-http' } }, ['IPv4PXESupport', 'IPv6PXESupport'], []],
] as const)('qemuArguments sets the firmware: %s', (_, changes, has, hasNot) => {
  const text = qemuArguments({ ...command, ...changes }).join(' ');
  for (const part of has) expect(text).toContain(part);
  for (const part of hasNot) expect(text).not.toContain(part);
});
