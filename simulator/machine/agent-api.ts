/** The command API of a simulated agent. */
import type { JsonObject } from '../../model/records';
import { COMMANDS, type AgentCommand, type CommandHost } from './agent-commands';
import { AGENT_VERSION } from './agent-client';
import { toBody } from '../../model/agent/errors';

export interface AgentAnswer {
  readonly status: number;
  readonly body: unknown;
}
/** A command as clients see it. */
interface CommandRecord {
  readonly id: string;
  /** The command's name without its extension. */
  readonly command_name: string;
  command_status: 'RUNNING' | 'SUCCEEDED' | 'FAILED';
  command_error: JsonObject | null;
  command_result: unknown;
}
interface StartedCommand {
  readonly record: CommandRecord;
  readonly ended: Promise<void>;
}
interface CommandApiOptions {
  /** Undefined: the agent has no token yet, and requests need none. */
  readonly token: () => string | undefined;
  /** Called when a command in the background has ended. */
  readonly onEnd: () => void;
}

const refusal = (status: number, type: string, message: string, details: string): AgentAnswer => ({
  status,
  body: { type, code: status, message, details },
});

/** @returns a function that answers the request METHOD PATH with this body */
export function createCommandApi(
  host: CommandHost & { readonly random: (bytes: number) => Buffer },
  { token, onEnd }: CommandApiOptions,
): (method: string, path: string, body: unknown) => Promise<AgentAnswer> {
  const commands: StartedCommand[] = [];
  const start = (name: string, command: AgentCommand, params: JsonObject): StartedCommand => {
    const record: CommandRecord = {
      id: uuidOf(host.random(16)),
      command_name: name.slice(name.indexOf('.') + 1),
      command_status: 'RUNNING',
      command_error: null,
      command_result: null,
    };
    const started = { record, ended: execute(host, command, params, record).then(() => (command.background ? onEnd() : undefined)) };
    commands.push(started);
    return started;
  };
  const getCommand = async (id: string | undefined, wait: boolean): Promise<AgentAnswer> => {
    if (id === undefined) return { status: 200, body: { commands: commands.map(({ record }) => record) } };
    const command = commands.find(({ record }) => record.id === id);
    if (!command) return refusal(404, 'RequestedObjectNotFoundError', 'Not found', `Command with id ${id} not found.`);
    if (wait) await command.ended;
    return { status: 200, body: command.record };
  };
  const postCommand = async (body: unknown, wait: boolean): Promise<AgentAnswer> => {
    const { name, params } = (body ?? {}) as { name?: unknown; params?: unknown };
    const command = typeof name === 'string' && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!command) return refusal(404, 'InvalidCommandError', 'Invalid command', `Unknown command: ${String(name)}`);
    const running = commands.find(({ record }) => record.command_status === 'RUNNING');
    if (command.background && running)
      return refusal(409, 'AgentIsBusy', 'Agent is busy', `executing command ${running.record.command_name}`);
    const started = start(name as string, command, (params ?? {}) as JsonObject);
    if (wait || !command.background) await started.ended;
    return { status: 200, body: started.record };
  };
  return async (method, path, body) => {
    const { pathname, searchParams } = new URL(path, 'http://agent');
    const [resource, id] = pathname
      .replace(/^\/v1(?=\/|$)/, '')
      .split('/')
      .filter((part) => part !== '');
    if (resource === 'status' || resource === undefined) return { status: 200, body: { version: AGENT_VERSION } };
    if (resource !== 'commands') return refusal(404, 'RequestedObjectNotFoundError', 'Not found', pathname);
    if (token() !== undefined && searchParams.get('agent_token') !== token())
      return refusal(401, 'Unauthorized', '401 Unauthorized', 'Token invalid.');
    const wait = searchParams.get('wait') === 'true';
    if (method === 'GET') return getCommand(id, wait);
    if (method === 'POST') return postCommand(body, wait);
    return refusal(405, 'MethodNotAllowed', 'Method not allowed', method);
  };
}

/** Runs a command and records its result or its error; never rejects. */
async function execute(host: CommandHost, command: AgentCommand, params: JsonObject, record: CommandRecord): Promise<void> {
  try {
    if (command.background) await host.clock.sleep(host.stepMs, host.signal);
    record.command_result = await command.run(host, params);
    record.command_status = 'SUCCEEDED';
  } catch (error) {
    record.command_error = { ...toBody(error) };
    record.command_status = 'FAILED';
  }
}

const uuidOf = (bytes: Buffer): string => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
