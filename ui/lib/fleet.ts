/** The fleet in memory: read once, then kept current by the server's event stream. */
import { signal } from '@preact/signals';
import type { Api } from './api';
import { listenToEvents } from './event-stream';
import { applyEvent, rowOf, ROW_FIELDS, worstOf, type NodeEvent, type NodeRow } from './rows';

export const rows = new Map<string, NodeRow>();
/** Rises after changes of `rows`, at most once per PAINT_MS. */
export const revision = signal(0);
export const connection = signal<'starting' | 'live' | 'lost'>('starting');
/** Whether `rows` has all nodes. */
export const isComplete = signal(false);
/** The last events, the newest first. */
export const events = signal<readonly NodeEvent[]>([]);

const PAINT_MS = 150;
const MAX_EVENTS = 500;
const PAGE = 1000;
/** The number of nodes in the request that fills the first screen. */
const FIRST_PAGE = 60;
interface NodePage {
  readonly nodes: readonly NodeRow[];
  readonly next?: string | undefined;
}
let painting = false;
let paintedAt = -Infinity;
let recent: NodeEvent[] = [];
function changed(): void {
  if (painting) return;
  painting = true;
  setTimeout(
    () => {
      painting = false;
      paintedAt = performance.now();
      revision.value++;
      if (recent.length > 0) events.value = [...recent.reverse(), ...events.value].slice(0, MAX_EVENTS);
      recent = [];
    },
    paintedAt + PAINT_MS - performance.now(),
  );
}

/** Reads one node again, after a change that no event describes. */
export async function refreshNode(api: Api, uuid: string): Promise<void> {
  const node = await api.get<Record<string, unknown>>(`v1/nodes/${uuid}?fields=${ROW_FIELDS}`);
  rows.set(uuid, { ...rowOf(node), alert: rows.get(uuid)?.alert ?? null });
  changed();
}

async function pageAt(api: Api, query: string): Promise<NodePage> {
  const path = `v1/nodes?fields=${ROW_FIELDS}&${query}`;
  const { nodes, next } = await api.get<{ readonly nodes: readonly Record<string, unknown>[]; readonly next?: string }>(path);
  return { nodes: nodes.map(rowOf), next };
}
/** Reads all nodes, by UUID. Ends early when `isOver` returns true. */
async function allNodes(api: Api, isOver: () => boolean): Promise<ReadonlyMap<string, NodeRow>> {
  const found = new Map<string, NodeRow>();
  let query: string | undefined = `limit=${PAGE}`;
  while (query !== undefined && !isOver()) {
    const page: NodePage = await pageAt(api, query);
    for (const node of page.nodes) found.set(node.uuid, node);
    // Only the marker of the link is used: behind a proxy, the browser may not reach the host that the link names.
    const marker = page.next === undefined ? null : new URL(page.next).searchParams.get('marker');
    query = marker === null ? undefined : `limit=${PAGE}&marker=${marker}`;
  }
  return found;
}

interface AlertPage {
  readonly alerts: readonly { readonly node_uuid: string; readonly severity: string }[];
  readonly next?: string;
}
/** Node → the worst of its alerts. Empty if they cannot be read: the nodes are shown without them. */
async function allAlerts(api: Api, isOver: () => boolean): Promise<ReadonlyMap<string, string>> {
  const found: AlertPage['alerts'][number][] = [];
  try {
    let query: string | undefined = '';
    while (query !== undefined && !isOver()) {
      const page: AlertPage = await api.get<AlertPage>(`v1/health?masked=false${query}`);
      found.push(...page.alerts);
      const marker = page.next === undefined ? null : new URL(page.next).searchParams.get('marker');
      query = marker === null ? undefined : `&marker=${marker}`;
    }
  } catch {
    return new Map();
  }
  return worstOf(found);
}

/** Keeps `rows` current. @returns a function that ends this */
export function followEvents(api: Api): () => void {
  let isOver = false;
  /** Events that arrive while the list is read. Undefined: they are applied at once. */
  let waiting: NodeEvent[] | undefined;

  function apply(event: NodeEvent): void {
    const { kind, node_uuid: uuid } = event;
    recent.push(event);
    changed();
    if (uuid === null) return;
    if (kind === 'deleted') rows.delete(uuid);
    else if (kind === 'created') void refreshNode(api, uuid).catch(() => {});
    else {
      const row = rows.get(uuid);
      if (row) rows.set(uuid, applyEvent(row, event));
      // The event does not contain the properties that an inspection has changed.
      if (row?.state.startsWith('inspect') && kind === 'state') void refreshNode(api, uuid).catch(() => {});
    }
  }
  /** Fills the first screen while the event stream opens. Ignores a failure, since the request for the whole list then fails too. */
  const firstPage = pageAt(api, `limit=${FIRST_PAGE}&sort_key=name`).then(
    ({ nodes }) => {
      if (isOver) return;
      for (const node of nodes) rows.set(node.uuid, node);
      changed();
    },
    () => {},
  );
  async function list(): Promise<void> {
    waiting = [];
    await firstPage;
    const found = await allNodes(api, () => isOver);
    const alerts = await allAlerts(api, () => isOver);
    if (isOver) return;
    isComplete.value = true;
    rows.clear();
    for (const [uuid, row] of found) rows.set(uuid, alerts.has(uuid) ? { ...row, alert: alerts.get(uuid)! } : row);
    const late = waiting;
    waiting = undefined;
    late.forEach(apply);
    changed();
  }
  const relist = (): void =>
    void list().then(
      () => {
        if (!isOver) connection.value = 'live';
      },
      () => listening.again(),
    );
  const listening = listenToEvents((path) => new EventSource(path), {
    began: relist,
    resumed: () => {
      connection.value = 'live';
    },
    gap: relist,
    event: (event) => {
      if (waiting) waiting.push(event);
      else apply(event);
    },
    lost: () => {
      connection.value = 'lost';
      // EventSource does not show the status. If the session is over, this request gets 401, which leads to the log-in.
      void api.get('v1/nodes?limit=1').catch(() => {});
    },
  });
  connection.value = 'starting';
  isComplete.value = false;
  return () => {
    isOver = true;
    listening.stop();
    rows.clear();
    events.value = [];
    isComplete.value = false;
  };
}
