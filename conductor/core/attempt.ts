/** Runs a part of a flow or a request, and turns what it throws into a reason. */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeTask } from './node-task';
import { isInterrupted } from './interruption';

/** Why a flow failed, in the sentence that `last_error` shall have. */
export class FlowFailure extends Error {}

/** A piece of a flow: what it throws becomes the flow's reason, in the sentence that `say` makes of it. */
export async function withFailureText<T>(task: NodeTask, say: (reason: string) => string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.warn('a piece of a flow threw', { error });
    throw new FlowFailure(say(reasonOf(error)), { cause: error });
  }
}

/** Tries a piece of cleaning up. Answers the reason why it failed; undefined: it did not. */
export async function attempt(task: NodeTask, what: string, work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    task.log.warn(`${what} failed`, { reason: reasonOf(error), ...(error instanceof Fault ? {} : { error }) });
    return reasonOf(error);
  }
}

/** A sentence without its full stop, so that it can stand inside another. */
export const withoutFullStop = (text: string): string => text.replace(/\.\s*$/, '');
