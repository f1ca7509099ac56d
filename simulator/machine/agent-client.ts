/** The requests of a simulated agent to the server: inventory, lookup and heartbeat. */
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { AgentHost } from './agent-commands';

export interface AgentClientSetup extends AgentHost {
  /** The URL at which the server reaches the agent's command API. */
  readonly callbackUrl: string;
  /** The certificate of that URL's server, as PEM. */
  readonly certificate: string;
  readonly log: Log;
  /** Milliseconds between tries; real agents wait some seconds. */
  readonly retryMs: number;
  /** The agent sends a token that the server did not give it. */
  readonly wrongToken: boolean;
}
interface LookupResult {
  readonly node: { readonly uuid: string };
  readonly config: { readonly heartbeat_timeout: number; readonly agent_token?: string };
}
const isLookupResult = (value: unknown): value is LookupResult =>
  typeof value === 'object' && value !== null && 'config' in value && 'node' in value;

interface AgentClient {
  /** The microversion in use; empty: none yet. */
  version(): string;
  /** Agrees on a microversion, if the server answers. */
  tryNegotiating(): Promise<void>;
  /** Posts the inventory. Since 1.84 the answer contains the result of a lookup. Undefined: refused, or an older server. */
  inspect(url: string): Promise<LookupResult | undefined>;
  lookup(): Promise<LookupResult | undefined>;
  /** @returns whether the server accepted the heartbeat */
  heartbeat(uuid: string, token: string | undefined): Promise<boolean>;
}

export const AGENT_VERSION = '13.0.0';
/** Minor version. 1.84 is the last one that changed what agents receive: it added the token to the answer to an inventory. */
const NEWEST = 84;
/** The most tries to post the inventory, and the time limit of the lookup. */
const INSPECTION_TRIES = 20;
const LOOKUP_SECONDS = 600;
const CONFLICT = 409;

/** @param apiUrl absent: only `inspect` works */
export function createAgentClient(setup: AgentClientSetup, apiUrl: string | undefined, knownVersion: string): AgentClient {
  const { http, clock, signal, log } = setup;
  let version = knownVersion;
  let lastRefusal = '';
  const headers = (): Record<string, string> => ({
    ...(version === '' ? {} : { 'x-openstack-ironic-api-version': version }),
    accept: 'application/json',
  });

  const negotiate = async (): Promise<void> => {
    const answer = await http.request(`${apiUrl!}/`, { signal });
    const { default_version: server } = (await answer.json()) as { default_version?: { version?: string } };
    version = `1.${Math.min(Number(server?.version?.split('.')[1] ?? 31), NEWEST)}`;
  };
  const tryNegotiating = (): Promise<void> =>
    negotiate().catch((error: unknown) => {
      signal.throwIfAborted();
      log.debug('the server does not state its versions', { error: reasonOf(error) });
    });

  const inspect = async (url: string): Promise<LookupResult | undefined> => {
    const inventory = setup.inventory;
    const data = { inventory, root_disk: inventory.disks?.[0], boot_interface: inventory.boot?.pxe_interface, error: null };
    for (let tries = 1; tries <= INSPECTION_TRIES; tries++) {
      const answer = await http
        .request(url, { method: 'POST', headers: headers(), json: data, signal })
        .catch((error: unknown) => reasonOf(error));
      signal.throwIfAborted();
      if (typeof answer !== 'string') {
        if (answer.status < 300) {
          const result = await answer.json().catch(() => undefined);
          return isLookupResult(result) ? result : undefined;
        }
        await answer.drain();
      }
      log.debug('the server did not accept the inventory', { answer: typeof answer === 'string' ? answer : answer.status });
      await clock.sleep(setup.retryMs * Math.min(tries, 5), signal);
    }
    log.warn('the server did not accept the inventory; giving up');
    return undefined;
  };

  const lookup = async (): Promise<LookupResult | undefined> => {
    const until = clock.now() + LOOKUP_SECONDS * 1000;
    const addresses = setup.inventory.interfaces.map((item) => item.mac_address).join(',');
    for (let tries = 1; clock.now() < until; tries++) {
      try {
        if (version === '') await negotiate();
        const url = `${apiUrl!}/v1/lookup?addresses=${encodeURIComponent(addresses)}`;
        const answer = await http.request(url, { headers: headers(), signal });
        if (answer.status === 200) return (await answer.json()) as LookupResult;
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

  const heartbeat = async (uuid: string, token: string | undefined): Promise<boolean> => {
    const json = {
      callback_url: setup.callbackUrl,
      agent_version: AGENT_VERSION,
      agent_token: setup.wrongToken ? 'not-the-token' : token,
      agent_verify_ca: setup.certificate,
    };
    try {
      const answer = await http.request(`${apiUrl!}/v1/heartbeat/${uuid}`, { method: 'POST', headers: headers(), json, signal });
      const text = answer.status === 202 ? '' : await answer.text();
      if (text === '') await answer.drain();
      const refusal = answer.status === 202 ? '' : `${answer.status} ${text.slice(0, 200)}`;
      // A conflict means that the node is locked, which is normal for a while.
      if (refusal !== '' && refusal !== lastRefusal && answer.status !== CONFLICT) log.warn('heartbeat refused', { answer: refusal });
      lastRefusal = refusal;
      return answer.status === 202;
    } catch (error) {
      signal.throwIfAborted();
      log.debug('heartbeat failed', { error: reasonOf(error) });
      return false;
    }
  };
  return { version: () => version, tryNegotiating, inspect, lookup, heartbeat };
}
