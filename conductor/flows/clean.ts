/** Cleaning, automated (deleting or manageable → available) and manual (manageable → manageable with a list of steps). */
import { done, failed, wait, type PlannedStep } from '../../drivers/interfaces';
import { FORGET_CLEANING, forgetPosition, unlessNeeded } from '../core/agent-info';
import { runningAgentSteps } from '../steps/agent-steps';
import type { RunbookSteps } from '../steps/automated-runbook';
import { cacheFacts } from '../core/hardware-facts';
import { recordSteps } from '../steps/step-history';
import type { StepOutcome } from '../steps/reserved-steps';
import { positionOf, runSteps, savedList } from '../steps/running';
import {
  allowedSteps,
  askedSteps,
  automatedSteps,
  cleanPriorities,
  manualSteps,
  needsRamdisk,
  offeredSteps,
  type AskedStep,
} from '../steps/steps';
import type { NodeTask, InternalChanges } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { aborted, manualStepFailure, powerOffAfter, type SteppedFlow } from './flow';
import { withoutFullStop, failingWith, attempt } from '../core/attempt';

const isManual = (task: NodeTask): boolean => task.node.target_provision_state === 'manageable';
/** The steps are those of a list, and not what driver and agent give a priority. */
const isListed = (task: NodeTask): boolean => task.node.driver_internal_info.declarative_cleaning === true;

/** Whether the node is cleaned without being asked: its own word, else the option's. */
const wanted = (task: NodeTask): boolean => task.node.automated_clean ?? task.context.options['conductor.automated_clean'];

const withoutRamdisk = (task: NodeTask): boolean => task.node.driver_internal_info.cleaning_disable_ramdisk === true;

/** Until the list is made, what the client asked for stands in its place. */
const askedOf = (task: NodeTask): readonly AskedStep[] => askedSteps(positionOf(task, 'clean').steps);

/** The list, made of what driver and agent offer: saved, and then what runs. */
async function planClean(task: NodeTask, fromAgent: readonly PlannedStep[]): Promise<void> {
  const offered = offeredSteps(task.driver, 'clean', fromAgent);
  const steps = isListed(task)
    ? manualSteps('clean', askedOf(task), offered, { withoutRamdisk: withoutRamdisk(task) })
    : automatedSteps('clean', offered, cleanPriorities(task.context.options));
  task.note({}, savedList('clean', allowedSteps(task.context.options, 'clean', steps), 0));
}
const cannot =
  (task: NodeTask) =>
  (reason: string): string =>
    `Cannot clean node ${task.node.uuid}: ${reason}`;

/**
 * The event that begins cleaning goes with these: what was asked for, by a client or the runbook of automated cleaning, stands on the node
 * before anything happens.
 */
export const startingClean = ({ steps, disableRamdisk }: Partial<RunbookSteps> = {}): InternalChanges => ({
  ...FORGET_CLEANING,
  ...(steps ? { clean_steps: steps, cleaning_disable_ramdisk: disableRamdisk === true, declarative_cleaning: true } : {}),
});

/** From the beginning; a restarted conductor does it again as long as no list was made. */
export async function beginClean(task: NodeTask): Promise<StepOutcome> {
  const { uuid, maintenance } = task.node;
  const manual = isManual(task);
  if (!manual && !wanted(task)) {
    task.log.info('automated cleaning is disabled for this node');
    task.note({}, { cleaning_disable_ramdisk: true });
    return done;
  }
  if (maintenance && !task.context.options['conductor.allow_provisioning_in_maintenance'])
    return failed('Cleaning a node in maintenance mode is not allowed');
  await failingWith(
    task,
    (reason) => `Validation of node ${uuid} for cleaning failed: ${reason}`,
    async () => {
      await validateInterface(task, 'power');
      if (!withoutRamdisk(task)) await validateInterface(task, 'network');
    },
  );
  await cacheFacts(task);
  if (isListed(task)) await failingWith(task, cannot(task), () => checkListed(task));
  if (!withoutRamdisk(task)) {
    const prepared = await failingWith(
      task,
      (reason) => `Failed to prepare node ${uuid} for cleaning: ${reason}`,
      () => task.driver.deploy.prepareCleaning(task),
    );
    if (prepared.kind !== 'done') return prepared;
    if (prepared.agentThere) {
      const fromAgent = await failingWith(task, cannot(task), () => runningAgentSteps(task, 'clean'));
      return fromAgent ? startCleanSteps(task, fromAgent) : wait;
    }
  }
  return startCleanSteps(task, []);
}

/** What can be known before the ramdisk is there, and whether one is needed at all. */
async function checkListed(task: NodeTask): Promise<void> {
  const asked = askedOf(task);
  const offered = offeredSteps(task.driver, 'clean');
  const without = withoutRamdisk(task) || !needsRamdisk('clean', asked, offered);
  manualSteps('clean', asked, offered, { unknownLater: !without, withoutRamdisk: withoutRamdisk(task) });
  await task.saveInternal({ cleaning_disable_ramdisk: without });
}

/** The ramdisk is there, or none is needed: makes the list and runs it. */
export async function startCleanSteps(task: NodeTask, fromAgent: readonly PlannedStep[]): Promise<StepOutcome> {
  await failingWith(task, cannot(task), () => planClean(task, fromAgent));
  await recordSteps(task, 'clean', positionOf(task, 'clean').steps, 'start');
  return clean.proceed(task, 0);
}

export const clean: SteppedFlow = {
  kind: 'clean',
  cannotLoad: 'Node failed to start the first cleaning step',
  proceed: async (task, from) => {
    const outcome = await runSteps(task, 'clean', from);
    return outcome.kind === 'failed' ? failed(clean.stepFailure(task, outcome.reason)) : outcome;
  },
  stepFailure: (task, reason) => manualStepFailure(task, 'clean', reason),
  afterAbort: async (task) => {
    const lastError = aborted(task, 'clean');
    const reason = await attempt(task, 'tearing down cleaning', async () => task.driver.deploy.tearDownCleaning(task));
    const text = reason === undefined ? lastError : 'Failed to tear down cleaning after aborting the operation';
    await task.write({ clean_step: {}, last_error: text }, FORGET_CLEANING);
  },
  finish: async (task) => {
    const without = withoutRamdisk(task);
    if (!without)
      await failingWith(
        task,
        (reason) => `Failed to tear down from cleaning for node ${task.node.uuid}, reason: ${reason}`,
        () => task.driver.deploy.tearDownCleaning(task),
      );
    // Of a cleaning that was not wanted there is nothing to tell.
    if (isManual(task) || wanted(task)) {
      await cacheFacts(task);
      await recordSteps(task, 'clean', [], 'end');
    }
    await task.fire(isManual(task) || task.node.retired ? 'manage' : 'done', { clean_step: {} }, unlessNeeded(task, FORGET_CLEANING));
  },
  fail: async (task, reason) => {
    // A disk may be half erased: no one shall take the node before someone looked. What ends the cleaning sees that, and leaves the machine.
    const { maintenance_reason: why } = task.node;
    if (positionOf(task, 'clean').running)
      await task.save({ maintenance: true, fault: 'clean failure', maintenance_reason: why ?? reason });
    const also = await attempt(task, 'tearing down cleaning', async () => task.driver.deploy.tearDownCleaning(task));
    const text =
      also === undefined
        ? reason
        : `${withoutFullStop(reason)}. Also Failed to tear down cleaning on node ${task.node.uuid}, reason: ${also}`;
    await powerOffAfter(task, 'conductor.poweroff_in_cleanfail');
    await task.fire('fail', { clean_step: {}, last_error: text }, forgetPosition('clean'));
  },
};
