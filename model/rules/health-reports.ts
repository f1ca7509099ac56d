/** Checks of what people and programs of the site say about the health of a node: reports, and masks of alerts (docs/health.md). */
import { instantOf, timestamp } from '../clock';
import { SEVERITIES, type AlertMask, type NewAlert, type Severity } from './health-alerts';
import { problemOfText, problemOfUntil } from './texts-of-people';

const MAX_TEXT = 1024;
const MAX_WORDS = 100;
const MAX_REASON = 255;
/** Open reports of one node. */
export const MAX_REPORTS = 100;
const NEEDED = 'it is needed';

type Given<Name extends string> = { readonly [Key in Name]?: string | null | undefined };
/** The first problem with the name of its field; undefined: nothing is wrong. */
function firstProblem(problems: Readonly<Record<string, string | undefined>>): string | undefined {
  const [field, problem] = Object.entries(problems).find(([, value]) => value !== undefined) ?? [];
  return field === undefined ? undefined : `${field}: ${problem!}`;
}
const ofText = (text: string | null | undefined, most: number): string | undefined =>
  typeof text === 'string' ? problemOfText(text, most) : NEEDED;
const ifGiven = <T>(value: T | null | undefined, check: (value: T) => string | undefined): string | undefined =>
  value === null || value === undefined ? undefined : check(value);

/** @param now milliseconds. @returns what is wrong, with the name of the field, or the alert without its node */
export function reportOf(
  { source, subject, severity, text, until }: Given<'source' | 'subject' | 'severity' | 'text' | 'until'>,
  by: string | null,
  now: number,
): Omit<NewAlert, 'node_uuid'> | string {
  const problem = firstProblem({
    source: ofText(source, MAX_WORDS),
    severity: SEVERITIES.some((known) => known === severity) ? undefined : `it is ${SEVERITIES.join(' or ')}`,
    text: ofText(text, MAX_TEXT),
    subject: ifGiven(subject, (value) => problemOfText(value, MAX_WORDS)),
    until: ifGiven(until, (value) => problemOfUntil(value, now)),
  });
  if (problem !== undefined) return problem;
  return {
    source: 'report',
    rule: source!.trim(),
    subject: subject?.trim() ?? '',
    severity: severity as Severity,
    text: text!.trim(),
    until: until ? timestamp(instantOf(until)) : null,
    reported_by: by,
  };
}

/** As `reportOf`. */
export function maskOf({ until, reason }: Given<'until' | 'reason'>, by: string | null, now: number): AlertMask | string {
  const problem = firstProblem({
    reason: ofText(reason, MAX_REASON),
    until: typeof until === 'string' ? problemOfUntil(until, now) : NEEDED,
  });
  return problem ?? { until: timestamp(instantOf(until!)), reason: reason!.trim(), by };
}
