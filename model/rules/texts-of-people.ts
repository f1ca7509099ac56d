/** Checks of what people write about nodes: reasons, and times until which something holds. */
import { instantOf } from '../clock';

const MAX_DAYS = 366;
const DAY_MS = 86_400_000;

/** Controls (C0, C1, DEL), separators of lines, and marks that change the direction of the text around them. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** ISO 8601: a date, or a time in UTC unless it has a zone. */
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;

/** What is wrong with the text; undefined: nothing. */
export function problemOfText(text: string, most: number): string | undefined {
  if (text.trim() === '') return 'it is empty';
  if (text.length > most) return `it has more than ${most} characters`;
  return UNPRINTABLE.test(text) ? 'it has control characters' : undefined;
}
/** @param now milliseconds */
export function problemOfUntil(text: string, now: number): string | undefined {
  const at = MOMENT.test(text) ? instantOf(text) : NaN;
  if (Number.isNaN(at)) return 'it is not a time (ISO 8601, such as 2026-12-01T08:00:00Z)';
  if (at <= now) return 'it is not in the future';
  return at > now + MAX_DAYS * DAY_MS ? `it is more than ${MAX_DAYS} days from now` : undefined;
}
