/**
 * A simulated machine behind a BMC. Its firmware boots from the real boot service, from an image or from a disk. In place of the ramdisk's
 * kernel it starts a simulated agent. Power off ends all work in the machine at once.
 */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { backgroundWork, type BackgroundWork } from '../background';
import type { BootSetting, MachineControl, PowerAction } from '../hardware/control';
import { inventoryOf, type MachineDescription } from '../hardware/description';
import { startFirmware } from '../hardware/firmware-start';
import { newHardware, type Hardware } from '../hardware/hardware';
import { createSerial } from '../hardware/serial';
import { visibleDisks } from '../hardware/volumes';
import type { HttpClient } from '../http';
import { createAgent, type AgentAnswer, type AgentMemory, type SimulatedAgent } from './agent';
import { DEFAULT_BEHAVIOUR, type Behaviour } from './behaviour';
import { findBootTarget, waitForFiles, type FirmwareHost } from './boot-sources';
import { parametersOf, type BootScript } from './boot-script';
import type { DiskContent } from './image';

/**
 * `halted`: the machine is on and has found nothing to boot; `system`: it runs the installed system or a live system; `qemu`: it is on, and
 * the simulator does not know what the guest in QEMU does.
 */
type Phase = 'off' | 'firmware' | 'ramdisk' | 'agent' | 'system' | 'halted' | 'qemu';
export interface SimulatedMachine extends MachineControl {
  readonly description: MachineDescription;
  /** The state that its BMC and its firmware share. */
  readonly hardware: Hardware;
  phase(): Phase;
  /** The content of a disk (/dev/sda); undefined: the disk is empty. */
  content(disk: string): DiskContent | undefined;
  /** Changes its behaviour from now on. */
  behave(changes: Partial<Behaviour>): void;
  /** Passes a request to the machine's agent. Undefined: no agent runs, so nothing would listen on its address. */
  agentAnswer(method: string, path: string, body: unknown): Promise<AgentAnswer | undefined>;
  /** The installed system starts a ramdisk by kexec, with this command line of its kernel. Throws an Error if no system runs. */
  startRamdisk(commandLine: string): void;
  /** The machine's state as JSON. */
  snapshot(): MachineState;
  /** Ends all work in the machine. `snapshot` then still returns the state before that. */
  close(): Promise<void>;
}
/** The state with which a machine continues after a restart of the simulator. */
export interface MachineState {
  readonly boot: BootSetting;
  /** Absent: the machine is off. */
  readonly on?: { readonly phase: Phase; readonly booted: BootSetting; readonly agent?: AgentStart | undefined } | undefined;
  readonly disks: Readonly<Record<string, StoredContent>>;
}
type StoredContent = Omit<DiskContent, 'configDrive'> & { readonly configDrive?: string | undefined };
/** What an agent was started with, and what it has learned since. */
interface AgentStart {
  readonly mode: 'uefi' | 'bios';
  readonly parameters: Readonly<Record<string, string>>;
  readonly memory?: AgentMemory;
}
interface MachineSetup {
  readonly description: MachineDescription;
  /** URL of the HTTP boot service, without a trailing slash. Undefined: nothing boots from the network. */
  readonly bootUrl: string | undefined;
  /** The URL whose requests reach `agentAnswer`. */
  readonly callbackUrl: string;
  /** The certificate of that URL's server, as PEM. */
  readonly certificate: string;
  /** Absent: hardware in the factory state. */
  readonly hardware?: Hardware;
  readonly behaviour?: Partial<Behaviour> | undefined;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
  readonly onPhase?: ((machine: SimulatedMachine) => void) | undefined;
  /** The stored result of `snapshot`. */
  readonly state?: MachineState | undefined;
  /** Called when the result of `snapshot` has changed. */
  readonly onChange?: () => void;
}

/** A machine's setup and its mutable state. */
interface Internals extends FirmwareHost {
  readonly setup: MachineSetup;
  readonly disks: Map<string, DiskContent>;
  readonly work: BackgroundWork;
  behaviour: Behaviour;
  /** For the next boot. */
  setting: BootSetting;
  phase: Phase;
  /** The setting of the last boot. */
  booted: BootSetting;
  agent: SimulatedAgent | undefined;
  agentStart: AgentStart | undefined;
  /** Aborted at power off; undefined: the machine is off. */
  power: AbortController | undefined;
  readonly changed: () => void;
  /** Reports a new phase. */
  readonly announce: () => void;
}

