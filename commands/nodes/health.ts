/** `bloomery health [NODE]`: how the machines are, their alerts, and what operators do with them. */
import type { Command } from 'commander';
import { printable } from '../../model/log';
import { shownTime } from '../../model/rules/out-of-service';
import { get, post, put, remove } from '../endpoint';
import { print, printJson, reported } from '../output';
import { timeOf } from './times';

interface Given {
  readonly report?: string;
  readonly source?: string;
  readonly subject?: string;
  readonly severity?: string;
  readonly mask?: string;
  readonly unmask?: string;
  readonly clear?: string;
  readonly reason?: string;
  readonly until?: string;
  readonly rules?: boolean;
  readonly cleared?: boolean;
  readonly url?: string;
  readonly json?: boolean;
}
interface Alert {
  readonly uuid: string;
  readonly node_uuid?: string;
  readonly node_name?: string | null;
  readonly source: string;
  readonly rule: string;
  readonly subject: string;
  readonly severity: string;
  readonly text: string;
  readonly since: string;
  readonly cleared_at: string | null;
  readonly reported_by: string | null;
  readonly mask: { readonly until: string; readonly reason: string } | null;
  readonly masked: boolean;
}
interface NodeHealth {
  readonly health: string;
  readonly work: { readonly flow: string; readonly provision_state: string; readonly since: string | null } | null;
  readonly alerts: readonly Alert[];
  readonly cleared?: readonly Alert[];
}
interface Page {
  readonly nodes: Readonly<Record<'ok' | 'warning' | 'critical', number>>;
  readonly alerts: readonly Alert[];
  readonly next?: string;
}
interface Rule {
  readonly name: string;
  readonly sources: readonly string[];
  readonly kinds: readonly string[];
  readonly states: readonly string[];
  readonly above?: number;
  readonly below?: number;
  readonly unit?: string;
  readonly severity: string;
  readonly raise: number;
  readonly clear: number;
}
const listIn =
  <Response>(name: keyof Response & string) =>
  (body: unknown): Response | undefined =>
    Array.isArray((body as Readonly<Record<string, unknown>> | undefined)?.[name]) ? (body as Response) : undefined;

function alertLine({
  uuid,
  node_uuid: node,
  node_name: name,
  source,
  rule,
  subject,
  severity,
  text,
  since,
  cleared_at: cleared,
  reported_by: by,
  mask,
  masked,
}: Alert): string {
  const parts = [
    ...(node === undefined ? [] : [name ?? node]),
    severity,
    text,
    // The texts of other sources name the part.
    ...(source === 'report' ? [subject === '' ? rule : `${rule}: ${subject}`] : []),
    `since ${shownTime(since)}`,
    ...(cleared === null ? [] : [`cleared ${shownTime(cleared)}`]),
    ...(by === null ? [] : [`by ${by}`]),
    ...(masked && mask ? [`masked until ${shownTime(mask.until)}: ${mask.reason}`] : []),
    uuid,
  ];
  return printable(parts.join(' | '));
}

