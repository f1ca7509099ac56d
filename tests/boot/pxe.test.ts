import { grubConfig, pxelinuxConfig, pxeName } from '../../boot/pxe';
import type { ServedBoot } from '../../model/records';

const UUID = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
const TOKEN = '0123456789abcdef0123456789abcdef';
const boot = (changes: Partial<ServedBoot> = {}): ServedBoot => ({
  node_uuid: UUID,
  token: TOKEN,
  macs: ['52:54:00:00:00:01'],
  method: 'pxe',
  purpose: 'ramdisk',
  kernel_args: 'nofb ipa-api-url=http://10.0.0.1:6385',
  files: { kernel: '/k', ramdisk: '/r' },
  ...changes,
});

it.each([
  ['pxelinux.cfg/01-52-54-00-AA-bb-01', { kind: 'pxelinux', mac: '52:54:00:aa:bb:01' }],
  ['/pxelinux.cfg/01-52-54-00-aa-bb-01', { kind: 'pxelinux', mac: '52:54:00:aa:bb:01' }],
  ['pxelinux.cfg/06-52-54-00-aa-bb-01', undefined],
  ['pxelinux.cfg/01-52-54-00-aa-bb-01-02', undefined],
  ['pxelinux.cfg/default', undefined],
  ['grub.cfg-01-52-54-00-aa-bb-01', { kind: 'grub', mac: '52:54:00:aa:bb:01' }],
  ['/grub/grub.cfg-01-52-54-00-aa-bb-01', { kind: 'grub', mac: '52:54:00:aa:bb:01' }],
  ['/52:54:00:aa:bb:01.conf', { kind: 'grub', mac: '52:54:00:aa:bb:01' }],
  ['/grub/grub.cfg', { kind: 'grub start' }],
  ['grub/x86_64-efi/grub.cfg', { kind: 'grub start' }],
  ['../grub.cfg', undefined],
  [`/boot/${TOKEN}/kernel`, { kind: 'file', token: TOKEN, name: 'kernel' }],
  [`boot/${TOKEN.toUpperCase()}/ramdisk`, { kind: 'file', token: TOKEN, name: 'ramdisk' }],
  [`boot/${TOKEN}/a/b`, undefined],
])('pxeName(%s) is %j', (asked, name) => {
  expect(pxeName(asked)).toEqual(name);
});

describe('pxelinuxConfig', () => {
  it('boots the agent with ipappend, so that it knows the interface', () => {
    expect(pxelinuxConfig(boot())).toBe(
      `default boot
prompt 0
label boot
  kernel /boot/${TOKEN}/kernel
  initrd /boot/${TOKEN}/ramdisk
  append nofb ipa-api-url=http://10.0.0.1:6385
  ipappend 2
`,
    );
  });
  it('boots an instance in memory, or the disk', () => {
    expect(pxelinuxConfig(boot({ purpose: 'instance' }))).not.toContain('ipappend');
    expect(pxelinuxConfig(boot({ purpose: 'disk' }))).toBe('default boot\nprompt 0\nlabel boot\n  localboot 0\n');
  });
  it('keeps kernel arguments on their line', () => {
    const text = pxelinuxConfig(boot({ kernel_args: ' a=1\n  kernel /evil\r\0 b="x  y"' }));
    expect(text.split('\n').filter((line) => /^ *kernel/.test(line))).toHaveLength(1);
    expect(text).toContain('  append a=1 kernel /evil b="x  y"\n');
  });
});

describe('grubConfig', () => {
  it('boots the agent with BOOTIF, and reboots after a failure', () => {
    expect(grubConfig(boot())).toBe(
      `linux /boot/${TOKEN}/kernel 'nofb' 'ipa-api-url=http://10.0.0.1:6385' "BOOTIF=$net_default_mac"
initrd /boot/${TOKEN}/ramdisk
boot
echo "Could not boot, the machine starts over in 30 seconds"
sleep 30
reboot
`,
    );
  });
  it('boots an instance in memory, or the disk', () => {
    expect(grubConfig(boot({ purpose: 'instance' }))).not.toContain('BOOTIF');
    expect(grubConfig(boot({ purpose: 'disk' }))).toBe('exit 1\n');
  });
  it.each([
    ['a second command', 'a=1; reboot', "'a=1;' 'reboot'"],
    ['a variable', 'a=$b', "'a=$b'"],
    ['a quote', "a='b", "'a='\\''b'"],
    ['spaces within quotes', 'a="b  c" d', "'a=b  c' 'd'"],
    ['a line end', 'a=1\nreboot', "'a=1' 'reboot'"],
  ])('quotes %s in kernel arguments', (_, args, shown) => {
    expect(grubConfig(boot({ kernel_args: args })).split('\n')[0]).toBe(`linux /boot/${TOKEN}/kernel ${shown} "BOOTIF=$net_default_mac"`);
  });
});
