/** A conductor on a test's database. Its machine consists of variables: it records its orders, and the test sets its answers. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Options } from '../../config/options';
import { startConductor, type RunningConductor } from '../../conductor/index';
import type { ConductorParts } from '../../conductor/core/context';
import type {
  InspectionFindings,
  HardwareType,
  Interface,
  Interfaces,
  MachineStatus,
  Outcome,
  PlannedStep,
  PortChange,
  PortgroupChange,
  Power,
  Step,
  Task,
} from '../../drivers/interfaces';
import { done, wait } from '../../drivers/interfaces';
import { attachedVifs, checkPortChange, checkPortgroupChange, currentVif } from '../../drivers/network/vifs';
import type { Clock } from '../../model/clock';
import { silentLog, type Log } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { INTERFACE_KINDS, type InterfaceKind, type JsonObject, type NewNode, type NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';
import { optionsOf } from './options';
import { servicesOf } from './services';

/** The machine behind the drivers of this file; a test sets members and reads `orders`. */
export interface Machine {
  power: 'power on' | 'power off' | null;
  /** The orders so far: `power off`, `prepareCleaning`, `step deploy.write_image`, … */
  readonly orders: string[];
  /** Order (or `get power`) → the error that it throws. */
  readonly broken: Map<string, Error>;
  /** Order → a promise for which it waits. */
  readonly stuck: Map<string, Promise<void>>;
  /** Whether cleaning, deployment and inspection need the ramdisk (then they wait for its heartbeat). */
  ramdisk: boolean;
  agentSteps: readonly PlannedStep[] | undefined;
  /** The outcome of booting the ramdisk, instead of the one that follows from `ramdisk`. */
  deploys?: Outcome;
  cleans?: Outcome;
  /** The outcome of the running step that the agent reports. */
  stepOutcome: Outcome | ((step: PlannedStep) => Outcome);
  steps: readonly Step[];
  sensors?: JsonObject;
  /** What the BMC reports with the power state; absent: nothing. */
  status?: Omit<MachineStatus, 'power'>;
  vendor?: string;
  /** MAC addresses that the BMC knows; an error: its answer. Absent: the BMC cannot be asked, and no inspection is by a ramdisk. */
  macs?: readonly string[] | Error;
  /** The findings of an inspection that boots nothing. */
  findings?: InspectionFindings;
  /** The instance is on a volume that must be attached. */
  onVolume?: true;
  /** Whether the BMC follows power orders. */
  followsPowerOrders: boolean;
  /** The power interface has a soft reboot without a power off. */
  rebootsSoftly?: true;
  /** The power interface has no soft orders. */
  isHardOnly?: true;
}
export const newMachine = (changes: Partial<Machine> = {}): Machine => ({
  power: 'power off',
  orders: [],
  broken: new Map(),
  stuck: new Map(),
  ramdisk: true,
  agentSteps: [],
  stepOutcome: done,
  steps: [],
  followsPowerOrders: true,
  ...changes,
});
/** A promise, and the function that resolves it. */
export function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

const POWERS: Readonly<Record<Power, 'power on' | 'power off'>> = {
  'power on': 'power on',
  'power off': 'power off',
  rebooting: 'power on',
  'soft power off': 'power off',
  'soft rebooting': 'power on',
};

