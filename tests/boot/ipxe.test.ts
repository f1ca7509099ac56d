import { fallbackUrl, ipxeScript, nothingScript, startScript } from '../../boot/ipxe';
import type { ServedBoot } from '../../model/records';

const UUID = '1be26c0b-03f2-4d2e-ae87-c02d7f33c123';
const TOKEN = '0123456789abcdef0123456789abcdef';
const boot = (changes: Partial<ServedBoot>): ServedBoot => ({
  node_uuid: UUID,
  token: TOKEN,
  macs: ['52:54:00:00:00:01'],
  method: 'ipxe',
  purpose: 'ramdisk',
  kernel_args: 'nofb ipa-api-url=http://10.0.0.1:6385',
  files: { kernel: '/k', ramdisk: '/r' },
  ...changes,
});
const lines = (changes: Partial<ServedBoot>): string[] => ipxeScript(boot(changes), 'http://10.0.0.1:8080').split('\n');
const ISCSI = {
  initiator: 'iqn.2017-08.org.example:node',
  volumes: [
    { rootPaths: ['iscsi:192.0.2.5::3260:0:iqn.a', 'iscsi:192.0.2.6::3260:0:iqn.a'], username: 'u', password: '${mac} || shell' },
    { rootPaths: ['iscsi:192.0.2.5::3260:1:iqn.b'] },
  ],
};
const kernelLine = (kernelArgs: string): string | undefined =>
  lines({ kernel_args: kernelArgs }).find((line) => line.startsWith('kernel '));

it('boots kernel and ramdisk, and retries', () => {
  const script = lines({});
  expect(script[0]).toBe('#!ipxe');
  expect(script.at(-1)).toBe('');
  expect(script).toEqual(
    expect.arrayContaining([
      `kernel http://10.0.0.1:8080/boot/${TOKEN}/kernel nofb ipa-api-url=http://10.0.0.1:6385 BOOTIF=\${mac} initrd=ramdisk || goto again`,
      `initrd --name ramdisk http://10.0.0.1:8080/boot/${TOKEN}/ramdisk || goto again`,
      'boot || goto again',
      'reboot',
    ]),
  );
});

it.each(['ramdisk', 'instance'] as const)('sets a timeout for the downloads of purpose "%s"', (purpose) => {
  const script = ipxeScript(boot({ purpose }), 'http://x', { timeoutSeconds: 7 }).split('\n');
  expect(script.filter((line) => line.includes('--timeout')).map((line) => line.split(' ').slice(0, 3).join(' '))).toEqual([
    'kernel --timeout 7000',
    'initrd --timeout 7000',
  ]);
});

it('contains a label for each goto', () => {
  for (const purpose of ['ramdisk', 'instance', 'volume', 'disk'] as const) {
    const script = ipxeScript(boot({ purpose }), 'http://10.0.0.1:8080', { iscsi: ISCSI }).split('\n');
    const labels = script.filter((line) => line.startsWith(':')).map((line) => line.slice(1));
    const wanted = script.flatMap((line) => /goto (\w+)/.exec(line)?.[1] ?? []);
    expect(wanted.filter((label) => !labels.includes(label))).toEqual([]);
  }
});

it('boots an instance in memory from its kernel or ISO image', () => {
  expect(lines({ purpose: 'instance', kernel_args: 'root=/dev/ram0' })).toContain(
    `kernel http://10.0.0.1:8080/boot/${TOKEN}/kernel root=/dev/ram0 initrd=ramdisk || goto again`,
  );
  const script = lines({ purpose: 'instance', files: { boot_iso: 'http://x/y.iso' } });
  expect(script).toContain(`sanboot --no-describe http://10.0.0.1:8080/boot/${TOKEN}/boot_iso || goto again`);
  expect(script.join()).not.toContain('kernel');
});

