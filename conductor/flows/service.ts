/** active, service failed → active: a list of steps, as in manual cleaning, on a machine with an instance. */
import type { PlannedStep } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import { forgottenAt } from '../../model/internal-info';
import { cacheFacts } from './hardware-facts';
import type { NodeTask } from '../core/node-task';
import { withDefaults } from '../steps/default-config';
import { reservedStep, type StepOutcome } from '../steps/reserved-steps';
import { recordSteps } from '../steps/step-history';
import { checkArguments, manualSteps, needsRamdisk, offeredSteps } from '../steps/steps';
import { restoredInterface } from '../hardware/deploy-interface';
import { storeLogsAtEnd } from './failure-report';
import { unfinishedAbort } from './flow';
import {
  bootingLater,
  checkListRequest,
  cleanUpAborted,
  isBeforeRamdisk,
  listedFlow,
  prepareForSteps,
  requestedSteps,
  runsWithoutRamdisk,
  tearDownAfterSteps,
  validateForSteps,
  type Booted,
  type ListedSteps,
} from './listed-steps';
import { deferAbort } from './steps-flow';

const FORGET_SERVICING = forgottenAt('service end');

const list: ListedSteps = {
  kind: 'service',
  noun: 'service',
  gerund: 'servicing',
  withoutRamdisk: 'service_disable_ramdisk',
  forgotten: FORGET_SERVICING,
  tearDown: async (task) => {
    if (!withoutRamdisk(task)) await task.driver.deploy.tearDownService?.(task);
  },
  alsoFailed: (_, reason) => `${reason}. Also failed to tear down servicing.`,
};
const withoutRamdisk = (task: NodeTask): boolean => runsWithoutRamdisk(task, list);

/** If the conductor dies before the list is saved, another one begins again. */
async function begin(task: NodeTask): Promise<StepOutcome> {
  await validateForSteps(task, list);
  await cacheFacts(task);
  if (withoutRamdisk(task)) return service.start(task, []);
  const offered = offeredSteps(task.driver, 'service');
  const { deploy } = task.driver;
  if (deploy.prepareService && needsRamdisk('service', requestedSteps(task, list), offered)) {
    const later = bootingLater(task, list);
    if (later) return service.start(task, [], later);
    const booted = await boot(task);
    return booted.kind === 'done' ? service.start(task, booted.steps) : booted;
  }
  // No agent will run, so an unknown step fails when the flow reaches it.
  return service.start(task, unknownSteps(task, offered), { service_disable_ramdisk: true });
}
async function boot(task: NodeTask): Promise<Booted> {
  const prepared = await prepareForSteps(task, list, async () => task.driver.deploy.prepareService!(task));
  return prepared.kind === 'done' ? { kind: 'done', steps: [] } : prepared;
}
const unknownSteps = (task: NodeTask, offered: readonly PlannedStep[]): readonly PlannedStep[] =>
  requestedSteps(task, list)
    .filter(
      (step) => !reservedStep(step) && !offered.some((candidate) => candidate.interface === step.interface && candidate.step === step.step),
    )
    .map(({ interface: owner, step, args = {} }) => ({
      interface: owner,
      step,
      priority: 0,
      argsinfo: Object.fromEntries(Object.keys(args).map((name) => [name, { description: '' }])),
    }));

/** The node had an instance before: it becomes active again. */
async function abort(task: NodeTask): Promise<void> {
  if (await deferAbort(task, 'service')) return;
  await task.fire('fail', {}, unfinishedAbort('service', ACTIVE_AGAIN));
  await task.fire('abort', { last_error: null });
}
/** Variant of an unfinished abort: two events lead to `active`, and the conductor may have stopped between them. */
const ACTIVE_AGAIN = 'active again';

async function abortFailed(task: NodeTask): Promise<void> {
  if (task.node.maintenance)
    throw new Fault('InvalidState', {
      message:
        `Can not abort service on node "${task.node.uuid}" while it is in maintenance mode. Please remove the node from ` +
        'maintenance prior to issuing the request to abort the service operation.',
    });
  await task.fire('abort', { last_error: null }, unfinishedAbort('service'));
}

export const service = listedFlow(list, {
  errorType: 'servicing',
  inMaintenance: 'Service aborted as node is in maintenance mode',
  admit: {
    service: {
      check: async (task, { service_steps: steps = [], disable_ramdisk: disableRamdisk = false }) => {
        await checkListRequest(task, list, steps, disableRamdisk);
        return {
          changes: { last_error: null, service_step: {} },
          internal: { ...FORGET_SERVICING, service_steps: steps, service_disable_ramdisk: disableRamdisk },
        };
      },
    },
  },
  begin,
  boot,
  plan: async (task, fromAgent, ramdiskRefused) => {
    const offered = offeredSteps(task.driver, 'service', fromAgent);
    const checking = { withoutRamdisk: ramdiskRefused, unknownLater: isBeforeRamdisk(task) };
    const steps = await withDefaults(task, requestedSteps(task, list), offered);
    checkArguments(task, 'service', steps);
    return manualSteps('service', steps, offered, checking);
  },
  finish: async (task) => {
    await recordSteps(task, 'service', [], 'end');
    if (!withoutRamdisk(task)) await storeLogsAtEnd(task, 'service');
    await tearDownAfterSteps(task, list);
    await cacheFacts(task);
    const { changes, internal } = restoredInterface(task.node);
    await task.end('done', { service_step: {}, ...changes }, { ...FORGET_SERVICING, ...internal });
  },
  abort: { 'service wait': abort, 'service hold': abort, 'service failed': abortFailed },
  afterAbort: {
    states: ['service failed', 'active'],
    work: async (task, variant) => {
      if (variant === ACTIVE_AGAIN && task.node.provision_state === 'service failed') await task.fire('abort', { last_error: null });
      await cleanUpAborted(task, list);
    },
  },
  wakeAtUnhold: true,
});
