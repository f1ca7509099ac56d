/**
 * A simulated machine behind a BMC: its firmware boots from the network or from a disk, over the real boot service; the kernel that it
 * "runs" is the agent. Switched off, everything in it ends at once.
 */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { createAgent, type AgentAnswer, type AgentMemory, type SimulatedAgent } from './agent';
import { WELL_BEHAVED, type Behaviour } from './behaviour';
import { readScript, type BootScript } from './boot-script';
import type { BootSetting, MachineControl } from '../hardware/control';
import { inventoryOf, type MachineDescription } from '../hardware/description';
import { startFirmware } from '../hardware/firmware-start';
import { newHardware, type Hardware } from '../hardware/hardware';
import type { HttpClient } from '../http';
import type { DiskContent } from './image';
import { readBootImage } from './boot-image';
import { HTTP_BOOT_URI, mediumIn } from '../hardware/boot-media';
import { visibleDisks } from '../hardware/volumes';
import { createSerial } from '../hardware/serial';

/** What it does: `halted` is on, and finds nothing to boot; `system` runs what was written to its disk; `qemu` is on, and what it does it knows. */
export type Phase = 'off' | 'firmware' | 'ramdisk' | 'agent' | 'system' | 'halted' | 'qemu';
export interface SimulatedMachine extends MachineControl {
  readonly description: MachineDescription;
  /** What its BMC and its firmware share. */
  readonly hardware: Hardware;
  phase(): Phase;
  /** What is on a disk (/dev/sda); undefined: nothing. */
  content(disk: string): DiskContent | undefined;
  /** From then on. */
  behave(changes: Partial<Behaviour>): void;
  /** A request to the agent in it; undefined: there is none, as when nothing listens on its address. */
  agentAnswer(method: string, path: string, body: unknown): Promise<AgentAnswer | undefined>;
  /** What is to be kept of it, as JSON. */
  snapshot(): MachineState;
  /** Ends everything in it and waits for that. What `snapshot` answers stays as it was. */
  close(): Promise<void>;
}
/** What outlives the simulator: the machine goes on where it was. */
export interface MachineState {
  readonly boot: BootSetting;
  /** Absent: it is off. */
  readonly on?: { readonly phase: Phase; readonly booted: BootSetting; readonly agent?: RunningAgent };
  readonly disks: Readonly<Record<string, Omit<DiskContent, 'configDrive'> & { readonly configDrive?: string }>>;
}
/** With what its agent was started, and what that has learned. */
interface RunningAgent {
  readonly mode: 'uefi' | 'bios';
  readonly parameters: Readonly<Record<string, string>>;
  readonly memory?: AgentMemory;
}
export interface MachineSetup {
  readonly description: MachineDescription;
  /** URL of the HTTP boot service; no trailing slash. Absent: nothing boots from the network. */
  readonly bootUrl: string | undefined;
  /** Where `agentAnswer` is reached. */
  readonly callbackUrl: string;
  /** PEM, of who answers there. */
  readonly certificate: string;
  /** As it was before; absent: as it left the factory. */
  readonly hardware?: Hardware;
  readonly behaviour?: Partial<Behaviour>;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  readonly onPhase?: (machine: SimulatedMachine) => void;
  /** As `snapshot` answered. */
  readonly state?: MachineState;
  /** Called when `snapshot` has something new. */
  readonly onChange?: () => void;
}

/** Tries of the firmware, and of a boot script. */
const TRIES = 10;
const NO_OVERRIDE = { device: 'none', persistent: false } as const;
/** Boot setting → where the firmware looks, in order. What is not here waits for somebody at its screen. */
const ORDER: Readonly<Partial<Record<BootSetting['device'], readonly ('network' | 'disk' | 'cdrom' | 'url')[]>>> = {
  none: ['disk', 'network'],
  disk: ['disk', 'network'],
  pxe: ['network', 'disk'],
  cdrom: ['cdrom', 'disk'],
  'uefi-http': ['url', 'network', 'disk'],
};

