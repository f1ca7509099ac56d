/** available, deploy failed (deploy) and active, error, deploy failed (rebuild) → active. */
import { done, failed, wait, type PlannedStep } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { missingTraits } from '../../model/traits';
import type { DeployTemplateRecord, JsonObject, NodeChanges, NodeRecord } from '../../model/records';
import { FORGET_DEPLOYING, FORGET_POLL, FORGET_TOKEN_AND_URL, unlessNeeded } from '../core/agent-info';
import { runningAgentSteps } from '../steps/agent-steps';
import type { ProvisionArgs } from '../core/call-types';
import { restoreConsole } from '../requests/console';
import { recordSteps } from '../steps/step-history';
import type { StepOutcome } from '../steps/reserved-steps';
import { positionOf, runSteps, savedList } from '../steps/running';
import { allowedSteps, askedSteps, checkArguments, checkAsked, deploySteps, offeredSteps, stepId, type AskedStep } from '../steps/steps';
import type { NodeTask, InternalChanges } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { aborted, powerOffAfter, type SteppedFlow } from './flow';
import { withoutFullStop, failingWith, attempt } from '../core/attempt';

function checkTraits({ node }: NodeTask): void {
  const missing = missingTraits(node);
  if (missing === undefined)
    throw new Fault('InvalidParameterValue', {
      message: `Error parsing traits from Node ${node.uuid} instance_info field. A list of strings is expected.`,
    });
  if (missing.length > 0)
    throw new Fault('InvalidParameterValue', {
      message: `Cannot specify instance traits that are not also set on the node. Node ${node.uuid} is missing traits ${missing.join(', ')}`,
    });
}

/** Those whose name is among the traits that the instance asks for. */
async function templatesOf({ node, context }: NodeTask): Promise<readonly DeployTemplateRecord[]> {
  const traits = node.instance_info.traits;
  if (!Array.isArray(traits) || traits.length === 0) return [];
  return context.store.deployTemplates.list({ where: { name: traits as string[] } });
}

/** What a client and the deploy templates ask for, checked; the client's word counts before a template's. */
async function askedFor(
  task: NodeTask,
  offered: readonly PlannedStep[],
  unknownLater: boolean,
  user = userSteps(task),
): Promise<readonly AskedStep[]> {
  const templates = await templatesOf(task);
  const templated = askedSteps(
    templates.flatMap(({ steps }) =>
      steps.map(({ interface: owner, step, args, priority = 0 }) => ({ interface: owner, step, args, priority })),
    ),
  );
  checkAsked('deploy', templated, offered, {
    unknownLater,
    prefix:
      "Validation of deploy steps from deploy templates matching this node's instance traits failed. " +
      `Matching deploy templates: ${templates.map(({ name }) => name).join(',')}. Errors: `,
  });
  checkArguments(task.driver, 'deploy', [...user, ...templated]);
  checkAsked('deploy', user, offered, { unknownLater, prefix: 'Validation of deploy steps from "deploy steps" argument failed.' });
  const taken = new Set(user.map(stepId));
  return [...user, ...templated.filter((step) => !taken.has(stepId(step)))];
}

/** What is refused before the answer, so that the client hears it. Throws Fault with status 400. */
export async function checkDeploy(task: NodeTask, asked: readonly JsonObject[]): Promise<void> {
  try {
    await validateInterface(task, 'power');
    await validateInterface(task, 'deploy');
    checkTraits(task);
    await askedFor(task, offeredSteps(task.driver, 'deploy'), true, askedSteps(asked));
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 400) throw error;
    const message = `Failed to validate deploy or power info for node ${task.node.uuid}: ${reasonOf(error)}`;
    throw new Fault('InvalidParameterValue', { message }, { cause: error });
  }
}

const userSteps = (task: NodeTask): readonly AskedStep[] =>
  askedSteps((task.node.driver_internal_info.user_deploy_steps as readonly JsonObject[] | null | undefined) ?? []);

/** Whether the instance's image is a whole disk, as it says, or has no kernel of its own; and both spellings of that. Empty without an image. */
export function imageType({ instance_info: info }: NodeRecord): readonly [NodeChanges, InternalChanges] {
  if (!info.image_source) return [{}, {}];
  const whole = info.image_type ? info.image_type !== 'partition' : !info.kernel && !info.ramdisk;
  return [{ instance_info: { ...info, image_type: whole ? 'whole-disk' : 'partition' } }, { is_whole_disk_image: whole }];
}

/** A node that nobody has leased belongs to the project of its instance, or of whoever asked for it, until that ends. */
export function automaticLessee({ node, context: { options, origin } }: NodeTask): readonly [NodeChanges, InternalChanges] {
  const source = options['conductor.automatic_lessee'] ? options['conductor.automatic_lessee_source'] : 'none';
  const projects: Readonly<Record<string, unknown>> = { instance: node.instance_info.project_id, request: origin?.project };
  const project = projects[source];
  if (typeof project !== 'string' || project === '' || node.lessee !== null) return [{}, {}];
  return [{ lessee: project }, { automatic_lessee: true }];
}

