/** A machine of a fleet that really boots: QEMU, with what a simulated machine's BMC and firmware keep between them. */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { basicAuthorization } from '../../model/urls';
import { MANUFACTURER, PRODUCT, type Build, type MachineDescription } from '../hardware/description';
import { startFirmware } from '../hardware/firmware-start';
import type { Hardware } from '../hardware/hardware';
import type { HttpClient } from '../http';
import type { MachineState, SimulatedMachine } from '../machine/machine';
import { createQemuMachine, type FirmwareStart } from './qemu';
import { bridgeNetwork, userNetwork } from './network';
import { HTTP_BOOT_URI, mediumIn, type Medium } from '../hardware/boot-media';
import { timeoutSignal } from '../../wire/timeout-signal';

/** How the machines in QEMU of a fleet are built, and where they are. */
export interface QemuFleet {
  /** The first so many machines of the fleet. */
  readonly count: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
  readonly mode: 'bios' | 'uefi';
  /** tcg works everywhere, kvm only where the host virtualizes. */
  readonly accelerator: 'kvm' | 'tcg';
  /** Absent: each is alone, on QEMU's user-mode network. */
  readonly bridge?: string;
  /** Whom UEFI firmware trusts when it boots by HTTPS (`signatureLists`); absent: nobody. */
  readonly authorities?: Buffer;
}
export const buildOfQemu = ({ memoryMiB, diskGiB }: QemuFleet): Build => ({
  cpus: 1,
  memoryGiB: memoryMiB / 1024,
  nics: 1,
  disks: [['virtio', 1, diskGiB]],
});

export interface QemuMachineSetup {
  readonly description: MachineDescription;
  readonly qemu: QemuFleet;
  readonly hardware: Hardware;
  /** Its disks are kept in it. */
  readonly folder: string;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly onPhase?: (machine: SimulatedMachine) => void;
  /** As `snapshot` answered: one that was on is switched on. */
  readonly state?: MachineState;
  readonly onChange?: () => void;
}

const MAX_MEDIUM = 8 * 2 ** 30;
const MEDIUM_MS = 600_000;

export async function startQemuMachine(setup: QemuMachineSetup): Promise<SimulatedMachine> {
  const { description, hardware, qemu, folder, http, clock } = setup;
  const log = setup.log.child({ machine: description.name });
  const closing = new AbortController();
  let wasOn = false;
  let kept: MachineState | undefined;

  const starts = async (): Promise<FirmwareStart> => {
    startFirmware(hardware, clock.now());
    const httpBootUri = hardware.get(HTTP_BOOT_URI);
    const cdFile = await cd();
    return { ...(cdFile === undefined ? {} : { cdFile }), ...(httpBootUri ? { httpBootUri } : {}) };
  };
  const cd = async (): Promise<string | undefined> => {
    const medium = mediumIn(hardware, 'Cd');
    const path = join(folder, 'cd.iso');
    await rm(path, { force: true });
    if (!medium) return undefined;
    const signal = timeoutSignal(MEDIUM_MS, closing.signal);
    try {
      await fetchMedium(http, medium, path, signal);
      return path;
    } catch (error) {
      // As with a drive whose medium cannot be read.
      log.warn('the medium in the virtual CD drive cannot be had', { error: reasonOf(error) });
      return undefined;
    }
  };
  const inner = await createQemuMachine({
    description,
    vendor: { manufacturer: MANUFACTURER, product: PRODUCT },
    folder,
    accelerator: qemu.accelerator,
    ...(qemu.authorities ? { authorities: qemu.authorities } : {}),
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
    ...(inner.isOn() ? { on: { phase: phase(), booted: inner.boot() } } : {}),
    disks: {},
  });
  const machine: SimulatedMachine = {
    ...inner,
    description,
    hardware,
    phase,
    content: () => undefined,
    behave: () => {
      throw new Error(`${description.name} is in QEMU: how it behaves is up to what runs in it`);
    },
    agentAnswer: async () => undefined,
    snapshot: () => kept ?? snapshot(),
    close: async () => {
      kept = snapshot();
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
      if (size > MAX_MEDIUM) throw new Error('it is too long');
      yield part;
    }
  };
  await pipeline(bounded(), createWriteStream(path, { mode: 0o600 }), { signal });
}