export function createMachine(setup: MachineSetup): SimulatedMachine {
  const { description, http, clock, bootUrl } = setup;
  const log = setup.log.child({ machine: description.name });
  const serial = createSerial(description.name);
  const hardware = setup.hardware ?? newHardware();
  const setting: BootSetting = setup.state?.boot ?? { ...NO_OVERRIDE, mode: description.mode };
  let final: MachineState | undefined;
  const changed = (): void => {
    if (!final) setup.onChange?.();
  };
  const internals: Internals = {
    setup,
    description,
    hardware,
    http,
    clock,
    bootUrl,
    log,
    setting,
    changed,
    disks: new Map(),
    work: backgroundWork((error) => log.error('the simulated machine failed', { error: reasonOf(error) })),
    behaviour: { ...DEFAULT_BEHAVIOUR, ...setup.behaviour },
    phase: 'off',
    booted: setting,
    agent: undefined,
    agentStart: undefined,
    power: undefined,
    announce: () => {
      log.debug('machine', { phase: internals.phase });
      serial.log(`${description.name}: ${internals.phase}`);
      setup.onPhase?.(machine);
      changed();
    },
  };
  const machine: SimulatedMachine = {
    name: description.name,
    macs: description.macs,
    serial: serial.port,
    description,
    hardware,
    isOn: () => internals.power !== undefined,
    act: async (action) => ACTIONS[action](internals),
    boot: () => internals.setting,
    setBoot: (next) => {
      internals.setting = { ...next, mode: next.mode ?? internals.setting.mode };
      changed();
    },
    phase: () => internals.phase,
    content: (disk) => internals.disks.get(disk),
    behave: (changes) => {
      internals.behaviour = { ...internals.behaviour, ...changes };
    },
    agentAnswer: async (method, path, body) => internals.agent?.answer(method, path, body),
    startRamdisk: (commandLine) => startRamdisk(internals, commandLine),
    snapshot: () => final ?? snapshot(internals),
    close: async () => {
      final = snapshot(internals);
      switchOff(internals);
      await internals.work.ended();
    },
  };
  if (setup.state) restore(internals, setup.state);
  return machine;
}

const NO_OVERRIDE = { device: 'none', persistent: false } as const;

function enter(internals: Internals, phase: Phase): void {
  internals.phase = phase;
  internals.announce();
}
function switchOff(internals: Internals): void {
  if (!internals.power) return;
  internals.power.abort(new Error('the machine is off'));
  internals.power = undefined;
  internals.agent = undefined;
  internals.agentStart = undefined;
  enter(internals, 'off');
}
/** The agent has started the kernel of the system on the disk: the machine stays on. */
function startSystem(internals: Internals): void {
  internals.power?.abort(new Error('another system runs'));
  internals.power = new AbortController();
  internals.agent = undefined;
  internals.agentStart = undefined;
  enter(internals, 'system');
}
/** The installed system has started the kernel of a ramdisk: the machine stays on. */
function startRamdisk(internals: Internals, commandLine: string): void {
  const { power, phase, booted, description, work } = internals;
  if (!power || phase !== 'system') throw new Error('no system runs');
  power.abort(new Error('another system runs'));
  internals.power = new AbortController();
  const { signal } = internals.power;
  const script: BootScript = { files: [], parameters: parametersOf(commandLine.split(' ')) };
  work.start(bootRamdisk(internals, script, booted.mode ?? description.mode, signal), signal);
}
function switchOn(internals: Internals): void {
  if (internals.power) return;
  const { hardware, clock, setting } = internals;
  internals.power = new AbortController();
  startFirmware(hardware, clock.now());
  // A setting that is not persistent applies to one boot (BootSourceOverrideEnabled Once in DSP0266; IPMI 2.0 §28.13 parameter 5).
  if (!setting.persistent) internals.setting = { ...NO_OVERRIDE, mode: setting.mode };
  startBoot(internals, internals.power, setting);
}
function cycle(internals: Internals): void {
  if (!internals.power) return;
  switchOff(internals);
  switchOn(internals);
}
function softOff(internals: Internals): void {
  const { power, behaviour, clock, work } = internals;
  if (!power || behaviour.softOffMs === null) return;
  const off = clock.sleep(behaviour.softOffMs, power.signal).then(() => switchOff(internals));
  work.start(off, power.signal);
}
const ACTIONS: Readonly<Record<PowerAction, (internals: Internals) => void>> = {
  on: switchOn,
  off: switchOff,
  cycle,
  reset: cycle,
  soft: softOff,
  diagnostic: () => {},
};

