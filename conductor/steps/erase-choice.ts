/** What the request that releases a machine, or its operator, chose for its disks: which erase step the cleaning has, and which disks stay. */
import type { PlannedStep } from '../../drivers/interfaces';
import { cleaningErase } from '../../drivers/common/erase-request';
import { ERASE_CHOICES, eraseProblem, isEraseStep, keepProblem, keptDisks, type EraseChoice } from '../../model/agent/erasure';
import { bareTimestamp } from '../../model/clock';
import { Fault, invalidParameter } from '../../model/errors';
import type { InternalChanges } from '../../model/internal-info';
import type { NodeRecord } from '../../model/records';
import type { ProvisionArgs } from '../core/call-types';
import type { NodeTask } from '../core/node-task';
import type { RunbookSteps } from './automated-runbook';
import { inOrder, offeredSteps, stepId, type RequestedStep } from './steps';

const requesterOf = ({ context: { origin, clock } }: NodeTask) => ({
  user: origin?.user ?? null,
  project: origin?.project ?? null,
  request_id: origin?.requestId ?? null,
  requested_at: bareTimestamp(clock.now()),
});
/** Who releases the machine, and what is on it, for certificates. */
function releaseRequest(task: NodeTask): InternalChanges {
  const { instance_uuid, instance_name, lessee } = task.node;
  const requester = requesterOf(task);
  return { erase_request: { ...requester, instance_uuid, instance_name, lessee, released: requester } };
}
/** Who asks for another cleaning. After a release whose cleaning has failed, that one stays known. */
export function cleaningRequest(task: NodeTask): InternalChanges {
  const { erase_request: before } = task.node.driver_internal_info;
  const { instance_uuid, instance_name, lessee, released } = before?.released ? before : { ...task.node, released: undefined };
  return { erase_request: { ...requesterOf(task), instance_uuid, instance_name, lessee, ...(released ? { released } : {}) } };
}
/** After a cleaning that has ended well. A manual one leaves what the automated one needs. */
export const withoutErase = ({ driver_internal_info: info }: NodeRecord, automated: boolean): InternalChanges =>
  automated ? { erase_request: undefined, erase_choice: undefined } : info.erase_request?.released ? {} : { erase_request: undefined };

/** Throws InvalidParameterValue unless the node's driver or its agent has the step, as far as that is known. */
function checkOffered({ node, driver, context }: NodeTask, choice: EraseChoice): void {
  const step = ERASE_CHOICES[choice]?.step;
  if (step === undefined) return;
  const id = `deploy.${step}`;
  if (context.options['api.disallow_clean_steps'].includes(id)) throw new Fault('StepNotAllowed', { step: id, step_type: 'clean' });
  if (driver.deploy.agentSteps || offeredSteps(driver, 'clean').some((own) => stepId(own) === id)) return;
  throw invalidParameter(`erase: the deploy interface ${String(node.deploy_interface)} of node ${node.uuid} has no step ${id}`);
}

/**
 * Throws InvalidParameterValue for hints that no disk of the inventory matches, and for an erasure of which all disks are kept. A machine
 * without an inventory may have any disk.
 */
async function checkKept({ context, node }: NodeTask, keep: NonNullable<ProvisionArgs['keep']>, erases: boolean): Promise<void> {
  const found = await context.store.inventories.find(node.uuid);
  const disks = found?.inventory.disks ?? [];
  if (disks.length === 0) return;
  const { kept, unmatched } = keptDisks(disks, keep);
  if (unmatched.length > 0)
    throw invalidParameter(
      `keep: no disk in the inventory of node ${node.uuid} matches ${unmatched.map((hints) => JSON.stringify(hints)).join(' and ')}`,
    );
  if (erases && kept.length === disks.length)
    throw invalidParameter(`keep: all disks in the inventory of node ${node.uuid} match, and nothing would be erased`);
}

/**
 * What is saved of a request with a choice. Throws InvalidParameterValue, StepNotAllowed.
 * @param otherwise without a choice: `forget` an earlier one, or `stay` with it, as after a cleaning that failed
 */
export async function admitErase(task: NodeTask, { erase, keep }: ProvisionArgs, otherwise: 'forget' | 'stay'): Promise<InternalChanges> {
  const request = otherwise === 'stay' ? cleaningRequest(task) : releaseRequest(task);
  if (erase === undefined && keep === undefined) return otherwise === 'stay' ? request : { ...request, erase_choice: undefined };
  // Another process may have checked less.
  const wrong = [erase === undefined ? undefined : eraseProblem(erase), keep === undefined ? undefined : keepProblem(keep)];
  if (wrong.some((problem) => problem !== undefined)) throw invalidParameter(`erase, keep: ${wrong.filter(Boolean).join('; ')}`);
  if (erase !== undefined) checkOffered(task, erase as EraseChoice);
  if (keep !== undefined && keep.length > 0) await checkKept(task, keep, erase !== undefined && erase !== 'none');
  return {
    ...request,
    erase_choice: { ...(erase === undefined ? {} : { erase: erase as EraseChoice }), ...(keep === undefined ? {} : { keep }) },
  };
}

type Chosen = Pick<NodeRecord, 'driver_info' | 'driver_internal_info'>;
/** Undefined: nobody chose. */
const choiceOf = (node: Chosen): EraseChoice | undefined => node.driver_internal_info.erase_choice?.erase ?? cleaningErase(node);
/** Whether a request chose an erasure: it runs even if automated cleaning is off. */
export const requestsErase = ({ driver_internal_info: info }: Chosen): boolean =>
  info.erase_choice?.erase !== undefined && ERASE_CHOICES[info.erase_choice.erase] !== null;

/** The steps of an automated cleaning, with the chosen erase step in place of others. Throws InvalidParameterValue. */
export function withChosenErase(node: Chosen, steps: readonly PlannedStep[], offered: readonly PlannedStep[]): readonly PlannedStep[] {
  const choice = choiceOf(node);
  if (choice === undefined) return steps;
  const others = steps.filter((step) => !isEraseStep(step));
  const chosen = ERASE_CHOICES[choice];
  if (chosen === null) return others;
  const id = `deploy.${chosen.step}`;
  const offer = steps.find((step) => stepId(step) === id) ?? offered.find((step) => stepId(step) === id);
  if (!offer) throw invalidParameter(`erase: ${choice} was chosen, and the agent has no step ${id}, or the server disallows it`);
  const [last, ranked] = [others.filter(({ priority }) => priority === 0), others.filter(({ priority }) => priority > 0)];
  return [...inOrder('clean', [...ranked, { ...offer, priority: Math.max(offer.priority, chosen.priority) }]), ...last];
}

/** The same for a runbook: the chosen step takes the place of the first erase step, or comes last. */
export function runbookWithErase(node: Chosen, runbook: RunbookSteps | undefined): RunbookSteps | undefined {
  const choice = choiceOf(node);
  if (choice === undefined || runbook === undefined) return runbook;
  const steps = runbook.steps as unknown as readonly RequestedStep[];
  const place = steps.findIndex(isEraseStep);
  const [before, after] = place < 0 ? [steps, []] : [steps.slice(0, place), steps.slice(place + 1)];
  const chosen = ERASE_CHOICES[choice];
  const own = chosen && { ...steps.find(({ step }) => step === chosen.step), interface: 'deploy', step: chosen.step };
  const rest = [...before, ...(own ? [own] : []), ...after.filter((step) => !isEraseStep(step))];
  return { steps: rest as unknown as RunbookSteps['steps'], disableRamdisk: runbook.disableRamdisk && own === null };
}
