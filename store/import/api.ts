/** Reads an Ironic through its API in the form of its tables, for an import without access to its database. Writes nothing to it. */
import { NEWEST_MINOR } from '../../model/fields';
import { HEADER, MAXIMUM } from '../../model/versions';
import type { Source, SourceRow } from './source';
import { oneLine } from '../../model/log';

interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined: the body is not JSON. */
  readonly body: unknown;
}
/** GET of a path below the URL of the API, such as `/v1/nodes`, with the credentials of the operator. Throws if no response comes. */
export type ApiGet = (path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<ApiResponse>;

interface ApiTable {
  /** Below /v1, or below the node. */
  readonly path: string;
  /** The first microversion that has the path. */
  readonly since?: number;
  /** The name of the list in a response. */
  readonly list?: string;
  /** The response contains the whole list; there are no pages. */
  readonly isWhole?: boolean;
  /** The response is one row, not a list. */
  readonly row?: (body: SourceRow) => SourceRow;
}
/** Ironic's tables as the API shows them, with all fields. */
const TABLES: Readonly<Record<string, ApiTable>> = {
  chassis: { path: '/chassis?detail=true' },
  nodes: { path: '/nodes?detail=true' },
  portgroups: { path: '/portgroups?detail=true' },
  ports: { path: '/ports?detail=true' },
  volume_connectors: { path: '/volume/connectors?detail=true', list: 'connectors' },
  volume_targets: { path: '/volume/targets?detail=true', list: 'targets' },
  allocations: { path: '/allocations?' },
  deploy_templates: { path: '/deploy_templates?detail=true' },
  runbooks: { path: '/runbooks?detail=true', since: 92 },
  inspection_rules: { path: '/inspection_rules?detail=true', since: 96 },
};
const NODE_TABLES: Readonly<Record<string, ApiTable>> = {
  node_history: { path: '/history?detail=true', list: 'history' },
  node_inventory: { path: '/inventory', row: ({ inventory, plugin_data: data }) => ({ inventory_data: inventory, plugin_data: data }) },
  bios_settings: { path: '/bios?detail=true', list: 'bios', isWhole: true },
  firmware_information: { path: '/firmware', list: 'firmware', isWhole: true },
};

/** 2024.1, the oldest release that is supported. */
const OLDEST = 90;
/** Items of a page. A node with steps, or with an inventory in `extra`, may have tens of kilobytes. */
const PAGE = 50;
/** Nodes that are read at the same time. */
const CONCURRENCY = 8;

type Body = Readonly<Record<string, unknown>>;
const bodyOf = ({ body }: ApiResponse): Body => (typeof body === 'object' && body !== null ? (body as Body) : {});
/** Ironic's own message: {error_message: {faultstring}}, where the inner object may be JSON in a text. */
function messageOf(response: ApiResponse): string {
  const message = bodyOf(response)['error_message'];
  const fault = typeof message === 'object' && message !== null ? (message as Body)['faultstring'] : message;
  const quoted = typeof fault === 'string' ? (/"faultstring": "((?:[^"\\]|\\.){1,300})/.exec(fault)?.[1] ?? fault.slice(0, 300)) : '';
  return `HTTP status ${response.status}${quoted === '' ? '' : `: ${oneLine(quoted)}`}`;
}

/** A database has `node_id` instead of `node_uuid`. Rows of this source have both, and both are the UUID. */
function rowOf(item: Body): SourceRow {
  const ids = Object.entries(item).flatMap(([key, value]) => (key.endsWith('_uuid') ? [[key.replace(/uuid$/, 'id'), value] as const] : []));
  return { ...item, ...Object.fromEntries(ids), id: item['uuid'] };
}

/** Whether Ironic has replaced driver_info by a text (`** Redacted …`), because the caller may not see it. */
const isRedacted = ({ driver_info: info }: Body): boolean =>
  typeof info !== 'object' || String((info as Body | null)?.['content']).startsWith('** Redacted');

