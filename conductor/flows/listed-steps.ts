/** What cleaning and servicing share: a client names the steps, and the flow runs exactly these, with the ramdisk or without. */
import { done, type Outcome, type PlannedStep } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import { ownMaintenance } from '../../model/rules/out-of-service';
import type { JsonObject, NodeRecord } from '../../model/records';
import { attempt, withFailureText } from '../core/attempt';
import { forgottenAt, type InternalChanges } from '../../model/internal-info';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';
import { withDefaults } from '../steps/default-config';
import type { StepOutcome } from '../steps/reserved-steps';
import type { StepHooks } from '../steps/running';
import { checkConditions } from '../steps/step-controls';
import { KEYS, positionOf, savedList } from '../steps/step-position';
import { recordSteps } from '../steps/step-history';
import {
  allowedSteps,
  checkArguments,
  checkRequestedSteps,
  needsRamdisk,
  offeredSteps,
  showStep,
  withoutDroppedSteps,
  type RequestedStep,
} from '../steps/steps';
import { refuseInMaintenance, refuseWith } from './admission';
import { restoredInterface } from '../hardware/deploy-interface';
import { reported, type AfterAbort, type Failure } from './flow';
import { applyOutcome, powerOffAfter } from './outcome';
import { abortedText, stepsFlow, type StepsFlow, type StepsFlowParts } from './steps-flow';

/** Cleaning and servicing differ in Ironic's words and in a few calls. */
export interface ListedSteps {
  readonly kind: 'clean' | 'service';
  /** What the node is prepared for. */
  readonly noun: 'cleaning' | 'service';
  readonly gerund: 'cleaning' | 'servicing';
  /** Key of driver_internal_info. */
  readonly withoutRamdisk: 'cleaning_disable_ramdisk' | 'service_disable_ramdisk';
  /** What the end of the flow forgets. */
  readonly forgotten: InternalChanges;
  tearDown(task: NodeTask): Promise<void>;
  /** `last_error` of a failure after which the tear-down failed too. */
  alsoFailed(node: NodeRecord, reason: string, also: string): string;
}

export const runsWithoutRamdisk = ({ node }: NodeTask, { withoutRamdisk }: ListedSteps): boolean =>
  node.driver_internal_info[withoutRamdisk] === true;
/** Whether the list has not reached its first step that needs the ramdisk. */
export const isBeforeRamdisk = ({ node }: NodeTask): boolean => node.driver_internal_info.ramdisk_boot === 'later';
/** A `wait` without seconds waits for the agent. */
const isForAgent = ({ interface: owner, step, args }: RequestedStep): boolean =>
  owner === 'power' && step === 'wait' && args?.['seconds'] === undefined;
const needsBoot = ({ driver }: NodeTask, { kind }: ListedSteps, step: RequestedStep): boolean =>
  isForAgent(step) || needsRamdisk(kind, [step], offeredSteps(driver, kind));
/** Whether the list begins with steps that need no ramdisk: they run before it boots. Written with the list. */
export const bootingLater = (task: NodeTask, list: ListedSteps): InternalChanges | undefined => {
  const [first] = requestedSteps(task, list);
  return first && !needsBoot(task, list, first) ? { ramdisk_boot: 'later' } : undefined;
};
/** The requested steps are saved in the place of the list until the list is made. */
export const requestedSteps = (task: NodeTask, { kind }: ListedSteps): readonly RequestedStep[] =>
  withoutDroppedSteps(positionOf(task, kind).steps);

const cannot =
  ({ node }: NodeTask, { kind }: ListedSteps) =>
  (reason: string): string =>
    `Cannot ${kind} node ${node.uuid}: ${reason}`;

/**
 * Finds the errors of a list that do not depend on the agent: arguments, and unknown steps if no agent will run. Ironic reports these
 * errors later, in `last_error`.
 */