export function interfacesOf(
  machine: Machine,
  periodics: Readonly<Partial<Record<InterfaceKind, Interface['periodics']>>> = {},
): Interfaces {
  const tell = async (task: Task, what: string): Promise<void> => {
    machine.orders.push(what);
    const stuck = machine.stuck.get(what);
    if (stuck) {
      const aborted = new Promise<never>((_, reject) => {
        const abort = (): void => reject(task.signal.reason as Error);
        if (task.signal.aborted) abort();
        else task.signal.addEventListener('abort', abort, { once: true });
      });
      await Promise.race([stuck, aborted]);
    }
    const broken = machine.broken.get(what);
    if (broken) throw broken;
  };
  const ordered =
    (order: Power) =>
    async (task: Task): Promise<void> => {
      await tell(task, order);
      if (machine.followsPowerOrders) machine.power = POWERS[order];
    };
  const says =
    (what: string) =>
    async (task: Task): Promise<void> =>
      tell(task, what);
  const boots = async (task: Task): Promise<void> => {
    if (machine.ramdisk) await task.power('rebooting');
  };
  const step = (name: string, priority: number, run: (task: Task) => Promise<Outcome>): Step => ({
    step: name,
    priority: { deploy: priority },
    resumable: name !== 'write_image',
    run: async (task) => {
      await tell(task, `step deploy.${name}`);
      return run(task);
    },
  });
  const plain: Interface = {};
  const test = {
    bios: plain,
    console: { start: says('start console'), stop: says('stop console'), get: async () => ({}) },
    firmware: plain,
    raid: plain,
    rescue: {
      rescue: async (task: Task) => {
        await tell(task, 'rescue');
        await boots(task);
        return machine.ramdisk ? wait : done;
      },
      unrescue: async (task: Task) => {
        await tell(task, 'unrescue');
        return done;
      },
      finish: says('finish rescue'),
      cleanUp: says('clean up rescue'),
    },
    storage: {
      shouldWriteImage: async () => machine.onVolume !== true,
      ...(machine.onVolume
        ? { validate: says('validate storage'), attachVolumes: says('attach volumes'), detachVolumes: says('detach volumes') }
        : {}),
    },
    vendor: {
      get steps() {
        return machine.steps;
      },
    },
    boot: {
      prepareRamdisk: says('prepareRamdisk'),
      cleanUpRamdisk: says('cleanUpRamdisk'),
      prepareInstance: says('prepareInstance'),
      cleanUpInstance: says('cleanUpInstance'),
    },
    deploy: {
      validate: says('validate deploy'),
      steps: [
        step('deploy', 100, async (task) => {
          await boots(task);
          return machine.deploys ?? (machine.ramdisk ? wait : done);
        }),
        step('write_image', 80, async () => (machine.ramdisk ? wait : done)),
        step('boot_instance', 20, async (task) => {
          await task.power('rebooting');
          return done;
        }),
      ],
      prepare: says('prepare'),
      cleanUp: says('cleanUp'),
      tearDown: async (task: Task) => {
        await tell(task, 'tearDown');
        await task.power('power off');
        return done;
      },
      prepareCleaning: async (task: Task) => {
        await tell(task, 'prepareCleaning');
        await boots(task);
        return machine.cleans ?? (machine.ramdisk ? wait : done);
      },
      tearDownCleaning: async (task: Task) => {
        await tell(task, 'tearDownCleaning');
        await task.power('power off');
      },
      prepareService: async (task: Task) => {
        await tell(task, 'prepareService');
        await boots(task);
        return machine.ramdisk ? wait : done;
      },
      tearDownService: async (task: Task) => {
        await tell(task, 'tearDownService');
        await task.power('rebooting');
      },
      agentSteps: async (task: Task) => {
        await tell(task, 'agentSteps');
        return machine.agentSteps;
      },
      runAgentStep: async (task: Task, _kind: string, { interface: owner, step: name }: PlannedStep) => {
        await tell(task, `step ${owner}.${name}`);
        return wait;
      },
      onHeartbeat: async (task: Task, _kind: string, running: PlannedStep) => {
        await tell(task, `outcome of ${running.step}`);
        return typeof machine.stepOutcome === 'function' ? machine.stepOutcome(running) : machine.stepOutcome;
      },
    },
    inspect: {
      ...(machine.macs ? { inBand: true as const } : {}),
      inspect: async (task: Task) => {
        await tell(task, ['inspect', ...(machine.macs ? task.ports.map(({ address }) => address) : [])].join(' '));
        await task.saveInternal({ lookup_bmc_addresses: ['192.0.2.9'] });
        if (machine.findings) return machine.findings;
        await boots(task);
        return machine.ramdisk ? wait : done;
      },
      finish: async (task: Task) => {
        await tell(task, 'finish inspection');
        await task.power('power off');
      },
      abort: says('abort inspection'),
    },
    management: {
      bootDevices: ['pxe', 'disk'],
      detectVendor: async () => machine.vendor,
      ...(machine.macs
        ? {
            macAddresses: async () => {
              if (machine.macs instanceof Error) throw machine.macs;
              return machine.macs!;
            },
          }
        : {}),
      ...(machine.sensors
        ? {
            sensors: async (task: Task, isWanted: (kind: string) => boolean = () => true) => {
              const kinds = Object.keys(machine.sensors!).filter(isWanted);
              await tell(task, `sensors: ${kinds.join()}`);
              return machine.sensors!;
            },
          }
        : {}),
      getBootDevice: async (task: Task) => {
        await tell(task, 'get boot device');
        return { device: 'pxe', persistent: false };
      },
      setBootDevice: async (task: Task, device: string, persistent: boolean) =>
        tell(task, `boot device ${device} ${persistent ? 'for good' : 'once'}`),
    },
    network: {
      ...Object.fromEntries(
        [
          'addProvisioningNetwork',
          'removeProvisioningNetwork',
          'addCleaningNetwork',
          'removeCleaningNetwork',
          'addInspectionNetwork',
          'removeInspectionNetwork',
          'configureTenantNetworks',
          'unconfigureTenantNetworks',
          'vifAttach',
          'vifDetach',
        ].map((name) => [name, says(name)]),
      ),
      vifList: async ({ ports }: Task) => attachedVifs({ ports, portgroups: [] }),
      currentVif,
      portChanged: async (_: Task, change: PortChange) => checkPortChange(change),
      portgroupChanged: async (_: Task, change: PortgroupChange) => checkPortgroupChange(change),
    },
    power: {
      properties: {
        bmc: { description: 'Address of the BMC. Required.', required: true },
        password: { description: 'Password of the BMC.', secret: true },
      },
      rebootsByReset: true,
      get: async (task: Task) => {
        const broken = machine.broken.get('get power');
        if (broken) throw broken;
        task.signal.throwIfAborted();
        return machine.power;
      },
      ...(machine.status ? { getStatus: async () => ({ power: machine.power, ...machine.status! }) } : {}),
      on: ordered('power on'),
      off: ordered('power off'),
      reset: ordered('rebooting'),
      ...(machine.isHardOnly ? {} : { softOff: ordered('soft power off') }),
      ...(machine.rebootsSoftly ? { softReset: async (task: Task) => ordered('soft rebooting')(task).then(() => true) } : {}),
    },
  };
  // Assigned, not spread: a spread would read the getter `steps` at once.
  for (const [kind, table] of Object.entries(periodics)) Object.assign(test[kind as InterfaceKind], { periodics: table });
  const other = {
    ...test,
    boot: { ...test.boot },
    inspect: { inspect: test.inspect.inspect, hooksOption: 'redfish.inspection_hooks' as const },
  };
  return Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, { test: test[kind], other: other[kind] }])) as unknown as Interfaces;
}

