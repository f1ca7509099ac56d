/**
 * The agent in a simulated machine: inspection, lookup, heartbeats and the command API, as ironic-python-agent speaks them.
 * It has no clock or socket of its own, and stops at once when its machine is switched off.
 */
import type { JsonObject } from '../../model/records';
import type { Log } from '../../model/log';
import { reasonOf } from '../../model/errors';
import { COMMANDS, type AgentHost, type CommandRow } from './agent-commands';
import { AgentError } from './image';

export interface AgentSetup extends AgentHost {
  /** The kernel's command line: name → value. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Where the server reaches `answer`. */
  readonly callbackUrl: string;
  /** PEM, of who answers there. */
  readonly certificate: string;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
  /** Milliseconds between tries of what failed; real agents take some seconds. */
  readonly retryMs: number;
  /** Sends a token of its own making. */
  readonly wrongToken: boolean;
  /** What it learned before the simulator was started again: it goes on with that. */
  readonly remembered?: AgentMemory | undefined;
  /** Called when it has learned it. */
  remember(memory: AgentMemory): void;
}
/** What an agent learns by its lookup. */
export interface AgentMemory {
  readonly uuid: string;
  readonly heartbeatSeconds: number;
  readonly token: string | undefined;
  readonly version: string;
}
interface Found {
  readonly node: { readonly uuid: string };
  readonly config: { readonly heartbeat_timeout: number; readonly agent_token?: string };
}
const isFound = (told: unknown): told is Found => typeof told === 'object' && told !== null && 'config' in told && 'node' in told;
export interface AgentAnswer {
  readonly status: number;
  readonly body: unknown;
}
export interface SimulatedAgent {
  /** Resolves when the agent has nothing more to do; rejects only when it is stopped. */
  run(): Promise<void>;
  /** `path`: what follows the callback URL, with the query. */
  answer(method: string, path: string, body: unknown): Promise<AgentAnswer>;
}
interface Command {
  readonly id: string;
  /** Without the extension. */
  readonly command_name: string;
  command_status: 'RUNNING' | 'SUCCEEDED' | 'FAILED';
  command_error: JsonObject | null;
  command_result: unknown;
}

const AGENT_VERSION = '13.0.0';
/** 1.84: the last version that changed what agents are told (the token, by the answer to an inventory). */
const NEWEST = 84;
/** Of tries to post the inventory, and seconds to look the node up for. */
const INSPECTION_TRIES = 20;
const LOOKUP_SECONDS = 600;
const HELD = 409;
const MASKED = '******';

