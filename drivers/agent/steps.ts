/** Steps that the agent runs: listing them, starting one, and following it by heartbeats. */
import { bareTimestamp } from '../../model/clock';
import { isEraseStep } from '../../model/agent/erasure';
import { setting, type InternalKey } from '../../model/internal-info';
import { AgentError, type AgentClient, type AgentCommand, commandError, withAgent } from './client';
import { withSettings } from './step-settings';
import { nodeForAgent, portForAgent, withPsids } from './view';
import { type Interface, type Outcome, type PlannedStep, type SavedKind, type Step, type Task, done, failed, wait } from '../interfaces';
import { isObject } from '../../model/json';
import { shortened, storable } from '../../model/text';

type AgentStepKind = SavedKind;

const REBOOTING = {
  clean: 'cleaning_reboot',
  deploy: 'deployment_reboot',
  service: 'servicing_reboot',
} as const satisfies Record<AgentStepKind, InternalKey>;

/** Maximum number of steps, since the list is stored in the node's row. No known hardware manager has more. */
const MAX_STEPS = 500;

const view = (task: Task, withConfigdrive: boolean) => ({
  node: nodeForAgent(task.node, withConfigdrive),
  ports: task.ports.map(portForAgent),
});

/** Below it, the steps cannot make the record too large for the write that they are saved with. Characters of their JSON. */
const FEW_STEPS = 64 * 1024;

/**
 * See DeployInterface.agentSteps. Throws AgentError, or an Error for a response that is not a list of steps.
 * @param when to save them; a conductor that takes over asks for them again
 */
export async function agentSteps(
  task: Task,
  kind: AgentStepKind,
  when: 'now' | 'with next' = 'with next',
): Promise<readonly PlannedStep[] | undefined> {
  const command = await unlessBusy(
    withAgent(task, (agent) => agent.command(`${kind}.get_${kind}_steps`, view(task, false), { wait: true })),
  );
  if (command === undefined) return undefined;
  if (command.command_status === 'FAILED') throw new Error(commandError(command));
  const { [`${kind}_steps`]: offered, hardware_manager_version: version } = command.command_result ?? {};
  const complaint = `agent get_${kind}_steps for node ${task.node.uuid} returned an invalid`;
  if (typeof offered !== 'object' || offered === null || version === undefined) {
    throw new Error(`${complaint} result. Keys: ${kind}_steps and hardware_manager_version are needed.`);
  }
  const given = Object.values(offered).flat() as unknown[];
  if (given.length > MAX_STEPS) throw new Error(`${complaint} result. It offers ${given.length} steps; ${MAX_STEPS} are taken at most.`);
  const steps = given.map((step) => plannedStep(kind, step, complaint));
  const [bytes, most] = [JSON.stringify([steps, version]).length, 1024 * task.options['agent.max_steps_size']];
  if (bytes > most) throw new Error(`${complaint} result. It has ${bytes} characters; [agent]max_steps_size allows ${most}.`);
  const found = {
    hardware_manager_version: version,
    ...setting(`agent_cached_${kind}_steps`, byInterface(steps)),
    ...setting(`agent_cached_${kind}_steps_refreshed`, bareTimestamp(task.clock.now())),
  };
  await task.saveInternal(found, bytes < FEW_STEPS ? when : 'now');
  return steps;
}

function byInterface(steps: readonly PlannedStep[]): Readonly<Record<string, readonly PlannedStep[]>> {
  const names = [...new Set(steps.map((step) => step.interface))];
  return Object.fromEntries(names.map((name) => [name, steps.filter((step) => step.interface === name)]));
}

async function unlessBusy<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof AgentError && error.kind === 'busy') return undefined;
    throw error;
  }
}

function plannedStep(kind: AgentStepKind, value: unknown, complaint: string): PlannedStep {
  const step = value as Partial<PlannedStep> | null;
  if (typeof step?.step !== 'string' || typeof step.interface !== 'string' || typeof step.priority !== 'number') {
    throw new Error(`${complaint} ${kind} step. Keys: interface, step and priority are needed: ${shortened(JSON.stringify(value), 200)}.`);
  }
  return { ...(step as PlannedStep), ...(kind === 'clean' ? { requires_ramdisk: true } : {}) };
}

/** Starts a step in the agent; a heartbeat reports its end. A step that already runs (its response was lost) is not started again. */
export async function runAgentStep(task: Task, kind: AgentStepKind, step: PlannedStep): Promise<Outcome> {
  return withAgent(task, (agent) => execute(task, agent, kind, step));
}

async function execute(task: Task, agent: AgentClient, kind: AgentStepKind, step: PlannedStep): Promise<Outcome> {
  try {
    const { node, ports } = view(task, kind === 'deploy');
    await agent.command(`${kind}.execute_${kind}_step`, {
      ...withSettings(task, kind, step, isEraseStep(step) ? withPsids(node, step, task.node) : node),
      ports,
      [`${kind}_version`]: task.node.driver_internal_info['hardware_manager_version'] ?? null,
    });
  } catch (error) {
    if (!(error instanceof AgentError) || error.kind !== 'busy') throw error;
    const last = (await agent.commands()).at(-1);
    if (last?.command_name !== `execute_${kind}_step` || last.command_status !== 'RUNNING') throw error;
  }
  return wait;
}

