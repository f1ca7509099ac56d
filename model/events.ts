/** Events of nodes: their kinds, their records, and positions in their order. */
import type { JsonObject } from './records';

/** Kind → description. docs/reference/events.md describes the payloads. */
export const EVENT_KINDS = {
  created: 'The node was enrolled.',
  deleted: 'The node was deleted.',
  state: 'The provision state or the target provision state changed.',
  power: 'The power state or the target power state changed.',
  maintenance: 'The maintenance flag or the fault changed.',
  out_of_service: 'The node was taken out of service or put back, or its time out of service is over.',
  error: 'The node has a new last_error.',
  step: 'A step of cleaning, deployment or servicing starts.',
  progress: 'A step ended or reported progress.',
  hardware: 'The recorder on the host reported changed hardware, or an inspection found it.',
  health: 'An alert about the node was raised, changed, masked or cleared.',
  recorder: 'The recorder became stale, or reported again.',
} as const;
export type EventKind = keyof typeof EVENT_KINDS;
/** The name of a kind's events in the event stream. Browsers report a lost connection as `error` (WHATWG HTML §9.2.2). */
export const streamName = (kind: EventKind): string => (kind === 'error' ? 'failure' : kind);

export interface EventRecord {
  /** The place in the order of events: `<transaction>-<number>`. A reader that continues after it gets every later event exactly once. */
  readonly position: string;
  readonly at: string;
  readonly node_uuid: string;
  readonly node_name: string | null;
  readonly owner: string | null;
  readonly lessee: string | null;
  readonly kind: EventKind;
  readonly payload: JsonObject;
}

const POSITION = /^(\d{1,19})-(\d{1,19})$/;
const LIMIT = 2n ** 63n;
const numbersOf = (position: string): readonly [bigint, bigint] => {
  const [, transaction, number] = POSITION.exec(position) ?? [];
  return [BigInt(transaction ?? LIMIT), BigInt(number ?? LIMIT)];
};
/** Whether a text from a client is a valid position. */
export const isPosition = (text: string): boolean => numbersOf(text).every((number) => number < LIMIT);
/** Whether `position` is after `other`. */
export function isBehind(position: string, other: string): boolean {
  const [[transaction, number], [thatTransaction, thatNumber]] = [numbersOf(position), numbersOf(other)];
  return transaction > thatTransaction || (transaction === thatTransaction && number > thatNumber);
}
