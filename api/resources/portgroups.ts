/** /v1/portgroups, and the portgroups of a node. */
import { invalid, Fault } from '../../model/errors';
import { isLogicalName } from '../../model/idents';
import type { PatchOperation } from '../../model/patch';
import { valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { Inputs } from '../schema/operations';
import type { NodeRecord, PortgroupRecord } from '../../model/records';
import { projectOfList } from '../pipeline/access';
import type { Present, Values } from '../pipeline/fields';
import type { ListQuery } from '../pipeline/lists';
import type { Found, PatchRequest } from '../pipeline/patch';
import { checkNotInspecting, asBadRequest, linkedNode, nodeOfList, nodeOfFilter, nodeOfNew } from '../pipeline/node-find';
import { createOf, listOf, removeOf, showOf, updateOf, type ListFilter, type ListRequest, type Resource } from '../pipeline/resource';
import type { Request, SomeHandlers, ApiContext } from '../pipeline/handler';

type PortgroupQuery = ListQuery & {
  readonly node?: string;
  readonly address?: string;
  readonly shard?: readonly string[];
  readonly conductor_groups?: readonly string[];
};
/** At most one filter, including the node of the path. */
async function filter(
  request: ListRequest<PortgroupQuery>,
  context: ApiContext,
  project: string | undefined,
): Promise<ListFilter<PortgroupRecord>> {
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
}

function checkName(name: unknown, sentence: string): void {
  if (name && !isLogicalName(name)) throw invalid(`${sentence} invalid name '${str(name)}'`);
}

/** A patch may move the portgroup to another node by its UUID or name. It cannot remove the mode. */
async function patched(
  values: Values,
  { record: before }: Found<PortgroupRecord>,
  patch: readonly PatchOperation[],
  request: PatchRequest,
  context: ApiContext,
): Promise<Values> {
  // Ironic checks the first operation only, including paths below the field.
  const [, first] = patch[0]?.path.split('/') ?? [];
  if (request.minor < 26 && (first === 'mode' || first === 'properties'))
    throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  for (const name of valuesAt(patch, '/name')) checkName(name, `Portgroup ${request.params['portgroup_ident']!}: Cannot change name to`);
  const node = await context.store.nodes.find(before.node_uuid);
  const [newNode] = valuesAt(patch, '/node_uuid');
  const owner: NodeRecord = newNode === undefined ? node : await linkedNode('node_uuid', newNode, node.owner, request, context);
  if (!('mode' in values)) throw invalid("'mode' is a mandatory attribute and can not be removed");
  return { ...values, node_uuid: owner.uuid };
}
const nodeUnknown = (uuid: string): Fault => new Fault('NodeUnknown', { node: uuid });

async function check(values: Present<Inputs['Portgroup']>, request: Request, context: ApiContext) {
  const uuid = values.node_uuid;
  await nodeOfNew('portgroup', context.store.nodes.find(uuid), nodeUnknown(uuid), request, context);
  checkName(values.name, 'Cannot create portgroup with');
  return { ...values, mode: values.mode || context.options['DEFAULT.default_portgroup_mode'] };
}

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
  filter,
  check,
  create: (record, { store }) => store.portgroups.create(record),
  patched,
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
