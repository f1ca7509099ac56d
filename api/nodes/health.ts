/** /v1/health, /v1/nodes/X/health and its alerts: how machines are. Extensions of this server (docs/health.md). */
import { conflict, invalid, invalidParameter, notFound } from '../../model/errors';
import { isUuid, newUuid } from '../../model/idents';
import type { NodeRecord } from '../../model/records';
import {
  ALERT_SOURCES,
  healthOf,
  isMasked,
  isOfMachine,
  SEVERITIES,
  type AlertKey,
  type AlertRecord,
  type AlertSource,
  type Severity,
} from '../../model/rules/health-alerts';
import type { HealthRule } from '../../model/rules/health-rules';
import { MAX_REPORTS, maskOf, reportOf } from '../../model/rules/health-reports';
import { stateRow } from '../../model/states';
import type { InHistory, ListedAlert, Store } from '../../store/store';
import { projectOfList } from '../pipeline/access';
import type { Answer, ApiContext, Request, RequestOf, SomeHandlers } from '../pipeline/handler';
import { nodeOf } from '../pipeline/node-find';
import { storableOf } from '../schema/arguments';

/** Alerts of one node in a response, and cleared ones. */
const MAX_OF_NODE = 1000;
const MAX_CLEARED = 100;
/** Alerts of a project's nodes that its summary counts. */
const MAX_OF_PROJECT = 20_000;

const SOURCES = Object.keys(ALERT_SOURCES) as AlertSource[];
const NOT_OF_MACHINES = SOURCES.filter((source) => !isOfMachine(source));
type Projects = Pick<NodeRecord, 'owner' | 'lessee'>;
/** The sources whose alerts the caller may see: those of the machine itself need a policy of their own. */
const sourcesFor = ({ caller }: Pick<Request, 'caller'>, { auth }: ApiContext, node: Projects): readonly AlertSource[] =>
  auth.allowed(caller, 'node:health:machine', node) ? SOURCES : NOT_OF_MACHINES;

const shown = (alert: AlertRecord, now: number) => ({
  uuid: alert.uuid,
  source: alert.source,
  rule: alert.rule,
  subject: alert.subject,
  severity: alert.severity,
  text: alert.text,
  since: alert.since,
  cleared_at: alert.cleared_at,
  until: alert.until,
  reported_by: alert.reported_by,
  masked: isMasked(alert, now),
  mask: alert.masked_until === null ? null : { until: alert.masked_until, reason: alert.mask_reason, by: alert.masked_by },
});
const listed = (alert: ListedAlert, now: number) => ({ node_uuid: alert.node_uuid, node_name: alert.node_name, ...shown(alert, now) });
const inHistory = ({ options }: ApiContext, { caller }: Pick<Request, 'caller'>): InHistory =>
  options['conductor.node_history'] ? { user: caller.userName ?? caller.user } : false;
const nameOf = ({ caller }: Pick<Request, 'caller'>): string | null => caller.userName ?? caller.user;

async function showNode(request: RequestOf<'showNodeHealth'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:health:get');
  const { store, clock } = context;
  const now = clock.now();
  const which = { nodeUuid: node.uuid, sources: sourcesFor(request, context, node) };
  const open = await store.healthAlerts.list({ ...which, limit: MAX_OF_NODE });
  const cleared = request.query.cleared ? await store.healthAlerts.list({ ...which, cleared: true, limit: MAX_CLEARED }) : undefined;
  const { flow } = stateRow(node.provision_state);
  return {
    status: 200,
    body: {
      node_uuid: node.uuid,
      node_name: node.name,
      health: healthOf(open, now),
      work: flow === undefined ? null : { flow, provision_state: node.provision_state, since: node.provision_updated_at },
      alerts: open.map((alert) => shown(alert, now)),
      ...(cleared ? { cleared: cleared.map((alert) => shown(alert, now)) } : {}),
    },
  };
}

