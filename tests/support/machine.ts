/**
 * The fake driver, with a machine of variables behind it. Each call is recorded, and the test decides which calls fail, which wait, and
 * whether work needs a ramdisk.
 */
import { fakeBoot, fakeConsole, fakeManagement, fakePowerOf, fakeRaid } from '../../drivers/fake/fake';
import type {
  Driver,
  EventSubscriptions,
  InspectionFindings,
  Interface,
  Interfaces,
  MachineStatus,
  Outcome,
  PlannedStep,
  Power,
  Step,
  Task,
} from '../../drivers/interfaces';
import { done, wait } from '../../drivers/interfaces';
import { attachedVifs, checkPortChange, checkPortgroupChange, currentVif } from '../../drivers/network/vifs';
import { noopNetwork } from '../../drivers/noop';
import { INTERFACE_KINDS, type InterfaceKind, type JsonObject } from '../../model/records';
import { unlessAborted } from '../../wire/timeout-signal';

/** A test sets members, and reads `orders`. */
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
  /** Absent: its BMC sends no events. */
  events?: EventSubscriptions;
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

/** The calls that order nothing: they are not recorded. */
const READS: ReadonlySet<string> = new Set([
  'console.get',
  'management.detectVendor',
  'management.macAddresses',
  'network.currentVif',
  'network.portChanged',
  'network.portgroupChanged',
  'network.vifList',
  'power.get',
  'power.getStatus',
  'storage.shouldWriteImage',
]);
type Name = string | ((task: Task, given: never, machine: Machine) => string);
/** Call → its name in `orders`, if that is not the name of the function. */
const NAMES: Readonly<Record<string, Name>> = {
  'console.start': 'start console',
  'console.stop': 'stop console',
  'deploy.validate': 'validate deploy',
  'deploy.runAgentStep': (_, [, step]: [kind: string, step: PlannedStep]) => `step ${step.interface}.${step.step}`,
  'deploy.onHeartbeat': (_, [, step]: [kind: string, step: PlannedStep]) => `outcome of ${step.step}`,
  'inspect.inspect': ({ ports }, _, { macs }) => ['inspect', ...(macs ? ports.map(({ address }) => address) : [])].join(' '),
  'inspect.finish': 'finish inspection',
  'inspect.abort': 'abort inspection',
  'management.getBootDevice': 'get boot device',
  'management.setBootDevice': (_, [device, persistent]: [string, boolean]) => `boot device ${device} ${persistent ? 'for good' : 'once'}`,
  'management.sensors': (_, [isWanted]: [(kind: string) => boolean], { sensors }) =>
    `sensors: ${Object.keys(sensors!).filter(isWanted).join()}`,
  'power.on': 'power on',
  'power.off': 'power off',
  'power.softOff': 'soft power off',
  'power.reset': 'rebooting',
  'power.softReset': 'soft rebooting',
  'rescue.finish': 'finish rescue',
  'rescue.cleanUp': 'clean up rescue',
  'storage.validate': 'validate storage',
  'storage.attachVolumes': 'attach volumes',
  'storage.detachVolumes': 'detach volumes',
};

type Work = (task: Task, ...given: readonly unknown[]) => Promise<unknown>;
/** The same interface, whose calls are recorded, then wait and fail as the test says. */
function recorded(machine: Machine, kind: InterfaceKind, value: object): object {
  const around =
    (what: Name, work: Work): Work =>
    async (task, ...given) => {
      const name = typeof what === 'string' ? what : what(task, given as never, machine);
      machine.orders.push(name);
      const stuck = machine.stuck.get(name);
      if (stuck) await unlessAborted(stuck, task.signal);
      const broken = machine.broken.get(name);
      if (broken) throw broken;
      return work(task, ...given);
    };
  const members = Object.entries(value).map(([name, member]) => {
    const call = `${kind}.${name}`;
    return [name, typeof member !== 'function' || READS.has(call) ? member : around(NAMES[call] ?? name, member as Work)] as const;
  });
  const steps = (value as Interface).steps?.map((step) => ({
    ...step,
    run: around(`step ${kind}.${step.step}`, (task, args) => step.run(task, args as JsonObject)),
  }));
  return { ...Object.fromEntries(members), ...(steps ? { steps } : {}) };
}

