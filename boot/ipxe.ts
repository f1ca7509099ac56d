/** iPXE scripts (https://ipxe.org/scripting) for boot records. */
import { endsIpxeCommand } from '../wire/kernel-arguments';
import type { BootRecord } from '../model/records';
import type { ChosenBoot } from './architectures';
import type { IscsiBoot, IscsiVolume } from '../wire/iscsi';

/** Attempts until the machine reboots. It then uses DHCP again, which finds a server that moved. */
const ATTEMPTS = 10;
const MAC = '${mac:hexhyp}';
/** In the URL of a script: the client wants a script also if the machine has nothing to boot. */
export const START_QUERY = 'start';
/** In the URL of a script: the architecture that iPXE was built for. */
export const BUILD_QUERY = 'buildarch';
const BUILD = `${BUILD_QUERY}=\${buildarch}`;
/** The URL of the machine's script, for DHCP: iPXE fills in its settings (https://ipxe.org/scripting). @param mac with colons */
export const scriptUrl = (httpUrl: string, mac: string): string => `${httpUrl}/ipxe/${mac.replaceAll(':', '-')}?${BUILD}`;

interface ScriptParts {
  /** Present for purpose `volume`. */
  readonly iscsi?: IscsiBoot | undefined;
  /** For the download of a kernel or a ramdisk. Absent or 0: no limit. */
  readonly timeoutSeconds?: number;
}
/**
 * The script of a machine.
 * @param httpUrl without a trailing slash
 */
export const ipxeScript = (boot: ChosenBoot, httpUrl: string, parts: ScriptParts = {}): string =>
  ['#!ipxe', ...SCRIPTS[boot.purpose](boot, httpUrl, parts), ''].join('\n');

/**
 * Fetches the script of the machine by the address of the interface that iPXE booted from. Only the fetch is repeated: a script that ends
 * with an error means that the firmware is to try its next boot entry.
 */
export const startScript = (httpUrl: string): string =>
  [
    '#!ipxe',
    ...repeated([
      `echo Bloomery: asking ${httpUrl} what ${MAC} boots`,
      `imgfetch --name script ${httpUrl}/ipxe/${MAC}?${START_QUERY}&${BUILD} || goto again`,
      'imgexec script && exit 0 || exit 1',
    ]),
    '',
  ].join('\n');

/** Asks for the script again, with the architecture. */
export const askingScript = (httpUrl: string): string =>
  ['#!ipxe', `chain --replace --autofree ${httpUrl}/ipxe/${MAC}?${START_QUERY}&${BUILD} || exit 1`, ''].join('\n');

/** The script of a machine that must not boot what its address has. The firmware tries its next boot entry. @param why one line */
export const refusingScript = (why: string): string => ['#!ipxe', `echo Bloomery: ${why}`, 'sleep 30', 'exit 1', ''].join('\n');

/** The URL of [pxe]ipxe_fallback_script, which is one itself, or the name of a served file. */
export const fallbackUrl = (script: string, httpUrl: string): string =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(script) ? script : `${httpUrl}/${script.replace(/^\/+/, '')}`;

/**
 * The script of a machine that has nothing to boot.
 * @param fallback the URL of another script; null: the firmware tries its next boot entry
 */
export const nothingScript = (fallback: string | null): string =>
  [
    '#!ipxe',
    `echo Bloomery: nothing to boot for ${MAC}`,
    ...(fallback === null
      ? ['exit 1']
      : repeated([
          `echo Bloomery: loading ${fallback}`,
          `imgfetch --name fallback ${fallback} || goto again`,
          'imgexec fallback && exit 0 || exit 1',
        ])),
    '',
  ].join('\n');

/** Repeats commands that end in `|| goto again`, and says on the console what failed and when it goes on. */
const repeated = (lines: readonly string[]): readonly string[] => [
  `set attempts:int32 ${ATTEMPTS}`,
  'set tried:int32 0',
  ':start',
  'imgfree',
  ...lines,
  ':again',
  'inc tried',
  'iseq ${tried} ${attempts} && goto failed ||',
  'echo Bloomery: that failed (${errno}). Try ${tried} of ${attempts}, the next in ${tried} s',
  'sleep ${tried}',
  'goto start',
  ':failed',
  'echo Bloomery: that failed ${attempts} times. The machine starts over in 30 seconds',
  'sleep 30',
  'reboot',
];