const among = <Word extends string>(name: string, word: string | undefined, known: readonly Word[]): Word | undefined => {
  if (word === undefined) return undefined;
  const found = known.find((candidate) => candidate === word);
  if (found === undefined) throw invalidParameter(`Unknown ${name} ${word}: use ${known.join(', ')}.`);
  return found;
};
type Counts = Readonly<Record<Severity, number>>;
/** Counts as the caller sees the nodes of a project. */
function countsOf(alerts: readonly ListedAlert[], now: number): Counts {
  const byNode = new Map<string, ListedAlert[]>();
  for (const alert of alerts) {
    const ofNode = byNode.get(alert.node_uuid);
    if (ofNode) ofNode.push(alert);
    else byNode.set(alert.node_uuid, [alert]);
  }
  const health = [...byNode.values()].map((ofNode) => healthOf(ofNode, now));
  const of = (severity: Severity): number => health.filter((word) => word === severity).length;
  return { warning: of('warning'), critical: of('critical') };
}
async function showAll(request: RequestOf<'showHealth'>, context: ApiContext): Promise<Answer> {
  const project = projectOfList(request, context, 'node');
  const { query, base } = request;
  const { store, clock, options } = context;
  const now = clock.now();
  const limit = Math.min(query.limit ?? Infinity, options['api.max_limit']);
  if (limit <= 0) throw invalid('Limit must be positive');
  const { marker: after, masked } = query;
  if (after !== undefined && !Number.isSafeInteger(after)) throw invalidParameter(`Expected the number of an alert for marker: ${after}`);
  const severity = among('severity', query.severity, SEVERITIES);
  const source = among('source', query.source, SOURCES);
  const isSeen = (alert: ListedAlert): boolean =>
    ['node:health:get', ...(isOfMachine(alert.source) ? ['node:health:machine'] : [])].every((policy) =>
      context.auth.allowed(request.caller, policy, alert),
    );
  const rows = await store.healthAlerts.list({ project, severity, sources: source && [source], masked, after, limit });
  const all = project === undefined ? undefined : await store.healthAlerts.list({ project, limit: MAX_OF_PROJECT });
  const counts = all ? countsOf(all.filter(isSeen), now) : await store.healthAlerts.nodeCounts();
  const total = (await store.nodes.listColumns(['id'], { project, children: 'all' })).length;
  const nodes = { ok: Math.max(0, total - counts.warning - counts.critical), ...counts };
  const alerts = rows.filter(isSeen).map((alert) => listed(alert, now));
  if (rows.length < limit) return { status: 200, body: { nodes, alerts } };
  const search = new URLSearchParams({
    ...(severity === undefined ? {} : { severity }),
    ...(source === undefined ? {} : { source }),
    ...(masked === undefined ? {} : { masked: String(masked) }),
    limit: String(limit),
    marker: String(rows.at(-1)!.id),
  });
  return { status: 200, body: { nodes, alerts, next: `${base}/v1/health?${search.toString()}` } };
}

async function report(request: RequestOf<'reportHealthAlert'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:health:report');
  const { uuid } = node;
  const { query } = request;
  const { store, clock, random } = context;
  for (const name of ['source', 'subject', 'text', 'until'] as const) if (typeof query[name] === 'string') storableOf(name, query[name]);
  const asked = reportOf(query, nameOf(request), clock.now());
  if (typeof asked === 'string') throw invalidParameter(asked);
  const alert = { ...asked, node_uuid: uuid };
  const known = await store.healthAlerts.findOpen(alert);
  if (!known && (await store.healthAlerts.countReports(uuid)) >= MAX_REPORTS)
    throw conflict(`Node ${uuid} has ${MAX_REPORTS} open reports: clear some of them first.`);
  // Whoever changes a report can end it, by a time or by its severity.
  if (known && known.reported_by !== asked.reported_by && !context.auth.allowed(request.caller, 'node:health:clear', node))
    throw conflict(`Another user has an open report of node ${uuid} with this source and subject: use another subject.`);
  await store.healthAlerts.put([{ ...alert, uuid: newUuid(random) }], inHistory(context, request));
  const now = await store.healthAlerts.findOpen(alert);
  if (!now) throw notFound(`Node ${uuid} could not be found.`);
  return { status: 201, body: shown(now, clock.now()) };
}

