/** Power of machines with a Redfish service (schema ComputerSystem), and the other facts of the same response. */
import { retry } from '../../model/clock';
import { shortened } from '../../model/text';
import { RedfishError, actionOf, hasMessage, isStatus, member, textOf } from '../../wire/redfish';
import type { MachineStatus, PowerInterface, Task } from '../interfaces';
import { bootModeOfSystem, repeatBootDevice } from './boot-settings';
import { PASSING_PAUSE, PASSING_TRIES, REDFISH_PROPERTIES, isPassing, onSystem, redfishSystem, type SystemView } from './target';

/** PowerState, in small letters → the API's state. A machine in transition counts as arrived, as in Ironic. */
const POWER_STATES: Readonly<Record<string, 'power on' | 'power off'>> = {
  on: 'power on',
  poweringon: 'power on',
  off: 'power off',
  poweringoff: 'power off',
};
/** ResetTypes of each request, the best first, as a service may offer only some; and the resulting state. */
const RESETS = {
  on: { types: ['On', 'ForceOn'], ends: 'power on' },
  off: { types: ['ForceOff'], ends: 'power off' },
  soft: { types: ['GracefulShutdown'], ends: 'power off' },
  restart: { types: ['ForceRestart', 'PowerCycle'], ends: undefined },
  softRestart: { types: ['GracefulRestart'], ends: undefined },
  nmi: { types: ['Nmi'], ends: undefined },
} as const;
const RESET = '#ComputerSystem.Reset';
const HEALTH = ['OK', 'Warning', 'Critical'] as const;
/** Characters of an unknown state in a message. */
const MAX_STATE = 100;
/** Milliseconds after a restart during which a machine may still report that it is on. */
const RESTART_DELAY = 15_000;

/** Null: some services show no state for a while, for instance during POST. Throws RedfishError for a state that no schema has. */
function powerOf({ body, path }: SystemView): 'power on' | 'power off' | null {
  const state = member(body, 'PowerState') ?? null;
  if (state === null) return null;
  const name = typeof state === 'string' ? state.toLowerCase() : '';
  if (Object.hasOwn(POWER_STATES, name)) return POWER_STATES[name]!;
  throw new RedfishError('protocol', `${path} gives no power state that is known: ${shortened(JSON.stringify(state), MAX_STATE)}`);
}

/** A refusal may name the machine's state where the service shows no power state. */
const saysItIs = (error: RedfishError, state: 'on' | 'off'): boolean =>
  new RegExp(`host is powered ${state}|already powered ${state}|already in the requested (?:power )?state`, 'i').test(error.message);

/**
 * Whether the machine already has the state that the refused request leads to: then there was nothing to do. Services refuse such requests
 * with 400 or 409. They also answer 409 to a request that comes too soon after the last one.
 */
async function isThereAlready(task: Task, error: unknown, ends: 'power on' | 'power off' | undefined): Promise<boolean> {
  if (ends === undefined || !(error instanceof RedfishError) || !isStatus(error, 400, 409)) return false;
  const now = await onSystem(task, undefined, async (system) => powerOf(system)).catch(() => null);
  return now === null ? saysItIs(error, ends === 'power on' ? 'on' : 'off') : now === ends;
}

/** The first of these ResetTypes that the service offers. Undefined: none. */
async function offered({ ask, body }: SystemView, types: readonly string[]): Promise<string | undefined> {
  const allowed = await actionOf({ body }, RESET)?.allowed(ask, 'ResetType');
  return allowed ? types.find((type) => allowed.includes(type)) : types[0];
}

export async function reset(task: Task, system: SystemView, order: keyof typeof RESETS): Promise<void> {
  const { ask, path } = system;
  const { types, ends } = RESETS[order];
  const type = await offered(system, types);
  if (type === undefined) throw new RedfishError('protocol', `${path} does not offer the reset type ${types.join(' or ')}`);
  const place = actionOf(system, RESET)?.target ?? `${path}/Actions/ComputerSystem.Reset`;
  const { options } = task;
  let [tries, passing] = [order === 'on' ? options['redfish.power_on_conflict_retry_attempts'] : 0, 0];
  const send = async (): Promise<void> => {
    try {
      // A machine that is on or off already is so after a second request too.
      await ask('POST', place, { body: { ResetType: type }, repeatable: ends !== undefined, impatient: true });
    } catch (error) {
      if (!(await isThereAlready(task, error, ends))) throw error;
    }
  };
  await retry(task, send, (error) => {
    if (isPassing(error) && passing++ < PASSING_TRIES) return PASSING_PAUSE;
    // A service may refuse power on while a power off is still in progress.
    const mayPass = isStatus(error, 409, 503) || hasMessage(error, 'ActionParameterValueConflict');
    return mayPass && tries-- > 0 ? options['redfish.power_on_conflict_retry_interval'] * 1000 : undefined;
  });
}

const healthWord = (health: unknown): MachineStatus['health'] => HEALTH.find((candidate) => candidate === health) ?? null;
/** The health of all parts of a kind: some services report only HealthRollup, others only Health. */
function healthOfParts(system: SystemView, summary: string): MachineStatus['health'] {
  const status = member(system.body, summary, 'Status');
  return healthWord(member(status, 'HealthRollup')) ?? healthWord(member(status, 'Health'));
}
function healthOf(system: SystemView): MachineStatus['health'] {
  return healthWord(member(system.body, 'Status', 'Health'));
}

const order =
  (name: keyof typeof RESETS) =>
  (task: Task): Promise<void> =>
    onSystem(task, undefined, (system) => reset(task, system, name));

export const redfishPower: PowerInterface = {
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  get: (task) => onSystem(task, undefined, async (system) => powerOf(system)),
  getStatus: (task) =>
    onSystem(task, undefined, async (system) => ({
      power: powerOf(system),
      health: healthOf(system),
      memoryHealth: healthOfParts(system, 'MemorySummary'),
      processorHealth: healthOfParts(system, 'ProcessorSummary'),
      bootMode: bootModeOfSystem(system),
      namesVendor: textOf(member(system.body, 'Manufacturer')) !== undefined,
    })),
  on: async (task) => {
    await repeatBootDevice(task);
    await order('on')(task);
  },
  off: order('off'),
  softOff: order('soft'),
  reset: async (task) => {
    await repeatBootDevice(task);
    await order('restart')(task);
    await task.clock.sleep(RESTART_DELAY, task.signal);
  },
  softReset: async (task, mustStayOn) => {
    const type = await onSystem(task, undefined, (system) => offered(system, RESETS.softRestart.types));
    // Of a machine that must stay on, `reset` says why it cannot be restarted.
    if (type === undefined && !mustStayOn) return false;
    await repeatBootDevice(task);
    await order('softRestart')(task);
    return true;
  },
};