const nothing = async (): Promise<void> => {};
export function interfacesOf(
  machine: Machine,
  periodics: Readonly<Partial<Record<InterfaceKind, Interface['periodics']>>> = {},
): Interfaces {
  const orders =
    (order: Power) =>
    async (task: Task): Promise<void> =>
      task.power(order);
  /** Boots the ramdisk, if work needs it, and waits for its agent. */
  const boots =
    (outcome: () => Outcome | undefined = () => undefined) =>
    async (task: Task): Promise<Outcome> => {
      if (machine.ramdisk) await task.power('rebooting');
      return outcome() ?? (machine.ramdisk ? wait : done);
    };
  const step = (name: string, priority: number, run: Step['run']): Step => ({
    step: name,
    priority: { deploy: priority },
    resumable: name !== 'write_image',
    run,
  });
  const { softOff, softReset, ...power } = fakePowerOf({
    get: (task) => {
      const broken = machine.broken.get('get power');
      if (broken) throw broken;
      task.signal.throwIfAborted();
      return machine.power;
    },
    set: async (_, state) => {
      if (machine.followsPowerOrders) machine.power = state;
    },
  });
  const test = {
    bios: {},
    boot: fakeBoot,
    console: fakeConsole,
    deploy: {
      validate: nothing,
      steps: [
        step(
          'deploy',
          100,
          boots(() => machine.deploys),
        ),
        step('write_image', 80, async () => (machine.ramdisk ? wait : done)),
        step('boot_instance', 20, async (task) => {
          await task.power('rebooting');
          return done;
        }),
      ],
      prepare: nothing,
      cleanUp: nothing,
      tearDown: async (task) => {
        await task.power('power off');
        return done;
      },
      prepareCleaning: boots(() => machine.cleans),
      tearDownCleaning: orders('power off'),
      prepareService: boots(),
      tearDownService: orders('rebooting'),
      agentSteps: async () => machine.agentSteps,
      runAgentStep: async () => wait,
      onHeartbeat: async (_task, _kind, running) =>
        typeof machine.stepOutcome === 'function' ? machine.stepOutcome(running) : machine.stepOutcome,
    },
    firmware: {},
    inspect: {
      ...(machine.macs ? { inBand: true } : {}),
      inspect: async (task) => {
        await task.saveInternal({ lookup_bmc_addresses: ['192.0.2.9'] });
        return machine.findings ?? boots()(task);
      },
      finish: orders('power off'),
      abort: nothing,
    },
    management: {
      bootDevices: ['pxe', 'disk'],
      getBootDevice: async (task) => fakeManagement.getBootDevice(task),
      setBootDevice: nothing,
      detectVendor: async () => machine.vendor,
      ...(machine.macs
        ? {
            macAddresses: async () => {
              if (machine.macs instanceof Error) throw machine.macs;
              return machine.macs!;
            },
          }
        : {}),
      ...(machine.events ? { events: machine.events } : {}),
      ...(machine.sensors ? { sensors: async () => machine.sensors! } : {}),
    },
    network: {
      ...noopNetwork,
      vifList: async ({ ports }) => attachedVifs({ ports, portgroups: [] }),
      currentVif,
      portChanged: async (_, change) => checkPortChange(change),
      portgroupChanged: async (_, change) => checkPortgroupChange(change),
    },
    power: {
      ...power,
      properties: {
        bmc: { description: 'Address of the BMC. Required.', required: true },
        password: { description: 'Password of the BMC.', secret: true },
      },
      ...(machine.status ? { getStatus: async () => ({ power: machine.power, ...machine.status! }) } : {}),
      ...(machine.isHardOnly ? {} : { softOff }),
      ...(machine.rebootsSoftly ? { softReset } : {}),
    },
    raid: fakeRaid,
    rescue: { rescue: boots(), unrescue: async () => done, finish: nothing, cleanUp: nothing },
    storage: {
      shouldWriteImage: async () => machine.onVolume !== true,
      ...(machine.onVolume ? { validate: nothing, attachVolumes: nothing, detachVolumes: nothing } : {}),
    },
    vendor: {
      get steps() {
        return machine.steps;
      },
    },
  } satisfies Driver;
  // Copied as it is: a copy of its members would read the getter `steps` at once.
  const { vendor, ...others } = test;
  const made: Record<string, object> = { vendor };
  for (const [kind, value] of Object.entries(others)) made[kind] = recorded(machine, kind as InterfaceKind, value);
  for (const [kind, table] of Object.entries(periodics)) Object.assign(made[kind]!, { periodics: table });
  const otherInspect = { inspect: test.inspect.inspect, hooksOption: 'redfish.inspection_hooks' };
  const other: Record<string, object> = { ...made, boot: { ...made['boot'] }, inspect: recorded(machine, 'inspect', otherInspect) };
  return Object.fromEntries(INTERFACE_KINDS.map((kind) => [kind, { test: made[kind], other: other[kind] }])) as unknown as Interfaces;
}
