/**
 * The logs of a Redfish service (DSP2046, LogService), read from where the last reading ended. Some services show the oldest entry first,
 * others the newest, and not all know $skip.
 */
import { isObject } from '../../model/json';
import type { Signal } from '../../model/rules/health-rules';
import {
  RedfishError,
  isStatus,
  linkOf,
  linkedCollection,
  listOf,
  member,
  numberOf,
  readResource,
  textOf,
  type RedfishResource,
  type SendRedfishRequest,
} from '../../wire/redfish';
import { recordSignal } from '../common/health-records';
import type { LogPosition as KeptPosition, LogReading, Task } from '../interfaces';
import { managersOf } from './managers';
import { onSystem, type SystemView } from './target';

interface LogPosition {
  /** Of the newest entry that was read; null: the log was empty. */
  readonly id: string | null;
  readonly count: number;
  readonly newestFirst: boolean;
}
/** Logs of one machine. */
const MAX_LOGS = 4;
/** Pages and entries of one reading of a log, and entries that are read one by one. */
const MAX_PAGES = 50;
const MAX_ENTRIES = 1000;
const MAX_SINGLE = 50;
/** Entries at the end of a log among which the last known one is searched. */
const TAIL = 200;
/** Logs that say nothing about the health of parts: codes and dumps of the start, audits, the journal of the BMC's own system. */
const NOT_HEALTH = /post|dump|journal|audit|crash|host.?logger|lclog|diag|security/i;

async function logsOf(task: Task, system: SystemView): Promise<readonly string[]> {
  const { ask } = system;
  const owners: readonly RedfishResource[] = [system, ...(await managersOf(system))];
  const found = new Set<string>();
  for (const owner of owners)
    for (const service of (await linkedCollection(ask, owner, 'LogServices')) ?? []) {
      const entries = linkOf(member(service.body, 'Entries'));
      const name = `${textOf(member(service.body, 'Id')) ?? ''} ${service.path.split('/').pop() ?? ''}`;
      if (entries === undefined || NOT_HEALTH.test(name) || member(service.body, 'ServiceEnabled') === false) continue;
      if (found.size < MAX_LOGS) found.add(entries);
      else task.log.debug('a log of the machine is not read: there are too many', { path: entries });
    }
  return [...found];
}

interface Page {
  readonly members: readonly unknown[];
  readonly count: number;
  readonly next: string | undefined;
}
async function pageOf(ask: SendRedfishRequest, path: string): Promise<Page> {
  const { body } = await ask('GET', path);
  const members = listOf(member(body, 'Members')).filter(isObject);
  return {
    members,
    count: numberOf(member(body, 'Members@odata.count')) ?? members.length,
    next: textOf(member(body, 'Members@odata.nextLink')),
  };
}
const idOf = (entry: unknown): string =>
  (textOf(member(entry, 'Id')) ?? linkOf(entry)?.split('/').pop() ?? textOf(member(entry, 'MemberId')) ?? '').slice(0, 255);
/** By the times of the first and the last entry of a page, else by their numbers. */
function isNewestFirst(members: readonly unknown[]): boolean {
  const [first, last] = [members[0], members.at(-1)];
  const times = [first, last].map((entry) => Date.parse(textOf(member(entry, 'Created')) ?? ''));
  if (times[0] !== times[1] && times.every((time) => !Number.isNaN(time))) return times[0]! > times[1]!;
  return Number(idOf(first)) > Number(idOf(last));
}

interface Entries {
  /** The oldest first. */
  readonly fresh: readonly unknown[];
  readonly position: LogPosition;
  readonly wasCleared: boolean;
}
const finish = (fresh: readonly unknown[], before: LogPosition, count: number, newestFirst: boolean, wasCleared = false): Entries => ({
  fresh,
  position: { id: fresh.length > 0 ? idOf(fresh.at(-1)) : wasCleared ? null : before.id, count, newestFirst },
  wasCleared,
});
const EMPTY: LogPosition = { id: null, count: 0, newestFirst: false };

/** All pages from this one on, until `isEnough`. */
async function follow(ask: SendRedfishRequest, first: Page, isEnough: (members: readonly unknown[]) => boolean): Promise<unknown[]> {
  const members = [...first.members];
  const seen = new Set<string>();
  for (let { next } = first; next !== undefined && !seen.has(next) && seen.size < MAX_PAGES && !isEnough(members);) {
    seen.add(next);
    const page = await pageOf(ask, next);
    members.push(...page.members);
    next = page.next;
  }
  return members;
}
/** Undefined: the service does not know $skip. */
const skipped = (ask: SendRedfishRequest, path: string, count: number): Promise<Page | undefined> =>
  pageOf(ask, `${path}${path.includes('?') ? '&' : '?'}$skip=${count}`).catch((error: unknown) => {
    if (isStatus(error)) return undefined;
    throw error;
  });