export async function checkList(task: NodeTask, list: ListedSteps, asked: readonly JsonObject[], withoutRamdisk: boolean): Promise<void> {
  const { kind } = list;
  const offered = offeredSteps(task.driver, kind);
  const steps = await withDefaults(task, withoutDroppedSteps(asked), offered);
  try {
    checkRequestedSteps(kind, steps, offered, { unknownLater: !withoutRamdisk });
    checkArguments(task, kind, steps);
    await checkConditions(task, kind, steps);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault('InvalidParameterValue', { message: cannot(task, list)(error.message) }, { cause: error });
  }
}
/** The checks before the response to a client that requests the steps. */
export async function checkListRequest(
  task: NodeTask,
  list: ListedSteps,
  asked: readonly JsonObject[],
  withoutRamdisk: boolean,
): Promise<void> {
  refuseInMaintenance(task, list.noun);
  await refuseWith(
    (reason) => `Validation of node ${task.node.uuid} for ${list.gerund} failed: ${reason}`,
    async () => {
      await validateInterface(task, 'power');
      if (!withoutRamdisk) await validateInterface(task, 'network');
    },
  );
  await checkList(task, list, asked, withoutRamdisk);
}

/** The interfaces that the flow needs, checked again when it begins. */
export const validateForSteps = (task: NodeTask, list: ListedSteps): Promise<void> =>
  withFailureText(
    task,
    (reason) => `Validation of node ${task.node.uuid} for ${list.noun} failed: ${reason}`,
    async () => {
      await validateInterface(task, 'power');
      if (!runsWithoutRamdisk(task, list)) await validateInterface(task, 'network');
    },
  );

/** Runs a part of the flow before the first step. A failure becomes Ironic's sentence for both flows. */
export const beforeSteps = <T>(task: NodeTask, list: ListedSteps, work: () => Promise<T>): Promise<T> =>
  withFailureText(task, cannot(task, list), work);
export const prepareForSteps = <T>(task: NodeTask, list: ListedSteps, work: () => Promise<T>): Promise<T> =>
  withFailureText(task, (reason) => `Failed to prepare node ${task.node.uuid} for ${list.noun}: ${reason}`, work);
export const tearDownAfterSteps = (task: NodeTask, list: ListedSteps): Promise<void> =>
  withFailureText(
    task,
    (reason) => `Failed to tear down from ${list.noun} for node ${task.node.uuid}, reason: ${reason}`,
    async () => {
      if (!isBeforeRamdisk(task)) await list.tearDown(task);
    },
  );

async function fail(task: NodeTask, list: ListedSteps, reason: string, how: Failure | undefined): Promise<void> {
  const { kind, gerund } = list;
  // A disk may be half erased: an operator must check the node before it is used. With the fault, the tear-down powers nothing off.
  const { maintenance_reason: before } = ownMaintenance(task.node);
  if (positionOf(task, kind).running)
    await task.save({ maintenance: true, fault: `${kind} failure`, maintenance_reason: before ?? reason });
  const also = isBeforeRamdisk(task) ? undefined : await attempt(task, `tearing down ${gerund}`, () => list.tearDown(task));
  const text = also === undefined ? reason : list.alsoFailed(task.node, reason, also);
  await powerOffAfter(task, `conductor.poweroff_in_${kind}fail`);
  const { changes, internal } = restoredInterface(task.node);
  await task.end(
    'fail',
    { [`${kind}_step`]: {}, ...changes, last_error: reported(text, how) },
    { ...forgottenAt(`${kind} failure`), ...internal },
  );
}
export async function cleanUpAborted(task: NodeTask, list: ListedSteps): Promise<void> {
  const { kind, noun, gerund, forgotten } = list;
  const lastError = abortedText(task, kind);
  const reason = isBeforeRamdisk(task) ? undefined : await attempt(task, `tearing down ${gerund}`, () => list.tearDown(task));
  const text = reason === undefined ? lastError : `Failed to tear down ${noun} after aborting the operation`;
  const { changes, internal } = restoredInterface(task.node);
  await task.write({ [`${kind}_step`]: {}, ...changes, last_error: text }, { ...forgotten, ...internal });
}
/** The message about a step that failed. The driver's message may name the step already. */
function stepFailure(task: NodeTask, { kind }: ListedSteps, reason: string): string {
  const { running } = positionOf(task, kind);
  return running && !reason.includes(`${running.interface}.${running.step}`)
    ? `Node ${task.node.uuid} failed step ${showStep(running)}: ${reason}`
    : reason;
}

