/** The steps that a client and deploy templates request of a deployment, and the checks that `deploy`, `rebuild` and `validate` share. */
import type { PlannedStep } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { DeployTemplateRecord, JsonObject } from '../../model/records';
import { controlsOf } from '../../model/rules/step-controls';
import { missingTraits } from '../../model/traits';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { withDefaults } from './default-config';
import { reservedStep } from './reserved-steps';
import { checkConditions } from './step-controls';
import { withoutDroppedSteps, checkArguments, checkRequestedSteps, offeredSteps, stepId, type RequestedStep } from './steps';

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

/**
 * A node with a boot volume should boot from that volume. A deployment that writes to the local disk would overwrite that disk, so it is
 * refused. Throws InvalidParameterValue, or what the storage interface throws.
 */
async function checkBootVolume(task: NodeTask): Promise<void> {
  const { uuid } = task.node;
  const volume = (await task.volumes.targets(uuid)).find(({ boot_index: index }) => index === 0);
  if (!volume) return;
  if (!(await task.driver.storage.shouldWriteImage(task))) return validateInterface(task, 'storage');
  throw new Fault('InvalidParameterValue', {
    message:
      `Node ${uuid} has the boot volume ${volume.volume_id} (volume target ${volume.uuid}), and the deployment would overwrite the local ` +
      'disk. To boot from the volume, set storage_interface to external or cinder, and remove image_source from instance_info. To deploy ' +
      'to the local disk, delete the volume target.',
  });
}

/** The deploy templates whose name is among the traits that the instance requires. */
async function templatesOf({ node, context }: NodeTask): Promise<readonly DeployTemplateRecord[]> {
  const traits = node.instance_info.traits;
  if (!Array.isArray(traits) || traits.length === 0) return [];
  return context.store.deployTemplates.list({ where: { name: traits as string[] } });
}

const templateSteps = (templates: readonly DeployTemplateRecord[]): readonly RequestedStep[] =>
  withoutDroppedSteps(
    templates.flatMap(({ steps }) =>
      steps.map((step) => ({
        interface: step.interface,
        step: step.step,
        args: step.args,
        priority: step.priority ?? 0,
        ...controlsOf(step),
      })),
    ),
  );
const userSteps = (task: NodeTask): readonly RequestedStep[] =>
  withoutDroppedSteps((task.node.driver_internal_info.user_deploy_steps as readonly JsonObject[] | null | undefined) ?? []);

/**
 * The steps of the client and of the deploy templates, checked. The client's step takes the place of a template's.
 * @param unknownLater accepts a step that is not offered, since the agent may offer it later
 */
export async function requestedDeploySteps(
  task: NodeTask,
  offered: readonly PlannedStep[],
  unknownLater: boolean,
  asked = userSteps(task),
): Promise<readonly RequestedStep[]> {
  const templates = await templatesOf(task);
  const filled = await withDefaults(task, [...asked, ...templateSteps(templates)], offered);
  const [user, templated] = [filled.slice(0, asked.length), filled.slice(asked.length)];
  checkRequestedSteps('deploy', templated, offered, {
    unknownLater,
    prefix:
      "Validation of deploy steps from deploy templates matching this node's instance traits failed. " +
      `Matching deploy templates: ${templates.map(({ name }) => name).join(',')}. Errors: `,
  });
  checkArguments(task, 'deploy', [...user, ...templated]);
  checkRequestedSteps('deploy', user, offered, { unknownLater, prefix: 'Validation of deploy steps from "deploy steps" argument failed.' });
  const taken = new Set(user.map(stepId));
  return [...user, ...templated.filter((step) => !taken.has(stepId(step)))];
}

/** The deploy steps that the node's agent has reported; undefined: it has reported none yet. */
function knownAgentSteps({ node }: NodeTask): readonly PlannedStep[] | undefined {
  const cached = node.driver_internal_info.agent_cached_deploy_steps;
  return typeof cached === 'object' && cached !== null ? (Object.values(cached).flat() as readonly PlannedStep[]) : undefined;
}
/** Requested steps that neither the driver nor the agent offers, as far as the agent's steps are known. */
export async function missingDeploySteps(task: NodeTask): Promise<{ readonly steps: readonly string[]; readonly agentKnown: boolean }> {
  const fromAgent = knownAgentSteps(task);
  const offered = new Set(offeredSteps(task.driver, 'deploy', fromAgent).map(stepId));
  const requested = [...userSteps(task), ...templateSteps(await templatesOf(task))];
  const missing = requested.filter((step) => !step.execute_on_child_nodes && !reservedStep(step) && !offered.has(stepId(step)));
  return { steps: [...new Set(missing.map(stepId))], agentKnown: fromAgent !== undefined };
}

/**
 * What can be checked before the agent runs, beyond the deploy interface itself.
 * @param asked the steps of the client; default: those on the node
 * @param traits false: the caller checks the instance's traits itself
 * @throws Fault with status 400
 */
export async function checkDeployRequest(
  task: NodeTask,
  { asked, traits = true }: { readonly asked?: readonly JsonObject[] | undefined; readonly traits?: boolean } = {},
): Promise<void> {
  if (traits) checkTraits(task);
  await checkBootVolume(task);
  const steps = await requestedDeploySteps(task, offeredSteps(task.driver, 'deploy'), true, asked && withoutDroppedSteps(asked));
  await checkConditions(task, 'deploy', steps);
}