/** @throws Error of one line */
export async function openApi(get: ApiGet): Promise<Source> {
  const root = await get('/v1', { [HEADER]: 'latest' }, new AbortController().signal);
  const newest = /^1\.(\d{1,4})$/.exec(String(root.headers[MAXIMUM.toLowerCase()]))?.[1];
  if (root.status !== 200 || newest === undefined) throw new Error(`this is not the API of an Ironic (${messageOf(root)})`);
  const minor = Math.min(Number(newest), NEWEST_MINOR);
  if (minor < OLDEST) throw new Error(`this Ironic is older than 2024.1: its API ends with 1.${minor}`);
  const headers = { [HEADER]: `1.${minor}` };
  const exists = ([, { since = 0 }]: readonly [string, ApiTable]): boolean => minor >= since;
  /** The nodes read so far. `inspectedAt` is the time of their inventory: the end of the inspection, else the node's creation. */
  const nodes: { readonly uuid: string; readonly inspectedAt: unknown }[] = [];

  /** @returns undefined: there is no such resource */
  async function read(path: string, stop: AbortSignal): Promise<Body | undefined> {
    stop.throwIfAborted();
    const response = await get(`/v1${path}`, headers, stop);
    if (response.status === 404) return undefined;
    if (response.status === 401) throw new Error(`${messageOf(response)}; check OS_USERNAME and OS_PASSWORD, or OS_TOKEN`);
    const remedy = response.status === 403 ? '; use an administrator with the scope of the system' : '';
    if (response.status !== 200 || response.body === undefined)
      throw new Error(`GET /v1${path.split('?', 1)[0]!}: ${messageOf(response)}${remedy}`);
    return bodyOf(response);
  }
  /** The pages of a list. A list that does not exist (404) is empty. */
  async function* lists({ path, list, isWhole = false }: ApiTable, name: string, stop: AbortSignal): AsyncGenerator<readonly Body[]> {
    for (let marker = ''; ;) {
      const body = await read(isWhole ? path : `${path}${path.includes('detail') ? '&' : ''}limit=${PAGE}${marker}`, stop);
      const items = body?.[list ?? name];
      if (!Array.isArray(items) || items.length === 0) return;
      yield items as readonly Body[];
      const last = (items as readonly Body[]).at(-1)!['uuid'];
      if (isWhole || body?.['next'] === undefined || typeof last !== 'string') return;
      const next = `&marker=${last}`;
      if (next === marker) throw new Error(`GET /v1${path}: the same page came twice`);
      marker = next;
    }
  }
  /** The rows of a table for one node. */
  async function ofNode(table: ApiTable, { uuid, inspectedAt }: (typeof nodes)[number], stop: AbortSignal): Promise<readonly SourceRow[]> {
    const own: ApiTable = { ...table, path: `/nodes/${uuid}${table.path}` };
    if (table.row) {
      const body = await read(own.path, stop);
      return body ? [{ ...table.row(body), node_id: uuid, created_at: inspectedAt }] : [];
    }
    const found: SourceRow[] = [];
    for await (const page of lists(own, '', stop)) found.push(...page.map((item) => ({ ...rowOf(item), node_id: uuid })));
    return found;
  }
  async function* rows(name: string, _key: string, stop: AbortSignal): AsyncGenerator<readonly SourceRow[]> {
    const [table, nodeTable] = [TABLES[name], NODE_TABLES[name]];
    if (table)
      for await (const page of lists(table, name, stop)) {
        if (name === 'nodes') {
          nodes.push(
            ...page.map(({ uuid, inspection_finished_at: end, created_at: made }) => ({ uuid: String(uuid), inspectedAt: end ?? made })),
          );
          if (page.some(isRedacted)) throw new Error('this user may not see all of a node: use an administrator of the system');
        }
        yield page.map(rowOf);
      }
    if (nodeTable)
      for (let at = 0; at < nodes.length; at += CONCURRENCY)
        yield (await Promise.all(nodes.slice(at, at + CONCURRENCY).map((node) => ofNode(nodeTable, node, stop)))).flat();
  }
  return {
    tables: new Set([...Object.entries(TABLES).filter(exists), ...Object.entries(NODE_TABLES)].map(([name]) => name)),
    masks: true,
    rows,
    close: async () => {},
  };
}
