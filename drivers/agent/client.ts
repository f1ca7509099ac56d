/** Client of the agent's API in the ramdisk (agent protocol, section "The agent's HTTP API"): commands with a token, over verified TLS. */
import type { SecureContext } from 'node:tls';
import type { Agent } from 'undici';
import { retry, waitUntil } from '../../model/clock';
import { Fault } from '../../model/errors';
import { MASK } from '../../model/masks';
import type { JsonObject } from '../../model/records';
import type { Task } from '../interfaces';
import { connectionReason } from '../common/reason';
import { readAuthorities, verifies } from '../../wire/authorities';
import { JSON_LIMITS, parseJson } from '../../wire/bounded-json';
import { clientContext } from '../../wire/http/client-contexts';
import { timeoutSignal } from '../../wire/timeout-signal';
import { createTurns } from '../../wire/turns';
import { withoutEndSlashes } from '../../wire/urls';
import { shortened } from '../../model/text';
import { createAgent, request } from '../../wire/http-agent';

/** A command's state as the agent reports it. */
export interface AgentCommand {
  readonly id?: string;
  /** Without its extension: `execute_clean_step`. */
  readonly command_name: string;
  readonly command_status: string;
  readonly command_error?: unknown;
  readonly command_result?: JsonObject | null;
}

