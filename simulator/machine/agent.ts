/**
 * The agent in a simulated machine: inspection, lookup, heartbeats and the command API, as ironic-python-agent has them. Its clock and
 * its HTTP come from outside, and power off ends it at once.
 */
import { createCommandApi, type AgentAnswer } from './agent-api';
import { createAgentClient, type AgentClientSetup } from './agent-client';
import { withoutEndSlashes } from '../../wire/urls';

export type { AgentAnswer } from './agent-api';
interface AgentSetup extends AgentClientSetup {
  /** The kernel's command line: name → value. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly random: (bytes: number) => Buffer;
  /** What it learned before the simulator was restarted; absent: it begins with a lookup. */
  readonly remembered?: AgentMemory | undefined;
  /** Called when the agent has learned it. */
  remember(memory: AgentMemory): void;
}
/** What an agent learns by its lookup. */
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
    // An agent from virtual media has its token in the kernel's command line, and the lookup masks it.
    token = given === MASKED ? (parameters.get('ipa-agent-token') ?? given) : given;
    // A mask without a token of its own: another agent has the token, and a real agent stops here.
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
  // The end of a command brings the next heartbeat forward.
  const answer = createCommandApi(setup, { token: () => token, onEnd: () => pause.abort() });
  return { run, answer };
}
