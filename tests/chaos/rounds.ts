/**
 * Rounds of kill -9. In each round the load runs, and a process is killed at a random moment and started again. Then the load ends what it
 * began. Everything that was acknowledged must be there, nothing may be stuck, and nothing may have been done twice. See
 * docs/reliability.md.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { chanceOf } from './chance';
import { until } from '../support/until';
import { createApi, type Body } from './client';
import { allocate, churnNode, editNode } from './edits';
import { createJournal, type Journal } from './journal';
import { brief, liveNode, type LoadContext } from './life';
import type { Site, Victim } from './site';
import { readStepLog } from './step-log';

export interface Load {
  readonly nodes: number;
  readonly seed: number;
  readonly rounds: number;
  /** One line a round. */
  readonly tell?: (line: string) => void;
}
export interface Report {
  readonly site: string;
  readonly byVictim: Readonly<Record<string, number>>;
  readonly journal: Journal;
  readonly seconds: number;
}

/** The time in which the load must have ended what it began. */
const QUIET_MS = 240_000;
/** A process is killed only after so many acknowledged writes of the round: so there is something to lose, on a busy machine too. */
const WRITES_BEFORE_KILL = 12;

export async function runRounds(site: Site, { nodes, seed, rounds, tell = () => {} }: Load): Promise<Report> {
  const started = Date.now();
  const journal = createJournal();
  const chance = chanceOf(seed);
  const api = createApi(site.urls, chanceOf(seed + 1), journal);
  const context: LoadContext = { api, chance: chanceOf(seed + 2), journal, log: readStepLog(site.stepLog, journal) };
  const lives = Array.from({ length: nodes }, (_, index) => liveNode(context, `life-${index}`));
  const edits = [
    ...lives.map(({ uuid }) => editNode(context, uuid)),
    ...[0, 1].map((number) => churnNode(context, number)),
    allocate(context, 'few'),
  ];
  const byVictim: Record<string, number> = {};
  let deck: Victim[] = [];

  for (journal.round = 1; journal.round <= rounds; journal.round++) {
    const found = journal.findings.length;
    const stop = new AbortController();
    const load = Promise.all([...lives, ...edits].map(({ act }) => act(stop.signal)));
    // Drawn like cards from a deck, so that even a few rounds hit every victim.
    if (deck.length === 0) deck = chance.shuffled(site.victims);
    const victim = deck.pop()!;
    const moment = chance.between(300, 3500);
    const before = written(journal);
    await delay(moment);
    await until('writes that are acknowledged', () => written(journal) >= before + WRITES_BEFORE_KILL);
    const what = await victim.strike(chance);
    byVictim[victim.name] = (byVictim[victim.name] ?? 0) + 1;
    await delay(chance.between(0, 1500));
    stop.abort();
    const late = new AbortController();
    const over = await Promise.race([load.then(() => true), delay(QUIET_MS, false, { signal: late.signal }).catch(() => false)]);
    late.abort();
    if (!over) {
      journal.find('the load did not end what it began', victim.name);
      break;
    }
    await check(context, edits);
    const news = journal.findings.slice(found).map((finding) => `\n    ${finding.what}: ${JSON.stringify(finding.detail).slice(0, 3000)}`);
    tell(`${site.name}, round ${journal.round}: ${victim.name} after ${moment} ms, ${what}${news.join('')}`);
  }
  return { site: site.name, byVictim, journal, seconds: Math.round((Date.now() - started) / 1000) };
}

const written = (journal: Journal): number => journal.counts.get('acknowledged writes') ?? 0;

async function check(context: LoadContext, edits: readonly { check(): Promise<void> }[]): Promise<void> {
  const { api, journal, log } = context;
  const [first] = await api.everywhere('/v1/nodes/detail?limit=1000');
  const working = ((first!.body['nodes'] as readonly Body[] | undefined) ?? []).filter(
    (node) => node['reservation'] !== null || node['target_power_state'] !== null || BUSY.test(node['provision_state'] as string),
  );
  // A synchronisation of the power state, or the release of a dead conductor's reservation, may be under way.
  for (const { uuid } of working) await untilIdle(context, uuid as string);
  for (const edit of edits) await edit.check();
  log.check();
  journal.count('rounds');
}

const BUSY = /ing$| wait$|call-back$| hold$/;
async function untilIdle({ api, journal }: LoadContext, uuid: string): Promise<void> {
  for (const end = Date.now() + QUIET_MS; ;) {
    await delay(250);
    const { status, body } = await api.call('GET', `/v1/nodes/${uuid}`);
    const idle = body['reservation'] === null && body['target_power_state'] === null && !BUSY.test(body['provision_state'] as string);
    if (status === 404 || (status === 200 && idle)) return;
    if (Date.now() > end) {
      journal.find('stuck although no request was under way', brief(body));
      return;
    }
  }
}

/** The report, for people. */
export function reportOf({ site, byVictim, journal, seconds }: Report): string {
  const table = (rows: Iterable<readonly [string, number]>): string =>
    [...rows]
      .sort()
      .map(([name, count]) => `    ${String(count).padStart(7)}  ${name}`)
      .join('\n');
  return [
    `${site}: ${Object.values(byVictim).reduce((sum, count) => sum + count, 0)} rounds in ${seconds} s, ${journal.findings.length} findings`,
    '  rounds by victim',
    table(Object.entries(byVictim)),
    '  counted',
    table(journal.counts),
    ...journal.findings.map(({ round, what, detail }) => `  FOUND in round ${round}: ${what}: ${JSON.stringify(detail)}`),
  ].join('\n');
}
