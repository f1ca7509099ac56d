/** PUT …/states/provision: a verb is checked, its event fired, and its flow goes on under the same lock after the answer. */
import { timestamp } from '../model/clock';
import { Fault, reasonOf } from '../model/errors';
import type { InterfaceKind } from '../model/records';
import { VERBS, next, type Event, type ProvisionState } from '../model/states';
import { abort, unhold } from './abort';
import { FORGET_TOKEN_AND_URL, unlessNeeded } from './agent-info';
import type { ProvisionArgs } from './conductor';
import type { Context } from './context';
import { adopt, beginAdopt } from './flows/adopt';
import { beginClean, clean, startingClean } from './flows/clean';
import { beginDeploy, checkDeploy, deploy, imageType, startingDeploy } from './flows/deploy';
import { settle } from './flows/flow';
import { beginInspect, inspect } from './flows/inspect';
import { beginRescue, beginUnrescue, rescue, unrescue, withoutPasswords } from './flows/rescue';
import { beginService, service, startingService } from './flows/service';
import { beginUndeploy, undeploy } from './flows/undeploy';
import { beginVerify, verify } from './flows/verify';
import { hashPassword, type HashAlgorithm } from './password-hash';
import { startTask, type Held } from './task';
import { validateInterface } from './validate';

/** Fires the verb's event; what is returned goes on after the answer. */
type Handler = (task: Held, args: ProvisionArgs) => Promise<(() => Promise<void>) | undefined>;

/** Option that bounds how many nodes may be in these states at once, and the name of the refused action. */
const LIMITS = {
  provisioning: { option: 'conductor.max_concurrent_deploy', states: ['deploying', 'wait call-back'] },
  unprovisioning: { option: 'conductor.max_concurrent_clean', states: ['deleting', 'cleaning', 'clean wait'] },
  cleaning: { option: 'conductor.max_concurrent_clean', states: ['deleting', 'cleaning', 'clean wait'] },
} as const satisfies Record<string, { option: string; states: readonly ProvisionState[] }>;
async function checkLimit({ store, options }: Context, action: keyof typeof LIMITS): Promise<void> {
  const { option, states } = LIMITS[action];
  const busy = await store.nodes.countUpTo(options[option], states);
  if (busy >= options[option]) throw new Fault('ConcurrentActionLimit', { task_type: action });
}

const maintained = (task: Held, op: string): void => {
  if (task.node.maintenance) throw new Fault('NodeInMaintenance', { op, node: task.node.uuid });
};
/** Runs a check; what it refuses is said in this sentence, with status 400. */
async function refusing(say: (reason: string) => string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 400) throw error;
    throw new Fault('InvalidParameterValue', { message: say(reasonOf(error)) }, { cause: error });
  }
}
/** The interfaces that rescuing needs, refused in one sentence. */
const rescuable = async (task: Held, fault: 'InstanceRescueFailure' | 'InstanceUnrescueFailure', kinds: readonly InterfaceKind[]) => {
  try {
    for (const kind of kinds) await validateInterface(task, kind);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const { uuid: node, instance_uuid: instance } = task.node;
    throw new Fault(fault, { instance: instance ?? 'None', node, reason: `Validation failed: ${reasonOf(error)}` }, { cause: error });
  }
};
const move =
  (event: Event): Handler =>
  async (task) => {
    await task.fire(event);
    return undefined;
  };

const beginDeployment =
  (event: 'deploy' | 'rebuild'): Handler =>
  async (task, args) => {
    await checkLimit(task.context, 'provisioning');
    maintained(task, 'provisioning');
    if (event === 'rebuild' && task.node.protected) throw new Fault('NodeProtected', { node: task.node.uuid });
    await checkDeploy(task, args.deploy_steps ?? []);
    const [changes, internal] = startingDeploy(task.node, args);
    await task.fire(event, changes, unlessNeeded(task, internal));
    return () => settle(task, deploy, () => beginDeploy(task));
  };

