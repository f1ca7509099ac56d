/**
 * Nodes that a person takes out of service for some time (docs/out-of-service.md). Clients of Ironic see maintenance. Beneath it, the node
 * keeps the maintenance that it had, and gets it back in the end.
 */
import { instantOf, timestamp } from '../clock';
import type { NodeChanges, NodeRecord, Outage, OutageRequest } from '../records';

export const outageOf = ({ out_of_service: column }: Pick<NodeRecord, 'out_of_service'>): Outage | undefined =>
  'before' in column ? (column as Outage) : undefined;

const MAX_REASON = 255;
const MAX_URL = 1024;
const MAX_DAYS = 366;
const DAY_MS = 86_400_000;
/** Pauses between reminders. */
const REMINDER_MS = DAY_MS;

/** Controls (C0, C1, DEL), separators of lines, and marks that change the direction of the text around them. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
/** ISO 8601: a date, or a time in UTC unless it has a zone. */
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;

/** What is wrong with the text; undefined: nothing. */
function problemOfText(text: string, most: number): string | undefined {
  if (text.trim() === '') return 'it is empty';
  if (text.length > most) return `it has more than ${most} characters`;
  return UNPRINTABLE.test(text) ? 'it has control characters' : undefined;
}
function problemOfTicket(text: string): string | undefined {
  const problem = problemOfText(text, MAX_URL);
  if (problem !== undefined) return problem;
  const url = URL.canParse(text) && !/\s/.test(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return 'it is not a URL of http or https';
  // Everybody who sees the node sees the URL.
  return url.username !== '' || url.password !== '' ? 'a URL with a login cannot be stored here' : undefined;
}
function problemOfUntil(text: string, now: number): string | undefined {
  const at = MOMENT.test(text) ? instantOf(text) : NaN;
  if (Number.isNaN(at)) return 'it is not a time (ISO 8601, such as 2026-12-01T08:00:00Z)';
  if (at <= now) return 'it is not in the future';
  return at > now + MAX_DAYS * DAY_MS ? `it is more than ${MAX_DAYS} days from now` : undefined;
}

type Given = { readonly [Name in keyof OutageRequest]?: string | null | undefined };
/** The request with a normalised time; or what is wrong, with the name of the field. @param now milliseconds */
export function outageRequestOf({ reason, ticket, until }: Given, now: number): OutageRequest | string {
  const needed = 'it is needed';
  const problems = {
    reason: typeof reason === 'string' ? problemOfText(reason, MAX_REASON) : needed,
    ticket: typeof ticket === 'string' ? problemOfTicket(ticket) : undefined,
    until: typeof until === 'string' ? problemOfUntil(until, now) : needed,
  };
  for (const [field, problem] of Object.entries(problems)) if (problem !== undefined) return `${field}: ${problem}`;
  return { reason: reason!.trim(), ticket: ticket ?? null, until: timestamp(instantOf(until!)) };
}

/** A time in texts for people, without fractions of a second. */
export const shownTime = (time: string): string => new Date(Date.parse(time)).toISOString().replace(/\.\d{3}Z$/, 'Z');
/** The sentence for maintenance_reason, the history and the log. */
export const outageText = ({ reason, ticket, until, declared_by: by }: Omit<Outage, 'before'>): string =>
  `Out of service until ${shownTime(until)}: ${reason}${ticket === null ? '' : ` (${ticket})`}${by === null ? '' : `, declared by ${by}`}`;

/** The maintenance of the node without regard to its being out of service. */
export const ownMaintenance = (node: NodeRecord): Outage['before'] => outageOf(node)?.before ?? node;

/** The changes that take a node out of service, or that change what was said about it. @param now milliseconds */
export function declared(node: NodeRecord, request: OutageRequest, by: string | null, now: number): NodeChanges {
  const { maintenance, maintenance_reason } = ownMaintenance(node);
  const outage: Outage = {
    ...request,
    declared_by: by,
    declared_at: timestamp(now),
    reminded_at: null,
    before: { maintenance, maintenance_reason },
  };
  return { out_of_service: outage, maintenance: true, maintenance_reason: outageText(outage) };
}
export const endedOutage = ({ before }: Outage): NodeChanges => ({ out_of_service: {}, ...before });

/** Writes changes of maintenance beneath: they take effect when the node is in service again. */
export function beneath(node: NodeRecord, changes: NodeChanges): NodeChanges {
  const outage = outageOf(node);
  if (!outage || changes.out_of_service !== undefined) return changes;
  const { maintenance = outage.before.maintenance, maintenance_reason = outage.before.maintenance_reason, ...rest } = changes;
  if (Object.keys(rest).length === Object.keys(changes).length) return changes;
  return { ...rest, out_of_service: { ...outage, before: { maintenance, maintenance_reason } } };
}

export const isOverdue = ({ until }: Outage, now: number): boolean => Date.parse(until) <= now;
/** Whether to remind now: when the time is over, and every day after that. */
export const isReminderDue = (outage: Outage, now: number): boolean =>
  isOverdue(outage, now) && (outage.reminded_at === null || Date.parse(outage.reminded_at) + REMINDER_MS <= now);
