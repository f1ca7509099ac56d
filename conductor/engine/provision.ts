/** PUT …/states/provision: a verb is checked, its event fired, and its flow goes on under the same lock after the answer. */
import { timestamp } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import type { InterfaceKind, JsonObject } from '../../model/records';
import { VERBS, next, type Event } from '../../model/states';
import { abort, unhold } from './abort';
import { FORGET_TOKEN_AND_URL, unlessNeeded } from '../core/agent-info';
import { automatedRunbook } from '../steps/automated-runbook';
import type { ProvisionArgs } from '../core/call-types';
import type { Context } from '../core/context';
import { adopt, beginAdopt } from '../flows/adopt';
import { beginClean, clean, startingClean } from '../flows/clean';
import { automaticLessee, beginDeploy, checkDeploy, deploy, imageType, startingDeploy } from '../flows/deploy';
import { applyOutcome } from '../flows/flow';
import { beginInspect, inspect } from '../flows/inspect';
import { lookSoon } from './interface-periodics';
import { beginRescue, beginUnrescue, rescue, unrescue, withoutPasswords } from '../flows/rescue';
import { beginService, service, startingService } from '../flows/service';
import { beginUndeploy, undeploy } from '../flows/undeploy';
import { beginVerify, verify } from '../flows/verify';
import { CLEANINGS, countTowards, DEPLOYMENTS, type ConcurrencyLimit } from '../core/concurrency';
import { hashPassword, type HashAlgorithm } from '../flows/password-hash';
import { askedSteps, checkArguments, checkAsked, offeredSteps } from '../steps/steps';
import { startTask } from '../core/task';
import type { NodeTask, InternalChanges } from '../core/node-task';
import { validateInterface } from '../core/validate';

/** Fires the verb's event; what is returned goes on after the answer. */
type Handler = (task: NodeTask, args: ProvisionArgs) => Promise<(() => Promise<void>) | undefined>;

const LIMITS: Partial<Record<Event, ConcurrencyLimit>> = {
  deploy: DEPLOYMENTS,
  rebuild: DEPLOYMENTS,
  clean: CLEANINGS,
  delete: { ...CLEANINGS, action: 'unprovisioning' },
};
/** A catastrophe shall not take down (or erase) all machines at once: refused with 503, whoever asks. */
async function checkLimit(context: Context, event: Event | undefined): Promise<void> {
  const found = event && LIMITS[event];
  if (!found) return;
  const { count, limit } = await countTowards(context, found);
  if (count >= limit) throw new Fault('ConcurrentActionLimit', { task_type: found.action });
}

const maintained = (task: NodeTask, op: string): void => {
  if (task.node.maintenance) throw new Fault('NodeInMaintenance', { op, node: task.node.uuid });
};
/** Runs a check; what it refuses is said in this sentence, with status 400. */
async function refuseWith(say: (reason: string) => string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 400) throw error;
    throw new Fault('InvalidParameterValue', { message: say(reasonOf(error)) }, { cause: error });
  }
}
/** The interfaces that rescuing needs, refused in one sentence. */
const rescuable = async (task: NodeTask, fault: 'InstanceRescueFailure' | 'InstanceUnrescueFailure', kinds: readonly InterfaceKind[]) => {
  try {
    for (const kind of kinds) await validateInterface(task, kind);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const { uuid: node, instance_uuid: instance } = task.node;
    throw new Fault(fault, { instance: instance ?? 'None', node, reason: `Validation failed: ${reasonOf(error)}` }, { cause: error });
  }
};
/** What is forgotten when a flow begins: it clears the last error, so that it may go on with an agent that is there. */
const beginning = (task: NodeTask, internal: InternalChanges): InternalChanges =>
  unlessNeeded(task, internal, { ...task.node, last_error: null });
/** Some boot modes may be out of use. */
function checkBootMode({ node: { properties }, context: { options } }: NodeTask): void {
  const mode = typeof properties['boot_mode'] === 'string' ? properties['boot_mode'].toLowerCase() : '';
  if (options['conductor.disallowed_deployment_boot_modes'].includes(mode.trim()))
    throw new Fault('BootModeNotAllowed', { mode, op: 'provisioning' });
}
/**
 * What is wrong with a list whatever the agent offers: arguments, and unknown steps where no agent is to come. Ironic tells it in
 * `last_error` afterwards.
 */
function checkListed(
  task: NodeTask,
  kind: 'clean' | 'service',
  asked: readonly JsonObject[],
  withoutRamdisk: boolean,
  say: (reason: string) => string,
): void {
  const steps = askedSteps(asked);
  try {
    checkAsked(kind, steps, offeredSteps(task.driver, kind), { unknownLater: !withoutRamdisk });
    checkArguments(task.driver, kind, steps);
  } catch (error) {
    throw error instanceof Fault ? new Fault('InvalidParameterValue', { message: say(error.message) }, { cause: error }) : error;
  }
}
const move =
  (event: Event): Handler =>
  async (task) => {
    await task.fire(event);
    return undefined;
  };

const beginDeployment =
  (event: 'deploy' | 'rebuild'): Handler =>
  async (task, args) => {
    maintained(task, 'provisioning');
    if (event === 'rebuild' && task.node.protected) throw new Fault('NodeProtected', { node: task.node.uuid });
    checkBootMode(task);
    await checkDeploy(task, args.deploy_steps ?? []);
    const [changes, internal] = startingDeploy(task.node, args);
    const [leased, automatic] = event === 'rebuild' ? [{}, {}] : automaticLessee(task);
    await task.fire(event, { ...changes, ...leased }, beginning(task, { ...internal, ...automatic }));
    return () => applyOutcome(task, deploy, () => beginDeploy(task));
  };

