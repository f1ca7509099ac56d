/** QEMU's command line for a machine and one of its boots. */
import type { BootSetting } from '../hardware/control';
import type { MachineDescription } from '../hardware/description';
import { PLATFORMS, type FirmwareFiles } from './platforms';

export interface UefiFiles extends FirmwareFiles {
  /** Firmware with Secure Boot: only its own code, in the mode SMM, may write the variables. */
  readonly isSecure?: boolean;
}
export interface QemuCommand {
  readonly machine: Pick<MachineDescription, 'name' | 'uuid' | 'serial' | 'architecture' | 'cpus' | 'memoryMiB' | 'macs' | 'disks'>;
  readonly vendor: { readonly manufacturer: string; readonly product: string };
  /** The setting of this boot. The caller has chosen the firmware (`uefi`) by its mode. */
  readonly boot: Pick<BootSetting, 'device'>;
  /** UEFI firmware and this machine's variables; absent: BIOS. */
  readonly uefi?: UefiFiles | undefined;
  /** A file with the certificate authorities that UEFI firmware trusts for HTTPS boot (`signatureLists`); absent: none. */
  readonly authoritiesFile?: string;
  readonly accelerator: 'kvm' | 'tcg';
  /** A -netdev backend for each interface. */
  readonly backends: readonly string[];
  /** A qcow2 file for each disk. */
  readonly diskFiles: readonly string[];
  /** The IP version of UEFI network boot; absent: 4. */
  readonly pxe?: 4 | 6 | undefined;
  /** The image in the machine's CD drive; absent: the machine has no CD drive. */
  readonly cdFile?: string | undefined;
  /** Unix sockets on which this process listens, so that it receives all output from the start. */
  readonly monitorSocket: string;
  readonly serialSocket: string;
  readonly consoleFile: string;
  readonly pidFile: string;
  /** The Unix socket of the machine's VNC server; absent: the machine has no screen. */
  readonly screenSocket?: string | undefined;
}

type Source = 'network' | 'disk' | 'cdrom';
/** The order in which the firmware tries its devices. Setup and safe mode need a user at a screen, so they boot as usual. */
const ORDER: Readonly<Record<BootSetting['device'], readonly Source[]>> = {
  none: ['disk', 'network', 'cdrom'],
  disk: ['disk', 'network', 'cdrom'],
  bios: ['disk', 'network', 'cdrom'],
  safe: ['disk', 'network', 'cdrom'],
  pxe: ['network', 'disk', 'cdrom'],
  'uefi-http': ['network', 'disk', 'cdrom'],
  cdrom: ['cdrom', 'disk', 'network'],
};
/** A comma in an option's value is doubled. */
const value = (text: string): string => text.replaceAll(',', ',,');

export function qemuArguments(command: QemuCommand): readonly string[] {
  const { machine, vendor, uefi, backends, diskFiles, cdFile, screenSocket } = command;
  const order = ORDER[command.boot.device];
  const platform = PLATFORMS[machine.architecture];
  const screenless = screenSocket === undefined && platform.withoutScreen !== undefined ? `,${platform.withoutScreen}` : '';
  const counts: Readonly<Record<Source, number>> = { network: machine.macs.length, disk: machine.disks.length, cdrom: 1 };
  const before = (source: Source): number => order.slice(0, order.indexOf(source)).reduce((sum, item) => sum + counts[item], 0);
  const place = (source: Source, index: number): string => `bootindex=${before(source) + index + 1}`;
  const smbios = { manufacturer: vendor.manufacturer, product: vendor.product, serial: machine.serial, uuid: machine.uuid };
  // Disables PXE over the other IP version, which would wait a minute for an answer. HTTP boot needs PXE over its own version disabled
  // too, so that the firmware uses HTTP.
  const noPxe = (version: string): readonly string[] => ['-fw_cfg', `name=opt/org.tianocore/IPv${version}PXESupport,string=n`];
  return [
    '-name',
    value(machine.name),
    '-machine',
    `${platform.machine},accel=${command.accelerator}${uefi?.isSecure ? ',smm=on' : ''}${screenless}`,
    '-cpu',
    platform.cpu,
    '-smp',
    String(machine.cpus),
    '-m',
    String(machine.memoryMiB),
    '-uuid',
    machine.uuid,
    '-nodefaults',
    '-display',
    'none',
    ...(screenSocket === undefined ? ['-vga', 'none'] : [...platform.screen, '-vnc', `unix:${value(screenSocket)}`]),
    '-no-user-config',
    '-rtc',
    'base=utc',
    // When the guest powers off or restarts, QEMU pauses until the simulator kills it (`onEvent` in qemu.ts).
    '-action',
    'reboot=shutdown,shutdown=pause',
    '-pidfile',
    command.pidFile,
    '-smbios',
    `type=1,${Object.entries(smbios)
      .map(([name, text]) => `${name}=${value(text)}`)
      .join(',')}`,
    '-object',
    'rng-random,id=rng,filename=/dev/urandom',
    '-device',
    'virtio-rng-pci,rng=rng',
    '-chardev',
    `socket,id=serial,path=${value(command.serialSocket)},logfile=${value(command.consoleFile)}`,
    '-serial',
    'chardev:serial',
    '-qmp',
    `unix:${value(command.monitorSocket)}`,
    ...(uefi
      ? [
          ...noPxe(command.pxe === 6 ? '4' : '6'),
          ...(command.boot.device === 'uefi-http' ? noPxe(command.pxe === 6 ? '6' : '4') : []),
          ...(command.authoritiesFile === undefined
            ? []
            : ['-fw_cfg', `name=etc/edk2/https/cacerts,file=${value(command.authoritiesFile)}`]),
          ...(uefi.isSecure ? ['-global', 'driver=cfi.pflash01,property=secure,value=on'] : []),
          '-drive',
          `if=pflash,format=raw,unit=0,readonly=on,file=${value(uefi.code)}`,
          '-drive',
          `if=pflash,format=raw,unit=1,file=${value(uefi.variables)}`,
        ]
      : []),
    // UEFI: without the option ROM, so that the firmware's own PXE and HTTP boot run; BIOS: QEMU's iPXE ROM.
    ...machine.macs.flatMap((mac, index) => [
      '-netdev',
      `${backends[index]!},id=n${index}`,
      '-device',
      `virtio-net-pci,netdev=n${index},mac=${mac},${place('network', index)}${uefi ? ',romfile=' : ''}`,
    ]),
    ...machine.disks.flatMap(({ serial }, index) => [
      '-drive',
      `if=none,id=d${index},format=qcow2,cache=unsafe,discard=unmap,file=${value(diskFiles[index]!)}`,
      '-device',
      `virtio-blk-pci,drive=d${index},serial=${value(serial)},${place('disk', index)}`,
    ]),
    ...(cdFile === undefined
      ? []
      : [
          '-drive',
          `if=none,id=cd,format=raw,media=cdrom,readonly=on,file=${value(cdFile)}`,
          ...platform.cd.with(-1, `${platform.cd.at(-1)!},${place('cdrom', 0)}`),
        ]),
  ];
}
