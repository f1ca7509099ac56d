/** available, deploy failed (deploy) and active, error, deploy failed (rebuild) → active. */
import { done, failed, wait, type PlannedStep } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { forgottenAt } from '../../model/internal-info';
import type { JsonObject, NodeRecord } from '../../model/records';
import { isOciUrl } from '../../wire/oci/reference';
import { glanceId } from '../../wire/openstack/glance';
import { FORGET_TOKEN_AND_URL, keepAgentIfNeeded } from '../core/agent-info';
import { attempt, withFailureText, withoutFullStop } from '../core/attempt';
import type { ProvisionArgs } from '../core/call-types';
import { DEPLOYMENTS } from '../core/concurrency';
import { isInterrupted } from '../core/interruption';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { restoreConsole } from '../requests/console';
import { runningAgentSteps } from '../steps/agent-steps';
import { checkDeployRequest, requestedDeploySteps } from '../steps/deploy-request';
import { withDefaults } from '../steps/default-config';
import type { StepOutcome } from '../steps/reserved-steps';
import { positionOf, savedList } from '../steps/step-position';
import { recordSteps } from '../steps/step-history';
import { allowedSteps, deploySteps, offeredSteps, stepId, type RequestedStep } from '../steps/steps';
import { forgottenAtBegin, refuseInMaintenance } from './admission';
import { storeLogsAtEnd } from './failure-report';
import { reported, type Admission, type Admitted } from './flow';
import { failFlow, powerOffAfter } from './outcome';
import { abortedText, abortSteps, stepsFlow } from './steps-flow';

const FORGET_DEPLOYING = forgottenAt('deploy end');

const isInGlance = (source: unknown): boolean => typeof source === 'string' && glanceId(source) !== undefined;

/**
 * Whether the image is a whole disk: by `image_type`, else if kernel and ramdisk are absent. Under both of Ironic's keys. Of an image in Glance,
 * its properties decide, which the deploy interface reads.
 */
export function imageType({ instance_info: info }: NodeRecord): Required<Admitted> {
  if (!info.image_source || (!info.image_type && isInGlance(info.image_source))) return { changes: {}, internal: {} };
  const isOci = typeof info.image_source === 'string' && isOciUrl(info.image_source);
  const whole = info.image_type ? info.image_type !== 'partition' : isOci || (!info.kernel && !info.ramdisk);
  return {
    changes: { instance_info: { ...info, image_type: whole ? 'whole-disk' : 'partition' } },
    internal: { is_whole_disk_image: whole },
  };
}

/** A node without a lessee is leased to the project of its instance, or of the client, until the instance ends. */
function automaticLessee({ node, context: { options, origin } }: NodeTask): Required<Admitted> {
  const source = options['conductor.automatic_lessee'] ? options['conductor.automatic_lessee_source'] : 'none';
  const projects: Readonly<Record<string, unknown>> = { instance: node.instance_info.project_id, request: origin?.project };
  const project = projects[source];
  if (typeof project !== 'string' || project === '' || node.lessee !== null) return { changes: {}, internal: {} };
  return { changes: { lessee: project }, internal: { automatic_lessee: true } };
}

/** Written with the event that begins a deployment: the request of the client. */
function startingDeploy(
  node: NodeRecord,
  repository: boolean,
  { configdrive, deploy_steps: asked = [] }: ProvisionArgs,
): Required<Admitted> {
  const {
    changes: { instance_info: info = node.instance_info },
    internal,
  } = repository ? { changes: {}, internal: { is_source_a_path: true, is_whole_disk_image: undefined } } : imageType(node);
  return {
    changes: { deploy_step: {}, last_error: null, instance_info: { ...info, ...(configdrive ? { configdrive } : {}) } },
    internal: { ...FORGET_DEPLOYING, ...internal, user_deploy_steps: asked.length > 0 ? asked : undefined },
  };
}

