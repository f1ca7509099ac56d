/** What the flows have in common: how the outcome of their work becomes an event. Drivers never move a node; this file does. */
import type { Outcome } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { mustLeave, type Held } from '../task';

export interface Flow {
  /** All work was done: puts the node to rest and fires the event that ends the flow. What it throws fails the flow. */
  finish(task: Held): Promise<void>;
  /** Cleans up as far as it goes, and fires `fail` with the reason as `last_error`. */
  fail(task: Held, reason: string): Promise<void>;
}

/** Why a flow failed, in the sentence that `last_error` shall have. */
class Explained extends Error {}

/** A piece of a flow: what it throws becomes the flow's reason, in the sentence that `say` makes of it. */
export async function saying<T>(task: Held, say: (reason: string) => string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (mustLeave(task.context, error)) throw error;
    if (!(error instanceof Fault)) task.log.warn('a piece of a flow threw', { error });
    throw new Explained(say(reasonOf(error)), { cause: error });
  }
}

/** Tries a piece of cleaning up. Answers the reason why it failed; undefined: it did not. */
export async function trying(task: Held, what: string, work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (mustLeave(task.context, error)) throw error;
    task.log.warn(`${what} failed`, { reason: reasonOf(error), ...(error instanceof Fault ? {} : { error }) });
    return reasonOf(error);
  }
}

/** The only place where an outcome becomes an event. */
export async function settle(task: Held, flow: Flow, work: () => Promise<Outcome>): Promise<void> {
  let reason: string;
  try {
    const outcome = await work();
    if (outcome.kind === 'failed') ({ reason } = outcome);
    else {
      await (outcome.kind === 'done' ? flow.finish(task) : startWaiting(task, outcome.pollEvery));
      return;
    }
  } catch (error) {
    if (mustLeave(task.context, error)) throw error;
    if (!(error instanceof Fault || error instanceof Explained)) task.log.error('a flow ended unexpectedly', { error });
    reason = reasonOf(error);
  }
  await flow.fail(task, reason);
}

async function startWaiting(task: Held, pollEvery: number | undefined): Promise<void> {
  await task.fire('wait', {}, { step_poll_every: pollEvery });
  if (pollEvery !== undefined) task.context.askLater(task.node.uuid, pollEvery);
}

/** A sentence without its full stop, so that it can stand inside another. */
export const clause = (text: string): string => text.replace(/\.\s*$/, '');
