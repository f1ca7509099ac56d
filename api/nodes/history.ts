/** /v1/nodes/X/history and /v1/nodes/X/children. */
import { Fault } from '../../model/errors';
import type { HistoryRecord } from '../../model/records';
import { projectOfList } from '../pipeline/access';
import { checkSortable, envelopeOf, pageOf, recordSlices } from '../pipeline/lists';
import { nodeOf, onNode } from '../pipeline/node-find';
import { rowsToShow } from '../pipeline/present';
import type { SomeHandlers, Request, ApiContext } from '../pipeline/handler';

/** Fields in a list without `detail`. Long events are truncated there. */
const BRIEF = ['uuid', 'created_at', 'severity', 'event', 'links'];
const MAX_BRIEF_EVENT = 255;
const TRUNCATED_LENGTH = 251;
/** Columns that are not shown, but sortable. */
const ALSO_SORTABLE = ['id', 'updated_at'];

/** @param nodeUuid of the node in the path, for links. Links to an entry of another node have it too: Ironic does not compare the nodes. */
function presenter({ minor, base }: Pick<Request, 'base' | 'minor'>, { document }: ApiContext, nodeUuid: string, detail: boolean) {
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

/** An entry of another node: Ironic does not compare the nodes, but the caller must be allowed to read that node's history. */
async function checkOtherNode(entry: HistoryRecord, { caller }: Request, { store, auth }: ApiContext): Promise<void> {
  const node = await store.nodes.find(entry.node_uuid);
  if (!['node:get', 'node:history:get'].every((policy) => auth.allowed(caller, policy, node)))
    throw new Fault('NodeHistoryNotFound', { history: entry.uuid });
}

export const nodeHistoryHandlers = {
  listHistory: async (request, context) => {
    const { query, base, params } = request;
    const node = await nodeOf(request, context, 'node:history:get');
    const { detail } = query;
    const page = pageOf(query, [], context.options);
    const columns = context.document.fields('HistoryEntry').filter(({ links }) => !links);
    checkSortable(page.sortKey, [...ALSO_SORTABLE, ...columns.map(({ name }) => name)]);
    const sizes = await context.store.history.sizes({ ...page, where: { node_uuid: node.uuid } });
    const path = `nodes/${params.node_ident}/history`;
    const also = detail ? ([['detail', true]] as const) : [];
    const items = recordSlices(context.store.history, sizes, presenter(request, context, node.uuid, detail));
    return { status: 200, slices: envelopeOf('history', items, sizes.length, { base, path, page, limit: page.limit, also }) };
  },
  showHistory: onNode(async (node, request, context) => {
    const entry = await context.store.history.find(request.params.event);
    if (entry.node_uuid !== node.uuid) await checkOtherNode(entry, request, context);
    return presenter(request, context, node.uuid, true)(entry);
  }),
  listChildren: onNode(async ({ uuid }, request, context) => {
    const project = projectOfList(request, context, 'node');
    const children = await context.store.nodes.listColumns(['uuid'], { children: uuid, project });
    const links = { href: `${request.base}/v1/nodes?parent_node=${uuid}`, rel: 'children' };
    return { children: children.map((child) => child.uuid), links };
  }),
} satisfies SomeHandlers;
