/** The history of a node as spans of time: its provision states and the steps in them (docs/reference/events.md). Pure. */
import { bytesWritten, type NodeEvent } from './rows';

export interface Span {
  readonly kind: 'state' | 'step';
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly from: number;
  /** Undefined: it has not ended. */
  readonly to?: number;
  readonly percent?: number;
  readonly bytes?: { readonly done: number; readonly of: number };
}
/** Whether a node in the state is in the middle of an operation. */
export const isUnderWay = (state: string): boolean => /wait|hold|ing$/.test(state);
const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Ends the last span of the kind, unless it has already ended. */
function ended(spans: Span[], kind: Span['kind'], at: number): void {
  const index = spans.findLastIndex((span) => span.kind === kind);
  const span = spans[index];
  if (span && span.to === undefined) spans[index] = { ...span, to: at };
}
/** @param events the oldest first */
export function spansOf(events: readonly Pick<NodeEvent, 'at' | 'kind' | 'payload'>[]): readonly Span[] {
  const spans: Span[] = [];
  for (const { at, kind, payload } of events) {
    const time = Date.parse(at);
    const { provision_state: state, previous_provision_state: before, step, percent } = payload;
    if (kind === 'state' && state !== before) {
      // A wait within an operation (deploying, wait call-back) does not end its step.
      const isSameOperation = isUnderWay(textIn(state)) && isUnderWay(textIn(before));
      if (!isSameOperation) ended(spans, 'step', time);
      ended(spans, 'state', time);
      spans.push({ kind, name: textIn(state), from: time });
    }
    if (kind === 'step') {
      ended(spans, 'step', time);
      spans.push({ kind, name: textIn(step), from: time });
    }
    if (kind === 'progress' && typeof percent === 'number') {
      const index = spans.findLastIndex((span) => span.kind === 'step' && span.name === step && span.to === undefined);
      if (index >= 0) spans[index] = { ...spans[index]!, percent, ...bytesWritten(payload) };
    }
  }
  return spans;
}
/** `1 h 2 min`, `3 min 4 s`, `5.6 s` */
export function durationText(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
/** The position and the width of a span in percent of the time of all spans. */
export function placeOf(
  { from, to }: Span,
  all: { readonly from: number; readonly to: number },
): { readonly x: number; readonly width: number } {
  const length = Math.max(1, all.to - all.from);
  const x = Math.min(100, Math.max(0, ((from - all.from) / length) * 100));
  return { x, width: Math.min(100 - x, Math.max(0.3, (((to ?? all.to) - from) / length) * 100)) };
}
