/** A conductor on a test's database, with the machine of machine.ts. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Options } from '../../config/options';
import { startConductor, type RunningConductor } from '../../conductor/index';
import type { ConductorParts } from '../../conductor/core/context';
import type { HardwareType, Interface } from '../../drivers/interfaces';
import type { Clock } from '../../model/clock';
import { silentLog, type Log } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { INTERFACE_KINDS, type InterfaceKind, type NewNode, type NodeRecord } from '../../model/records';
import type { Store } from '../../store/store';
import { agentToken } from './agent-token';
import { interfacesOf, newMachine, type Machine } from './machine';
import { optionsOf } from './options';
import { servicesOf } from './services';

/** A promise, and the function that resolves it. */
export function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
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
    connections: { ipmi: nowhere, redfish: nowhere, services: servicesOf(given.options) },
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
      const given = await agentToken(store, uuid);
      if (given !== '******') tokens.set(uuid, given);
      const known = token ?? tokens.get(uuid)!;
      await conductor.heartbeat(uuid, { callbackUrl: AGENT_URL, agentVersion: '11.0', agentToken: known });
      return known;
    },
  };
}
