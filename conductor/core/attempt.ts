/** Runs a part of a flow or a request, and turns what it throws into a reason. */
import { Fault, reasonOf } from '../../model/errors';
import { oneLine } from '../../model/log';
import { shortened } from '../../model/text';
import type { NodeTask } from './node-task';
import { isInterrupted } from './interruption';

/** The reason of a flow's failure, as the sentence for `last_error`. */
export class FlowFailure extends Error {}

/** Runs a part of a flow. Its error is thrown as a FlowFailure with the text of `sentence`. */
export async function withFailureText<T>(task: NodeTask, sentence: (reason: string) => string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.warn('a part of a flow failed with an unexpected error', { error });
    throw new FlowFailure(sentence(reasonOf(error)), { cause: error });
  }
}

/** Runs a part of a clean-up. Returns the reason of its failure; undefined: it succeeded. */
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

/** Characters of a reason that stay if the whole cannot be written. */
const MAX_REDUCED = 1000;
/** A reason that every database accepts: printable ASCII. */
export const reduced = (reason: string): string => shortened(oneLine(reason).replace(/[^ -~]/g, '?'), MAX_REDUCED);

/** A sentence without its full stop, so that it can stand inside another. */
export const withoutFullStop = (text: string): string => text.replace(/\.\s*$/, '');
