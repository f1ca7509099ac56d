/** The steps that the agent in a machine offers, as the flows ask for them. */
import { AgentError } from '../../drivers/agent/client';
import type { PlannedStep, SavedKind } from '../../drivers/interfaces';
import type { NodeTask } from '../core/node-task';

/** Undefined: the agent is busy, its next heartbeat asks again. */
export async function agentStepsOf(task: NodeTask, kind: SavedKind): Promise<readonly PlannedStep[] | undefined> {
  const { deploy } = task.driver;
  return deploy.agentSteps ? deploy.agentSteps(task, kind) : [];
}

/** The same of an agent that was there before the flow, and may not be reached yet: its heartbeat is waited for then, too. */
export async function runningAgentSteps(task: NodeTask, kind: SavedKind): Promise<readonly PlannedStep[] | undefined> {
  try {
    return await agentStepsOf(task, kind);
  } catch (error) {
    if (!(error instanceof AgentError) || error.kind !== 'connection' || task.signal.aborted) throw error;
    task.log.info('the agent cannot be reached yet: its next heartbeat goes on', { reason: error.message });
    return undefined;
  }
}