const everyKind = (names: readonly string[]): Omit<HardwareType, 'className'> =>
  Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, names])) as unknown as HardwareType;
export const HARDWARE: Readonly<Record<string, HardwareType>> = {
  'test-hardware': { className: 'test-hardware', ...everyKind(['test', 'other', 'not-there']) },
  'any-hardware': { className: 'any-hardware', ...everyKind(['other', '*']) },
  'rigid-hardware': { className: 'rigid-hardware', ...everyKind(['test']) },
};

/** The default options, with a test's changes. */
export const conductorOptions = (changes: Partial<Options> = {}): Options =>
  optionsOf({
    ...Object.fromEntries(INTERFACE_KINDS.map((kind) => [`DEFAULT.enabled_${kind}_interfaces`, ['test', 'other']])),
    'conductor.graceful_shutdown_timeout': 2,
    'DEFAULT.enabled_hardware_types': Object.keys(HARDWARE),
    'agent.require_tls': false,
    ...changes,
  });

export interface Started {
  readonly conductor: RunningConductor;
  readonly machine: Machine;
  readonly store: Store;
  /** Warnings and errors. */
  readonly complaints: readonly string[];
  readonly node: (uuid: string) => Promise<NodeRecord>;
  /** A node of test-hardware in this state. */
  readonly enrol: (changes?: Partial<NewNode>) => Promise<NodeRecord>;
  /** Lookup and heartbeat of the machine's agent. */
  readonly speak: (uuid: string, token?: string) => Promise<string>;
}
/** A log that keeps warnings and errors in the array. */
function collecting(lines: string[], info: Log['info'] = () => {}): Log {
  const keep = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const log: Log = { ...silentLog, info, warn: keep, error: keep, child: () => log };
  return log;
}
export const AGENT_URL = 'http://192.0.2.50:9999';

export async function started(
  store: Store,
  clock: Clock,
  given: {
    readonly options?: Partial<Options>;
    readonly machine?: Machine;
    /** Periodic work of the interfaces `test`. */
    readonly periodics?: Readonly<Partial<Record<InterfaceKind, Interface['periodics']>>>;
    readonly rooms?: Partial<ConductorParts>;
    /** Gets the lines of level info. */
    readonly tell?: Log['info'];
  } = {},
): Promise<Started> {
  const machine = given.machine ?? newMachine();
  const complaints: string[] = [];
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: async () => {} };
  const conductor = await startConductor({
    metrics: silentMetrics,
    store,
    clock,
    options: conductorOptions(given.options),
    log: collecting(complaints, given.tell),
    random: randomBytes,
    connections: { ipmi: nowhere, redfish: nowhere, services: servicesOf() },
    interfaces: interfacesOf(machine, given.periodics),
    hardwareTypes: HARDWARE,
    ...given.rooms,
  });
  const tokens = new Map<string, string>();
  return {
    conductor,
    machine,
    store,
    complaints,
    node: (uuid) => store.nodes.find(uuid),
    enrol: async (changes = {}) => {
      const { uuid } = await conductor.createNode({ uuid: randomUUID(), driver: 'test-hardware', driver_info: { bmc: '192.0.2.9' } });
      return store.nodes.update(uuid, changes);
    },
    speak: async (uuid, token) => {
      const given = await conductor.agentToken(uuid);
      if (given !== '******') tokens.set(uuid, given);
      const known = token ?? tokens.get(uuid)!;
      await conductor.heartbeat(uuid, { callbackUrl: AGENT_URL, agentVersion: '11.0', agentToken: known });
      return known;
    },
  };
}