/** The event that begins a deployment goes with these: what came with the verb stands on the node before anything happens. */
export function startingDeploy(
  node: NodeRecord,
  { configdrive, deploy_steps: asked = [] }: ProvisionArgs,
): readonly [NodeChanges, InternalChanges] {
  const [{ instance_info: info = node.instance_info }, internal] = imageType(node);
  return [
    { deploy_step: {}, last_error: null, instance_info: { ...info, ...(configdrive ? { configdrive } : {}) } },
    { ...FORGET_DEPLOYING, ...internal, user_deploy_steps: asked.length > 0 ? asked : undefined },
  ];
}

/** From the beginning; a restarted conductor does it again as long as no list was made. */
export async function beginDeploy(task: NodeTask): Promise<StepOutcome> {
  await failingWith(
    task,
    (reason) => `Failed to prepare to deploy: ${reason}`,
    async () => task.driver.deploy.prepare?.(task),
  );
  const offered = offeredSteps(task.driver, 'deploy');
  const asked = await failingWith(
    task,
    (reason) => `Cannot get deploy steps; failed to deploy: ${reason}`,
    () => askedFor(task, offered, true),
  );
  const steps = allowedSteps(task.context.options, 'deploy', deploySteps(asked, offered));
  if (steps.length === 0) return failed('No deploy steps returned by the driver');
  task.note({}, savedList('deploy', steps, 0));
  await recordSteps(task, 'deploy', steps, 'start');
  return deploy.proceed(task, 0);
}

/** The agent is there: its own steps join the list, and what the client asked for must all be known now. */
export async function takeAgentSteps(task: NodeTask, fromAgent: readonly PlannedStep[]): Promise<void> {
  await failingWith(
    task,
    (reason) => `Failed to validate the final deploy steps list for node ${task.node.uuid}: ${reason}`,
    async () => {
      const offered = offeredSteps(task.driver, 'deploy', fromAgent);
      const asked = await askedFor(task, offered, false);
      const { running, index, steps: before } = positionOf(task, 'deploy');
      const steps = allowedSteps(task.context.options, 'deploy', deploySteps(asked, offered));
      // The step that runs keeps running: the list goes on behind it, wherever it stands now.
      const current = running ?? before[index ?? 0];
      const at = current ? steps.findIndex((step) => stepId(step) === stepId(current)) : 0;
      await task.saveInternal({ ...savedList('deploy', steps, Math.max(at, 0)), steps_validated: true });
    },
  );
}

/** The agent was there before the deployment: its steps join the list at once. */
async function joinSteps(task: NodeTask): Promise<StepOutcome> {
  const steps = await runningAgentSteps(task, 'deploy');
  if (steps === undefined) return wait;
  await takeAgentSteps(task, steps);
  return done;
}

/** Undoes what was prepared. Answers what to add to the reason. */
async function cleanUpDeploy(task: NodeTask): Promise<string> {
  const reason = await attempt(task, 'cleaning up the deployment', async () => task.driver.deploy.cleanUp?.(task));
  return reason === undefined ? '' : `. Also failed to clean up due to: ${reason}`;
}
export const deploy: SteppedFlow = {
  kind: 'deploy',
  cannotLoad: 'Failed to load in-band deploy steps',
  proceed: async (task, from) => {
    const outcome = await runSteps(task, 'deploy', from, joinSteps);
    return outcome.kind === 'failed' ? failed(deploy.stepFailure(task, outcome.reason)) : outcome;
  },
  stepFailure: (task, reason) => {
    const { running } = positionOf(task, 'deploy');
    // A driver's own sentence may name the step already.
    return running && !reason.includes(stepId(running)) ? `Deploy step ${stepId(running)} failed: ${withoutFullStop(reason)}.` : reason;
  },
  afterAbort: async (task) => {
    const lastError = aborted(task, 'deploy');
    await task.saveInternal(FORGET_TOKEN_AND_URL);
    const also = await cleanUpDeploy(task);
    const text = also === '' ? lastError : 'Failed to clean up deploying after aborting the operation';
    await task.write({ deploy_step: {}, last_error: text }, { ...FORGET_DEPLOYING });
  },
  finish: async (task) => {
    await recordSteps(task, 'deploy', positionOf(task, 'deploy').steps, 'end');
    await restoreConsole(task, 'deploying');
    await task.fire('done', { deploy_step: {} }, unlessNeeded(task, FORGET_DEPLOYING));
  },
  fail: async (task, reason, how) => {
    // The agent's system is ended when a step failed, and left as it is when it was never heard of.
    const ends = task.driver.deploy.agentSteps !== undefined && positionOf(task, 'deploy').running !== undefined && !how?.late;
    const also = await cleanUpDeploy(task);
    if (ends) await powerOffAfter(task, 'deploy.power_off_after_deploy_failure');
    await task.fire(
      'fail',
      { deploy_step: {}, last_error: also === '' ? reason : `${withoutFullStop(reason)}${also}` },
      // The list stays for whoever looks.
      { ...FORGET_DEPLOYING, ...FORGET_POLL, deploy_steps: task.node.driver_internal_info.deploy_steps },
    );
  },
};
