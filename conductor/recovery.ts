/**
 * Nodes that a conductor left in the middle of its work: gone on with where that is safe, failed where it is not. What a flow was
 * about to do is on the node (state, list of steps, index), so that any conductor can tell.
 */
import type { Outcome } from '../drivers/interfaces';
import { Fault, reasonOf } from '../model/errors';
import type { NodeRecord } from '../model/records';
import { STATES, stateRow, type FlowName, type ProvisionState } from '../model/states';
import type { Context } from './context';
import { adopt, beginAdopt } from './flows/adopt';
import { beginClean, clean } from './flows/clean';
import { beginDeploy, deploy } from './flows/deploy';
import { settle, type Flow, type SteppedFlow } from './flows/flow';
import { beginInspect, inspect } from './flows/inspect';
import { beginRescue, beginUnrescue, rescue, unrescue } from './flows/rescue';
import { beginService, service } from './flows/service';
import { beginUndeploy, undeploy } from './flows/undeploy';
import { beginVerify, verify } from './flows/verify';
import { reservedStep, type StepOutcome } from './reserved-steps';
import { positionOf } from './running';
import { findStep } from './steps';
import { startTask, withTask, type Held } from './task';

const WORKING = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).working);

const cutOff = (task: Held): Outcome => ({
  kind: 'failed',
  reason: `The ${task.node.provision_state} state can't be resumed by conductor ${task.context.host}. Moving to fail state.`,
});

interface Resume {
  readonly flow: Flow;
  readonly work: (task: Held) => Promise<StepOutcome>;
}
/** Goes on with the steps: a running one only if running it again is right, or if the agent runs it and can be asked. */
const steps = (flow: SteppedFlow, begin: (task: Held) => Promise<StepOutcome>): Resume => ({
  flow,
  work: async (task) => {
    const { index, running } = positionOf(task, flow.kind);
    if (index === undefined) return begin(task);
    if (!running || running.execute_on_child_nodes) return running ? cutOff(task) : flow.proceed(task, index);
    const own = findStep(task.driver, flow.kind, running) ?? reservedStep(running);
    if (!own) return { kind: 'wait' };
    return own.resumable ? flow.proceed(task, index) : cutOff(task);
  },
});

/** Flow → how it goes on. What is not made of steps may be done again from its beginning. */
const RESUME: Readonly<Record<FlowName, Resume>> = {
  verify: { flow: verify, work: beginVerify },
  inspect: { flow: inspect, work: beginInspect },
  undeploy: { flow: undeploy, work: beginUndeploy },
  adopt: { flow: adopt, work: beginAdopt },
  rescue: { flow: rescue, work: beginRescue },
  unrescue: { flow: unrescue, work: beginUnrescue },
  clean: steps(clean, beginClean),
  deploy: steps(deploy, beginDeploy),
  service: steps(service, beginService),
};

/** The reservations of a host that is gone end; what they were for shows in the nodes' states. */
async function releaseOf(context: Context, host: string): Promise<void> {
  const { store } = context;
  for (const { uuid, target_power_state: target } of await store.nodes.releaseAll(host)) {
    if (target === null) continue;
    const lastError = 'Pending power operation was aborted due to conductor restart';
    await withTask(context, uuid, { purpose: 'power state clean up' }, (task) =>
      task.record({ type: 'startup failure', event: lastError, error: true }, { target_power_state: null }),
    ).catch((error: unknown) => context.log.warn(`node ${uuid} after its host went`, { reason: reasonOf(error) }));
  }
}

/** Nodes in a working state that nobody holds: their conductor is gone. */
export async function resumeAbandoned(context: Context): Promise<void> {
  const { store, locks, log } = context;
  const nodes = await store.nodes.list({ where: { provision_state: WORKING }, reserved: false, children: 'all' });
  for (const node of await context.mine(nodes.filter(({ uuid }) => !locks.has(uuid)))) {
    try {
      await startTask(context, node.uuid, { purpose: 'recovery' }, async (task) => {
        const row = stateRow(task.node.provision_state);
        if (!row.working) return undefined;
        const found = RESUME[row.flow!];
        task.log.warn(`${task.node.provision_state} was left by its conductor`, { step: positionsOf(task.node) });
        return () => settle(task, found.flow, () => found.work(task));
      });
    } catch (error) {
      if (!(error instanceof Fault && error.name === 'NodeLocked')) log.warn(`recovery of node ${node.uuid}`, { reason: reasonOf(error) });
    }
  }
}
const positionsOf = ({ clean_step: clean, deploy_step: deploy, service_step: service }: NodeRecord): string | undefined =>
  (clean.step ?? deploy.step ?? service.step) as string | undefined;

/** At the start: this host's reservations cannot be its own yet. Nodes that wait go on waiting, and are asked again if they were before. */
export async function recover(context: Context): Promise<void> {
  await releaseOf(context, context.host);
  await resumeAbandoned(context);
  const waiting = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).heartbeat === 'resume');
  const nodes = await context.mine(await context.store.nodes.list({ where: { provision_state: waiting }, children: 'all' }));
  for (const { uuid, driver_internal_info: internal } of nodes)
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
