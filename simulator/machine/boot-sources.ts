/** The sources from which a simulated machine's firmware tries to boot, and what it finds there. */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { HTTP_BOOT_URI, mediumIn } from '../hardware/boot-media';
import type { BootSetting } from '../hardware/control';
import type { MachineDescription } from '../hardware/description';
import type { Hardware } from '../hardware/hardware';
import type { HttpClient } from '../http';
import type { Behaviour } from './behaviour';
import { readBootImage } from './boot-image';
import { readScript, type BootScript } from './boot-script';

/** The parts of a machine that its firmware uses. */
export interface FirmwareHost {
  readonly description: MachineDescription;
  readonly hardware: Hardware;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly log: Log;
  /** URL of the HTTP boot service, without a trailing slash; undefined: nothing boots from the network. */
  readonly bootUrl: string | undefined;
  readonly behaviour: Behaviour;
  /** The disks with content. */
  readonly disks: ReadonlyMap<string, unknown>;
}

/** The number of times that the firmware asks the boot service, and that it retries a boot script's files. */
const TRIES = 10;
type Source = 'network' | 'disk' | 'cdrom' | 'url';
/** Boot setting → sources in the order in which the firmware tries them. With any other setting it waits for a user at the screen. */
const ORDER: Readonly<Partial<Record<BootSetting['device'], readonly Source[]>>> = {
  none: ['disk', 'network'],
  disk: ['disk', 'network'],
  pxe: ['network', 'disk'],
  cdrom: ['cdrom', 'disk'],
  'uefi-http': ['url', 'network', 'disk'],
};

/** `system`: an installed or live system that the simulator does not run; undefined: no source has anything to boot. */
export async function findBootTarget(
  host: FirmwareHost,
  device: BootSetting['device'],
  signal: AbortSignal,
): Promise<BootScript | 'system' | undefined> {
  for (const source of ORDER[device] ?? []) {
    const target = await SOURCES[source](host, signal);
    if (target) return target;
  }
  return undefined;
}
const SOURCES: Readonly<Record<Source, (host: FirmwareHost, signal: AbortSignal) => Promise<BootScript | 'system' | undefined>>> = {
  disk: async ({ disks }) => (disks.size > 0 ? 'system' : undefined),
  network: networkBoot,
  cdrom: async ({ hardware, http, log }, signal) => {
    const medium = mediumIn(hardware, 'Cd');
    return medium && readBootImage(http, medium, signal, log);
  },
  url: async ({ hardware, http, log }, signal) => {
    const url = hardware.get(HTTP_BOOT_URI);
    return url ? readBootImage(http, { url }, signal, log) : undefined;
  },
};

/** iPXE's name of the architecture (`${buildarch}`). A script for another one boots nothing here. */
const BUILDS = { x86_64: 'x86_64', aarch64: 'arm64' } as const satisfies Record<MachineDescription['architecture'], string>;

/** Sends a request for each interface, as firmware and iPXE do. Undefined: there is no script, or it boots the disk. */
async function networkBoot(host: FirmwareHost, signal: AbortSignal): Promise<BootScript | undefined> {
  const { bootUrl, description, http, clock, log } = host;
  if (bootUrl === undefined) return undefined;
  const build = BUILDS[description.architecture];
  for (let tries = 0; tries < TRIES; tries++) {
    let answered = 0;
    for (const mac of description.macs) {
      const answer = await http
        .request(`${bootUrl}/ipxe/${mac.replaceAll(':', '-')}?buildarch=${build}`, { signal })
        .catch((error: unknown) => {
          log.debug('the boot service does not answer', { error: reasonOf(error) });
        });
      signal.throwIfAborted();
      if (answer?.status === 200) return readScript(await answer.text(), mac);
      await answer?.drain();
      if (answer && answer.status < 500) answered++;
    }
    if (answered === description.macs.length) return undefined;
    await clock.sleep(host.behaviour.retryMs, signal);
  }
  return undefined;
}

/** Resolves when the boot service has all files; false: it does not have them after all tries. */
export async function waitForFiles(host: FirmwareHost, files: readonly string[], signal: AbortSignal): Promise<boolean> {
  for (let tries = 0; ; tries++) {
    const available = await Promise.all(files.map((url) => isAvailable(host.http, url, signal)));
    if (available.every(Boolean)) return true;
    host.log.warn('the kernel or the ramdisk cannot be loaded', { files });
    if (tries === TRIES) return false;
    await host.clock.sleep(host.behaviour.retryMs, signal);
  }
}
async function isAvailable(http: HttpClient, url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const answer = await http.request(url, { method: 'HEAD', signal });
    await answer.drain();
    return answer.status === 200;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
