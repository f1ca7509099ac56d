/** What happens to nodes, as it is told to those who listen: kinds, records, and the places in their order. */
import type { JsonObject } from './records';

/** Kind → what it tells. docs/events.md has what each carries. */
export const EVENT_KINDS = {
  created: 'The node was enrolled.',
  deleted: 'The node is no more.',
  state: 'Its provision state, or the state that it is bound for, is another.',
  power: 'Its power state, or the one that it is brought to, is another.',
  maintenance: 'It went into maintenance or came out of it, or its fault is another.',
  error: 'It has a new last_error.',
  step: 'A step of cleaning, deployment or servicing begins.',
  progress: 'A step is done, or says how far it is.',
  hardware: 'A recorder on its host saw other hardware than before.',
  recorder: 'Nothing was heard of that recorder for long, or it is heard again.',
} as const;
export type EventKind = keyof typeof EVENT_KINDS;

export interface EventRecord {
  /** Where it stands in the order of events: `<transaction>-<number>`. Whoever goes on after it misses nothing and gets nothing twice. */
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
const MOST = 2n ** 63n;
const numbersOf = (position: string): readonly [bigint, bigint] => {
  const [, transaction, number] = POSITION.exec(position) ?? [];
  return [BigInt(transaction ?? MOST), BigInt(number ?? MOST)];
};
/** Whether a text from outside is a place in the order. */
export const isPosition = (text: string): boolean => numbersOf(text).every((number) => number < MOST);
/** Whether one is behind the other. */
export function isBehind(position: string, other: string): boolean {
  const [[transaction, number], [thatTransaction, thatNumber]] = [numbersOf(position), numbersOf(other)];
  return transaction > thatTransaction || (transaction === thatTransaction && number > thatNumber);
}
