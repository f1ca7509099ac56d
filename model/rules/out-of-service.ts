/**
 * Nodes that a person takes out of service for some time (docs/out-of-service.md). Clients of Ironic see maintenance. Beneath it, the node
 * keeps the maintenance that it had, and gets it back in the end.
 */
import { instantOf, timestamp } from '../clock';
import type { NodeChanges, NodeRecord, Outage, OutageRequest } from '../records';
import { problemOfText, problemOfUntil } from './texts-of-people';

export const outageOf = ({ out_of_service: column }: Pick<NodeRecord, 'out_of_service'>): Outage | undefined =>
  'before' in column ? (column as Outage) : undefined;

const MAX_REASON = 255;
const MAX_URL = 1024;
const DAY_MS = 86_400_000;
/** Pauses between reminders. */
const REMINDER_MS = DAY_MS;

function problemOfTicket(text: string): string | undefined {
  const problem = problemOfText(text, MAX_URL);
  if (problem !== undefined) return problem;
  const url = URL.canParse(text) && !/\s/.test(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return 'it is not a URL of http or https';
  // Everybody who sees the node sees the URL.
  return url.username !== '' || url.password !== '' ? 'a URL with a login cannot be stored here' : undefined;
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