function startBoot(internals: Internals, { signal }: AbortController, setting: BootSetting): void {
  internals.booted = setting;
  enter(internals, 'firmware');
  internals.work.start(boot(internals, setting, signal), signal);
}
async function boot(internals: Internals, { device, mode }: BootSetting, signal: AbortSignal): Promise<void> {
  await internals.clock.sleep(internals.behaviour.firmwareMs, signal);
  const target = await findBootTarget(internals, device, signal);
  if (target === undefined) enter(internals, 'halted');
  else if (target === 'system') enter(internals, 'system');
  else await bootRamdisk(internals, target, mode ?? internals.description.mode, signal);
}
async function bootRamdisk(internals: Internals, script: BootScript, mode: 'uefi' | 'bios', signal: AbortSignal): Promise<void> {
  enter(internals, 'ramdisk');
  if (!(await waitForFiles(internals, script.files, signal))) {
    enter(internals, 'halted');
    return;
  }
  await internals.clock.sleep(internals.behaviour.bootMs, signal);
  if (internals.behaviour.neverCalls) return;
  await runAgent(internals, { mode, parameters: Object.fromEntries(script.parameters) }, signal);
}
async function runAgent(internals: Internals, start: AgentStart, signal: AbortSignal): Promise<void> {
  const { description, hardware, http, clock, log, behaviour, disks, changed } = internals;
  const { callbackUrl, certificate, random } = internals.setup;
  const parameters = new Map(Object.entries(start.parameters));
  internals.agentStart = start;
  internals.agent = createAgent({
    inventory: inventoryOf({ ...description, disks: visibleDisks(description, hardware) }, start.mode, parameters.get('BOOTIF')),
    parameters,
    callbackUrl,
    certificate,
    http,
    clock,
    random,
    log,
    signal,
    stepMs: behaviour.stepMs,
    retryMs: behaviour.retryMs,
    wrongToken: behaviour.wrongToken,
    failWriteImage: behaviour.failWriteImage ?? undefined,
    contentOf: (disk) => disks.get(disk),
    setContent: (disk, content) => {
      if (signal.aborted) return;
      if (content) disks.set(disk, content);
      else disks.delete(disk);
      changed();
    },
    leave: (how) => (how === 'kexec' ? startSystem(internals) : ACTIONS[how](internals)),
    remembered: start.memory,
    remember: (memory) => {
      internals.agentStart = { ...start, memory };
      changed();
    },
  });
  enter(internals, 'agent');
  await internals.agent.run();
}

function snapshot({ setting, power, phase, booted, agentStart, disks }: Internals): MachineState {
  return {
    boot: setting,
    on: power ? { phase, booted, agent: agentStart } : undefined,
    disks: Object.fromEntries([...disks].map(([disk, content]) => [disk, storedContent(content)])),
  };
}
/** A running system or agent continues; a machine that was booting boots again. */
function restore(internals: Internals, { disks, on }: MachineState): void {
  for (const [disk, stored] of Object.entries(disks)) internals.disks.set(disk, contentOf(stored));
  if (!on) return;
  const power = new AbortController();
  internals.power = power;
  internals.booted = on.booted;
  if (on.phase === 'system' || on.phase === 'halted') internals.phase = on.phase;
  else if (on.agent) internals.work.start(runAgent(internals, on.agent, power.signal), power.signal);
  else startBoot(internals, power, on.booted);
}

const storedContent = ({ configDrive, ...content }: DiskContent): StoredContent => ({
  ...content,
  configDrive: configDrive?.toString('base64'),
});
const contentOf = ({ configDrive, ...content }: StoredContent): DiskContent => ({
  ...content,
  configDrive: configDrive === undefined ? undefined : Buffer.from(configDrive, 'base64'),
});
