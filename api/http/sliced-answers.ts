/**
 * Sends answers that consist of slices. Short ones leave whole, with their length. Of the others only one slice at a time is in memory: the
 * next one is made when the client has read the previous one.
 */
import type { ServerResponse } from 'node:http';
import { createShares, type ShareLimits } from '../../wire/shares';
import { holdUnread } from '../../wire/http/client-limits';

/** JSON in pieces. Each slice is made when the previous one has been sent. */
export type Slices = AsyncIterable<readonly Buffer[]>;

/** Longer answers are sent in slices. A thousand nodes of usual size are shorter. */
const WHOLE = 8 << 20;
/** Bytes of the beginnings of answers, until it is known whether they are short. Beyond, answers are sent in slices at once. */
const GATHERED: ShareLimits = { inAll: 64 << 20, ofSource: 32 << 20 };

/** The beginning of an answer, and the slices that follow. */
export interface Gathered {
  readonly bytes: readonly Buffer[];
  /** Undefined: the beginning is the whole answer. */
  readonly rest?: AsyncIterator<readonly Buffer[]>;
}
const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, piece) => sum + piece.length, 0);

/** @returns a function that makes the slices of an answer up to the limit. It throws what the first slices throw */
export function createGatherer(): (slices: Slices, source: string) => Promise<Gathered> {
  const gathered = createShares(GATHERED);
  return async (slices, source) => {
    const made = slices[Symbol.asyncIterator]();
    const bytes: Buffer[] = [];
    let length = 0;
    let held = 0;
    try {
      for (;;) {
        const next = await made.next();
        if (next.done) return { bytes };
        bytes.push(...next.value);
        const more = lengthOf(next.value);
        length += more;
        if (length > WHOLE || !gathered.take(source, more)) return { bytes, rest: made };
        held += more;
      }
    } finally {
      if (held > 0) gathered.give(source, held);
    }
  };
}

/** Resolves when the client has read enough, and false when it is gone. Clients that read nothing are disconnected (client-limits.ts). */
function drained(response: ServerResponse): Promise<boolean> {
  const held = holdUnread(response);
  return new Promise((resolve) => {
    const end = (isOpen: boolean): void => {
      response.off('drain', onDrain).off('close', onClose);
      held?.();
      resolve(isOpen);
    };
    const onDrain = (): void => end(true);
    const onClose = (): void => end(false);
    response.once('drain', onDrain).once('close', onClose);
    if (response.destroyed) onClose();
  });
}
/**
 * Sends the pieces and the rest, after the headers.
 * @throws what the slices throw; the response is incomplete then, and its connection must be closed
 */
export async function sendRest(response: ServerResponse, first: readonly Buffer[], rest: AsyncIterator<readonly Buffer[]>): Promise<void> {
  let pieces = first;
  for (;;) {
    response.cork();
    let isRead = true;
    for (const piece of pieces) isRead = response.write(piece);
    response.uncork();
    if (response.destroyed || (!isRead && !(await drained(response)))) {
      await rest.return?.();
      return;
    }
    const next = await rest.next();
    if (next.done) break;
    pieces = next.value;
  }
  response.end();
}
