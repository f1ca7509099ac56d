/** Client of the API inside the ramdisk (agent protocol, section "The agent's HTTP API"): commands with a token, over verified TLS. */
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { Fault } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { Task } from '../interfaces';
import { connectionReason } from '../common/reason';
import { timeoutSignal } from '../../wire/timeout-signal';

/** A command's result as the agent keeps it. */
export interface AgentCommand {
  readonly id?: string;
  /** Without its extension: `execute_clean_step`. */
  readonly command_name: string;
  readonly command_status: string;
  readonly command_error?: unknown;
  readonly command_result?: JsonObject | null;
}

/** `connection`: no answer; `busy`: another command runs; `refused`: the agent answered that it would not. */
export class AgentError extends Error {
  constructor(
    readonly kind: 'connection' | 'busy' | 'refused',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface CommandOptions {
  /** The answer comes when the command is over: for short ones. */
  readonly wait?: boolean;
  /** In the place of [agent]max_command_attempts. */
  readonly attempts?: number;
  /** Seconds, in the place of [agent]command_timeout. */
  readonly timeout?: number;
  /** Ends the waiting for an answer, as if the connection was lost. */
  readonly signal?: AbortSignal;
}

export interface AgentClient {
  /**
   * Sends `extension.command`. A lost connection is tried again, unless the agent turns out to run the command already. Throws AgentError.
   */
  command(name: string, params: JsonObject, options?: CommandOptions): Promise<AgentCommand>;
  /** All commands since the agent started, the oldest first. Throws AgentError. */
  commands(): Promise<readonly AgentCommand[]>;
  /** Waits until the command is over. Throws AgentError after as many looks as [agent]command_wait_attempts takes. */
  finished(command: AgentCommand): Promise<AgentCommand>;
}

/** No honest answer is larger: step lists and results are some kilobytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const RETRY_PAUSE_MS = 1000;
/** Between looks at a command with an agent that does not hold the answer back until the command is over. */
const LOOK_PAUSE_MS = 1000;

/** Gives `work` a client of the node's agent; its connections end with it. */
export async function withAgent<T>(task: Task, work: (agent: AgentClient) => Promise<T>): Promise<T> {
  const url = task.node.driver_internal_info['agent_url'];
  if (typeof url !== 'string' || url === '') {
    throw new AgentError('connection', 'Connection to agent failed: Agent driver requires agent_url in driver_internal_info');
  }
  const dispatcher = new Agent({
    connect: { ...(await trust(task)), timeout: task.options['agent.command_timeout'] * 1000 },
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  try {
    return await work(clientOf(task, url.replace(/\/+$/, ''), dispatcher));
  } finally {
    await dispatcher.destroy();
  }
}

function clientOf(task: Task, base: string, dispatcher: Agent): AgentClient {
  const { node, options } = task;
  const token = node.driver_internal_info['agent_secret_token'];

  async function exchange(
    method: 'GET' | 'POST',
    path: string,
    query: Readonly<Record<string, string>>,
    body?: JsonObject,
    { timeout: seconds = options['agent.command_timeout'], signal }: CommandOptions = {},
  ): Promise<unknown> {
    const limited = timeoutSignal(seconds * 1000, task.signal, ...(signal ? [signal] : []));
    const held = task.stillHeld?.() ?? true;
    if (held !== true) await held;
    let status: number;
    let text: string;
    try {
      const answer = await request(`${base}/v1/commands/${path}`, {
        method,
        dispatcher,
        query: { ...query, ...(typeof token === 'string' ? { agent_token: token } : {}) },
        signal: limited,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      });
      status = answer.statusCode;
      text = await answer.body.text();
    } catch (error) {
      task.signal.throwIfAborted();
      throw new AgentError('connection', connectionReason(error), { cause: error });
    }
    const parsed = parse(text);
    if (status < 400 && parsed !== undefined) return parsed;
    const said = parsed === undefined ? text.slice(0, 200) : errorText(parsed);
    if (status === 409 || /agent is busy/i.test(said)) throw new AgentError('busy', said);
    throw new AgentError('refused', `Agent API for node ${node.uuid} returned HTTP status code ${status} with error: ${said}`);
  }

  /** Measured by command: the names are ours, in requests that only look there is none. */
  const send: typeof exchange = async (method, path, query, body, told) => {
    const took = task.metrics.timer();
    const command = typeof body?.['name'] === 'string' ? body['name'] : 'look';
    let outcome = 'left';
    try {
      const answer = await exchange(method, path, query, body, told);
      outcome = 'ok';
      return answer;
    } catch (error) {
      if (error instanceof AgentError) outcome = error.kind;
      throw error;
    } finally {
      task.metrics.observe('bloomery_agent_request_duration_seconds', { command, outcome }, took());
    }
  };

  /** Repeats what failed for want of a connection, `attempts` times in all. */
  async function retried<T>(purpose: string, attempts: number, once: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await once();
      } catch (error) {
        if (!(error instanceof AgentError) || error.kind !== 'connection') throw error;
        if (attempt >= attempts) {
          throw new AgentError(
            'connection',
            `Connection to agent failed: Failed to connect to the agent running on node ${node.uuid} ${purpose}. Error: ${error.message}`,
            { cause: error },
          );
        }
        task.log.debug('No connection to the agent', { purpose, attempt, reason: error.message });
        await task.clock.sleep(RETRY_PAUSE_MS, task.signal);
      }
    }
  }

  const list = async (): Promise<readonly AgentCommand[]> => {
    const answer = await send('GET', '', {});
    const commands = (answer as { commands?: unknown } | null)?.commands;
    if (!Array.isArray(commands)) throw new AgentError('refused', `The agent on node ${node.uuid} did not answer with a list of commands`);
    return commands.map(commandOf);
  };

  /** The agent may have taken the command whose answer was lost: then it is the last one, and runs. */
  const taken = async (name: string): Promise<AgentCommand | undefined> => {
    const last = (await list().catch(() => [])).at(-1);
    return last?.command_name === shortName(name) && last.command_status === 'RUNNING' ? last : undefined;
  };

  return {
    command: (name, params, told = {}) => {
      const attempts = told.attempts ?? options['agent.max_command_attempts'];
      return retried(`for invoking command ${name}`, attempts, async () => {
        try {
          return commandOf(await send('POST', '', { wait: String(told.wait ?? false) }, { name, params }, told));
        } catch (error) {
          if (!(error instanceof AgentError)) throw error;
          if (error.kind === 'busy') {
            const message = `Node ${node.uuid} command "${name}" failed. Agent is presently executing a command. Error ${error.message}`;
            throw new AgentError('busy', message, { cause: error });
          }
          const running = error.kind === 'connection' && attempts > 1 ? await taken(name) : undefined;
          if (running === undefined) throw error;
          return running;
        }
      });
    },
    commands: () => retried('to collect commands status', options['agent.max_command_attempts'], list),
    finished: async (command) => {
      const deadline = task.clock.now() + options['agent.command_wait_attempts'] * options['agent.command_wait_interval'] * 1000;
      let now = command;
      while (now.command_status === 'RUNNING') {
        if (task.clock.now() >= deadline) {
          throw new AgentError('connection', `Timeout executing command ${command.command_name} on node ${node.uuid}`);
        }
        now = await look(now);
        if (now.command_status === 'RUNNING') await task.clock.sleep(LOOK_PAUSE_MS, task.signal);
      }
      return now;
    },
  };

  /** With an id the agent answers when the command is over; a connection lost meanwhile is no more than one look lost. */
  async function look(command: AgentCommand): Promise<AgentCommand> {
    try {
      if (command.id !== undefined) return commandOf(await send('GET', encodeURIComponent(command.id), { wait: 'true' }));
      return (await list()).findLast((one) => one.command_name === command.command_name) ?? command;
    } catch (error) {
      if (error instanceof AgentError && error.kind === 'connection') return command;
      throw error;
    }
  }
}

/** What a failed command says of its failure. */
export function commandError(command: AgentCommand): string {
  return command.command_error === null || command.command_error === undefined
    ? 'Invalid agent response'
    : errorText(command.command_error);
}

const shortName = (name: string): string => name.slice(name.indexOf('.') + 1);

function commandOf(value: unknown): AgentCommand {
  const command = value as AgentCommand | null;
  if (typeof command?.command_name === 'string' && typeof command.command_status === 'string') return command;
  throw new AgentError('refused', `Agent returned bad command result: ${JSON.stringify(value).slice(0, 200)}`);
}

/** The text of an agent's error: {details, message, …}, {faultstring} or a string. */
function errorText(error: unknown): string {
  if (typeof error === 'string') return error;
  const { details, message, faultstring } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const text = [details, message, faultstring].find((one) => typeof one === 'string' && one !== '');
  return typeof text === 'string' ? text : JSON.stringify(error).slice(0, 500);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const TRUTH: Readonly<Record<string, boolean>> = Object.fromEntries([
  ...['1', 't', 'true', 'on', 'y', 'yes'].map((word) => [word, true]),
  ...['0', 'f', 'false', 'off', 'n', 'no'].map((word) => [word, false]),
]) as Record<string, boolean>;

/**
 * What the agent's certificate is held against: the certificate that it sent with its heartbeat (its PEM text is kept in
 * driver_internal_info.agent_verify_ca, so that every conductor has it), else driver_info.agent_verify_ca, else [agent]verify_ca;
 * true: the system's authorities, false: anything, PEM text, a file or a folder of files.
 */
async function trust(task: Task): Promise<{ readonly rejectUnauthorized?: boolean; readonly ca?: string }> {
  const { driver_internal_info: internal, driver_info: info } = task.node;
  const value = internal['agent_verify_ca'] ?? info['agent_verify_ca'] ?? task.options['agent.verify_ca'];
  const text = typeof value === 'string' ? value.trim() : JSON.stringify(value);
  const truth = TRUTH[text.toLowerCase()];
  if (truth !== undefined) return { rejectUnauthorized: truth };
  return { ca: text.startsWith('-----BEGIN') ? text : await authorities(text) };
}

async function authorities(path: string): Promise<string> {
  try {
    if (!(await stat(path)).isDirectory()) return await readFile(path, 'utf8');
    const names = (await readdir(path)).filter((name) => /\.(pem|crt)$/.test(name)).sort();
    return (await Promise.all(names.map((name) => readFile(join(path, name), 'utf8')))).join('\n');
  } catch (error) {
    throw new Fault('InvalidParameterValue', { message: `Agent CA ${path} is neither a path nor a boolean` }, { cause: error });
  }
}