const HANDLERS: Partial<Record<Event, Handler>> = {
  manage: async (task, args) => {
    if (task.node.provision_state !== 'enroll') return move('manage')(task, args);
    await task.fire('manage', { last_error: null });
    return () => applyOutcome(task, verify, () => beginVerify(task));
  },
  provide: async (task) => {
    const { uuid: node, retired, maintenance } = task.node;
    if (maintenance && !task.context.options['conductor.allow_provisioning_in_maintenance'])
      throw new Fault('NodeInMaintenance', { op: 'providing', node });
    if (retired) throw new Fault('NodeIsRetired', { op: 'providing', node });
    const runbook = await automatedRunbook(task.context, task.node);
    if (runbook) checkListed(task, 'clean', runbook.steps, runbook.disableRamdisk, (reason) => `Cannot clean node ${node}: ${reason}`);
    await task.fire('provide', { last_error: null, clean_step: {} }, beginning(task, startingClean(runbook)));
    return () => applyOutcome(task, clean, () => beginClean(task));
  },
  clean: async (task, { clean_steps: asked = [], disable_ramdisk: without = false }) => {
    maintained(task, 'cleaning');
    await refuseWith(
      (reason) => `Validation of node ${task.node.uuid} for cleaning failed: ${reason}`,
      async () => {
        await validateInterface(task, 'power');
        await validateInterface(task, 'network');
      },
    );
    checkListed(task, 'clean', asked, without, (reason) => `Cannot clean node ${task.node.uuid}: ${reason}`);
    await task.fire(
      'clean',
      { last_error: null, clean_step: {}, target_provision_state: 'manageable' },
      beginning(task, startingClean({ steps: asked, disableRamdisk: without })),
    );
    return () => applyOutcome(task, clean, () => beginClean(task));
  },
  inspect: async (task) => {
    await validateInterface(task, 'power');
    await validateInterface(task, 'inspect');
    await task.fire('inspect', { last_error: null, inspection_started_at: timestamp(task.clock.now()), inspection_finished_at: null });
    // It is asked once nobody holds the node any more, on which it works itself.
    if (task.driver.inspect.byService) task.context.locks.remember(task.node.uuid, () => lookSoon(task.context, task.node.uuid));
    return () => applyOutcome(task, inspect, () => beginInspect(task));
  },
  deploy: beginDeployment('deploy'),
  rebuild: beginDeployment('rebuild'),
  delete: async (task) => {
    if (task.node.protected) throw new Fault('NodeProtected', { node: task.node.uuid });
    await refuseWith(
      (reason) => `Failed to validate power driver interface. Can not delete instance. Error: ${reason}`,
      () => validateInterface(task, 'power'),
    );
    await task.fire('delete', { last_error: null }, FORGET_TOKEN_AND_URL);
    return () => applyOutcome(task, undeploy, () => beginUndeploy(task));
  },
  adopt: async (task) => {
    const [changes, internal] = imageType(task.node);
    await task.fire('adopt', { last_error: null, ...changes }, internal);
    return () => applyOutcome(task, adopt, () => beginAdopt(task));
  },
  service: async (task, { service_steps: asked = [], disable_ramdisk: without = false }) => {
    maintained(task, 'service');
    await refuseWith(
      (reason) => `Validation of node ${task.node.uuid} for servicing failed: ${reason}`,
      async () => {
        await validateInterface(task, 'power');
        await validateInterface(task, 'network');
      },
    );
    checkListed(task, 'service', asked, without, (reason) => `Cannot service node ${task.node.uuid}: ${reason}`);
    await task.fire('service', { last_error: null, service_step: {} }, startingService(asked, without));
    return () => applyOutcome(task, service, () => beginService(task));
  },
  rescue: async (task, { rescue_password: password = '' }) => {
    maintained(task, 'rescuing');
    const hashed = hashPassword(
      password,
      task.context.options['conductor.rescue_password_hash_algorithm'] as HashAlgorithm,
      task.context.random,
    );
    const instance = { ...withoutPasswords(task.node), rescue_password: password, hashed_rescue_password: hashed };
    // The rescue interface looks at the password too; it is kept only when all is right.
    const seen: NodeTask = { ...task, node: { ...task.node, instance_info: instance } };
    await rescuable(seen, 'InstanceRescueFailure', ['power', 'rescue', 'network']);
    await task.fire('rescue', { last_error: null, instance_info: instance }, FORGET_TOKEN_AND_URL);
    return () => applyOutcome(task, rescue, () => beginRescue(task));
  },
  unrescue: async (task) => {
    maintained(task, 'unrescuing');
    await rescuable(task, 'InstanceUnrescueFailure', ['power']);
    await task.fire('unrescue', { last_error: null }, FORGET_TOKEN_AND_URL);
    return () => applyOutcome(task, unrescue, () => beginUnrescue(task));
  },
  abort,
  unhold,
};

/** Throws before anything changed: 400, 403, 409 (NodeLocked) or 503, as Ironic does. Returns when the work is under way. */
export async function provision(context: Context, uuid: string, verb: string, args: ProvisionArgs): Promise<void> {
  const event = Object.hasOwn(VERBS, verb) ? VERBS[verb]!.event : undefined;
  await checkLimit(context, event);
  // The API has looked at the node's state already; what counts is how it is once it is held.
  await startTask(context, uuid, { purpose: `provision action ${verb}`, retry: true }, async (task) => {
    const { provision_state: state } = task.node;
    if (event === undefined || next(state, event) === undefined)
      throw new Fault('InvalidStateRequested', { action: verb, node: uuid, state });
    return HANDLERS[event]!(task, args);
  });
}
