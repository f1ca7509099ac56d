/** /v1/erasures: certificates of erasure (docs/erase.md). Nothing changes them. An extension of this server. */
import { isUuid } from '../../model/idents';
import type { ErasureRecord } from '../../model/records';
import { projectOfList } from '../pipeline/access';
import { checkSortable, envelopeOf, fieldsToShow, pageOf, recordSlices, repeated, type Parameter } from '../pipeline/lists';
import { checkFields, linksTo, rowsToShow } from '../pipeline/present';
import { recordOf } from '../pipeline/resource';
import type { ApiContext, Request, SomeHandlers } from '../pipeline/handler';

const BRIEF = ['uuid', 'created_at', 'node_uuid', 'node_name', 'instance_uuid', 'step', 'erased', 'skipped', 'serials', 'links'];
const UNSORTABLE = ['serials', 'links', 'document', 'signature', 'public_key'];

function presenter({ minor, base }: Pick<Request, 'base' | 'minor'>, { document }: ApiContext, fields?: readonly string[]) {
  const rows = rowsToShow(document.fields('Erasure'), minor, fields);
  return (record: ErasureRecord): object => {
    const columns: Readonly<Record<string, unknown>> = { ...record, links: linksTo(base, `erasures/${record.uuid}`) };
    return Object.fromEntries(rows.map(({ name }) => [name, columns[name]]));
  };
}

export const erasureHandlers = {
  listErasures: async (request, context) => {
    const { query, base } = request;
    const { node, serial } = query;
    const { document, options, store } = context;
    const project = projectOfList(request, context, 'erasure');
    const rows = document.fields('Erasure');
    const page = pageOf(query, UNSORTABLE, options);
    checkSortable(page.sortKey, ['id', ...rows.map(({ name }) => name)]);
    const fields = fieldsToShow(query, BRIEF);
    checkFields(fields, rows);
    const ofNode = typeof node !== 'string' ? {} : isUuid(node) ? { node_uuid: node.toLowerCase() } : { node_name: node };
    const listing = typeof serial === 'string' ? ({ column: 'serials', text: serial } as const) : undefined;
    const sizes = await store.erasures.sizes({ ...page, where: ofNode, ofProject: project, listing });
    const also: readonly Parameter[] = [
      ...(typeof node === 'string' ? [['node', encodeURIComponent(node)] as const] : []),
      ...(typeof serial === 'string' ? [['serial', encodeURIComponent(serial)] as const] : []),
      ...repeated(query, query.fields ?? undefined),
    ];
    const items = recordSlices(store.erasures, sizes, presenter(request, context, fields));
    return { status: 200, slices: envelopeOf('erasures', items, sizes.length, { base, path: 'erasures', page, limit: page.limit, also }) };
  },
  showErasure: async (request, context) => {
    const resource = {
      ident: 'erasure_uuid',
      table: () => context.store.erasures,
      projects: async ({ owner, lessee }: ErasureRecord) => ({ owner, lessee }),
    };
    return { status: 200, body: presenter(request, context)(await recordOf(resource, 'erasure:get', request, context)) };
  },
} satisfies SomeHandlers;
