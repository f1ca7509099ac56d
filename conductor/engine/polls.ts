/** Polls the running steps of waiting nodes after some seconds, once each. A later request for a node replaces an earlier one. */
import { Fault, reasonOf } from '../../model/errors';
import type { Context } from '../core/context';
import { wakeNode } from './heartbeat';

export function createPolls(context: () => Context): Pick<Context, 'pollLater' | 'isPolling' | 'stopPolling'> {
  const pending = new Map<string, AbortController>();
  return {
    isPolling: (uuid) => pending.has(uuid),
    stopPolling: (uuid) => {
      pending.get(uuid)?.abort();
      pending.delete(uuid);
    },
    pollLater: (uuid, seconds) => {
      const { clock, signal, log } = context();
      pending.get(uuid)?.abort();
      const replaced = new AbortController();
      pending.set(uuid, replaced);
      clock
        .sleep(seconds * 1000, AbortSignal.any([signal, replaced.signal]))
        .then(() => {
          pending.delete(uuid);
          return context().track(wakeNode(context(), uuid, 'poll'));
        })
        .catch((error: unknown) => {
          if (signal.aborted || replaced.signal.aborted) return;
          // The database is unreachable, or all workers are busy: the node still waits.
          if (error instanceof Fault && error.status === 503) context().pollLater(uuid, seconds);
          else log.warn(`node ${uuid} was not polled`, { reason: reasonOf(error) });
        });
    },
  };
}
