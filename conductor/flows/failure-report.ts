/**
 * What `last_error` tells besides the reason of a failure in which the agent had a part: the step, the agent's command, the disk or network
 * interface, the wait that ended, and the end of the agent's log. The logs are fetched and stored here.
 */
import type { AgentReport, PlannedStep, SavedKind } from '../../drivers/interfaces';
import { timestamp } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { describeDisk, describeNic } from '../../model/agent/subject';
import { maskedText } from '../../model/masks';
import { oneLine } from '../../model/log';
import { MAX_ERROR, shortened } from '../../model/text';
import { stateRow } from '../../model/states';
import { isInterrupted } from '../core/interruption';
import type { NodeTask } from '../core/node-task';
import { storeLogs } from '../inspection/store-ramdisk-logs';
import { reservedStep } from '../steps/reserved-steps';
import { positionOf } from '../steps/step-position';
import { findStep, stepId } from '../steps/steps';
import type { Flow } from './flow';
import { logTail } from './log-tail';
import { refusedBoot } from './refused-boot';

/** Characters of what the agent and the hardware say in one line. */
const MAX_FACT = 500;
/** The agent's log takes a part of `last_error` at most. */
const MAX_LOG = MAX_ERROR / 8;
/** Labels of stored logs, as Ironic has them. */
const LABELS: Readonly<Partial<Record<SavedKind, string>>> = { clean: 'cleaning', service: 'service' };

/** A fact about a failure, as `label: text`. Undefined: not known, or not concerned. */
type Facts = Readonly<Record<string, string | undefined>>;
/** The only place that makes the lines of a failure. @param log the last lines of the agent's log @internal */
export function failureLines(facts: Facts, log: readonly string[], secrets: readonly string[]): readonly string[] {
  const shown = Object.entries(facts).flatMap(([label, text]) =>
    text === undefined ? [] : [`${label}: ${shortened(oneLine(text), MAX_FACT)}`],
  );
  const tail = shortened(log.join('\n'), MAX_LOG);
  const lines = tail === '' ? shown : [...shown, "end of the agent's log:", ...tail.split('\n')];
  return lines.map((line) => maskedText(line, secrets));
}

/** The running step; `isAgents`: the agent has a part in it. */
function stepOf(task: NodeTask, { kind }: Flow): { readonly running: PlannedStep | undefined; readonly isAgents: boolean } {
  const running = kind && positionOf(task, kind).running;
  if (!running || !kind) return { running, isAgents: true };
  const own = findStep(task.driver, kind, running);
  return { running, isAgents: own ? own.usesAgent === true : !reservedStep(running) && running.execute_on_child_nodes !== true };
}

/** The disk that the reason names, as the last inspection found it. For agents that do not describe it. */
async function diskIn(task: NodeTask, reason: string): Promise<string | undefined> {
  const [name] = /\/dev\/[\w!.-]{1,64}/.exec(reason) ?? [];
  if (name === undefined) return undefined;
  const found = await task.context.store.inventories.find(task.node.uuid);
  const disk = found?.inventory.disks?.find((candidate) => candidate.name === name);
  return describeDisk(disk ?? { name });
}

const hostOf = (url: unknown): string | undefined =>
  typeof url === 'string' && URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : undefined;
/** The interface by which the agent was, or should have been, reached. */
function nicOf({ node, ports }: NodeTask): string | undefined {
  const address = hostOf(node.driver_internal_info.agent_url);
  const boots = ports.filter(({ pxe_enabled: boot }) => boot);
  const [nic] = boots.length > 0 ? boots : ports;
  return nic && describeNic({ name: nic.name ?? undefined, mac_address: nic.address, ipv4_address: address });
}

/** The contact that the agent had with the server. */
function contactOf({ driver_internal_info: internal }: NodeTask['node'], silence: string | undefined): string | undefined {
  const { agent_url: url, agent_last_heartbeat: heartbeat, agent_secret_token: token, agent_secret_token_pregenerated: early } = internal;
  if (typeof url === 'string') {
    const last = `last heartbeat at ${heartbeat ?? 'an unknown time'}`;
    return silence === undefined ? last : `${last}; asked at ${url}: ${silence}`;
  }
  if (token !== undefined && token !== null && early !== true) return 'it looked its node up, and has sent no heartbeat since';
  return 'none has looked the node up or sent a heartbeat';
}

async function bootsOf({ context, node }: NodeTask): Promise<string | undefined> {
  const requests = await context.store.boots.requestsOf(node.uuid);
  if (!requests) return undefined;
  const known = Object.entries(requests).map(([protocol, at]) => `${protocol} at ${at}`);
  return known.length > 0 ? known.join(', ') : 'none by DHCP, TFTP or HTTP';
}