/** UEFI iPXE passes the initrd to the kernel only if both lines name it. */
function kernelAndRamdisk(
  { token, kernel_args: args, suffix = '' }: ChosenBoot,
  httpUrl: string,
  { timeoutSeconds = 0 }: ScriptParts,
  ...more: readonly string[]
): readonly string[] {
  const limit = timeoutSeconds > 0 ? `--timeout ${timeoutSeconds * 1000} ` : '';
  return repeated([
    `echo Bloomery: loading the kernel and the ramdisk of ${MAC} from ${httpUrl}`,
    `kernel ${limit}${httpUrl}/boot/${token}/kernel${suffix} ${[...ipxeArguments(args), ...more, 'initrd=ramdisk'].join(' ')} || goto again`,
    `initrd ${limit}--name ramdisk ${httpUrl}/boot/${token}/ramdisk${suffix} || goto again`,
    'echo Bloomery: starting the kernel',
    'boot || goto again',
  ]);
}

/**
 * Boots the first disk. With BIOS the script does it, because many BIOSes stop after a boot ROM returns. UEFI tries its next boot entry
 * when this one ends with an error.
 */
const disk: readonly string[] = [
  'echo Bloomery: booting the disk',
  'iseq ${platform} efi && goto efi ||',
  'sanboot --no-describe --drive 0x80 || exit 0',
  ':efi',
  'exit 1',
];

/** As hexadecimal digits, so that no character of a secret has a meaning in the script. */
const setting = (name: string, value: string | undefined): string =>
  value === undefined ? `clear ${name} ||` : `set ${name}:hexraw ${Buffer.from(value).toString('hex')}`;
const FIRST_DRIVE = 0x80;
const drive = (index: number): string => `--drive 0x${(FIRST_DRIVE + index).toString(16)}`;
const credentials = ({ username, password }: IscsiVolume): readonly string[] => [
  setting('username', username),
  setting('password', password),
];
/**
 * Attaches the volumes as the first drives of the BIOS or of UEFI, and boots the first. The credentials of that volume are set last, since
 * iPXE passes them to the operating system (iBFT). A drive of an earlier attempt is detached first.
 */
const iscsiDrives = ({ initiator, volumes }: IscsiBoot): readonly string[] =>
  repeated([
    `echo Bloomery: attaching ${volumes.length === 1 ? 'the volume' : `${volumes.length} volumes`} of ${MAC}`,
    ...volumes.map((_, index) => `sanunhook ${drive(index)} ||`),
    ...(initiator === undefined ? [] : [`set initiator-iqn ${initiator}`]),
    ...volumes.flatMap((volume, index) => [...credentials(volume), `sanhook ${drive(index)} ${volume.rootPaths.join(' ')} || goto again`]),
    ...(volumes.length > 1 ? credentials(volumes[0]!) : []),
    `sanboot --no-describe ${drive(0)} || goto again`,
  ]);

/** iPXE replaces `${mac}` with the address of the interface that it booted from. */
const SCRIPTS: Readonly<Record<BootRecord['purpose'], (boot: ChosenBoot, httpUrl: string, parts: ScriptParts) => readonly string[]>> = {
  ramdisk: (boot, httpUrl, parts) => kernelAndRamdisk(boot, httpUrl, parts, 'BOOTIF=${mac}'),
  instance: (boot, httpUrl, parts) =>
    boot.files['boot_iso'] === undefined
      ? kernelAndRamdisk(boot, httpUrl, parts)
      : repeated([
          `echo Bloomery: booting the ISO image of ${MAC} from ${httpUrl}`,
          `sanboot --no-describe ${httpUrl}/boot/${boot.token}/boot_iso || goto again`,
        ]),
  installer: (boot, httpUrl, parts) => kernelAndRamdisk(boot, httpUrl, parts),
  volume: (_boot, _httpUrl, { iscsi }) => (iscsi ? iscsiDrives(iscsi) : ['exit 1']),
  disk: () => disk,
};

/** Splits the arguments. `isKernelCommandLine` admits no words that end the command; boot records of older versions may have some. */
export const ipxeArguments = (text: string): readonly string[] =>
  text.split(/[\s\p{Cc}]+/u).filter((part) => part !== '' && !endsIpxeCommand(part));
