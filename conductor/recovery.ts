/**
 * Nodes that a conductor left in the middle of its work: gone on with where that is safe, failed where it is not. What a flow was
 * about to do is on the node (state, list of steps, index), so that any conductor can tell.
 */
import type { Outcome } from '../drivers/interfaces';
import { Fault, reasonOf } from '../model/errors';
import type { NodeRecord } from '../model/records';
import { STATES, stateRow, type FlowName, type ProvisionState } from '../model/states';
import type { Context } from './context';
import { beginClean, clean, continueClean } from './flows/clean';
import { beginDeploy, continueDeploy, deploy } from './flows/deploy';
import { settle, type Flow } from './flows/flow';
import { beginInspect, inspect } from './flows/inspect';
import { beginUndeploy, undeploy } from './flows/undeploy';
import { beginVerify, verify } from './flows/verify';
import { findStep, positionOf, type SavedKind } from './steps';
import { startTask, withTask, type Held } from './task';

const WORKING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).working);

const cutOff = (task: Held): Outcome => ({
  kind: 'failed',
  reason: `The ${task.node.provision_state} state can't be resumed by conductor ${task.context.host}. Moving to fail state.`,
});

/** Goes on with the steps: a running one only if running it again is right, or if the agent runs it and can be asked. */
const resumeSteps =
  (kind: SavedKind, begin: (task: Held) => Promise<Outcome>, proceed: (task: Held, from: number) => Promise<Outcome>) =>
  async (task: Held): Promise<Outcome> => {
    const { index, running } = positionOf(task, kind);
    if (index === undefined) return begin(task);
    if (!running) return proceed(task, index);
    const own = findStep(task.driver, kind, running);
    if (!own) return { kind: 'wait' };
    return own.resumable ? proceed(task, index) : cutOff(task);
  };

/** Flow → how it goes on. Verification, inspection and tearing down may be done again from their beginning. */
const RESUME: Partial<Record<FlowName, { readonly flow: Flow; readonly work: (task: Held) => Promise<Outcome> }>> = {
  verify: { flow: verify, work: beginVerify },
  inspect: { flow: inspect, work: beginInspect },
  undeploy: { flow: undeploy, work: beginUndeploy },
  clean: { flow: clean, work: resumeSteps('clean', beginClean, continueClean) },
  deploy: { flow: deploy, work: resumeSteps('deploy', beginDeploy, continueDeploy) },
};

/** The reservations of a host that is gone end; what they were for shows in the nodes' states. */
async function releaseOf(context: Context, host: string): Promise<void> {
  const { store } = context;
  for (const { uuid, target_power_state: target } of await store.nodes.releaseAll(host)) {
    if (target === null) continue;
    const lastError = 'Pending power operation was aborted due to conductor restart';
    await withTask(context, uuid, { purpose: 'power state clean up' }, (task) =>
      task.save({ target_power_state: null, last_error: lastError }),
    ).catch((error: unknown) => context.log.warn(`node ${uuid} after its host went`, { reason: reasonOf(error) }));
  }
}

/** Nodes in a working state that nobody holds: their conductor is gone. */
export async function resumeAbandoned(context: Context): Promise<void> {
  const { store, locks, log } = context;
  const nodes = await store.nodes.list({ where: { provision_state: WORKING }, reserved: false, children: 'all' });
  for (const node of nodes.filter(({ uuid }) => !locks.has(uuid))) {
    try {
      await startTask(context, node.uuid, { purpose: 'recovery' }, async (task) => {
        const row = stateRow(task.node.provision_state);
        if (!row.working) return undefined;
        const found = RESUME[row.flow!];
        task.log.warn(`${task.node.provision_state} was left by its conductor`, { step: positionsOf(task.node) });
        if (!found) return () => task.fire('fail', { last_error: (cutOff(task) as { reason: string }).reason });
        return () => settle(task, found.flow, () => found.work(task));
      });
    } catch (error) {
      if (!(error instanceof Fault && error.name === 'NodeLocked')) log.warn(`recovery of node ${node.uuid}`, { reason: reasonOf(error) });
    }
  }
}
const positionsOf = ({ clean_step: cleanStep, deploy_step: deployStep }: NodeRecord): string | undefined =>
  (cleanStep.step ?? deployStep.step) as string | undefined;

/** At the start: this host's reservations cannot be its own yet. Nodes that wait go on waiting, and are asked again if they were before. */
export async function recover(context: Context): Promise<void> {
  await releaseOf(context, context.host);
  await resumeAbandoned(context);
  const waiting = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');
  for (const { uuid, driver_internal_info: internal } of await context.store.nodes.list({
    where: { provision_state: waiting },
    children: 'all',
  }))
    if (typeof internal.step_poll_every === 'number') context.askLater(uuid, internal.step_poll_every);
}

/**
 * From time to time: reservations of this host that no task holds (they could not be ended when the database was away), those of
 * hosts that are gone, and the nodes that both leave behind.
 */
export async function endStrayReservations(context: Context): Promise<void> {
  const { store, host, locks, clock, options } = context;
  // Held ones are noted before they are reserved, so that what is listed here and not noted is nobody's.
  const reserved = await store.nodes.list({ reserved: true, children: 'all' });
  for (const { uuid, reservation, lock_fence: fence } of reserved)
    if (reservation === host && !locks.has(uuid)) await store.nodes.release(uuid, fence);
  const oldest = clock.now() - options['conductor.heartbeat_timeout'] * 1000;
  const alive = new Set(
    (await store.conductors.list()).filter((one) => one.online && Date.parse(one.updated_at) >= oldest).map(({ hostname }) => hostname),
  );
  const gone = new Set(reserved.map(({ reservation }) => reservation!).filter((name) => name !== host && !alive.has(name)));
  for (const name of gone) {
    context.log.warn(`conductor ${name} is gone: its nodes are taken over`);
    await releaseOf(context, name);
  }
  await resumeAbandoned(context);
}