it('boots from iSCSI volumes, with secrets only in hexadecimal', () => {
  const script = ipxeScript(boot({ purpose: 'volume' }), 'http://10.0.0.1:8080', { iscsi: ISCSI }).split('\n');
  expect(script.slice(script.indexOf('imgfree') + 1, script.indexOf(':again'))).toEqual([
    'echo Bloomery: attaching 2 volumes of ${mac:hexhyp}',
    'sanunhook --drive 0x80 ||',
    'sanunhook --drive 0x81 ||',
    'set initiator-iqn iqn.2017-08.org.example:node',
    'set username:hexraw 75',
    `set password:hexraw ${Buffer.from('${mac} || shell').toString('hex')}`,
    'sanhook --drive 0x80 iscsi:192.0.2.5::3260:0:iqn.a iscsi:192.0.2.6::3260:0:iqn.a || goto again',
    'clear username ||',
    'clear password ||',
    'sanhook --drive 0x81 iscsi:192.0.2.5::3260:1:iqn.b || goto again',
    'set username:hexraw 75',
    `set password:hexraw ${Buffer.from('${mac} || shell').toString('hex')}`,
    'sanboot --no-describe --drive 0x80 || goto again',
  ]);
  expect(script.join()).not.toMatch(/kernel|\/boot\/|--drive 0x80 \|\| exit/);
});

it('boots the disk with a BIOS, and exits to the next boot entry with UEFI', () => {
  const script = lines({ purpose: 'disk' });
  expect(script).toContain('sanboot --no-describe --drive 0x80 || exit 0');
  expect(script.slice(script.indexOf(':efi'))).toEqual([':efi', 'exit 1', '']);
  expect(script.join()).not.toContain('/boot/');
});

it.each([
  ['a line end', 'a=1\nshell', 'a=1 shell'],
  ['a carriage return', 'a=1\r\nshell', 'a=1 shell'],
  ['control characters', 'a=1\0\x0b\x85b', 'a=1 b'],
  ['another command', 'a=1 || shell && reboot ; exit', 'a=1 shell reboot exit'],
  ['a comment', 'a=1 # b #c', 'a=1 b'],
  ['white space', '  a=1\t\tb  ', 'a=1 b'],
  ['special characters within an argument (unchanged)', 'a=x;y||z "b c" url=http://h/?q=1&r=2', 'a=x;y||z "b c" url=http://h/?q=1&r=2'],
])('keeps kernel arguments on their line and out of other commands: %s', (_, given, kept) => {
  expect(kernelLine(given)).toBe(`kernel http://10.0.0.1:8080/boot/${TOKEN}/kernel ${kept} BOOTIF=\${mac} initrd=ramdisk || goto again`);
});

describe('the script that every machine may start with', () => {
  const start = startScript('http://10.0.0.1:8080').split('\n');
  it('says what it waits for, and repeats only the fetch', () => {
    expect(start).toEqual(
      expect.arrayContaining([
        'echo Bloomery: asking http://10.0.0.1:8080 what ${mac:hexhyp} boots',
        'imgfetch --name script http://10.0.0.1:8080/ipxe/${mac:hexhyp}?start&buildarch=${buildarch} || goto again',
        'imgexec script && exit 0 || exit 1',
        'echo Bloomery: that failed (${errno}). Try ${tried} of ${attempts}, the next in ${tried} s',
      ]),
    );
  });
});
describe('the script of a machine that has nothing to boot', () => {
  it('returns to the firmware', () => {
    expect(nothingScript(null).split('\n')).toEqual(['#!ipxe', 'echo Bloomery: nothing to boot for ${mac:hexhyp}', 'exit 1', '']);
  });
  it('loads the fallback script', () => {
    expect(nothingScript('http://10.0.0.1:8080/inspector.ipxe').split('\n')).toEqual(
      expect.arrayContaining([
        'imgfetch --name fallback http://10.0.0.1:8080/inspector.ipxe || goto again',
        'imgexec fallback && exit 0 || exit 1',
      ]),
    );
  });
  it.each([
    ['inspector.ipxe', 'http://10.0.0.1:8080/inspector.ipxe'],
    ['/a/inspector.ipxe', 'http://10.0.0.1:8080/a/inspector.ipxe'],
    ['https://192.0.2.1/x', 'https://192.0.2.1/x'],
  ])('whose option is %s: %s', (option, url) => {
    expect(fallbackUrl(option, 'http://10.0.0.1:8080')).toBe(url);
  });
});