interface ListedFlowParts extends Pick<StepsFlowParts, 'errorType' | 'admit' | 'begin' | 'finish' | 'abort' | 'wakeAtUnhold'> {
  readonly inMaintenance: string;
  readonly afterAbort: AfterAbort;
  /**
   * The list of the steps that the driver and the agent offer.
   * @param withoutRamdisk as the client requested: a step that needs the ramdisk is refused. A flow may find by itself that none boots.
   */
  readonly plan: (task: NodeTask, fromAgent: readonly PlannedStep[], withoutRamdisk: boolean) => Promise<readonly PlannedStep[]>;
  /** Boots the ramdisk. */
  readonly boot: (task: NodeTask) => Promise<Booted>;
}
/** `steps`: of an agent that runs already. Otherwise the agent's next heartbeat continues the flow. */
export type Booted = Exclude<Outcome, { readonly kind: 'done' }> | { readonly kind: 'done'; readonly steps: readonly PlannedStep[] };
interface ListedFlow extends StepsFlow {
  /** Makes the list and runs it: the agent has reported its steps, or no ramdisk is needed. */
  start(task: NodeTask, fromAgent: readonly PlannedStep[], also?: InternalChanges): Promise<StepOutcome>;
}
export function listedFlow(list: ListedSteps, { plan, boot, ...parts }: ListedFlowParts): ListedFlow {
  const { kind, noun, gerund } = list;
  /** Makes the list, at first or again with the agent's steps, and notes it. The list keeps its position. */
  const planned = (task: NodeTask, fromAgent: readonly PlannedStep[], also: InternalChanges): Promise<void> =>
    beforeSteps(task, list, async () => {
      const { index = 0 } = positionOf(task, kind);
      const withoutRamdisk = runsWithoutRamdisk(task, list);
      // The plan depends on it.
      task.note({}, also);
      const steps = await plan(task, fromAgent, withoutRamdisk);
      task.note({}, savedList(kind, allowedSteps(task.context.options, kind, steps), index));
    });
  const start: ListedFlow['start'] = async (task, fromAgent, also = {}) => {
    const { index } = positionOf(task, kind);
    await planned(task, fromAgent, index === undefined ? also : { ...also, ramdisk_boot: undefined });
    if (index === undefined) await recordSteps(task, kind, positionOf(task, kind).steps, 'start');
    return flow.proceed(task, index ?? 0);
  };
  const bootBefore: StepHooks['boot'] = async (task, step, at) => {
    if (task.node.driver_internal_info.ramdisk_boot === undefined || !needsBoot(task, list, step)) return undefined;
    await task.write({ [KEYS[kind].column]: {} }, { [KEYS[kind].index]: at, ramdisk_boot: 'begun' });
    const booted = await boot(task);
    if (booted.kind !== 'done') return booted;
    await planned(task, booted.steps, { ramdisk_boot: undefined });
    return done;
  };
  const flow: ListedFlow = {
    ...stepsFlow({
      ...parts,
      kind,
      hooks: { boot: bootBefore },
      cannotLoad: `Node failed to start the first ${noun} step`,
      timeoutText: ({ [`${kind}_step` as const]: step }) =>
        `Timeout reached while ${gerund} the node. Please check if the ramdisk responsible for the ${gerund} is running on the node. ` +
        `Failed on step ${showStep(step)}.`,
      stepFailure: (task, reason) => stepFailure(task, list, reason),
      lacksAgentSteps: (task) => positionOf(task, kind).running === undefined,
      takeAgentSteps: async (task, steps) => {
        task.fireWithNext('resume');
        await applyOutcome(task, flow, () => start(task, steps));
        return true;
      },
      fail: (task, reason, how) => fail(task, list, reason, how),
    }),
    start,
  };
  return flow;
}