/** See DeployInterface.onHeartbeat. */
export async function onHeartbeat(task: Task, kind: AgentStepKind, step: PlannedStep): Promise<Outcome> {
  return withAgent(task, async (agent) => {
    const commands = await agent.commands();
    if (commands.every(({ command_name }) => command_name === `get_${kind}_steps`)) return freshlyBooted(task, kind, step);
    const last = commands.at(-1)!;
    // The last command is not this step: an out-of-band step continues, or the agent ran before this flow.
    if (last.command_name !== `execute_${kind}_step`) return idOf(step) === BOOT_STEP ? done : wait;
    switch (last.command_status) {
      case 'RUNNING': {
        // Our own agent reports progress; others do not.
        const percent = last.command_result?.['progress'];
        if (typeof percent === 'number' && percent >= 0 && percent <= 100)
          await task.reportProgress?.(kind, step, percent, bytesIn(last.command_result?.['bytes']));
        return wait;
      }
      case 'SUCCEEDED':
        return isOf(last, kind, step) ? succeeded(task, kind, step, last) : wait;
      case 'FAILED':
        return failed(`${titled(kind)} step ${idOf(step)} failed on node ${task.node.uuid}. ${commandError(last)}`);
      case 'CLEAN_VERSION_MISMATCH':
      case 'VERSION_MISMATCH':
        return restartStep(task, agent, kind, step);
      default:
        return failed(
          `Agent returned unknown status for ${kind} step ${idOf(step)} on node ${task.node.uuid} : ${shortened(last.command_status, 100)}.`,
        );
    }
  });
}

function bytesIn(value: unknown): { readonly done: number; readonly of: number } | undefined {
  const { done, of } = (value ?? {}) as { readonly done?: unknown; readonly of?: unknown };
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && (count as number) >= 0;
  return isCount(done) && isCount(of) && done <= of ? { done, of } : undefined;
}

/** The step that boots the agent. It is over when an agent runs. */
const BOOT_STEP = 'deploy.deploy';
const idOf = ({ interface: kind, step }: PlannedStep): string => `${kind}.${step}`;
const titled = (kind: string): string => kind[0]!.toUpperCase() + kind.slice(1);

function isOf(command: AgentCommand, kind: AgentStepKind, step: PlannedStep): boolean {
  const finished = command.command_result?.[`${kind}_step`] as Partial<PlannedStep> | null | undefined;
  return finished?.step === step.step && finished.interface === step.interface;
}

/**
 * Handles the heartbeat of an agent that has executed no step since it started. This is expected after the boot for this step, and after
 * the reboot at the step's end. Otherwise the agent was restarted during the step: the step fails, since the disk may be half written, or
 * begins again, if it is one that only reads.
 */
async function freshlyBooted(task: Task, kind: AgentStepKind, step: PlannedStep): Promise<Outcome> {
  const expected = task.node.driver_internal_info[REBOOTING[kind]] === true;
  if (expected) await task.saveInternal(setting(REBOOTING[kind], undefined));
  if (expected || idOf(step) === BOOT_STEP) return done;
  const own = ownStep(task, kind, step);
  if (await own?.mayBeginAgain?.(task)) return own!.run(task, step.args ?? {});
  return failed(`${titled(kind)} step ${idOf(step)} failed on node ${task.node.uuid}. The agent was restarted while the step ran`);
}

/** The row of a step of this server that the agent executes; undefined: the step is the agent's. */
function ownStep(task: Task, kind: AgentStepKind, step: PlannedStep): Step | undefined {
  const owner = (task.driver as unknown as Readonly<Record<string, Interface | undefined>>)[step.interface];
  return owner?.steps?.find((candidate) => candidate.step === step.step && candidate.priority[kind] !== undefined);
}

async function succeeded(task: Task, kind: AgentStepKind, step: PlannedStep, command: AgentCommand): Promise<Outcome> {
  if (isEraseStep(step))
    await task.certifyErasure({ step: idOf(step), command: command.id ?? '', result: command.command_result?.[`${kind}_result`] });
  const own = ownStep(task, kind, step);
  const result = command.command_result?.[`${kind}_result`];
  await own?.finish?.(task, result);
  if (!own && !isEraseStep(step)) await keepResult(task, idOf(step), result);
  if (step.reboot_requested !== true) return done;
  await task.saveInternal(setting(REBOOTING[kind], true));
  await task.driver.boot.prepareRamdisk(task, {});
  await task.power('rebooting');
  return wait;
}

/** Of the steps whose results a node keeps, and characters of a result: the row of the node has them. */
const [MAX_RESULTS, MAX_RESULT] = [16, 8192];
/** Keeps what a step measured or changed, as a burn-in does, until the same step runs again. An agent that says nothing changes nothing. */
async function keepResult(task: Task, id: string, result: unknown): Promise<void> {
  if (!isObject(result) || Object.keys(result).length === 0) return;
  const text = storable(JSON.stringify(result));
  const kept = text.length <= MAX_RESULT ? (JSON.parse(text) as unknown) : shortened(text, MAX_RESULT);
  const others = Object.entries(task.node.driver_internal_info.agent_step_results ?? {}).filter(([name]) => name !== id);
  const all = [...others, [id, { at: bareTimestamp(task.clock.now()), result: kept }] as const];
  await task.saveInternal(setting('agent_step_results', Object.fromEntries(all.slice(-MAX_RESULTS))));
}

/** The agent's hardware managers changed: reads their steps again and restarts this one. Fails when nothing changed. */
async function restartStep(task: Task, agent: AgentClient, kind: AgentStepKind, step: PlannedStep): Promise<Outcome> {
  const before = JSON.stringify(task.node.driver_internal_info['hardware_manager_version']);
  // Before the agent gets the step.
  const steps = await agentSteps(task, kind, 'now');
  if (steps === undefined) return wait;
  const after = JSON.stringify(task.node.driver_internal_info['hardware_manager_version']);
  if (before === after)
    return failed(`${titled(kind)} step ${idOf(step)} failed on node ${task.node.uuid}. The agent takes no step of its own version`);
  return execute(task, agent, kind, step);
}