export function createAgent(setup: AgentSetup): SimulatedAgent {
  const { parameters, http, clock, signal, log, random } = setup;
  const api = parameters.get('ipa-api-url')?.replace(/\/+$/, '');
  const commands: { readonly shown: Command; readonly over: Promise<void> }[] = [];
  let token = setup.remembered?.token;
  let version = setup.remembered?.version ?? '';
  let nap = new AbortController();
  let lastRefusal = '';
  const identifier = (): string =>
    random(16)
      .toString('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  const jitter = (least: number, most: number): number => least + (random(1)[0]! / 255) * (most - least);

  /** What a lookup would tell, if the server says it at once (since 1.84). */
  const inspect = async (url: string): Promise<Found | undefined> => {
    const inventory = setup.inventory;
    const data = { inventory, root_disk: inventory.disks?.[0], boot_interface: inventory.boot?.pxe_interface, error: null };
    for (let tries = 1; tries <= INSPECTION_TRIES; tries++) {
      const answer = await http
        .ask(url, { method: 'POST', headers: headers(), json: data, signal })
        .catch((error: unknown) => reasonOf(error));
      signal.throwIfAborted();
      if (typeof answer !== 'string') {
        if (answer.status < 300) {
          const told = await answer.json().catch(() => undefined);
          return isFound(told) ? told : undefined;
        }
        await answer.drain();
      }
      log.debug('the inventory was not taken', { answer: typeof answer === 'string' ? answer : answer.status });
      await clock.sleep(setup.retryMs * Math.min(tries, 5), signal);
    }
    log.warn('the inventory was not taken; giving up');
    return undefined;
  };

  const negotiate = async (): Promise<void> => {
    const answer = await http.ask(`${api!}/`, { signal });
    const { default_version: server } = (await answer.json()) as { default_version?: { version?: string } };
    version = `1.${Math.min(Number(server?.version?.split('.')[1] ?? 31), NEWEST)}`;
  };
  const tryNegotiating = (): Promise<void> =>
    negotiate().catch((error: unknown) => {
      signal.throwIfAborted();
      log.debug('the server does not tell its versions', { error: reasonOf(error) });
    });
  const headers = (): Record<string, string> => ({
    ...(version === '' ? {} : { 'x-openstack-ironic-api-version': version }),
    accept: 'application/json',
  });

  const lookup = async (): Promise<Found | undefined> => {
    const until = clock.now() + LOOKUP_SECONDS * 1000;
    const addresses = setup.inventory.interfaces.map((one) => one.mac_address).join(',');
    for (let tries = 1; clock.now() < until; tries++) {
      try {
        if (version === '') await negotiate();
        const answer = await http.ask(`${api!}/v1/lookup?addresses=${encodeURIComponent(addresses)}`, { headers: headers(), signal });
        if (answer.status === 200) return (await answer.json()) as Found;
        await answer.drain();
        log.debug('lookup refused', { status: answer.status });
      } catch (error) {
        signal.throwIfAborted();
        log.debug('lookup failed', { error: reasonOf(error) });
      }
      await clock.sleep(setup.retryMs * Math.min(tries, 10), signal);
    }
    return undefined;
  };

  const beat = async (uuid: string): Promise<boolean> => {
    const json = {
      callback_url: setup.callbackUrl,
      agent_version: AGENT_VERSION,
      agent_token: setup.wrongToken ? 'not-the-token' : token,
      agent_verify_ca: setup.certificate,
    };
    try {
      const answer = await http.ask(`${api!}/v1/heartbeat/${uuid}`, { method: 'POST', headers: headers(), json, signal });
      const text = answer.status === 202 ? '' : await answer.text();
      if (text === '') await answer.drain();
      const refusal = answer.status === 202 ? '' : `${answer.status} ${text.slice(0, 200)}`;
      // That the node is held passes by itself.
      if (refusal !== '' && refusal !== lastRefusal && answer.status !== HELD) log.warn('heartbeat refused', { answer: refusal });
      lastRefusal = refusal;
      return answer.status === 202;
    } catch (error) {
      signal.throwIfAborted();
      log.debug('heartbeat failed', { error: reasonOf(error) });
      return false;
    }
  };

  /** Undefined: there is no node for this machine, or another agent has it. */
  const begin = async (): Promise<AgentMemory | undefined> => {
    const callback = parameters.get('ipa-inspection-callback-url');
    if (callback !== undefined && api !== undefined) await tryNegotiating();
    const inspected = callback === undefined ? undefined : await inspect(callback);
    const found = inspected ?? (api === undefined ? undefined : await lookup());
    if (!found) {
      log.warn('no node is found for this machine');
      return undefined;
    }
    const told = found.config.agent_token;
    // What boots from an image of a BMC is told it there, and masked here.
    token = told === MASKED ? (parameters.get('ipa-agent-token') ?? told) : told;
    // A mask alone says that another agent has the token: a real agent stops here.
    if (token === MASKED) {
      log.warn('another agent has the token of this machine');
      return undefined;
    }
    const learned = { uuid: found.node.uuid, heartbeatSeconds: found.config.heartbeat_timeout, token, version };
    setup.remember(learned);
    return learned;
  };
  const run = async (): Promise<void> => {
    const known = setup.remembered ?? (await begin());
    if (!known) return;
    for (;;) {
      nap = new AbortController();
      const taken = await beat(known.uuid);
      const pause = taken ? Math.max(known.heartbeatSeconds * 1000 * jitter(0.3, 0.6), 5000) : setup.retryMs * jitter(1, 2);
      await clock.sleep(pause, AbortSignal.any([signal, nap.signal])).catch(() => {});
      signal.throwIfAborted();
    }
  };

  const start = (name: string, row: CommandRow, params: JsonObject): (typeof commands)[number] => {
    const shown: Command = {
      id: identifier(),
      command_name: name.slice(name.indexOf('.') + 1),
      command_status: 'RUNNING',
      command_error: null,
      command_result: null,
    };
    const work = async (): Promise<void> => {
      try {
        if (row.background) await clock.sleep(setup.stepMs, signal);
        shown.command_result = await row.run(setup, params);
        shown.command_status = 'SUCCEEDED';
      } catch (error) {
        const known =
          error instanceof AgentError ? error : new AgentError('CommandExecutionError', 500, 'Command execution failed', reasonOf(error));
        shown.command_error = { type: known.type, code: known.code, message: known.message, details: known.details };
        shown.command_status = 'FAILED';
      }
      // The server hears at once that something is over.
      if (row.background) nap.abort();
    };
    const command = { shown, over: work() };
    commands.push(command);
    return command;
  };

  const refused = (status: number, type: string, message: string, details: string): AgentAnswer => ({
    status,
    body: { type, code: status, message, details },
  });
  const answer = async (method: string, path: string, body: unknown): Promise<AgentAnswer> => {
    const { pathname, searchParams } = new URL(path, 'http://agent');
    const [first, id] = pathname
      .replace(/^\/v1(?=\/|$)/, '')
      .split('/')
      .filter((one) => one !== '');
    if (first === 'status' || first === undefined) return { status: 200, body: { version: AGENT_VERSION } };
    if (first !== 'commands') return refused(404, 'RequestedObjectNotFoundError', 'Not found', pathname);
    if (token !== undefined && searchParams.get('agent_token') !== token)
      return refused(401, 'Unauthorized', '401 Unauthorized', 'Token invalid.');
    const wait = searchParams.get('wait') === 'true';
    if (method === 'GET' && id === undefined) return { status: 200, body: { commands: commands.map(({ shown }) => shown) } };
    if (method === 'GET') {
      const command = commands.find(({ shown }) => shown.id === id);
      if (!command) return refused(404, 'RequestedObjectNotFoundError', 'Not found', `Command with id ${id!} not found.`);
      if (wait) await command.over;
      return { status: 200, body: command.shown };
    }
    if (method !== 'POST') return refused(405, 'MethodNotAllowed', 'Method not allowed', method);
    const { name, params } = (body ?? {}) as { name?: unknown; params?: unknown };
    const row = typeof name === 'string' && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!row) return refused(404, 'InvalidCommandError', 'Invalid command', `Unknown command: ${String(name)}`);
    const running = commands.find(({ shown }) => shown.command_status === 'RUNNING');
    if (row.background && running) return refused(409, 'AgentIsBusy', 'Agent is busy', `executing command ${running.shown.command_name}`);
    const command = start(name as string, row, (params ?? {}) as JsonObject);
    if (wait || !row.background) await command.over;
    return { status: 200, body: command.shown };
  };
  return { run, answer };
}
