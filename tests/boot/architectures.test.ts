import { byArchitecture } from '../../boot/architectures';
import { grubConfig, pxelinuxConfig } from '../../boot/pxe';
import type { ServedBoot } from '../../model/records';

const boot = (files: ServedBoot['files'], changes: Partial<ServedBoot> = {}): ServedBoot => ({
  node_uuid: 'N',
  token: 'T',
  macs: [],
  method: 'ipxe',
  purpose: 'ramdisk',
  kernel_args: 'text',
  files,
  ...changes,
});
const COMMON = { kernel: '/k', ramdisk: '/r' };
const ARM = { 'kernel.aarch64': '/k-arm', 'ramdisk.aarch64': '/r-arm' };
const X86 = { 'kernel.x86_64': '/k-x86', 'ramdisk.x86_64': '/r-x86' };
const X86_NODE = { cpu_arch: 'x86_64' };

describe('iPXE', () => {
  it.each([
    ['one ramdisk for all machines', boot(COMMON), 'arm64', ''],
    ['one ramdisk, and a request without the architecture', boot(COMMON), undefined, ''],
    ['the common ramdisk besides that of another architecture', boot({ ...COMMON, ...ARM }), 'x86_64', ''],
    ['the ramdisk of its architecture', boot({ ...COMMON, ...ARM }), 'arm64', '.aarch64'],
    ['the ramdisk of x86_64, with UEFI', boot({ ...ARM, ...X86 }), 'x86_64', '.x86_64'],
    ['the ramdisk of x86_64, with a BIOS', boot({ ...ARM, ...X86 }), 'i386', '.x86_64'],
    ['the ramdisk of the node', boot(COMMON, X86_NODE), 'i386', ''],
    ['the ramdisk of a node with an architecture that no table has', boot(COMMON, { cpu_arch: 'ppc64le' }), 'x86_64', ''],
    ['the disk, whatever its node says', boot({}, { ...X86_NODE, purpose: 'disk' }), 'arm64', ''],
  ])('boots %s', (_name, record, buildarch, suffix) => {
    const choice = byArchitecture(record, buildarch);
    expect(choice).toEqual({ kind: 'boots', boot: suffix === '' ? record : { ...record, suffix } });
  });

  it('says its architecture first where files depend on it', () => {
    expect(byArchitecture(boot({ ...COMMON, ...ARM }), undefined)).toEqual({ kind: 'asks' });
  });

  it.each([
    [
      'an architecture without a ramdisk',
      boot(ARM),
      'x86_64',
      'there is no ramdisk for the architecture x86_64: [conductor]deploy_kernel_by_arch and deploy_ramdisk_by_arch',
    ],
    [
      'an architecture that no table has',
      boot(ARM),
      'mips|64\necho',
      'there is no ramdisk for the architecture mips?64?echo: [conductor]deploy_kernel_by_arch and deploy_ramdisk_by_arch',
    ],
    ['a machine of another architecture', boot(COMMON, X86_NODE), 'arm64', 'the node N has cpu_arch x86_64, but this machine is aarch64'],
    [
      'the kernel of an instance for another architecture',
      boot(COMMON, { cpu_arch: 'aarch64', purpose: 'instance' }),
      'i386',
      'the node N has cpu_arch aarch64, but this machine is x86_64',
    ],
  ])('refuses %s', (_name, record, buildarch, why) => {
    expect(byArchitecture(record, buildarch)).toEqual({ kind: 'refuses', why });
  });
});

describe('GRUB', () => {
  it('chooses by its own processor, and says that there is no ramdisk', () => {
    const config = grubConfig(boot({ ...ARM, ...X86 }));
    expect(config).toMatch(
      /^if \[ "\$grub_cpu" = arm64 \]; then\nset suffix=\.aarch64\nelif \[ "\$grub_cpu" = x86_64 -o "\$grub_cpu" = i386 \]/,
    );
    expect(config).toMatch(/\nelse\necho "Bloomery: there is no ramdisk for the architecture \$grub_cpu: [^\n]*"\nsleep 30\nexit 1\nfi\n/);
    expect(config).toContain('\nlinux /boot/T/kernel$suffix ');
    expect(config).toContain('\ninitrd /boot/T/ramdisk$suffix\n');
  });
  it('boots the common ramdisk on other processors', () => {
    expect(grubConfig(boot({ ...COMMON, ...ARM }))).toMatch(/^if \[ "\$grub_cpu" = arm64 \]; then\nset suffix=\.aarch64\nfi\nlinux /);
  });
  it('does not boot the ramdisk of a node of another architecture', () => {
    expect(grubConfig(boot(COMMON, { cpu_arch: 'aarch64' }))).toMatch(
      /^if ! \[ "\$grub_cpu" = arm64 \]; then\necho "Bloomery: the node N has cpu_arch aarch64, but this machine is \$grub_cpu"\nsleep 30\nexit 1\nfi\nlinux \/boot\/T\/kernel /,
    );
  });
});

describe('PXELINUX, which runs on x86', () => {
  it.each([
    ['the ramdisk of x86_64', boot({ ...ARM, ...X86 }), /kernel \/boot\/T\/kernel\.x86_64\n {2}initrd \/boot\/T\/ramdisk\.x86_64\n/],
    ['the common ramdisk', boot({ ...COMMON, ...ARM }), /kernel \/boot\/T\/kernel\n/],
    ['nothing without a ramdisk', boot(ARM), /say Bloomery: there is no ramdisk for the architecture x86_64/],
    ['nothing of a node of another architecture', boot(COMMON, { cpu_arch: 'aarch64' }), /say Bloomery: the node N has cpu_arch aarch64/],
  ])('boots %s', (_name, record, text) => {
    expect(pxelinuxConfig(record)).toMatch(text);
  });
});