function checkBootMode({ node: { properties }, context: { options } }: NodeTask): void {
  const mode = typeof properties['boot_mode'] === 'string' ? properties['boot_mode'].toLowerCase() : '';
  if (options['conductor.disallowed_deployment_boot_modes'].includes(mode.trim()))
    throw new Fault('BootModeNotAllowed', { mode, op: 'provisioning' });
}

/** What an earlier deployment took from the image in Glance, which may name other parts now. */
function forgetImageParts(task: NodeTask): void {
  const { kernel, ramdisk, boot_iso: iso, original_image_source: original, ...others } = task.node.instance_info;
  const isTaken = [kernel, ramdisk, iso, original].some((value) => value !== undefined);
  if (isTaken && isInGlance(others.image_source)) task.note({ instance_info: others });
}

async function validateDeployment(task: NodeTask, asked: readonly JsonObject[]): Promise<void> {
  try {
    await validateInterface(task, 'power');
    await validateInterface(task, 'deploy');
    await checkDeployRequest(task, { asked });
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 400) throw error;
    const message = `Failed to validate deploy or power info for node ${task.node.uuid}: ${reasonOf(error)}`;
    throw new Fault('InvalidParameterValue', { message }, { cause: error });
  }
}

const admission = (event: 'deploy' | 'rebuild'): Admission => ({
  limit: DEPLOYMENTS,
  check: async (task, args) => {
    refuseInMaintenance(task, 'provisioning');
    if (event === 'rebuild' && task.node.protected) throw new Fault('NodeProtected', { node: task.node.uuid });
    checkBootMode(task);
    if (event === 'rebuild') forgetImageParts(task);
    await validateDeployment(task, args.deploy_steps ?? []);
    const repository = (await task.driver.deploy.isRepository?.(task)) === true;
    const { changes, internal } = startingDeploy(task.node, repository, args);
    const lessee = event === 'rebuild' ? { changes: {}, internal: {} } : automaticLessee(task);
    return {
      changes: { ...changes, ...lessee.changes },
      internal: forgottenAtBegin(task, { ...internal, ...lessee.internal }),
    };
  },
});

/** The whole list, with the arguments of the default config. */
const plannedSteps = async (
  task: NodeTask,
  asked: readonly RequestedStep[],
  offered: readonly PlannedStep[],
): Promise<readonly PlannedStep[]> =>
  allowedSteps(task.context.options, 'deploy', await withDefaults(task, deploySteps(asked, offered), offered));

/** If the conductor dies before the list is saved, another one begins again. */
async function begin(task: NodeTask): Promise<StepOutcome> {
  await withFailureText(
    task,
    (reason) => `Failed to prepare to deploy: ${reason}`,
    async () => task.driver.deploy.prepare?.(task),
  );
  const offered = offeredSteps(task.driver, 'deploy');
  const asked = await withFailureText(
    task,
    (reason) => `Cannot get deploy steps; failed to deploy: ${reason}`,
    () => requestedDeploySteps(task, offered, true),
  );
  const steps = await plannedSteps(task, asked, offered);
  if (steps.length === 0) return failed('No deploy steps returned by the driver');
  task.note({}, savedList('deploy', steps, 0));
  await recordSteps(task, 'deploy', steps, 'start');
  return deploy.proceed(task, 0);
}

/** The agent runs: its own steps are added to the list, and every step that the client requested must be known now. */
async function planWithAgent(task: NodeTask, fromAgent: readonly PlannedStep[]): Promise<void> {
  await withFailureText(
    task,
    (reason) => `Failed to validate the final deploy steps list for node ${task.node.uuid}: ${reason}`,
    async () => {
      const offered = offeredSteps(task.driver, 'deploy', fromAgent);
      const asked = await requestedDeploySteps(task, offered, false);
      const { running, index, steps: before } = positionOf(task, 'deploy');
      const steps = await plannedSteps(task, asked, offered);
      // The running step continues, and the list continues after its new position.
      const current = running ?? before[index ?? 0];
      const at = current ? steps.findIndex((step) => stepId(step) === stepId(current)) : 0;
      await task.saveInternal({ ...savedList('deploy', steps, Math.max(at, 0)), steps_validated: true });
    },
  );
}
/** Returns whether the flow failed. */
async function takeAgentSteps(task: NodeTask, steps: readonly PlannedStep[]): Promise<boolean> {
  try {
    await planWithAgent(task, steps);
    return false;
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    await failFlow(task, deploy, reasonOf(error));
    return true;
  }
}

