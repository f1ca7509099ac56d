/** The steps that a node's agent offers. */
import { AgentError } from '../../drivers/agent/client';
import type { PlannedStep, SavedKind } from '../../drivers/interfaces';
import type { NodeTask } from '../core/node-task';

/** Undefined: the agent is busy, and is asked again at its next heartbeat. */
export async function agentStepsOf(task: NodeTask, kind: SavedKind): Promise<readonly PlannedStep[] | undefined> {
  const { deploy } = task.driver;
  return deploy.agentSteps ? deploy.agentSteps(task, kind) : [];
}

/** The same for an agent that ran before the flow. Undefined also when it cannot be reached yet: its next heartbeat continues the flow. */
export async function runningAgentSteps(task: NodeTask, kind: SavedKind): Promise<readonly PlannedStep[] | undefined> {
  try {
    return await agentStepsOf(task, kind);
  } catch (error) {
    if (!(error instanceof AgentError) || error.kind !== 'unreachable' || task.signal.aborted) throw error;
    task.log.info('the agent cannot be reached yet: its next heartbeat continues the flow', { reason: error.message });
    return undefined;
  }
}
