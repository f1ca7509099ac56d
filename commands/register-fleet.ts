/**
 * Registers simulated machines with a server: a node and its ports for each. A node that an earlier fleet registered gets the new address
 * of its BMC; other nodes stay as they are.
 */
import { waitUntil, type Clock } from '../model/clock';
import type { DescribedNode } from '../simulator/fleet/describe-node';
import { HEADER } from '../model/versions';
import { authorization, parseJson, refusalText } from './endpoint';
import { serverFetch } from './server-fetch';
import { timeoutSignal } from '../wire/timeout-signal';

const AT_ONCE = 8;
const TIMEOUT_MS = 60_000;
const PROBE_MS = 5_000;
/** How long to wait for the server. If both are started together, the fleet is ready first. */
const START_MS = 60_000;
const RETRY_MS = 500;
/** A version with all used fields: names (1.5), pxe_enabled (1.19) and resource classes (1.21). */
const VERSION = '1.72';
/** `extra` of the nodes that this program registers. */
const MARK = { registered_by: 'bloomery simulate' } as const;
/** More of a response than a boot script is not read. */
const SCRIPT_BYTES = 4096;

interface Registered {
  readonly created: number;
  readonly updated: number;
}
/**
 * Waits until the server is ready, which means anything except 503 or a refused connection. Also returns after START_MS; then the next
 * request fails with the reason.
 */
async function started(base: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const end = clock.now() + START_MS;
  const isThere = (): Promise<boolean> =>
    serverFetch(base, '/', { signal: timeoutSignal(TIMEOUT_MS, signal) }).then(
      async ({ status, body }) => {
        await body?.cancel();
        return status !== 503;
      },
      (error: unknown) => ((error as Error).cause as { code?: unknown } | undefined)?.code !== 'ECONNREFUSED',
    );
  await waitUntil({ clock, signal }, isThere, () => (clock.now() < end ? RETRY_MS : undefined));
}

async function firstBytes({ body }: Response): Promise<string> {
  let text = '';
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString('latin1');
    if (text.length >= SCRIPT_BYTES) break;
  }
  return text;
}
/**
 * The server's [deploy]http_url, from the script of its boot service, which is on the host of the API. Waits for a server that is
 * starting. Undefined: no boot service responds on this port.
 */
export async function findBootUrl(base: string, port: number, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  await started(base, clock, signal);
  const { hostname } = new URL(base);
  for (const scheme of ['http', 'https'])
    try {
      const response = await fetch(`${scheme}://${hostname}:${port}/boot.ipxe`, { signal: timeoutSignal(PROBE_MS, signal) });
      const url = response.ok ? /^imgfetch --name script (https?:\/\/\S+)\/ipxe\//m.exec(await firstBytes(response))?.[1] : undefined;
      if (url !== undefined) return url;
    } catch (error) {
      if (signal.aborted) throw error;
    }
  return undefined;
}

/**
 * Throws an Error with the server's message at the first failed request. Waits for a server that is starting.
 * @param base URL of the API, without /v1
 */
export async function registerFleet(base: string, nodes: readonly DescribedNode[], clock: Clock, signal: AbortSignal): Promise<Registered> {
  await started(base, clock, signal);
  const count = { created: 0, updated: 0 };
  const call = async (method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly text: string }> => {
    const response = await serverFetch(base, `/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json', accept: 'application/json', [HEADER]: VERSION, ...authorization(process.env) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(TIMEOUT_MS, signal),
    });
    return { status: response.status, text: await response.text() };
  };
  const refused = (what: string, { status, text }: { readonly status: number; readonly text: string }): Error =>
    new Error(`${what}: ${refusalText(base, status, text)}`);

  const register = async ({ node, ports }: DescribedNode): Promise<void> => {
    const name = String(node['name']);
    const made = await call('POST', '/nodes', { ...node, extra: MARK });
    if (made.status === 409) {
      const there = await call('GET', `/nodes/${name}?fields=extra`);
      const { extra } = (parseJson(there.text) ?? {}) as { readonly extra?: { readonly registered_by?: unknown } };
      if (there.status !== 200 || extra?.registered_by !== MARK.registered_by)
        throw new Error(
          `node ${name}: the server has a node of this name that no fleet registered; it was not changed. Use --first to number the machines otherwise, or delete the node`,
        );
      const changed = await call('PATCH', `/nodes/${name}`, [{ op: 'add', path: '/driver_info', value: node['driver_info'] }]);
      if (changed.status >= 300) throw refused(`node ${name}`, changed);
      count.updated++;
      return;
    }
    if (made.status !== 201) throw refused(`node ${name}`, made);
    const { uuid } = parseJson(made.text) as { readonly uuid: string };
    for (const port of ports) {
      const answer = await call('POST', '/ports', { ...port, node_uuid: uuid });
      if (answer.status !== 201) throw refused(`port ${String(port['address'])} of node ${name}`, answer);
    }
    count.created++;
  };
  const rest = nodes.values();
  const lane = async (): Promise<void> => {
    for (const node of rest) await register(node);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return count;
}