/** All pages of the open alerts. */
async function all(url: string | undefined): Promise<Page> {
  const alerts: Alert[] = [];
  for (let path = 'health'; ;) {
    const page = await get(url, path, listIn<Page>('alerts'));
    alerts.push(...page.alerts);
    const marker = page.next === undefined ? null : new URL(page.next).searchParams.get('marker');
    if (marker === null) return { nodes: page.nodes, alerts };
    path = `health?marker=${encodeURIComponent(marker)}`;
  }
}
async function list({ url, json }: Given): Promise<void> {
  const { nodes, alerts } = await all(url);
  if (json) printJson({ nodes, alerts });
  else print([`${nodes.ok} ok, ${nodes.warning} with warnings, ${nodes.critical} critical`, ...alerts.map(alertLine)].join('\n'));
}
async function show(node: string, { url, json, cleared }: Given): Promise<void> {
  const health = await get(url, `nodes/${encodeURIComponent(node)}/health${cleared ? '?cleared=true' : ''}`, listIn<NodeHealth>('alerts'));
  if (json) {
    printJson(health);
    return;
  }
  const { work, alerts, cleared: gone = [] } = health;
  const doing = work === null ? '' : `, ${work.provision_state}${work.since === null ? '' : ` since ${shownTime(work.since)}`}`;
  print([printable(`${node}: ${health.health}${doing}`), ...alerts.map(alertLine), ...gone.map(alertLine)].join('\n'));
}
async function listRules({ url, json }: Given): Promise<void> {
  const { rules } = await get(url, 'health/rules', listIn<{ readonly rules: readonly Rule[] }>('rules'));
  if (json) {
    printJson(rules);
    return;
  }
  const matchOf = ({ states, above, below, unit = '' }: Rule): string =>
    [
      ...states,
      ...(above === undefined ? [] : [`above ${above} ${unit}`]),
      ...(below === undefined ? [] : [`below ${below} ${unit}`]),
    ].join(', ');
  const line = (rule: Rule): string =>
    printable(
      [
        rule.name,
        rule.severity,
        rule.sources.join(', '),
        rule.kinds.join(', ') || 'all kinds',
        matchOf(rule),
        `${rule.raise}/${rule.clear}`,
      ].join(' | '),
    );
  print(rules.map(line).join('\n'));
}

const untilOf = ({ until }: Given): string | undefined => (until === undefined ? undefined : timeOf(until));
/** What changes alerts of a node. Undefined: nothing does. */
function changeOf(node: string, given: Given): (() => Promise<unknown>) | undefined {
  const { report, mask, unmask, clear, source, subject, severity, reason, url } = given;
  const path = `nodes/${encodeURIComponent(node)}/health/alerts`;
  const at = (alert: string): string => `${path}/${encodeURIComponent(alert)}`;
  const changes = [
    report === undefined
      ? undefined
      : () =>
          post(
            url,
            path,
            { source: source ?? 'operator', subject, severity: severity ?? 'warning', text: report, until: untilOf(given) },
            () => true,
          ),
    mask === undefined ? undefined : () => put(url, `${at(mask)}/mask`, { until: untilOf(given), reason }),
    unmask === undefined ? undefined : () => remove(url, `${at(unmask)}/mask`),
    clear === undefined ? undefined : () => remove(url, at(clear)),
  ].filter((change) => change !== undefined);
  if (changes.length > 1) throw new Error('--report, --mask, --unmask and --clear exclude each other');
  return changes[0];
}
async function health(node: string | undefined, given: Given): Promise<void> {
  if (given.rules) return listRules(given);
  if (node === undefined) {
    if (changeOf('', given)) throw new Error('which node? Name it: bloomery health NODE …');
    return list(given);
  }
  await changeOf(node, given)?.();
  return show(node, given);
}

export function addHealthCommand(program: Command): void {
  program
    .command('health')
    .description('Show how the machines are, report alerts, and mask or clear them.')
    .argument('[node]', 'UUID or name of the node; without it, the command lists the open alerts of all nodes')
    .option('--report <text>', 'raise an alert with this text')
    .option('--source <name>', 'who reports it (default: operator)')
    .option('--subject <part>', 'what it is about')
    .option('--severity <severity>', 'warning or critical (default: warning)')
    .option('--mask <alert>', 'mask the alert of this UUID: it needs --until and --reason')
    .option('--unmask <alert>', 'end the mask of this alert')
    .option('--clear <alert>', 'clear this alert')
    .option('--until <time>', 'when the report or the mask ends: ISO 8601, or a duration such as 3d or 12h')
    .option('--reason <text>', 'why the alert is masked')
    .option('--cleared', 'also show the latest alerts that were cleared')
    .option('--rules', 'list the rules')
    .option('--url <url>', 'the server, as for bloomery why')
    .option('--json', 'print JSON')
    .action((node: string | undefined, given: Given) => reported(() => health(node, given)));
}
