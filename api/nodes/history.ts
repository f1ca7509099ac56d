/** /v1/nodes/X/history and /v1/nodes/X/children. */
import type { HistoryRecord } from '../../model/records';
import { checkSortable, envelope, pageOf } from '../resource/lists';
import { nodeOf } from '../resource/node-find';
import { rowsToShow } from '../resource/present';
import type { Handlers, Request, ApiContext } from '../resource/handler';

/** Fields in a list without `detail`. Long events are truncated there. */
const BRIEF = ['uuid', 'created_at', 'severity', 'event', 'links'];
const MAX_BRIEF_EVENT = 255;
const TRUNCATED_LENGTH = 251;
/** Columns that are not shown, but sortable. */
const ALSO_SORTABLE = ['id', 'updated_at'];

/** @param nodeUuid of the node in the path, also for an entry of another node: Ironic does not compare them */
function presenter({ minor, base }: Request, { document }: ApiContext, nodeUuid: string, detail: boolean) {
  const rows = rowsToShow(document.fields('HistoryEntry'), minor, detail ? undefined : BRIEF);
  const links = (uuid: string) => [{ href: `${base}/v1/nodes/${nodeUuid}/history/${uuid}`, rel: 'self' }];
  const truncated = (event: string | null) =>
    event !== null && event.length > MAX_BRIEF_EVENT ? `${event.slice(0, TRUNCATED_LENGTH)}...` : event;
  return (entry: HistoryRecord): object => {
    const columns: Readonly<Record<string, unknown>> = {
      ...entry,
      event: detail ? entry.event : truncated(entry.event),
      links: links(entry.uuid),
    };
    return Object.fromEntries(rows.map(({ name }) => [name, columns[name]]));
  };
}

export const nodeHistoryHandlers: Handlers = {
  listHistory: async (request, context) => {
    const { query, base, params } = request;
    const node = await nodeOf(request, context, 'node:history:get');
    const detail = query['detail'] === true;
    const page = pageOf(query, [], context.options);
    const columns = context.document.fields('HistoryEntry').filter(({ links }) => !links);
    checkSortable(page.sortKey, [...ALSO_SORTABLE, ...columns.map(({ name }) => name)]);
    const entries = await context.store.history.list({ ...page, where: { node_uuid: node.uuid } });
    const path = `nodes/${params['node_ident']!}/history`;
    const also = detail ? ([['detail', true]] as const) : [];
    const items = entries.map(presenter(request, context, node.uuid, detail));
    return { status: 200, body: envelope('history', items, { base, path, page, limit: page.limit, last: entries.at(-1)?.uuid, also }) };
  },
  showHistory: async (request, context) => {
    const node = await nodeOf(request, context, 'node:history:get');
    const entry = await context.store.history.find(request.params['event']!);
    return { status: 200, body: presenter(request, context, node.uuid, true)(entry) };
  },
  listChildren: async (request, context) => {
    const { uuid } = await nodeOf(request, context, 'node:get');
    const { caller, base } = request;
    const children = await context.store.nodes.list({ children: uuid });
    const shown = children.filter((child) => context.auth.allowed(caller, 'node:get', child)).map((child) => child.uuid);
    return { status: 200, body: { children: shown, links: { href: `${base}/v1/nodes?parent_node=${uuid}`, rel: 'children' } } };
  },
};
