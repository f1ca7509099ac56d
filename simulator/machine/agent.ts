/**
 * The agent in a simulated machine: inspection, lookup, heartbeats and the command API, as in ironic-python-agent. The caller provides
 * the clock and the HTTP client. Power off ends the agent at once.
 */
import { createCommandApi, type AgentAnswer } from './agent-api';
import { createAgentClient, type AgentClientSetup } from './agent-client';
import { withoutEndSlashes } from '../../wire/urls';

export type { AgentAnswer } from './agent-api';
interface AgentSetup extends AgentClientSetup {
  /** The kernel's command line: name → value. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly random: (bytes: number) => Buffer;
  /** The result of a lookup before the simulator was restarted; absent: the agent begins with inspection or lookup. */
  readonly remembered?: AgentMemory | undefined;
  /** Called after a successful inspection or lookup. */
  remember(memory: AgentMemory): void;
}
/** What an agent learns from the answer to its inventory or its lookup. */
export interface AgentMemory {
  readonly uuid: string;
  readonly heartbeatSeconds: number;
  readonly token: string | undefined;
  readonly version: string;
}
export interface SimulatedAgent {
  /** Resolves when the agent gives up; rejects only when its signal ends it. */
  run(): Promise<void>;
  /** @param path what follows the callback URL, with the query */
  answer(method: string, path: string, body: unknown): Promise<AgentAnswer>;
}

const MASKED = '******';

export function createAgent(setup: AgentSetup): SimulatedAgent {
  const { parameters, clock, signal, log, random } = setup;
  const apiUrl = withoutEndSlashes(parameters.get('ipa-api-url'));
  const client = createAgentClient(setup, apiUrl, setup.remembered?.version ?? '');
  let token = setup.remembered?.token;
  let pause = new AbortController();
  const jitter = (least: number, most: number): number => least + (random(1)[0]! / 255) * (most - least);

  /** Undefined: the server has no node for this machine, or another agent has the node's token. */
  const begin = async (): Promise<AgentMemory | undefined> => {
    const inspectionUrl = parameters.get('ipa-inspection-callback-url');
    if (inspectionUrl !== undefined && apiUrl !== undefined) await client.tryNegotiating();
    const inspected = inspectionUrl === undefined ? undefined : await client.inspect(inspectionUrl);
    const found = inspected ?? (apiUrl === undefined ? undefined : await client.lookup());
    if (!found) {
      log.warn('no node is found for this machine');
      return undefined;
    }
    const given = found.config.agent_token;
    // The lookup masks the token of an agent from virtual media, which has the token on the kernel's command line.
    token = given === MASKED ? (parameters.get('ipa-agent-token') ?? given) : given;
    // Masked, and no token on the command line: the server gave the token to another agent. A real agent stops here too.
    if (token === MASKED) {
      log.warn('another agent has the token of this machine');
      return undefined;
    }
    const learned = { uuid: found.node.uuid, heartbeatSeconds: found.config.heartbeat_timeout, token, version: client.version() };
    setup.remember(learned);
    return learned;
  };
  const run = async (): Promise<void> => {
    const known = setup.remembered ?? (await begin());
    if (!known) return;
    for (;;) {
      pause = new AbortController();
      const accepted = await client.heartbeat(known.uuid, token);
      const ms = accepted ? Math.max(known.heartbeatSeconds * 1000 * jitter(0.3, 0.6), 5000) : setup.retryMs * jitter(1, 2);
      await clock.sleep(ms, AbortSignal.any([signal, pause.signal])).catch(() => {});
      signal.throwIfAborted();
    }
  };
  // When a background command ends, the agent sends its next heartbeat at once.
  const api = () => (apiUrl === undefined || token === undefined ? undefined : { url: apiUrl, token });
  const answer = createCommandApi({ ...setup, api }, { token: () => token, onEnd: () => pause.abort() });
  return { run, answer };
}
