/**
 * Deploys a bootable container: podman fetches the image, and the installer in it writes the disk. Before that, what is needed for the config
 * drive is there, so that errors of the request leave the disk unchanged. After a later error the edges of the disk are wiped: what is half
 * written does not boot.
 */
import type { BootcArguments } from '../../wire/oci/bootc-arguments';
import { AgentError } from '../../model/agent/errors';
import { readConfigDrive } from '../../model/agent/write-arguments';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Device } from '../disk/device';
import { requestsFor, type Fetching } from '../disk/download';
import { installBootEntry } from '../disk/efi';
import { type DriveConversion, volumeFor } from '../disk/fat-drive';
import { wipeEdges } from '../disk/image';
import { wipeMetadata } from '../disk/partitions';
import { finishDisk, written } from '../disk/write';
import type { ReportProgress } from '../system/progress';
import { forgetImages, type PodmanHost, preparePodman, pullImage, rootMib, runInstaller } from './podman';

interface InstallOptions {
  readonly given: BootcArguments;
  readonly host: PodmanHost;
  readonly device: Device;
  readonly bootMode: 'bios' | 'uefi';
  readonly fetching: Fetching;
  readonly conversion: Omit<DriveConversion, 'now'>;
  /** Makes the kernel read the partition table again. */
  readonly rescan: () => Promise<void>;
  /** Makes what the installer wrote to partitions readable on the disk. */
  readonly sync: () => Promise<void>;
  readonly newGuid: () => string;
  readonly progress: ReportProgress;
  readonly clock: Clock;
  readonly log: Log;
}

/** Percent of the work after which the image is there, and after which the installer has ended. */
const [FETCHED, INSTALLED] = [40, 95];

/** Throws AgentError with the reason. */
export async function installContainer(options: InstallOptions): Promise<void> {
  const { given, host, device, fetching, conversion, clock, log, progress } = options;
  rootMib(device);
  await preparePodman(host);
  const drive = given.configDrive === null ? null : await readConfigDrive(given.configDrive, requestsFor({}, fetching).fetchText);
  const volume = drive && (await volumeFor(device.sectorSize, drive, { ...conversion, now: clock.now() }));
  progress(1);
  const size = await pullImage(host, given.image, given.auth);
  progress(FETCHED);
  log.info(`The image ${given.image.name} of ${size} bytes is in memory`);
  try {
    // Also in the partitions: an array, a volume group or an encrypted volume that was there must not appear in the new system.
    await written(() => wipeMetadata(device), options);
    await watched(options, size, () => runInstaller(host, given, device));
    await options.sync();
    await written(() => finishDisk(options, volume), options);
    await checkLoader(options);
  } catch (error) {
    await wipeEdges(device).catch((also: unknown) => log.warn(`The edges of ${device.path} cannot be wiped: ${reasonOf(also)}`));
    throw error;
  } finally {
    await forgetImages(host.run).catch((error: unknown) => log.warn(`The images stay in memory: ${reasonOf(error)}`));
  }
  log.info(`Container image oci://${given.image.name} written to device ${device.path}`);
}

/** Milliseconds between two looks at the disk. */
const PAUSE_MS = 5000;
/** The seventh number: sectors of 512 bytes that were written (Documentation/block/stat.rst). */
const sectorsWritten = ({ host: { tree }, device }: InstallOptions): number =>
  Number((tree.text(`/sys/block/${device.path.slice('/dev/'.length)}/stat`) ?? '').split(/\s+/)[6]) || 0;

/** Reports what the installer has written, as a share of the image. */
async function watched(options: InstallOptions, size: number, work: () => Promise<void>): Promise<void> {
  const before = sectorsWritten(options);
  const over = new AbortController();
  const look = async (): Promise<void> => {
    for (;;) {
      await options.clock.sleep(PAUSE_MS, over.signal);
      const done = 512 * (sectorsWritten(options) - before);
      options.progress(FETCHED + (INSTALLED - FETCHED) * Math.min(1, size > 0 ? done / size : 0));
    }
  };
  // It ends by the signal.
  const looking = look().catch(() => undefined);
  try {
    await work();
  } finally {
    over.abort();
    await looking;
  }
}

/** Bytes of the boot code in a master boot record. */
const BOOT_CODE = 440;
/** The firmware must find a boot loader. UEFI gets an entry for it: not every installer can make one in a container. */
async function checkLoader({ bootMode, device, host: { run, tree, temporary }, log }: InstallOptions): Promise<void> {
  if (bootMode === 'uefi') {
    const { path, label } = await installBootEntry(device, run, tree, temporary);
    log.info(`The firmware boots ${path} of ${device.path} as ${label}`);
  } else if ((await device.read(0, BOOT_CODE)).every((byte) => byte === 0)) {
    throw new AgentError('DeploymentError', `The installer left no boot loader on device ${device.path} for a machine in BIOS mode.`);
  }
}