export function createMachine(setup: MachineSetup): SimulatedMachine {
  const { description, http, clock, bootUrl } = setup;
  const log = setup.log.child({ machine: description.name });
  const serial = createSerial(description.name);
  const hardware = setup.hardware ?? newHardware();
  const contents = new Map<string, DiskContent>();
  let behaviour: Behaviour = { ...WELL_BEHAVED, ...setup.behaviour };
  let setting: BootSetting = setup.state?.boot ?? { ...NO_OVERRIDE, mode: description.mode };
  let phase: Phase = 'off';
  /** What it was switched on with. */
  let booted = setting;
  let agent: SimulatedAgent | undefined;
  let started: RunningAgent | undefined;
  let power: AbortController | undefined;
  /** Everything that runs in it, from each power on; a rejection is its end by power off. */
  const running = new Set<Promise<void>>();

  let closed = false;
  const changed = (): void => {
    if (!closed) setup.onChange?.();
  };
  const enter = (next: Phase): void => {
    phase = next;
    log.debug('machine', { phase });
    serial.log(`${description.name}: ${phase}`);
    setup.onPhase?.(machine);
    changed();
  };

  const off = (): void => {
    if (!power) return;
    power.abort(new Error('the machine is off'));
    power = undefined;
    agent = undefined;
    started = undefined;
    enter('off');
  };
  const on = (): void => {
    if (power) return;
    power = new AbortController();
    const { signal } = power;
    const used = setting;
    startFirmware(hardware, clock.now());
    // A setting for one boot is used up by it (DSP0266 BootSourceOverrideEnabled Once; IPMI 2.0 §28.13 parameter 5).
    if (!used.persistent) setting = { ...NO_OVERRIDE, mode: used.mode };
    booted = used;
    enter('firmware');
    track(boot(used, signal), signal);
  };
  const track = (work: Promise<void>, signal: AbortSignal): void => {
    const tracked = work
      .catch((error: unknown) => {
        if (!signal.aborted) log.error('the simulated machine failed', { error: reasonOf(error) });
      })
      .finally(() => running.delete(tracked));
    running.add(tracked);
  };

  const boot = async (used: BootSetting, signal: AbortSignal): Promise<void> => {
    await clock.sleep(behaviour.firmwareMs, signal);
    for (const source of ORDER[used.device] ?? []) {
      if (source === 'disk' && contents.size > 0) {
        enter('system');
        return;
      }
      if (source === 'disk') continue;
      const script = source === 'network' ? await networkBoot(signal) : await imageBoot(source, signal);
      if (script === 'system') {
        enter('system');
        return;
      }
      if (script) return ramdisk(script, used.mode ?? description.mode, signal);
    }
    enter('halted');
  };

  /** Asks on each interface, as firmware and iPXE do; undefined: nothing is there for this machine, or it is to use its disk. */
  const networkBoot = async (signal: AbortSignal): Promise<BootScript | undefined> => {
    if (bootUrl === undefined) return undefined;
    for (let tries = 0; tries < TRIES; tries++) {
      let answered = 0;
      for (const mac of description.macs) {
        const answer = await http.ask(`${bootUrl}/ipxe/${mac.replaceAll(':', '-')}`, { signal }).catch((error: unknown) => {
          log.debug('the boot service does not answer', { error: reasonOf(error) });
        });
        signal.throwIfAborted();
        if (answer?.status === 200) return readScript(await answer.text(), mac);
        await answer?.drain();
        if (answer && answer.status < 500) answered++;
      }
      if (answered === description.macs.length) return undefined;
      await clock.sleep(behaviour.retryMs, signal);
    }
    return undefined;
  };

  /** From the image in the virtual drive, or at the URL that the firmware was told. */
  const imageBoot = async (source: 'cdrom' | 'url', signal: AbortSignal): Promise<BootScript | 'system' | undefined> => {
    const uri = hardware.get(HTTP_BOOT_URI);
    const medium = source === 'cdrom' ? mediumIn(hardware, 'Cd') : uri ? { url: uri } : undefined;
    return medium && readBootImage(http, medium, signal, log);
  };

  const ramdisk = async (script: BootScript, mode: 'uefi' | 'bios', signal: AbortSignal): Promise<void> => {
    enter('ramdisk');
    for (let tries = 0; ; tries++) {
      const there = await Promise.all(script.files.map((url) => isThere(url, signal)));
      if (there.every(Boolean)) break;
      log.warn('kernel or ramdisk cannot be had', { files: script.files });
      if (tries === TRIES) {
        enter('halted');
        return;
      }
      await clock.sleep(behaviour.retryMs, signal);
    }
    await clock.sleep(behaviour.bootMs, signal);
    if (behaviour.neverCalls) return;
    await runAgent({ mode, parameters: Object.fromEntries(script.parameters) }, signal);
  };
  const runAgent = async (told: RunningAgent, signal: AbortSignal): Promise<void> => {
    const parameters = new Map(Object.entries(told.parameters));
    started = told;
    agent = createAgent({
      inventory: inventoryOf({ ...description, disks: visibleDisks(description, hardware) }, told.mode, parameters.get('BOOTIF')),
      parameters,
      callbackUrl: setup.callbackUrl,
      certificate: setup.certificate,
      http,
      clock,
      random: setup.random,
      log,
      signal,
      stepMs: behaviour.stepMs,
      retryMs: behaviour.retryMs,
      wrongToken: behaviour.wrongToken,
      failWriteImage: behaviour.failWriteImage ?? undefined,
      setContent: (disk, content) => {
        if (signal.aborted) return;
        if (content) contents.set(disk, content);
        else contents.delete(disk);
        changed();
      },
      leave: (how) => void machine.act(how),
      remembered: told.memory,
      remember: (memory) => {
        started = { ...told, memory };
        changed();
      },
    });
    enter('agent');
    await agent.run();
  };

  const isThere = async (url: string, signal: AbortSignal): Promise<boolean> => {
    try {
      const answer = await http.ask(url, { method: 'HEAD', signal });
      await answer.drain();
      return answer.status === 200;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  };

  let kept: MachineState | undefined;
  const snapshot = (): MachineState => ({
    boot: setting,
    ...(power ? { on: { phase, booted, ...(started ? { agent: started } : {}) } } : {}),
    disks: Object.fromEntries([...contents].map(([disk, content]) => [disk, packed(content)])),
  });
  /** What ran goes on; what was on its way there starts once more. */
  const restore = ({ disks, on: was }: MachineState): void => {
    for (const [disk, content] of Object.entries(disks)) contents.set(disk, unpacked(content));
    if (!was) return;
    power = new AbortController();
    const { signal } = power;
    booted = was.booted;
    if (was.phase === 'system' || was.phase === 'halted') phase = was.phase;
    else if (was.agent) track(runAgent(was.agent, signal), signal);
    else {
      enter('firmware');
      track(boot(booted, signal), signal);
    }
  };

  const softOff = (): void => {
    if (!power || behaviour.softOffMs === null) return;
    const { signal } = power;
    track(clock.sleep(behaviour.softOffMs, signal).then(off), signal);
  };
  const cycle = (): void => {
    if (!power) return;
    off();
    on();
  };
  const actions = { on, off, cycle, reset: cycle, soft: softOff, diagnostic: () => {} } as const;

  const machine: SimulatedMachine = {
    name: description.name,
    macs: description.macs,
    serial: serial.port,
    description,
    hardware,
    isOn: () => power !== undefined,
    act: async (action) => actions[action](),
    boot: () => setting,
    setBoot: (wanted) => {
      setting = { ...wanted, mode: wanted.mode ?? setting.mode };
      changed();
    },
    phase: () => phase,
    content: (disk) => contents.get(disk),
    behave: (changes) => {
      behaviour = { ...behaviour, ...changes };
    },
    agentAnswer: async (method, path, body) => agent?.answer(method, path, body),
    snapshot: () => kept ?? snapshot(),
    close: async () => {
      kept = snapshot();
      closed = true;
      off();
      await Promise.all(running);
    },
  };
  if (setup.state) restore(setup.state);
  return machine;
}

const packed = ({ configDrive, ...content }: DiskContent): MachineState['disks'][string] => ({
  ...content,
  ...(configDrive ? { configDrive: configDrive.toString('base64') } : {}),
});
const unpacked = ({ configDrive, ...content }: MachineState['disks'][string]): DiskContent => ({
  ...content,
  configDrive: configDrive === undefined ? undefined : Buffer.from(configDrive, 'base64'),
});
