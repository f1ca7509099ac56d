/** Turns observations of machines into alerts (docs/health.md): counts them in memory, and writes only what changes. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { isObject } from '../../model/json';
import { reasonOf } from '../../model/errors';
import { newUuid } from '../../model/idents';
import type { NodeRecord } from '../../model/records';
import type { AlertKey } from '../../model/rules/health-alerts';
import {
  healthRules,
  judged,
  observed,
  takeOpen,
  type FoundParts,
  type HealthRule,
  type RuleSource,
  type Signal,
} from '../../model/rules/health-rules';
import type { InHistory, Store } from '../../store/store';
import type { Context } from './context';

/** Bytes of the file of rules. */
const MAX_FILE = 1_000_000;
/** @throws Error for the operator, which names the file and the rule */
export async function readHealthRules(path: string | null): Promise<readonly HealthRule[]> {
  if (path === null) return healthRules([]);
  try {
    const text = await readFile(path, 'utf8');
    if (text.length > MAX_FILE) throw new Error(`it has more than ${MAX_FILE} characters`);
    const given: unknown = parse(text, { maxAliasCount: 0 });
    return healthRules(isObject(given) && 'rules' in given ? given['rules'] : (given ?? []));
  } catch (error) {
    throw new Error(`[health]rules: ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** Nodes whose parts are counted at a time. */
const MAX_NODES = 20_000;
/** Alerts of one node. */
const MAX_OF_NODE = 1000;
const OF_PARTS: readonly RuleSource[] = ['sensor', 'system', 'smart'];

export const inHistoryOf = ({ options, origin }: Pick<Context, 'options' | 'origin'>): InHistory =>
  options['conductor.node_history'] ? { user: origin?.user ?? null } : false;

/** Reads which alerts are open: one query at the beginning of a round, since other processes write them too. */
export async function beginHealthRound(context: Context): Promise<void> {
  const { options, store, log, healthRules: rules, healthWatch: watch } = context;
  if (!options['health.enabled']) return;
  // Counts of nodes that are gone, or that others watch now.
  if (watch.standings.size > MAX_NODES) watch.standings.clear();
  try {
    const open = await store.healthAlerts.open(OF_PARTS);
    // Of rules that the site has removed since the last start.
    const left = watch.isCurrent ? [] : open.filter(({ rule }) => !rules.some(({ name }) => name === rule));
    const ended = left.map((key) => ({ ...key, reason: 'its rule is gone' }));
    await store.healthAlerts.setCleared(ended, inHistoryOf(context));
    takeOpen(
      rules,
      watch.standings,
      open.filter((alert) => !left.includes(alert)),
    );
    watch.isCurrent = true;
  } catch (error) {
    watch.isCurrent = false;
    log.warn('the open alerts cannot be read: this round raises and clears none', { reason: reasonOf(error) });
  }
}

/** Counts the observations of a node, and writes the alerts that they raise and clear. A failure is logged: the next round tries again. */
export async function observeHealth(context: Context, node: ObservedNode, signals: readonly Signal[], found?: FoundParts): Promise<void> {
  if (context.options['health.enabled'] && context.healthWatch.isCurrent) await observe(context, node, signals, found);
}
/** The same between rounds: reads first which alerts of the node are open. */
export async function observeHealthNow(
  context: Context,
  node: ObservedNode,
  signals: readonly Signal[],
  found?: FoundParts,
): Promise<void> {
  const { options, store, healthRules, healthWatch } = context;
  if (!options['health.enabled']) return;
  const open = await store.healthAlerts.list({ nodeUuid: node.uuid, sources: OF_PARTS, limit: MAX_OF_NODE });
  takeOpen(healthRules, healthWatch.standings, open, node.uuid);
  await observe(context, node, signals, found);
}
type ObservedNode = Pick<NodeRecord, 'uuid' | 'power_state'>;
async function observe(context: Context, node: ObservedNode, signals: readonly Signal[], found: FoundParts | undefined): Promise<void> {
  const { store, log, random, healthRules: rules, healthWatch: watch } = context;
  if (signals.length === 0 && !found) return;
  const changes = observed(rules, watch.standings, { uuid: node.uuid, isOn: node.power_state === 'power on' }, signals, found);
  if (changes.raised.length === 0 && changes.cleared.length === 0) return;
  try {
    await store.healthAlerts.putChanges(changes, () => newUuid(random), inHistoryOf(context));
  } catch (error) {
    // What memory has is not what the database has: the next round reads it again.
    watch.standings.delete(node.uuid);
    log.warn(`the alerts of node ${node.uuid} cannot be written`, { reason: reasonOf(error) });
    return;
  }
  for (const { severity, text } of changes.raised) log.warn(`node ${node.uuid}: ${text}`, { severity });
}

/** Writes what follows at once from observations that are made once. @param store of the transaction of what was observed */
export const noteJudged = async (context: Context, store: Store, uuid: string, signals: readonly Signal[]): Promise<void> =>
  store.healthAlerts.putChanges(judged(context.healthRules, uuid, signals), () => newUuid(context.random), inHistoryOf(context));

/** Writes what follows from a whole event log. Alerts of what the log does not have any more are cleared. A failure is only logged. */
export async function observeLog(context: Context, uuid: string, signals: readonly Signal[] | undefined): Promise<void> {
  const { options, store, random, healthRules: rules, log } = context;
  if (!options['health.enabled'] || signals === undefined) return;
  try {
    const open = await store.healthAlerts.list({ nodeUuid: uuid, sources: ['log'], limit: MAX_OF_NODE });
    const { raised } = judged(rules, uuid, signals);
    const isRaised = ({ rule, subject }: AlertKey): boolean => raised.some((alert) => alert.rule === rule && alert.subject === subject);
    const cleared = open
      .filter((alert) => !isRaised(alert))
      .map(({ node_uuid, source, rule, subject }) => ({ node_uuid, source, rule, subject }));
    await store.healthAlerts.putChanges({ raised, cleared }, () => newUuid(random), inHistoryOf(context));
  } catch (error) {
    log.warn(`the alerts of node ${uuid} cannot be written`, { reason: reasonOf(error) });
  }
}