/** `unreachable`: no response; `busy`: another command runs; `refused`: the agent answered with an error. */
export class AgentError extends Error {
  constructor(
    readonly kind: 'unreachable' | 'busy' | 'refused',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface CommandOptions {
  /** The response comes when the command has finished: for short commands. */
  readonly wait?: boolean;
  /** Replaces [agent]max_command_attempts. */
  readonly attempts?: number;
  /** Seconds; replaces [agent]command_timeout. */
  readonly timeout?: number;
  /** Ends the request as if the connection was lost. */
  readonly signal?: AbortSignal;
}

export interface AgentClient {
  /** Sends `extension.command`. A lost connection leads to a retry, unless the agent already runs the command. Throws AgentError. */
  command(name: string, params: JsonObject, options?: CommandOptions): Promise<AgentCommand>;
  /** All commands since the agent started, the oldest first. Throws AgentError. */
  commands(options?: Pick<CommandOptions, 'attempts' | 'timeout'>): Promise<readonly AgentCommand[]>;
  /** Waits until the command has finished. Throws AgentError after [agent]command_wait_attempts polls. */
  finished(command: AgentCommand): Promise<AgentCommand>;
}

/** Real responses are far smaller: step lists and results have some kilobytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const RETRY_PAUSE_MS = 1000;
/** Between polls of a command, for an agent that does not delay its response until the command has finished. */
const POLL_PAUSE_MS = 1000;

/** Spreads the creation of TLS contexts and connections (about 2 ms each) over time: hundreds of agents may become ready at once. */
const nextTurn = createTurns(2);

/** A flow sends several commands, and a heartbeat after a check of a step is checked a second later. Servers close idle connections later. */
const KEEP_ALIVE_MS = 2000;
/** A pool for each way to verify agents. Connections to one address are shared by tasks that trust the same authorities. */
const pools = new WeakMap<SecureContext, Map<string, Agent>>();
async function poolOf(task: Task, { secureContext, ...verification }: Trust): Promise<Agent> {
  const connect = { ...verification, timeout: task.options['agent.command_timeout'] * 1000 };
  const same = pools.get(secureContext) ?? new Map<string, Agent>();
  pools.set(secureContext, same);
  const key = JSON.stringify(connect);
  const pool =
    same.get(key) ?? createAgent({ connect: { ...connect, secureContext }, bodyBytes: MAX_ANSWER_BYTES, keepAliveMs: KEEP_ALIVE_MS });
  same.set(key, pool);
  return pool;
}

/** Gives `work` a client of the node's agent in the ramdisk. */
export async function withAgent<T>(task: Task, work: (agent: AgentClient) => Promise<T>): Promise<T> {
  const { agent_url: url, agent_secret_token: token } = task.node.driver_internal_info;
  if (typeof url !== 'string' || url === '') {
    throw new AgentError('unreachable', 'Connection to agent failed: Agent driver requires agent_url in driver_internal_info');
  }
  await nextTurn();
  return work(createClient(task, { base: withoutEndSlashes(url), token, dispatcher: await poolOf(task, await trust(task)) }));
}

/** Gives `work` a client of an agent that is known by this certificate alone (PEM). */
export async function withAgentAt<T>(
  task: Task,
  { url, token, certificate }: { readonly url: string; readonly token: string; readonly certificate: string },
  work: (agent: AgentClient) => Promise<T>,
): Promise<T> {
  await nextTurn();
  const secureContext = clientContext(task.options['agent.tls_minimum_version'], certificate);
  return work(createClient(task, { base: url, token, dispatcher: await poolOf(task, { secureContext }) }));
}

/** Where an agent is asked, and by which connections. */
interface Place {
  readonly base: string;
  readonly token: string | undefined;
  readonly dispatcher: Agent;
}

interface AgentRequest {
  readonly method: 'GET' | 'POST';
  /** Below `/v1/commands/`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body?: JsonObject;
  readonly options?: CommandOptions;
}
type Send = (request: AgentRequest) => Promise<unknown>;

/** Sends single requests. Throws AgentError. */
function createSender(task: Task, { base, token, dispatcher }: Place): Send {
  const { node } = task;
  return async ({ method, path, query, body, options = {} }) => {
    const { timeout: seconds = task.options['agent.command_timeout'], signal } = options;
    await nextTurn();
    const limited = timeoutSignal(seconds * 1000, task.signal, ...(signal ? [signal] : []));
    const held = task.stillHeld?.() ?? true;
    if (held !== true) await held;
    let status: number;
    let bytes: Buffer;
    try {
      const answer = await request(`${base}/v1/commands/${path}`, {
        method,
        dispatcher,
        // undici follows no redirects, which would take the token elsewhere.
        query: { ...query, ...(typeof token === 'string' ? { agent_token: token } : {}) },
        signal: limited,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      });
      status = answer.statusCode;
      bytes = Buffer.from(await answer.body.arrayBuffer());
    } catch (error) {
      task.signal.throwIfAborted();
      const reason =
        limited.aborted && signal?.aborted !== true ? `no answer within ${seconds} s ([agent]command_timeout)` : connectionReason(error);
      throw new AgentError('unreachable', reason, { cause: error });
    }
    const parsed = await parse(bytes);
    if (status < 300 && parsed !== undefined) return parsed;
    // An agent may quote the URL of the request.
    const told = parsed === undefined ? 'the response is not JSON' : errorText(parsed);
    const reason = typeof token === 'string' && token !== '' ? told.replaceAll(token, MASK) : told;
    if (status === 409 || /agent is busy/i.test(reason)) throw new AgentError('busy', reason);
    throw new AgentError('refused', `Agent API for node ${node.uuid} returned HTTP status code ${status} with error: ${reason}`);
  };
}

/** Measures requests by the command that they send. Polls, which send none, get the label `poll`. */
const measured =
  (task: Task, send: Send): Send =>
  async (request) => {
    const took = task.metrics.timer();
    const name = request.body?.['name'];
    const command = typeof name === 'string' ? name : 'poll';
    let outcome = 'aborted';
    try {
      const answer = await send(request);
      outcome = 'ok';
      return answer;
    } catch (error) {
      if (error instanceof AgentError) outcome = error.kind;
      throw error;
    } finally {
      task.metrics.observe('bloomery_agent_request_duration_seconds', { command, outcome }, took());
    }
  };

/** Repeats a request after a connection error, `attempts` times in all. */
async function retried<T>(task: Task, purpose: string, attempts: number, once: () => Promise<T>): Promise<T> {
  return retry(task, once, (error, attempt) => {
    if (!(error instanceof AgentError) || error.kind !== 'unreachable') return undefined;
    if (attempt >= attempts) {
      throw new AgentError(
        'unreachable',
        `Connection to agent failed: Failed to connect to the agent running on node ${task.node.uuid} ${purpose}. Error: ${error.message}`,
        { cause: error },
      );
    }
    task.log.debug('No connection to the agent', { purpose, attempt, reason: error.message });
    return RETRY_PAUSE_MS;
  });
}

function createClient(task: Task, place: Place): AgentClient {
  const { node, options } = task;
  const send = measured(task, createSender(task, place));

  const list = async (listOptions?: CommandOptions): Promise<readonly AgentCommand[]> => {
    const answer = await send({ method: 'GET', path: '', query: {}, ...(listOptions ? { options: listOptions } : {}) });
    const commands = (answer as { commands?: unknown } | null)?.commands;
    if (!Array.isArray(commands)) throw new AgentError('refused', `The agent on node ${node.uuid} did not answer with a list of commands`);
    return commands.map(commandOf);
  };

  /** A command whose response was lost, if the agent has accepted it: then it is the last command in the list, and still runs. */
  const accepted = async (name: string): Promise<AgentCommand | undefined> => {
    const last = (await list().catch(() => [])).at(-1);
    return last?.command_name === shortName(name) && last.command_status === 'RUNNING' ? last : undefined;
  };

  /** With an id, the agent answers when the command has finished. A lost connection only costs one poll. */
  const poll = async (command: AgentCommand): Promise<AgentCommand> => {
    try {
      if (command.id !== undefined)
        return commandOf(await send({ method: 'GET', path: encodeURIComponent(command.id), query: { wait: 'true' } }));
      return (await list()).findLast((candidate) => candidate.command_name === command.command_name) ?? command;
    } catch (error) {
      if (error instanceof AgentError && error.kind === 'unreachable') return command;
      throw error;
    }
  };

  return {
    command: (name, params, commandOptions = {}) => {
      const attempts = commandOptions.attempts ?? options['agent.max_command_attempts'];
      const query = { wait: String(commandOptions.wait ?? false) };
      return retried(task, `for invoking command ${name}`, attempts, async () => {
        try {
          return commandOf(await send({ method: 'POST', path: '', query, body: { name, params }, options: commandOptions }));
        } catch (error) {
          if (!(error instanceof AgentError)) throw error;
          if (error.kind === 'busy') {
            const message = `Node ${node.uuid} command "${name}" failed. Agent is presently executing a command. Error ${error.message}`;
            throw new AgentError('busy', message, { cause: error });
          }
          const running = error.kind === 'unreachable' && attempts > 1 ? await accepted(name) : undefined;
          if (running === undefined) throw error;
          return running;
        }
      });
    },
    commands: (listOptions = {}) =>
      retried(task, 'to collect commands status', listOptions.attempts ?? options['agent.max_command_attempts'], () => list(listOptions)),
    finished: async (command) => {
      const deadline = task.clock.now() + options['agent.command_wait_attempts'] * options['agent.command_wait_interval'] * 1000;
      let current = command;
      const isOver = async (): Promise<boolean> => {
        if (current.command_status !== 'RUNNING') return true;
        if (task.clock.now() >= deadline)
          throw new AgentError('unreachable', `Timeout executing command ${command.command_name} on node ${node.uuid}`);
        current = await poll(current);
        return current.command_status !== 'RUNNING';
      };
      await waitUntil(task, isOver, () => POLL_PAUSE_MS);
      return current;
    },
  };
}

/** The error text of a failed command. */
export function commandError(command: AgentCommand): string {
  return command.command_error === null || command.command_error === undefined
    ? 'Invalid agent response'
    : errorText(command.command_error);
}

const shortName = (name: string): string => name.slice(name.indexOf('.') + 1);

function commandOf(value: unknown): AgentCommand {
  const command = value as AgentCommand | null;
  if (typeof command?.command_name === 'string' && typeof command.command_status === 'string') return command;
  throw new AgentError('refused', 'Agent returned bad command result');
}

/** Characters of an agent's error that are passed on. */
const MAX_ERROR_TEXT = 64 * 1024;
/** The text of an agent's error: {details, message, …}, {faultstring} or a string. Other content of a response is not shown. */
function errorText(error: unknown): string {
  if (typeof error === 'string') return shortened(error, MAX_ERROR_TEXT);
  const { details, message, faultstring } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const text = [details, message, faultstring].find((candidate) => typeof candidate === 'string' && candidate !== '');
  return typeof text === 'string' ? shortened(text, MAX_ERROR_TEXT) : 'Invalid agent response';
}

/** Undefined: the bytes are not valid JSON, or exceed the limits for an agent's response. */
async function parse(bytes: Buffer): Promise<unknown> {
  try {
    return await parseJson(bytes, JSON_LIMITS.agent);
  } catch {
    return undefined;
  }
}

const isPem = (text: string): boolean => text.startsWith('-----BEGIN');
/** Characters of a setting's value that an error message shows. */
const MAX_SHOWN = 200;
const noAuthorities = (text: string, cause?: unknown): Fault =>
  new Fault('InvalidParameterValue', { message: `Agent CA ${text.slice(0, MAX_SHOWN)} is neither a path nor a boolean` }, { cause });

interface Trust {
  readonly rejectUnauthorized?: boolean;
  readonly secureContext: SecureContext;
}
/**
 * The certificate authorities for the agent: the certificate that the agent sent with its heartbeat (driver_internal_info.agent_verify_ca,
 * for all conductors), otherwise driver_info.agent_verify_ca, otherwise [agent]verify_ca. The agent's value must be PEM text, since any
 * program in the machine can send it. The others are true (system's authorities), false (no verification), PEM text, a file or a folder.
 */
async function trust(task: Task): Promise<Trust> {
  const { driver_internal_info: internal, driver_info: info } = task.node;
  const least = task.options['agent.tls_minimum_version'];
  const own = internal['agent_verify_ca'] ?? undefined;
  if (own !== undefined) {
    if (typeof own === 'string' && isPem(own.trim())) return { secureContext: clientContext(least, own) };
    throw noAuthorities(JSON.stringify(own));
  }
  const value = info['agent_verify_ca'] ?? task.options['agent.verify_ca'];
  const text = typeof value === 'string' ? value.trim() : JSON.stringify(value);
  const truth = verifies(text);
  if (truth !== undefined) return { rejectUnauthorized: truth, secureContext: clientContext(least) };
  return { secureContext: clientContext(least, isPem(text) ? text : await authorities(text)) };
}

async function authorities(path: string): Promise<string> {
  try {
    return (await readAuthorities(path, /\.(?:pem|crt)$/)).join('\n');
  } catch (error) {
    throw noAuthorities(path, error);
  }
}