/** Undoes what was prepared. Returns what to add to the reason of the failure. */
async function cleanUp(task: NodeTask): Promise<string> {
  const reason = await attempt(task, 'cleaning up the deployment', async () => task.driver.deploy.cleanUp?.(task));
  return reason === undefined ? '' : `. Also failed to clean up due to: ${reason}`;
}

/** No volume stays attached for an instance whose deployment failed. The next deployment attaches the volumes again. */
const detachVolumes = (task: NodeTask) => attempt(task, 'detaching volumes', async () => task.driver.storage.detachVolumes?.(task));

// Without the token, the conductor refuses the agent at once.
const abort = abortSteps('deploy', FORGET_TOKEN_AND_URL);

export const deploy = stepsFlow({
  kind: 'deploy',
  errorType: 'deploying',
  inMaintenance: 'Deploy aborted as node is in maintenance mode',
  cannotLoad: 'Failed to load in-band deploy steps',
  timeoutText: ({ uuid }) => `Timeout reached while waiting for callback for node ${uuid}`,
  admit: { deploy: admission('deploy'), rebuild: admission('rebuild') },
  begin,
  lacksAgentSteps: (task) => task.driver.deploy.agentSteps !== undefined && task.node.driver_internal_info.steps_validated !== true,
  takeAgentSteps,
  hooks: {
    before: async (task, { interface: owner, step }) => {
      if (owner === 'deploy' && step === 'tear_down_agent') await storeLogsAtEnd(task, 'deploy');
    },
    addAgentSteps: async (task) => {
      const steps = await runningAgentSteps(task, 'deploy');
      if (steps === undefined) return wait;
      await planWithAgent(task, steps);
      return done;
    },
  },
  stepFailure: (task, reason) => {
    const { running } = positionOf(task, 'deploy');
    // The driver's message may name the step already.
    return running && !reason.includes(stepId(running)) ? `Deploy step ${stepId(running)} failed: ${withoutFullStop(reason)}.` : reason;
  },
  finish: async (task) => {
    await recordSteps(task, 'deploy', positionOf(task, 'deploy').steps, 'end');
    await restoreConsole(task, 'deploying');
    await task.end('done', { deploy_step: {} }, keepAgentIfNeeded(task, FORGET_DEPLOYING));
  },
  fail: async (task, reason, how) => {
    // After a failed step the machine is powered off, if the option says so. After a timeout it is left as it is.
    const ends = task.driver.deploy.agentSteps !== undefined && positionOf(task, 'deploy').running !== undefined && !how?.late;
    const also = await cleanUp(task);
    if (ends) await powerOffAfter(task, 'deploy.power_off_after_deploy_failure');
    await detachVolumes(task);
    await task.end(
      'fail',
      { deploy_step: {}, last_error: reported(also === '' ? reason : `${withoutFullStop(reason)}${also}`, how) },
      // The list stays, so that clients can read it.
      { ...FORGET_DEPLOYING, deploy_steps: task.node.driver_internal_info.deploy_steps },
    );
  },
  abort: { 'wait call-back': abort, 'deploy hold': abort },
  afterAbort: {
    states: ['deploy failed'],
    work: async (task) => {
      const lastError = abortedText(task, 'deploy');
      await task.saveInternal(FORGET_TOKEN_AND_URL);
      const also = await cleanUp(task);
      await detachVolumes(task);
      const text = also === '' ? lastError : 'Failed to clean up deploying after aborting the operation';
      await task.write({ deploy_step: {}, last_error: text }, FORGET_DEPLOYING);
    },
  },
});