/** The open alert of the path. One that the caller may not see is answered as one that does not exist. */
async function alertOf(
  request: RequestOf<'clearHealthAlert' | 'maskHealthAlert' | 'unmaskHealthAlert'>,
  context: ApiContext,
  policy: string,
): Promise<{ readonly node: NodeRecord; readonly alert: AlertRecord }> {
  const node = await nodeOf(request, context, policy);
  const { alert_uuid: uuid } = request.params;
  const alert = isUuid(uuid) ? await context.store.healthAlerts.find(uuid) : undefined;
  if (!alert || alert.node_uuid !== node.uuid || alert.cleared_at !== null || !sourcesFor(request, context, node).includes(alert.source))
    throw notFound(`Node ${node.uuid} has no open alert ${uuid}.`);
  return { node, alert };
}
const keyOf = ({ node_uuid, source, rule, subject }: AlertKey): AlertKey => ({ node_uuid, source, rule, subject });

/** The change of a mask, with an entry in the node's history. */
async function remask(
  { alert, node }: Awaited<ReturnType<typeof alertOf>>,
  mask: Parameters<Store['healthAlerts']['setMask']>[1],
  request: Request,
  { store, options, random }: ApiContext,
): Promise<AlertRecord> {
  const event = mask ? `Health, masked until ${mask.until}: ${alert.text} (${mask.reason})` : `Health, not masked any more: ${alert.text}`;
  const after = await store.transaction(async (inner) => {
    const changed = await inner.healthAlerts.setMask(alert.uuid, mask);
    if (changed && options['conductor.node_history'])
      await inner.history.create({
        uuid: newUuid(random),
        node_uuid: node.uuid,
        conductor: null,
        user: nameOf(request),
        event_type: 'health',
        severity: 'INFO',
        event,
        state: node.provision_state,
        target_provision_state: node.target_provision_state,
        duration_seconds: null,
      });
    return changed;
  });
  if (!after) throw notFound(`Node ${node.uuid} has no open alert ${alert.uuid}.`);
  return after;
}

const shownRule = ({ name, sources, kinds, states, above, below, unit, subject, severity, raise, clear, onlyOn, text }: HealthRule) => {
  return { name, sources, kinds, states, above, below, unit, subject, severity, raise, clear, only_on: onlyOn, text };
};

export const healthHandlers = {
  listHealthRules: async (_request, { healthRules }) => ({ status: 200, body: { rules: healthRules.map(shownRule) } }),
  showHealth: showAll,
  showNodeHealth: showNode,
  reportHealthAlert: report,
  clearHealthAlert: async (request, context) => {
    const { alert } = await alertOf(request, context, 'node:health:clear');
    await context.store.healthAlerts.setCleared([keyOf(alert)], inHistory(context, request));
    return { status: 204 };
  },
  maskHealthAlert: async (request, context) => {
    const found = await alertOf(request, context, 'node:health:mask');
    const { query } = request;
    for (const name of ['until', 'reason'] as const) if (typeof query[name] === 'string') storableOf(name, query[name]);
    const mask = maskOf(query, nameOf(request), context.clock.now());
    if (typeof mask === 'string') throw invalidParameter(mask);
    return { status: 200, body: shown(await remask(found, mask, request, context), context.clock.now()) };
  },
  unmaskHealthAlert: async (request, context) => {
    await remask(await alertOf(request, context, 'node:health:mask'), null, request, context);
    return { status: 204 };
  },
} satisfies SomeHandlers;