/** Undefined: the service does not know $skip, or the entry that was the last is not at its place. */
async function fromPosition(ask: SendRedfishRequest, path: string, before: LogPosition): Promise<Entries | undefined> {
  if (before.newestFirst || before.id === null || before.count === 0) return undefined;
  const page = await skipped(ask, path, before.count - 1);
  if (!page || page.members.length === 0 || idOf(page.members[0]) !== before.id) return undefined;
  const members = await follow(ask, page, (all) => all.length > MAX_ENTRIES);
  const fresh = members.slice(1, MAX_ENTRIES + 1);
  return finish(fresh, before, before.count + fresh.length, false);
}
/** The last entries of a log whose first page has the oldest ones. */
async function lastOf(ask: SendRedfishRequest, path: string, first: Page, tail: number): Promise<readonly unknown[]> {
  const from = first.count - tail;
  const page = first.next === undefined || from <= first.members.length ? undefined : await skipped(ask, path, from);
  // A service that ignores $skip answers with the first page again.
  const isThere = page !== undefined && page.members.length > 0 && idOf(page.members[0]) !== idOf(first.members[0]);
  return follow(ask, isThere ? page : first, (all) => all.length > MAX_ENTRIES);
}
async function entriesOf(ask: SendRedfishRequest, path: string, before: LogPosition | undefined): Promise<Entries> {
  const short = before && (await fromPosition(ask, path, before));
  if (short) return short;
  const first = await pageOf(ask, path);
  const newestFirst = first.members.length > 1 ? isNewestFirst(first.members) : (before?.newestFirst ?? false);
  const isKnown = (entry: unknown): boolean => before !== undefined && before.id !== null && idOf(entry) === before.id;
  const isEnough = (all: readonly unknown[]): boolean => all.length > MAX_ENTRIES || !before || all.some(isKnown);
  const ordered = newestFirst ? (await follow(ask, first, isEnough)).reverse() : await lastOf(ask, path, first, before ? TAIL : 1);
  // What was there before the first reading is history: parts may have been replaced since.
  if (!before) return { ...finish(ordered.slice(-1), EMPTY, first.count, newestFirst), fresh: [] };
  const at = ordered.findLastIndex(isKnown);
  // Shorter than before, without the last entry: it was cleared. Otherwise new entries have displaced the old ones.
  const wasCleared = at < 0 && before.id !== null && first.count < before.count;
  return finish(ordered.slice(at + 1).slice(-MAX_ENTRIES), before, first.count, newestFirst, wasCleared);
}

/** Entries that the collection only links to are read one by one, the newest of them. */
async function bodiesOf(ask: SendRedfishRequest, entries: readonly unknown[]): Promise<readonly unknown[]> {
  const bodies: unknown[] = [];
  let links = entries.filter((entry) => Object.keys(entry as object).length <= 1).length;
  for (const entry of entries) {
    const path = linkOf(entry);
    if (path === undefined || Object.keys(entry as object).length > 1) bodies.push(entry);
    else if (links-- <= MAX_SINGLE)
      bodies.push(
        await readResource(ask, path).then(
          ({ body }) => body,
          (error: unknown) => {
            if (isStatus(error)) return undefined;
            throw error;
          },
        ),
      );
  }
  return bodies;
}

/** Throws Fault. A log that cannot be read keeps its position. */
export const redfishLogs = (task: Task, positions: Readonly<Record<string, KeptPosition>>): Promise<LogReading> =>
  onSystem(task, 'reading the logs', async (system) => {
    const { ask } = system;
    const known = Object.keys(positions).filter((path) => path.startsWith('/'));
    const paths = known.length > 0 ? known : await logsOf(task, system);
    const signals: Signal[] = [];
    const now: Record<string, KeptPosition> = {};
    let wasCleared = false;
    for (const path of paths) {
      const before = positions[path] as LogPosition | undefined;
      try {
        const read = await entriesOf(ask, path, before);
        const bodies = await bodiesOf(ask, read.fresh);
        signals.push(...bodies.flatMap((entry) => recordSignal('log', entry) ?? []));
        now[path] = { ...read.position };
        wasCleared ||= read.wasCleared;
      } catch (error) {
        // A log that is gone is searched anew.
        if (isStatus(error, 404)) continue;
        if (!(error instanceof RedfishError) || !['status', 'protocol'].includes(error.kind)) throw error;
        task.log.debug('a log of the machine cannot be read', { path, reason: error.message });
        if (before) now[path] = { ...before };
      }
    }
    return { signals, positions: now, wasCleared };
  });
