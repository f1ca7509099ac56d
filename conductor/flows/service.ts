/** active, service failed → active, with a list of steps on the way, as manual cleaning. */
import { failed, type PlannedStep } from '../../drivers/interfaces';
import type { JsonObject } from '../../model/records';
import { FORGET_SERVICING, forgetPosition } from '../core/agent-info';
import { cacheFacts } from '../core/hardware-facts';
import { recordSteps } from '../steps/step-history';
import { reservedStep, type StepOutcome } from '../steps/reserved-steps';
import { positionOf, runSteps, savedList } from '../steps/running';
import { allowedSteps, askedSteps, manualSteps, needsRamdisk, offeredSteps, type AskedStep } from '../steps/steps';
import type { NodeTask, InternalChanges } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { aborted, manualStepFailure, powerOffAfter, type SteppedFlow } from './flow';
import { failingWith, attempt } from '../core/attempt';

const withoutRamdisk = (task: NodeTask): boolean => task.node.driver_internal_info.service_disable_ramdisk === true;
/** Until the list is made, what the client asked for stands in its place. */
const askedOf = (task: NodeTask): readonly AskedStep[] => askedSteps(positionOf(task, 'service').steps);

/** The event that begins servicing goes with these: what was asked for stands on the node before anything happens. */
export const startingService = (asked: readonly JsonObject[], disableRamdisk: boolean): InternalChanges => ({
  ...FORGET_SERVICING,
  service_steps: asked,
  service_disable_ramdisk: disableRamdisk,
});

/** From the beginning; a restarted conductor does it again as long as no list was made. */
export async function beginService(task: NodeTask): Promise<StepOutcome> {
  const { uuid } = task.node;
  await failingWith(
    task,
    (reason) => `Validation of node ${uuid} for service failed: ${reason}`,
    async () => {
      await validateInterface(task, 'power');
      if (!withoutRamdisk(task)) await validateInterface(task, 'network');
    },
  );
  await cacheFacts(task);
  const offered = offeredSteps(task.driver, 'service');
  if (withoutRamdisk(task)) return startServiceSteps(task, []);
  if (task.driver.deploy.prepareService && needsRamdisk('service', askedOf(task), offered)) {
    const prepared = await failingWith(
      task,
      (reason) => `Failed to prepare node ${uuid} for service: ${reason}`,
      async () => task.driver.deploy.prepareService!(task),
    );
    if (prepared.kind !== 'done') return prepared;
    return startServiceSteps(task, []);
  }
  // No agent will come: a step that is not known fails when it is its turn.
  return startServiceSteps(task, unknownOf(task, offered), { service_disable_ramdisk: true });
}
const unknownOf = (task: NodeTask, offered: readonly PlannedStep[]): readonly PlannedStep[] =>
  askedOf(task)
    .filter((step) => !reservedStep(step) && !offered.some((one) => one.interface === step.interface && one.step === step.step))
    .map(({ interface: owner, step, args = {} }) => ({
      interface: owner,
      step,
      priority: 0,
      argsinfo: Object.fromEntries(Object.keys(args).map((name) => [name, { description: '' }])),
    }));

/** The ramdisk is there, or none is needed: makes the list and runs it. */
export async function startServiceSteps(
  task: NodeTask,
  fromAgent: readonly PlannedStep[],
  also: InternalChanges = {},
): Promise<StepOutcome> {
  await failingWith(
    task,
    (reason) => `Cannot service node ${task.node.uuid}: ${reason}`,
    async () => {
      const offered = offeredSteps(task.driver, 'service', fromAgent);
      const steps = manualSteps('service', askedOf(task), offered, { withoutRamdisk: withoutRamdisk(task) });
      const allowed = allowedSteps(task.context.options, 'service', steps);
      await task.saveInternal({ ...savedList('service', allowed, 0), ...also });
    },
  );
  await recordSteps(task, 'service', positionOf(task, 'service').steps, 'start');
  return service.proceed(task, 0);
}

const tearDown = async (task: NodeTask): Promise<void> => {
  if (!withoutRamdisk(task)) await task.driver.deploy.tearDownService?.(task);
};

export const service: SteppedFlow = {
  kind: 'service',
  cannotLoad: 'Node failed to start the first service step',
  proceed: async (task, from) => {
    const outcome = await runSteps(task, 'service', from);
    return outcome.kind === 'failed' ? failed(service.stepFailure(task, outcome.reason)) : outcome;
  },
  stepFailure: (task, reason) => manualStepFailure(task, 'service', reason),
  finish: async (task) => {
    await recordSteps(task, 'service', [], 'end');
    await failingWith(
      task,
      (reason) => `Failed to tear down from service for node ${task.node.uuid}, reason: ${reason}`,
      () => tearDown(task),
    );
    await cacheFacts(task);
    await task.fire('done', { service_step: {} }, FORGET_SERVICING);
  },
  fail: async (task, reason) => {
    const { maintenance_reason: why } = task.node;
    // As in cleaning.
    if (positionOf(task, 'service').running)
      await task.save({ maintenance: true, fault: 'service failure', maintenance_reason: why ?? reason });
    const also = await attempt(task, 'tearing down servicing', () => tearDown(task));
    const text = also === undefined ? reason : `${reason}. Also failed to tear down servicing.`;
    await powerOffAfter(task, 'conductor.poweroff_in_servicefail');
    await task.fire('fail', { service_step: {}, last_error: text }, forgetPosition('service'));
  },
  afterAbort: async (task) => {
    const lastError = aborted(task, 'service');
    const reason = await attempt(task, 'tearing down servicing', () => tearDown(task));
    const text = reason === undefined ? lastError : 'Failed to tear down service after aborting the operation';
    await task.write({ service_step: {}, last_error: text }, FORGET_SERVICING);
  },
};
