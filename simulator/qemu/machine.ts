/** A machine of a fleet that really boots, in QEMU, with the BMC state of a simulated machine. */
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { basicAuthorization } from '../../model/urls';
import type { Build, MachineDescription } from '../hardware/description';
import { startFirmware } from '../hardware/firmware-start';
import type { Hardware } from '../hardware/hardware';
import { SECURE_BOOT } from '../hardware/secure-boot';
import type { HttpClient } from '../http';
import type { MachineState, SimulatedMachine } from '../machine/machine';
import { createQemuMachine, type FirmwareStart } from './qemu';
import { bridgeNetwork, userNetwork } from './network';
import { HTTP_BOOT_URI, mediumIn, type Medium } from '../hardware/boot-media';
import { timeoutSignal } from '../../wire/timeout-signal';

/** The machines of a fleet that run in QEMU. */
export interface QemuFleet {
  /** The first machines of the fleet, up to this number, run in QEMU. */
  readonly count: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
  readonly mode: 'bios' | 'uefi';
  /** tcg works on every host, kvm only on hosts with virtualization. */
  readonly accelerator: 'kvm' | 'tcg';
  /** Absent: each machine has a user-mode network of its own. */
  readonly bridge?: string | undefined;
  /** The folder of the Unix sockets on which their screens are, by VNC; absent: they have no screens. */
  readonly screens?: string | undefined;
  /** The authorities that UEFI firmware trusts for HTTPS boot (`signatureLists`); absent: none. */
  readonly authorities?: Buffer | undefined;
}
/** The socket of a machine's screen. */
export const screenSocketOf = ({ screens }: Pick<QemuFleet, 'screens'>, name: string): string | undefined =>
  screens === undefined ? undefined : join(screens, `${name}.sock`);
export const buildOfQemu = ({ memoryMiB, diskGiB }: QemuFleet): Build => ({
  cpus: 1,
  memoryGiB: memoryMiB / 1024,
  nics: 1,
  disks: [['virtio', 1, diskGiB]],
});

interface QemuMachineSetup {
  readonly description: MachineDescription;
  readonly qemu: QemuFleet;
  readonly hardware: Hardware;
  /** The folder for the machine's disks. */
  readonly folder: string;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly onPhase?: ((machine: SimulatedMachine) => void) | undefined;
  /** The stored result of `snapshot`. A machine that was on is switched on again. */
  readonly state?: MachineState | undefined;
  readonly onChange?: () => void;
}

const MAX_MEDIUM_BYTES = 8 * 2 ** 30;
const MEDIUM_TIMEOUT_MS = 600_000;

export async function startQemuMachine(setup: QemuMachineSetup): Promise<SimulatedMachine> {
  const { description, hardware, qemu, folder, http, clock } = setup;
  const log = setup.log.child({ machine: description.name });
  const closing = new AbortController();
  let wasOn = false;
  let final: MachineState | undefined;

  const starts = async (): Promise<FirmwareStart> => {
    startFirmware(hardware, clock.now());
    const httpBootUri = hardware.get(HTTP_BOOT_URI);
    const cdFile = await cd();
    return { cdFile, httpBootUri: httpBootUri || undefined, secureBoot: hardware.get(SECURE_BOOT).inForce ?? false };
  };
  const cd = async (): Promise<string | undefined> => {
    const medium = mediumIn(hardware, 'Cd');
    const path = join(folder, 'cd.iso');
    await rm(path, { force: true });
    if (!medium) return undefined;
    const signal = timeoutSignal(MEDIUM_TIMEOUT_MS, closing.signal);
    try {
      await fetchMedium(http, medium, path, signal);
      return path;
    } catch (error) {
      // The machine starts without a CD drive.
      log.warn('the image in the virtual CD drive cannot be downloaded', { error: reasonOf(error) });
      return undefined;
    }
  };
  if (qemu.screens !== undefined) await mkdir(qemu.screens, { recursive: true, mode: 0o700 });
  const inner = await createQemuMachine({
    description,
    vendor: { manufacturer: description.manufacturer, product: description.product },
    folder,
    accelerator: qemu.accelerator,
    screenSocket: screenSocketOf(qemu, description.name),
    authorities: qemu.authorities,
    network: async () => (qemu.bridge === undefined ? userNetwork(description.macs) : bridgeNetwork(description.macs, qemu.bridge)),
    starts,
    log,
    boot: setup.state?.boot ?? { device: 'none', persistent: false, mode: description.mode },
    onChange: () => {
      if (inner.isOn() !== wasOn) {
        wasOn = inner.isOn();
        setup.onPhase?.(machine);
      }
      setup.onChange?.();
    },
  });
  const phase = (): 'qemu' | 'off' => (inner.isOn() ? 'qemu' : 'off');
  const snapshot = (): MachineState => ({
    boot: inner.boot(),
    on: inner.isOn() ? { phase: phase(), booted: inner.boot() } : undefined,
    disks: {},
  });
  const machine: SimulatedMachine = {
    ...inner,
    description,
    hardware,
    phase,
    content: () => undefined,
    behave: () => {
      throw new Error(`${description.name} runs in QEMU, and has no simulated behaviour`);
    },
    startRamdisk: () => {
      throw new Error('a guest of QEMU starts its kernels itself');
    },
    agentAnswer: async () => undefined,
    snapshot: () => final ?? snapshot(),
    close: async () => {
      final = snapshot();
      closing.abort();
      await inner.close();
    },
  };
  if (setup.state?.on) await machine.act('on');
  return machine;
}

async function fetchMedium(http: HttpClient, { url, username, password = '' }: Medium, path: string, signal: AbortSignal): Promise<void> {
  const answer = await http.request(url, {
    headers: basicAuthorization(username === undefined ? undefined : { username, password }),
    signal,
  });
  if (answer.status !== 200) {
    await answer.drain();
    throw new Error(`the server answers ${answer.status}`);
  }
  const bounded = async function* (): AsyncIterable<Buffer> {
    let size = 0;
    for await (const part of answer.body) {
      size += part.length;
      if (size > MAX_MEDIUM_BYTES) throw new Error('the image is too large');
      yield part;
    }
  };
  await pipeline(bounded(), createWriteStream(path, { mode: 0o600 }), { signal });
}