/** The latest refusal of a request for the node since its state began; refusals are in its history at most every few minutes. */
async function refusalOf({ context, node }: NodeTask, since: string | null): Promise<string | undefined> {
  const where = { node_uuid: node.uuid, event_type: 'security' };
  const [last] = await context.store.history.list({ where, sortDir: 'desc', limit: 1 });
  return last && (since === null || last.created_at >= since) ? `${last.event} (${last.created_at})` : undefined;
}

function waitOf({ node, context, clock }: NodeTask): string | undefined {
  const { timeout } = stateRow(node.provision_state);
  if (timeout === undefined) return undefined;
  const since = node.provision_updated_at;
  const [section, name] = timeout.split('.');
  return `[${section}]${name} of ${context.options[timeout]} s ended at ${timestamp(clock.now())}; the last news were at ${since ?? 'an unknown time'}`;
}

/** Texts that the agent may have in its log. */
function secretsOf({ node, options }: NodeTask): readonly string[] {
  const { agent_secret_token: token } = node.driver_internal_info;
  const { rescue_password: plain, hashed_rescue_password: hashed, image_url: url } = node.instance_info;
  const query = typeof url === 'string' && URL.canParse(url) ? new URL(url).search : '';
  const pull = [node.instance_info, node.driver_info].map((info) => info['image_pull_secret']);
  // The agent gets the secret in this form (RFC 7617), if the registry wants no token.
  const encoded = pull.map((secret) => typeof secret === 'string' && Buffer.from(secret).toString('base64'));
  const passwords = pull.map((secret) => typeof secret === 'string' && secret.replace(/^[^:]*:/, ''));
  return [token, plain, hashed, query, options['deploy.image_server_password'], ...pull, ...encoded, ...passwords].filter(
    (secret): secret is string => typeof secret === 'string' && secret.length > 3,
  );
}

async function linesOf(task: NodeTask, flow: Flow, reason: string, late: boolean): Promise<readonly string[]> {
  const { running, isAgents } = stepOf(task, flow);
  const { deploy } = task.driver;
  const isAsked = isAgents && task.node.driver_internal_info.agent_url !== undefined;
  const { command, silence, logs, noLogs }: AgentReport = (isAsked && (await deploy.agentReport?.(task))) || {};
  const stored = logs && (await storeLogs(task, logs, (flow.kind && LABELS[flow.kind]) ?? null));
  // An agent that answers is no puzzle: only its own words count.
  const isLost = late || silence !== undefined;
  const disk = command?.subject ?? (await diskIn(task, reason));
  const progress = command?.percent === undefined ? '' : `, ${command.percent} %`;
  const facts: Facts = {
    step: running && stepId(running),
    command: command && `${command.name} (${command.status}${progress})`,
    concerns: disk ?? (isLost ? nicOf(task) : undefined),
    waited: late ? waitOf(task) : undefined,
    agent: isLost ? contactOf(task.node, silence) : undefined,
    'boot loader': isLost ? await refusedBoot(task) : undefined,
    'last boot requests': isLost ? await bootsOf(task) : undefined,
    refused: isLost ? await refusalOf(task, task.node.provision_updated_at) : undefined,
    logs: stored ?? noLogs,
  };
  return failureLines(facts, logs ? await logTail(logs) : [], secretsOf(task));
}

/** Stores the logs of an agent that has done its work, if [agent]deploy_logs_collect asks for them. */
export async function storeLogsAtEnd(task: NodeTask, kind: SavedKind): Promise<void> {
  const { deploy } = task.driver;
  if (task.options['agent.deploy_logs_collect'] !== 'always' || task.node.driver_internal_info.agent_url === undefined) return;
  const { logs } = (await deploy.agentReport?.(task)) ?? {};
  if (logs) await storeLogs(task, logs, LABELS[kind] ?? null);
}

/** The lines that follow the reason of a failure; none if the agent had no part in it. An error in here does not hide the reason. */
export async function failureReport(
  task: NodeTask,
  flow: Flow,
  reason: string,
  { late = false }: { readonly late?: boolean },
): Promise<readonly string[]> {
  if (!flow.asksAgent || !task.driver.deploy.agentReport || task.options['agent.deploy_logs_collect'] === 'never') return [];
  if (!stepOf(task, flow).isAgents) return [];
  try {
    return await linesOf(task, flow, reason, late);
  } catch (error) {
    if (isInterrupted(task.context, error)) throw error;
    task.log.warn('a failure cannot be described in full', { reason: reasonOf(error), error });
    return [];
  }
}
