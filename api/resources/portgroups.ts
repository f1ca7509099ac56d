/** /v1/portgroups, and the portgroups of a node. */
import { Fault, invalid, notAcceptable } from '../../model/errors';
import { isLogicalName } from '../../model/idents';
import { valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { Inputs } from '../schema/operations';
import type { NodeRecord, PortgroupRecord } from '../../model/records';
import { projectOfList } from '../pipeline/access';
import type { Present } from '../pipeline/fields';
import { checkNotInspecting, asBadRequest, linkedNode, nodeOfList, nodeOfFilter, nodeOfNew } from '../pipeline/node-find';
import { createOf, listOf, removeOf, showOf, updateOf, type ListRequest, type Resource } from '../pipeline/resource';
import type { RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

type PortgroupQuery = RequestOf<'listPortgroups'>['query'];

function checkName(name: unknown, sentence: string): void {
  if (name && !isLogicalName(name)) throw invalid(`${sentence} invalid name '${str(name)}'`);
}

const nodeUnknown = (uuid: string): Fault => new Fault('NodeUnknown', { node: uuid });

const PORTGROUPS: Resource<PortgroupRecord, 'Portgroup', Present<Inputs['Portgroup']>, PortgroupQuery> = {
  schema: 'Portgroup',
  path: 'portgroups',
  list: 'portgroups',
  bodyLabel: 'portgroup',
  ident: 'portgroup_ident',
  policy: 'portgroup',
  brief: ['uuid', 'address', 'name'],
  unsortable: ['extra', 'internal_info', 'properties'],
  computed: ['node_uuid'],
  strict: true,
  table: ({ store }) => store.portgroups,
  projects: ({ node_uuid: uuid }, { current }) => current.node(uuid),
  hidden: ['node:get', (ident) => new Fault('PortgroupNotFound', { portgroup: ident })],
  projectOf: (request, context) => projectOfList(request, context, 'portgroup'),
  /** At most one filter, including the node of the path. */
  async filter(request, context, project) {
    const { query, params } = request;
    const { address, shard: shards, conductor_groups: groups } = query;
    const node = params['node_ident'] ?? query.node;
    if ([node, address, shards?.length, groups?.length].filter(Boolean).length > 1)
      throw invalid('Filtering by node, address, or shard simultaneously is not supported.');
    const where = node ? { node_uuid: (await nodeOfFilter(node, project, request, context)).uuid } : address ? { address } : {};
    const nodeScope = {
      ...(project === undefined ? {} : { project }),
      ...(shards?.length ? { shards } : {}),
      ...(groups?.length ? { conductorGroups: groups } : {}),
    };
    return { where, nodeScope };
  },
  async check(values, request, context) {
    const uuid = values.node_uuid;
    await nodeOfNew('portgroup', context.store.nodes.find(uuid), nodeUnknown(uuid), request, context);
    checkName(values.name, 'Cannot create portgroup with');
    return { ...values, mode: values.mode || context.options['DEFAULT.default_portgroup_mode'] };
  },
  create: (record, { store }) => store.portgroups.create(record),
  /** A patch may move the portgroup to another node by its UUID or name. It cannot remove the mode. */
  async patched(values, { record: before }, patch, request, context) {
    // Ironic checks the first operation only, including paths below the field.
    const [, first] = patch[0]?.path.split('/') ?? [];
    if (request.minor < 26 && (first === 'mode' || first === 'properties')) throw notAcceptable();
    for (const name of valuesAt(patch, '/name')) checkName(name, `Portgroup ${request.params['portgroup_ident']!}: Cannot change name to`);
    const node = await context.store.nodes.find(before.node_uuid);
    const [newNode] = valuesAt(patch, '/node_uuid');
    const owner: NodeRecord = newNode === undefined ? node : await linkedNode('node_uuid', newNode, node.owner, request, context);
    if (!('mode' in values)) throw invalid("'mode' is a mandatory attribute and can not be removed");
    return { ...values, node_uuid: owner.uuid };
  },
  async checkPatched(values, { record: { uuid } }, _patch, { minor }, { store }) {
    const node = await asBadRequest(store.nodes.find(values.node_uuid), nodeUnknown(values.node_uuid));
    checkNotInspecting(`portgroup "${uuid}" on node`, node, minor);
    return values;
  },
  update: ({ uuid }, changes, { conductor }) => conductor.updatePortgroup(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deletePortgroup(uuid),
};

/** Lists show all fields at every version. */
const list = (request: ListRequest<PortgroupQuery>, context: ApiContext, detail: { readonly detail?: true } = {}) =>
  listOf(PORTGROUPS, request, context, { ...detail, minor: context.document.max });

export const portgroupHandlers = {
  listPortgroups: (request, context) => list(request, context),
  listPortgroupsDetail: (request, context) => list(request, context, { detail: true }),
  listNodePortgroups: async (request, context) => {
    await nodeOfList(request, context);
    return list(request, context);
  },
  listNodePortgroupsDetail: async (request, context) => {
    await nodeOfList(request, context);
    return list(request, context, { detail: true });
  },
  createPortgroup: (request, context) => createOf(PORTGROUPS, request, context),
  showPortgroup: (request, context) => showOf(PORTGROUPS, request, context),
  updatePortgroup: (request, context) => updateOf(PORTGROUPS, request, context),
  deletePortgroup: (request, context) => removeOf(PORTGROUPS, request, context),
} satisfies SomeHandlers;
