/** Changes the power of a machine, for flows (Task.power) and for PUT …/states/power. */
import type { Power, PowerInterface, Task } from '../../drivers/interfaces';
import { bareTimestamp, waitUntil } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { toBoolean } from '../../model/python';
import type { NodeChanges, NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import { attempt } from './attempt';
import { notifyPower, notifyNova } from './notify';
import { forgottenAt, type InternalChanges } from '../../model/internal-info';
import type { NodeTask } from './node-task';
import { isInterrupted } from './interruption';

/** Order → the power state to which it leads, and whether it ends the machine's operating system, and so its agent. */
export const ORDERS: Readonly<
  Record<Power, { readonly ends: 'power on' | 'power off'; readonly endsSystem: boolean; readonly soft?: true }>
> = {
  'power on': { ends: 'power on', endsSystem: false },
  'power off': { ends: 'power off', endsSystem: true },
  rebooting: { ends: 'power on', endsSystem: true },
  'soft power off': { ends: 'power off', endsSystem: true, soft: true },
  'soft rebooting': { ends: 'power on', endsSystem: true, soft: true },
};

/** The agent is forgotten when its system ends, except a token that is part of its boot medium. */
export const forgetAgent = (task: NodeTask): InternalChanges => {
  const { agent_secret_token: token, ...rest } = forgottenAt('system end');
  return task.node.driver_internal_info.agent_secret_token_pregenerated === true ? rest : { agent_secret_token: token, ...rest };
};

/** Seconds between reads of the power state: short ones first, since most machines need less than a second. */
const PAUSES = [0.1, 0.2, 0.5, 1, 1, 2] as const;

/**
 * @param again repeats the order, once half of the time has passed without effect. Absent: it is sent once
 * @internal
 */
export async function waitFor(task: Task, state: 'power on' | 'power off', seconds: number, again?: () => Promise<void>): Promise<void> {
  const start = task.clock.now();
  const until = start + seconds * 1000;
  let repeat = again;
  const isReached = async (): Promise<boolean> => {
    const now = await task.driver.power.get(task);
    if (now === state) return true;
    if (repeat !== undefined && now !== null && task.clock.now() - start >= seconds * 500) {
      const order = repeat;
      repeat = undefined;
      task.log.warn('The BMC has accepted the order, which has no effect yet: it is sent again', { order: state });
      await order().catch((error: unknown) => {
        task.signal.throwIfAborted();
        task.log.debug('The BMC does not take the order again', { reason: reasonOf(error) });
      });
    }
    return false;
  };
  const pauseAfter = (reads: number): number | undefined => {
    const pause = (PAUSES[reads - 1] ?? PAUSES.at(-1)!) * 1000;
    return task.clock.now() + pause > until ? undefined : pause;
  };
  if (!(await waitUntil(task, isReached, pauseAfter))) throw new Fault('PowerStateFailure', { pstate: state });
}

/** Whether the interface has what an order is composed of. */
export function canOrder({ on, off, softOff, reset, softReset }: PowerInterface, target: Power): boolean {
  const needed: Readonly<Record<Power, unknown>> = {
    'power on': on,
    'power off': off,
    'soft power off': softOff,
    rebooting: reset ?? (off && on),
    'soft rebooting': softReset ?? (softOff && on),
  };
  return needed[target] !== undefined;
}

/**
 * Sends an order, and composes a reboot where the interface needs that. Does not wait for the state that the order leads to.
 * @param seconds how long the machine may take to power off during a reboot
 * @internal
 */
export async function sendOrder(task: Task, target: Power, seconds: number): Promise<void> {
  const { node, driver } = task;
  const { power } = driver;
  const staysOn = node.disable_power_off === true;
  const impossible = (): Fault => new Fault('PowerStateFailure', { pstate: target });
  const send = async (order: 'on' | 'off' | 'softOff' | 'reset'): Promise<void> => {
    if (!power[order]) throw impossible();
    await power[order](task);
  };
  const offAndOn = async (off: 'off' | 'softOff'): Promise<void> => {
    // A machine that could not be powered on again stays as it is.
    if (!power.on) throw impossible();
    await send(off);
    await waitFor(task, 'power off', seconds);
    await send('on');
  };
  const orders: Readonly<Record<Power, () => Promise<void>>> = {
    'power on': () => send('on'),
    'power off': () => send('off'),
    'soft power off': () => send('softOff'),
    rebooting: () => (staysOn || power.rebootsByReset ? send('reset') : offAndOn('off')),
    'soft rebooting': async () => {
      if (await power.softReset?.(task, staysOn)) return;
      if (staysOn) throw impossible();
      await offAndOn('softOff');
    },
  };
  await orders[target]();
}

/** Seconds for one change of the power state. */
const limitOf = ({ options }: Pick<Task, 'options'>, target: Power): number =>
  options[ORDERS[target].soft ? 'conductor.soft_power_off_timeout' : 'conductor.power_state_change_timeout'];

async function order(task: NodeTask, asked: Power, from: 'power on' | 'power off' | null, seconds: number | undefined): Promise<void> {
  const { ends } = ORDERS[asked];
  const target = ends === 'power on' && from === 'power off' ? 'power on' : asked;
  const limit = seconds ?? limitOf(task, target);
  await sendOrder(task, target, limit);
  // Some BMCs accept `on` and do nothing (Dell R650 with firmware 5.10.10.05).
  const again = target === 'power on' ? () => sendOrder(task, target, limit) : undefined;
  if (!task.driver.power.throughAgent) await waitFor(task, ends, limit, again);
}

const hasDedicatedPowerSupply = ({ driver_info: info }: Pick<NodeRecord, 'driver_info'>): boolean =>
  toBoolean(info.has_dedicated_power_supply) === true;

/** Changes the power of a parent or child node, unless it is right already. Throws `locked` when other work holds that node. */
async function changeOther(task: NodeTask, uuid: string, target: 'power on' | 'power off', locked: Fault, seconds?: number): Promise<void> {
  const purpose = 'power of a parent or child node';
  const now = await task.withNode(uuid, { purpose, lock: 'shared' }, async (other) => other.driver.power.get(other));
  if (now === target) return;
  try {
    await task.withNode(uuid, { purpose }, (other) => changePower(other, target, seconds));
  } catch (error) {
    throw error instanceof Fault && error.name === 'NodeLocked' ? locked : error;
  }
}

/** A child without its own power supply can be on only while its parent is on: a parent goes on first, children go off first. */
async function changeRelatives(task: NodeTask, target: Power, seconds?: number): Promise<void> {
  const { uuid: node, parent_node: parent } = task.node;
  if (target === 'power on' && parent && !hasDedicatedPowerSupply(task.node))
    await changeOther(task, parent, 'power on', new Fault('ParentNodeLocked', { node, parent }), seconds);
  if (target !== 'power off') return;
  const children = await task.context.store.nodes.listColumns(['uuid', 'driver_info'], { children: node });
  for (const { uuid: child } of children.filter((candidate) => !hasDedicatedPowerSupply(candidate)))
    await changeOther(task, child, 'power off', new Fault('ChildNodeLocked', { node, child }), seconds);
}

/**
 * Brings the machine to a power state and waits for it. The node shows `target_power_state` meanwhile. A machine that is in the state
 * already gets no request. Throws the driver's error, or PowerStateFailure; `last_error` then has the reason.
 * @param seconds how long the machine may take; default: the options
 */
export async function changePower(task: NodeTask, target: Power, seconds?: number): Promise<void> {
  const { ends, endsSystem } = ORDERS[target];
  notifyPower(task, 'start', target);
  const shown = task.node.last_error;
  if (ends === 'power off' && task.node.disable_power_off) throw new Fault('PowerStateFailure', { pstate: target });
  const fail = async (text: string, error: unknown): Promise<never> => {
    if (!isInterrupted(task.context, error)) {
      const event = `${text}: ${reasonOf(error)}`;
      // Work that repeats itself, such as boot retries at a dead BMC, has one entry until the failure changes.
      const isKnown = task.context.origin === undefined && event === shown;
      // The caller gets the error of the machine, and not that of the record.
      const unwritten = await attempt(task, 'recording the failure of a power change', () =>
        isKnown
          ? task.save({ last_error: event, target_power_state: null })
          : task.record({ type: 'UNKNOWN', event, error: true }, { target_power_state: null }),
      );
      if (unwritten !== undefined) await task.save({ target_power_state: null });
      notifyPower(task, 'error', target);
    }
    throw error;
  };
  const now = await task.driver.power.get(task).catch((error: unknown) => fail(`Failed to change power state to '${target}'`, error));
  const { throughAgent } = task.driver.power;
  const reboots = target === 'rebooting' || target === 'soft rebooting';
  if (now === ends && !reboots) {
    await task.write({ power_state: now, target_power_state: null, last_error: null }, endsSystem ? forgetAgent(task) : {});
    notifyPower(task, 'end', target);
    return;
  }
  const started: NodeChanges = { target_power_state: ends, ...(stateRow(task.node.provision_state).failed ? {} : { last_error: null }) };
  await task.write(started, {
    last_power_state_change: bareTimestamp(task.clock.now()),
    // A machine that was off without an order of ours has lost its agent too.
    ...((endsSystem && !throughAgent) || now === 'power off' ? forgetAgent(task) : {}),
  });
  const { storage } = task.driver;
  const isActive = task.node.provision_state === 'active';
  const change = async (): Promise<void> => {
    if (isActive && ends === 'power on') await storage.attachVolumes?.(task);
    await changeRelatives(task, target, seconds);
    await order(task, target, now, seconds);
  };
  await change().catch((error: unknown) => fail(`Failed to change power state to '${ends}' by '${target}'`, error));
  await task.write({ power_state: ends, target_power_state: null }, throughAgent && endsSystem ? forgetAgent(task) : {});
  notifyNova(task.context, task.node);
  notifyPower(task, 'end', target);
  if (isActive && ends === 'power off')
    await attempt(task, 'detaching the volumes of a machine that is off', async () => storage.detachVolumes?.(task));
}
