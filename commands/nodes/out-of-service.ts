/** `bloomery out-of-service [NODE]`: takes a node out of service, puts it back, and lists what is out of service. */
import { Option, type Command } from 'commander';
import { systemClock } from '../../model/clock';
import { printable } from '../../model/log';
import type { Outage } from '../../model/records';
import { isOverdue, shownTime } from '../../model/rules/out-of-service';
import { get, put, remove } from '../endpoint';
import { print, printJson, reported } from '../output';
import { timeOf } from './times';

interface Given {
  readonly reason?: string;
  readonly ticket?: string;
  readonly until?: string;
  readonly end?: boolean;
  readonly overdue?: boolean;
  readonly url?: string;
  readonly json?: boolean;
}
interface ListedNode {
  readonly uuid: string;
  readonly name: string | null;
  readonly provision_state: string;
  readonly out_of_service: Outage;
}
interface Page {
  readonly nodes: readonly ListedNode[];
  readonly next?: string;
}

/** All pages of the list. */
async function listed(url: string | undefined): Promise<readonly ListedNode[]> {
  const path = 'nodes?out_of_service=true&include_children=true&fields=uuid,name,provision_state,out_of_service';
  const nodes: ListedNode[] = [];
  for (let more = true; more;) {
    const last = nodes.at(-1);
    const page = await get(url, last ? `${path}&marker=${last.uuid}` : path, (body) =>
      Array.isArray((body as Partial<Page> | undefined)?.nodes) ? (body as Page) : undefined,
    );
    nodes.push(...page.nodes);
    more = page.next !== undefined && page.nodes.length > 0;
  }
  return nodes;
}
/** @param now milliseconds */
function outageLine({ uuid, name, provision_state: state, out_of_service: outage }: ListedNode, now: number): string {
  const { reason, ticket, until, declared_by: by } = outage;
  const parts = [
    `${name ?? uuid} (${state})`,
    `until ${shownTime(until)}${isOverdue(outage, now) ? ', OVERDUE' : ''}`,
    reason,
    ...(ticket === null ? [] : [ticket]),
    ...(by === null ? [] : [`by ${by}`]),
  ];
  return printable(parts.join(' | '));
}

async function list({ url, json, overdue }: Given): Promise<void> {
  const now = systemClock.now();
  const nodes = (await listed(url)).filter(({ out_of_service: outage }) => !overdue || isOverdue(outage, now));
  if (json) printJson(nodes);
  else print(nodes.length === 0 ? 'no node is out of service' : nodes.map((node) => outageLine(node, now)).join('\n'));
}

async function change(node: string, given: Given): Promise<void> {
  const path = `nodes/${encodeURIComponent(node)}/out_of_service`;
  const { reason, ticket, until, end, url, json } = given;
  const declares = reason !== undefined || ticket !== undefined || until !== undefined;
  if (declares && end) throw new Error('--end excludes --reason, --ticket and --until');
  if (end) {
    await remove(url, path);
    print(`${node}: in service again`);
    return;
  }
  if (declares) await put(url, path, { reason, ticket, until: until === undefined ? undefined : timeOf(until) });
  const outage = await get(url, path, (body) =>
    typeof (body as Partial<Outage> | undefined)?.until === 'string' ? (body as Outage) : undefined,
  );
  if (json) printJson(outage);
  else {
    const lines = [
      `out of service until ${shownTime(outage.until)}`,
      `reason: ${outage.reason}`,
      ...(outage.ticket === null ? [] : [`ticket: ${outage.ticket}`]),
      `declared: ${shownTime(outage.declared_at)}${outage.declared_by === null ? '' : ` by ${outage.declared_by}`}`,
      ...(outage.before.maintenance ? [`afterwards: maintenance (${outage.before.maintenance_reason ?? 'without a reason'})`] : []),
    ];
    print(lines.map((line) => `${printable(node)}: ${printable(line)}`).join('\n'));
  }
}

const outOfService = (node: string | undefined, given: Given): Promise<void> =>
  reported(() => (node === undefined ? list(given) : change(node, given)));

export function addOutOfServiceCommand(program: Command): void {
  program
    .command('out-of-service')
    .description('Take a node out of service, put it back, or list the nodes that are out of service.')
    .argument('[node]', 'UUID or name of the node; without it, the command lists all nodes out of service')
    .option('--reason <text>', 'why the node is out of service')
    .option('--ticket <url>', 'the ticket about it')
    .option('--until <time>', 'when it should be in service again: ISO 8601, or a duration such as 3d or 12h')
    .option('--end', 'put the node back into service')
    .addOption(new Option('--overdue', 'list only nodes whose time is over').conflicts(['reason', 'until', 'end']))
    .option('--url <url>', 'the server, as for bloomery why')
    .option('--json', 'print JSON')
    .action(outOfService);
}
