/**
 * Brings the records of recorders to where users of metal3 look: the HardwareData of a host, and the hardware and a condition in its status.
 * The baremetal-operator writes both only after an inspection, and never reads the inventory again (docs/metal3.md).
 *
 * A round asks the server which records there are; usually it answers that nothing changed, and the round ends without a request to the
 * cluster. Only hosts whose record is another one, became stale or fresh, or whose HardwareData is new, are read and written.
 */
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { API, isWrittenByUs, nodeUuidOf, staleText, writeHost, type Host, type ListedRecord, type WriterParts } from './host-writer';
import { watchMembers } from './crd-members';
import { KubernetesError, type KubernetesObject } from './kubernetes';

interface SyncParts extends Omit<WriterParts, 'members'> {
  /** Undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  readonly intervalMs: number;
  /** Hosts are listed again after this time, since a host may be new, or inspected again. */
  readonly relistMs: number;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly log: Log;
}
/** Hosts at a time. */
const WORKERS = 4;
const JITTER = 0.1;
/** Longest pause in intervals, while the server or the cluster does not answer. */
const MAX_PAUSE = 4;
/** The hosts, by the names that the operator gives their nodes. */
type Hosts = ReadonlyMap<string, Host>;
interface State {
  hosts: Hosts;
  /** When the hosts were listed; milliseconds. */
  listedAt: number;
  records: readonly ListedRecord[];
  /** When the records were listed. */
  recordsAt: number;
  /** What was written last for a host, by its node's name. */
  written: Map<string, string>;
  /** What may not be written to a host, until the hosts are listed again. */
  held: Map<string, string>;
  /** Records of hosts that were not there when the hosts were listed. */
  strangers: Set<string>;
}

/** How many hosts were written in a round, and how many could not be. */
interface Round {
  readonly written: number;
  readonly failed: number;
}
interface HardwareSync {
  round(): Promise<Round>;
  /** Rounds until the signal is aborted. */
  run(): Promise<void>;
}
async function listHosts({ kubernetes, namespaces, signal }: SyncParts): Promise<Hosts> {
  const hosts = new Map<string, Host>();
  // A namespace's user can write the UUID of a node into a host's status, but the name of the node is the operator's.
  const keyOf = ({ metadata: { namespace, name } }: KubernetesObject): string => `${namespace}~${name}`;
  for (const place of namespaces?.map((name) => `${API}/namespaces/${name}`) ?? [API]) {
    const data = new Map<string, KubernetesObject>();
    for await (const item of kubernetes.list(`${place}/hardwaredata`, true, signal)) data.set(keyOf(item), item);
    for await (const item of kubernetes.list(`${place}/baremetalhosts`, false, signal)) {
      const nodeUuid = nodeUuidOf(item);
      if (nodeUuid === undefined) continue;
      const { namespace, name, uid } = item.metadata;
      const mine = data.get(keyOf(item));
      hosts.set(keyOf(item), { namespace, name, uid, nodeUuid, data: mine?.metadata.uid, isOurs: isWrittenByUs(item, mine) });
    }
  }
  return hosts;
}

const newState = (): State => ({
  hosts: new Map(),
  listedAt: -Infinity,
  records: [],
  recordsAt: 0,
  written: new Map(),
  held: new Map(),
  strangers: new Set(),
});

export function createHardwareSync(parts: SyncParts): HardwareSync {
  const { records, intervalMs, relistMs, clock, random, log, signal } = parts;
  const now = (): number => clock.monotonic?.() ?? clock.now();
  const state = newState();
  let lastMessage = '';
  const logOnce = (level: 'info' | 'warn', message: string): void => {
    if (message !== lastMessage) log[level](message);
    lastMessage = message;
  };

  const ageOf = ({ age }: ListedRecord): number => age + (now() - state.recordsAt) / 1000;
  /** What is to be written for the host; another text: it is to be written again. */
  const keyOf = (host: Host, record: ListedRecord | undefined): string =>
    [host.uid, host.data, record?.digest, record?.recorded_at, record?.stale === true ? staleText(record, ageOf(record)) : ''].join(' ');

  const crds = watchMembers(parts.kubernetes, signal);
  const writer: WriterParts = { ...parts, members: crds.members };
  async function relist(): Promise<void> {
    // With other members, all hosts are to be written again.
    if (await crds.read()) state.written.clear();
    state.hosts = await listHosts(parts);
    state.listedAt = now();
    state.held.clear();
    for (const key of state.written.keys()) if (!state.hosts.has(key)) state.written.delete(key);
  }
  /** Whether the name is one that the operator gives, and no known host has this node. */
  const isStranger = ({ node_name: name, node_uuid: uuid }: ListedRecord): boolean =>
    name !== null && name.includes('~') && state.hosts.get(name)?.nodeUuid !== uuid;
  /** What is due, after the hosts were listed again if that is necessary. */
  async function findDue() {
    const listed = await records.list(signal);
    if (listed) Object.assign(state, { records: listed, recordsAt: now() });
    const named = new Map(state.records.flatMap((record) => (record.node_name === null ? [] : [[record.node_name, record] as const])));
    const strangers = (): readonly ListedRecord[] => state.records.filter((record) => isStranger(record));
    if (now() - state.listedAt >= relistMs) state.strangers.clear();
    // A host may be new, or its node a new one. A record of no host of the cluster is looked for once.
    if (now() - state.listedAt >= relistMs || (listed && strangers().some(({ node_uuid: uuid }) => !state.strangers.has(uuid)))) {
      await relist();
      for (const { node_uuid: uuid } of strangers()) state.strangers.add(uuid);
    }
    return [...state.hosts].flatMap(([key, host]) => {
      const record = named.get(key);
      const isOther = record !== undefined && record.node_uuid !== host.nodeUuid;
      if (isOther || (!record && !host.isOurs && !state.written.has(key))) return [];
      const wanted = keyOf(host, record);
      return [state.written.get(key), state.held.get(key)].includes(wanted) ? [] : [{ key, host, record, wanted }];
    });
  }
  async function round(): Promise<Round> {
    const due = await findDue();
    let [written, failed] = [0, 0];
    const work = async (): Promise<void> => {
      for (let next = due.pop(); next && !signal.aborted; next = due.pop()) {
        const { key, host, record, wanted } = next;
        try {
          if (await writeHost(writer, host, record, record ? ageOf(record) : 0)) {
            state.written.set(key, wanted);
            written++;
          } else state.held.set(key, wanted);
        } catch (error) {
          failed++;
          // A refusal of one object says nothing of the others; without an answer or permission, all would fail.
          if (!(error instanceof KubernetesError) || error.status === 401 || error.status === 403) {
            due.length = 0;
            throw error;
          }
          logOnce('warn', `${host.namespace}/${host.name}: the hardware could not be written: ${reasonOf(error)}`);
        }
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    return { written, failed };
  }
  return {
    round,
    async run() {
      for (let failures = 0; !signal.aborted;) {
        try {
          const { written, failed } = await round();
          failures = 0;
          if (written > 0) log.info(`the hardware of ${written} hosts was written`);
          if (failed === 0) lastMessage = '';
        } catch (error) {
          if (signal.aborted) return;
          failures++;
          logOnce('warn', `the hardware cannot be brought to the cluster: ${reasonOf(error)}`);
        }
        const pause = intervalMs * Math.min(1 + failures, MAX_PAUSE) * (1 + JITTER * (2 * random() - 1));
        await clock.sleep(pause, signal).catch(() => {});
      }
    },
  };
}
