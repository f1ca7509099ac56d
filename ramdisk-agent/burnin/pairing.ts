/**
 * How two machines of a network burn-in find each other: by etcd, with the keys and the order of ironic-python-agent (tooz's driver etcd3gw).
 * The first of a pair writes; the second is known by its entry in the group. Only pairs of this agent were seen to find each other.
 */
import { AgentError } from '../../model/agent/errors';
import type { NetworkRole } from '../../model/agent/burnin';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { isObject, objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Machine } from '../machine';
import { ask, type Trust } from '../system/http';
import { routeSource } from '../towards';

interface Partner {
  readonly role: NetworkRole;
  readonly host: string;
}
interface PairingHost {
  readonly trust: Trust;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  /** What the partner connects to. */
  readonly ownAddress: string;
}

const SCHEMES: Readonly<Record<string, string>> = { 'etcd3+http:': 'http', 'etcd3+https:': 'https' };
const GROUPS = 'tooz/groups/';
const LOCK = '/tooz/locksgroup_lock';
/** Seconds until what a machine wrote is gone, if the machine is. */
const LEASE = 30;
/** Milliseconds. */
const [KEEP_ALIVE_MS, POLL_MS, REQUEST_MS] = [10_000, 1000, 10_000];
const MAX_ANSWER = 256 * 1024;

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const cleaning = (details: string, cause?: unknown): AgentError => new AgentError('CleaningError', details, { cause });

/** etcd's gateway for JSON. @param url etcd3+http://HOST:PORT or etcd3+https://… */
function etcd(url: string, { trust, signal }: PairingHost) {
  const scheme = URL.canParse(url) ? SCHEMES[new URL(url).protocol] : undefined;
  if (scheme === undefined)
    throw cleaning(
      'fio (network): agent_burnin_fio_network_pairing_backend_url must begin with etcd3+http:// or etcd3+https://, or driver_info/agent_burnin_fio_network_config must name the partner',
    );
  const { hostname, port } = new URL(url.replace(/^[^:]*/, scheme));
  const base = `${scheme}://${hostname}:${port || 2379}/v3`;
  const call = async (path: string, body: JsonObject): Promise<JsonObject> => {
    const answer = await ask(
      { method: 'POST', url: `${base}/${path}`, body: JSON.stringify(body), timeoutMs: REQUEST_MS, trust, signal },
      MAX_ANSWER,
    );
    if (answer.status !== 200) throw new Error(`${base}/${path} answered ${answer.status}`);
    return objectOf(JSON.parse(answer.text) as unknown);
  };
  const absent = (key: string) => ({ key: base64(key), result: 'EQUAL', target: 'CREATE', create_revision: 0 });
  const put = (key: string, value: string, lease?: string) => ({
    request_put: { key: base64(key), value: base64(value), ...(lease ? { lease } : {}) },
  });
  const remove = (key: string) => ({ request_delete_range: { key: base64(key) } });
  const transaction = async (compare: readonly unknown[], success: readonly unknown[]): Promise<boolean> =>
    (await call('kv/txn', { compare, success, failure: [] }))['succeeded'] === true;
  return {
    lease: async (): Promise<string> => String((await call('lease/grant', { TTL: LEASE, ID: 0 }))['ID']),
    keepAlive: (lease: string) => call('lease/keepalive', { ID: lease }),
    revoke: (lease: string) => call('lease/revoke', { ID: lease }),
    createGroup: (group: string) => transaction([absent(`${GROUPS}${group}/`)], [put(`${GROUPS}${group}/`, 'group')]),
    lock: (value: string, lease: string) => transaction([absent(LOCK)], [put(LOCK, value, lease)]),
    unlock: (value: string) => transaction([{ key: base64(LOCK), result: 'EQUAL', target: 'VALUE', value: base64(value) }], [remove(LOCK)]),
    join: (group: string, member: string, lease: string) => transaction([], [put(`${GROUPS}${group}/${member}`, '', lease)]),
    leave: (group: string, member: string) => transaction([], [remove(`${GROUPS}${group}/${member}`)]),
    async members(group: string): Promise<readonly string[]> {
      const prefix = `${GROUPS}${group}/`;
      const end = `${prefix.slice(0, -1)}0`; // The character after the slash: the end of all keys with the prefix
      const { kvs } = await call('kv/range', { key: base64(prefix), range_end: base64(end), keys_only: true, limit: 16 });
      const keys = Array.isArray(kvs) ? kvs.filter(isObject).map(({ key }) => Buffer.from(String(key), 'base64').toString()) : [];
      return keys.map((key) => key.slice(prefix.length)).filter((member) => member !== '');
    },
  };
}

/** Throws CleaningError: nobody came in time, or the backend does not answer. @internal */
export async function pairUp(url: string, group: string, patience: number, host: PairingHost): Promise<Partner> {
  const backend = etcd(url, host);
  const { clock, signal, ownAddress: own } = host;
  const now = (): number => clock.monotonic?.() ?? clock.now();
  const end = now() + patience * 1000;
  const until = async <T>(check: () => Promise<T | undefined>): Promise<T> => {
    for (;;) {
      const found = await check();
      if (found !== undefined) return found;
      if (now() >= end) throw cleaning('fio (network) timed out to find partner');
      await clock.sleep(POLL_MS, signal);
    }
  };
  const over = new AbortController();
  try {
    await backend.createGroup(group);
    const lease = await backend.lease();
    const beat = async (): Promise<void> => {
      while (!over.signal.aborted) {
        await clock.sleep(KEEP_ALIVE_MS, over.signal);
        await backend.keepAlive(lease);
      }
    };
    // A beat that fails is noticed when the lease is over.
    void beat().catch(() => undefined);
    const key = host.random(16).toString('hex');
    const others = async (): Promise<readonly string[]> => (await backend.members(group)).filter((member) => member !== own);
    try {
      await until(async () => ((await backend.lock(key, lease)) ? true : undefined));
      const [first] = await others();
      await backend.join(group, own, lease);
      if (first === undefined) {
        // The next machine of the group enters, and pairs with this one.
        await backend.unlock(key);
        const partner = await until(async () => (await others())[0]);
        return { role: 'writer', host: partner };
      }
      // The first leaves when it has seen this one.
      await until(async () => ((await others()).includes(first) ? undefined : true));
      return { role: 'reader', host: first };
    } finally {
      await backend.leave(group, own);
      await backend.unlock(key);
      over.abort();
      await backend.revoke(lease);
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw cleaning(`fio (network) failed to find partner: ${reasonOf(error)}`, error);
  } finally {
    over.abort();
  }
}

export async function findPartner(
  { fetching, clock, random }: Machine,
  { backendUrl, group }: { readonly backendUrl: string; readonly group: string },
  patience: number,
): Promise<Partner> {
  const { trust, signal } = fetching;
  const host = URL.canParse(backendUrl) ? new URL(backendUrl.replace(/^etcd3\+/, '')).hostname.replace(/^\[|\]$/g, '') : '';
  const ownAddress = await routeSource(host || 'localhost').catch((error: unknown) => {
    throw cleaning(`fio (network) failed to find partner: ${reasonOf(error)}`, error);
  });
  return pairUp(backendUrl, group, patience, { trust, signal, clock, random, ownAddress });
}