const HANDLERS: Partial<Record<Event, Handler>> = {
  manage: async (task, args) => {
    if (task.node.provision_state !== 'enroll') return move('manage')(task, args);
    await task.fire('manage', { last_error: null });
    return () => settle(task, verify, () => beginVerify(task));
  },
  provide: async (task) => {
    const { uuid: node, retired, maintenance } = task.node;
    if (maintenance && !task.context.options['conductor.allow_provisioning_in_maintenance'])
      throw new Fault('NodeInMaintenance', { op: 'providing', node });
    if (retired) throw new Fault('NodeIsRetired', { op: 'providing', node });
    await task.fire('provide', { last_error: null, clean_step: {} }, unlessNeeded(task, startingClean()));
    return () => settle(task, clean, () => beginClean(task));
  },
  clean: async (task, { clean_steps: asked = [], disable_ramdisk: without = false }) => {
    await checkLimit(task.context, 'cleaning');
    maintained(task, 'cleaning');
    await refusing(
      (reason) => `Validation of node ${task.node.uuid} for cleaning failed: ${reason}`,
      async () => {
        await validateInterface(task, 'power');
        await validateInterface(task, 'network');
      },
    );
    await task.fire(
      'clean',
      { last_error: null, clean_step: {}, target_provision_state: 'manageable' },
      unlessNeeded(task, startingClean(asked, without)),
    );
    return () => settle(task, clean, () => beginClean(task));
  },
  inspect: async (task) => {
    await validateInterface(task, 'power');
    await validateInterface(task, 'inspect');
    await task.fire('inspect', { last_error: null, inspection_started_at: timestamp(task.clock.now()), inspection_finished_at: null });
    return () => settle(task, inspect, () => beginInspect(task));
  },
  deploy: beginDeployment('deploy'),
  rebuild: beginDeployment('rebuild'),
  delete: async (task) => {
    await checkLimit(task.context, 'unprovisioning');
    if (task.node.protected) throw new Fault('NodeProtected', { node: task.node.uuid });
    await refusing(
      (reason) => `Failed to validate power driver interface. Can not delete instance. Error: ${reason}`,
      () => validateInterface(task, 'power'),
    );
    await task.fire('delete', { last_error: null }, FORGET_TOKEN_AND_URL);
    return () => settle(task, undeploy, () => beginUndeploy(task));
  },
  adopt: async (task) => {
    const [changes, internal] = imageType(task.node);
    await task.fire('adopt', { last_error: null, ...changes }, internal);
    return () => settle(task, adopt, () => beginAdopt(task));
  },
  service: async (task, { service_steps: asked = [], disable_ramdisk: without = false }) => {
    maintained(task, 'service');
    await refusing(
      (reason) => `Validation of node ${task.node.uuid} for servicing failed: ${reason}`,
      async () => {
        await validateInterface(task, 'power');
        await validateInterface(task, 'network');
      },
    );
    await task.fire('service', { last_error: null, service_step: {} }, startingService(asked, without));
    return () => settle(task, service, () => beginService(task));
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
    const seen: Held = { ...task, node: { ...task.node, instance_info: instance } };
    await rescuable(seen, 'InstanceRescueFailure', ['power', 'rescue', 'network']);
    await task.fire('rescue', { last_error: null, instance_info: instance }, FORGET_TOKEN_AND_URL);
    return () => settle(task, rescue, () => beginRescue(task));
  },
  unrescue: async (task) => {
    maintained(task, 'unrescuing');
    await rescuable(task, 'InstanceUnrescueFailure', ['power']);
    await task.fire('unrescue', { last_error: null }, FORGET_TOKEN_AND_URL);
    return () => settle(task, unrescue, () => beginUnrescue(task));
  },
  abort,
  unhold,
};

/** Throws before anything changed: 400, 403, 409 (NodeLocked) or 503, as Ironic does. Returns when the work is under way. */
export async function provision(context: Context, uuid: string, verb: string, args: ProvisionArgs): Promise<void> {
  const event = Object.hasOwn(VERBS, verb) ? VERBS[verb]!.event : undefined;
  // The API has looked at the node's state already; what counts is how it is once it is held.
  await startTask(context, uuid, { purpose: `provision action ${verb}`, retry: true }, async (task) => {
    const { provision_state: state } = task.node;
    if (event === undefined || next(state, event) === undefined)
      throw new Fault('InvalidStateRequested', { action: verb, node: uuid, state });
    return HANDLERS[event]!(task, args);
  });
}
