/** Cleaning, automated (deleting or manageable → available) and manual (manageable → manageable with a list of steps). */
import { done, failed, type PlannedStep } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import { keepAgentIfNeeded } from '../core/agent-info';
import { withoutFullStop } from '../core/attempt';
import { CLEANINGS } from '../core/concurrency';
import { cacheFacts } from './hardware-facts';
import { forgottenAt, type InternalChanges } from '../../model/internal-info';
import { outageOf } from '../../model/rules/out-of-service';
import type { NodeRecord } from '../../model/records';
import type { NodeTask } from '../core/node-task';
import { runningAgentSteps } from '../steps/agent-steps';
import { automatedRunbook, type RunbookSteps } from '../steps/automated-runbook';
import { admitErase, cleaningRequest, requestsErase, runbookWithErase, withChosenErase, withoutErase } from '../steps/erase-choice';
import type { StepOutcome } from '../steps/reserved-steps';
import { recordSteps } from '../steps/step-history';
import { automatedCleanSteps, withDefaults } from '../steps/default-config';
import { allowedSteps, checkArguments, manualSteps, needsRamdisk, offeredSteps } from '../steps/steps';
import { forgottenAtBegin } from './admission';
import { restoredInterface } from '../hardware/deploy-interface';
import { storeLogsAtEnd } from './failure-report';
import {
  beforeSteps,
  bootingLater,
  checkList,
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
import { abortSteps } from './steps-flow';

const FORGET_CLEANING = forgottenAt('clean end');

const list: ListedSteps = {
  kind: 'clean',
  noun: 'cleaning',
  gerund: 'cleaning',
  withoutRamdisk: 'cleaning_disable_ramdisk',
  forgotten: FORGET_CLEANING,
  tearDown: async (task) => task.driver.deploy.tearDownCleaning(task),
  alsoFailed: ({ uuid }, reason, also) => `${withoutFullStop(reason)}. Also Failed to tear down cleaning on node ${uuid}, reason: ${also}`,
};

const isManual = (task: NodeTask): boolean => task.node.target_provision_state === 'manageable';
/** Whether automated cleaning is on: the node's own setting, else the option. */
const isAutomated = (task: NodeTask): boolean => task.node.automated_clean ?? task.context.options['conductor.automated_clean'];
/** Whether the steps come from a client or a runbook, and not from the priorities of the driver and the agent. */
const isListed = (task: NodeTask): boolean =>
  task.node.driver_internal_info.declarative_cleaning === true && (isManual(task) || isAutomated(task));
/** Whether it has anything to do. */
const isWanted = (task: NodeTask): boolean => isManual(task) || isAutomated(task) || requestsErase(task.node);
const withoutRamdisk = (task: NodeTask): boolean => runsWithoutRamdisk(task, list);

/** Written with the event that begins cleaning: the steps that a client, or the runbook of automated cleaning, names. */
export const startingClean = ({ steps, disableRamdisk }: Partial<RunbookSteps> = {}): InternalChanges => ({
  ...FORGET_CLEANING,
  ...(steps ? { clean_steps: steps, cleaning_disable_ramdisk: disableRamdisk === true, declarative_cleaning: true } : {}),
});

/** Pauses between the checks whether a node is in service again. */
const HELD_POLL_SECONDS = 10;
/** If the conductor dies before the list is saved, another one begins again. */
async function begin(task: NodeTask): Promise<StepOutcome> {
  if (!isWanted(task)) {
    task.log.info('automated cleaning is disabled for this node');
    task.note({}, { cleaning_disable_ramdisk: true });
    return done;
  }
  if (outageOf(task.node)) {
    task.log.info('the node is out of service: it is cleaned later');
    task.note({}, { cleaning_held: true });
    return { kind: 'wait', pollEvery: HELD_POLL_SECONDS };
  }
  if (task.node.maintenance && !task.context.options['conductor.allow_provisioning_in_maintenance'])
    return failed('Cleaning a node in maintenance mode is not allowed');
  await validateForSteps(task, list);
  await cacheFacts(task);
  if (isListed(task)) await beforeSteps(task, list, () => checkBeforeRamdisk(task));
  if (withoutRamdisk(task)) return clean.start(task, []);
  const later = isListed(task) ? bootingLater(task, list) : undefined;
  if (later) return clean.start(task, [], later);
  const booted = await boot(task);
  return booted.kind === 'done' ? clean.start(task, booted.steps) : booted;
}
async function boot(task: NodeTask): Promise<Booted> {
  const prepared = await prepareForSteps(task, list, () => task.driver.deploy.prepareCleaning(task));
  if (prepared.kind !== 'done') return prepared;
  if (!prepared.agentRunning) return { kind: 'done', steps: [] };
  const steps = await beforeSteps(task, list, () => runningAgentSteps(task, 'clean'));
  return steps ? { kind: 'done', steps } : { kind: 'wait' };
}

/** Checks what is known before the ramdisk runs, and saves whether the steps need a ramdisk at all. */
async function checkBeforeRamdisk(task: NodeTask): Promise<void> {
  const offered = offeredSteps(task.driver, 'clean');
  const asked = await withDefaults(task, requestedSteps(task, list), offered);
  const without = withoutRamdisk(task) || !needsRamdisk('clean', asked, offered);
  manualSteps('clean', asked, offered, { unknownLater: !without, withoutRamdisk: withoutRamdisk(task) });
  await task.saveInternal({ cleaning_disable_ramdisk: without });
}

export const clean = listedFlow(list, {
  errorType: 'cleaning',
  inMaintenance: 'Cleaning aborted as node is in maintenance mode',
  admit: {
    provide: {
      check: async (task, args) => {
        const { uuid: node, retired, maintenance } = task.node;
        if (maintenance && !task.context.options['conductor.allow_provisioning_in_maintenance'])
          throw new Fault('NodeInMaintenance', { op: 'providing', node });
        if (retired) throw new Fault('NodeIsRetired', { op: 'providing', node });
        const erase = await admitErase(task, args, 'stay');
        const chosen = { ...task.node, driver_internal_info: { ...task.node.driver_internal_info, ...erase } } as NodeRecord;
        const runbook = runbookWithErase(chosen, await automatedRunbook(task.context, task.node));
        if (runbook) await checkList(task, list, runbook.steps, runbook.disableRamdisk);
        return { changes: { last_error: null, clean_step: {} }, internal: { ...forgottenAtBegin(task, startingClean(runbook)), ...erase } };
      },
    },
    clean: {
      limit: CLEANINGS,
      check: async (task, { clean_steps: steps = [], disable_ramdisk: disableRamdisk = false }) => {
        await checkListRequest(task, list, steps, disableRamdisk);
        return {
          changes: { last_error: null, clean_step: {}, target_provision_state: 'manageable' },
          internal: { ...forgottenAtBegin(task, startingClean({ steps, disableRamdisk })), ...cleaningRequest(task) },
        };
      },
    },
  },
  begin,
  boot,
  plan: async (task, fromAgent, ramdiskRefused) => {
    const offered = offeredSteps(task.driver, 'clean', fromAgent);
    if (!isListed(task)) {
      const allowed = (steps: readonly PlannedStep[]) => allowedSteps(task.context.options, 'clean', steps);
      const steps = isAutomated(task) ? await automatedCleanSteps(task, offered) : [];
      checkArguments(task, 'clean', steps);
      return withChosenErase(task.node, allowed(steps), allowed(offered));
    }
    const checking = { withoutRamdisk: ramdiskRefused, unknownLater: isBeforeRamdisk(task) };
    const steps = await withDefaults(task, requestedSteps(task, list), offered);
    checkArguments(task, 'clean', steps);
    return manualSteps('clean', steps, offered, checking);
  },
  finish: async (task) => {
    if (!withoutRamdisk(task)) {
      await storeLogsAtEnd(task, 'clean');
      await tearDownAfterSteps(task, list);
    }
    // A cleaning that is switched off leaves no entry in the history.
    if (isWanted(task)) {
      await cacheFacts(task);
      await recordSteps(task, 'clean', [], 'end');
    }
    const { changes, internal } = restoredInterface(task.node);
    await task.end(
      isManual(task) || task.node.retired ? 'manage' : 'done',
      { clean_step: {}, ...changes },
      {
        ...internal,
        ...keepAgentIfNeeded(task, FORGET_CLEANING),
        ...withoutErase(task.node, !isManual(task)),
      },
    );
  },
  abort: { 'clean wait': abortSteps('clean'), 'clean hold': abortSteps('clean') },
  afterAbort: { states: ['clean failed'], work: (task) => cleanUpAborted(task, list) },
});
