/** /v1/portgroups, and the portgroups of a node. */
import { invalid, Fault } from '../../model/errors';
import { isLogicalName } from '../../model/idents';
import type { PatchOperation } from '../../model/patch';
import { valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { NewOf, NodeRecord, PortgroupRecord } from '../../model/records';
import { projectOfList } from '../resource/access';
import type { Values } from '../resource/fields';
import { checkNotInspecting, asBadRequest, linkedNode, nodeOfList, nodeOfFilter, nodeOfNew } from '../resource/node-find';
import { handlersOf, listOf, type Resource } from '../resource/resource';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';

interface ListQuery {
  readonly node?: string | null;
  readonly address?: string | null;
  readonly shard?: readonly string[] | null;
  readonly conductor_groups?: readonly string[] | null;
}
/** At most one filter, including the node of the path. */
async function filterOf(request: Request, context: ApiContext): Promise<Partial<Pick<PortgroupRecord, 'node_uuid' | 'address'>>> {
  const { query, params } = request;
  const { node: ident, address, shard, conductor_groups: groups } = query as ListQuery;
  const node = params['node_ident'] ?? ident;
  if ([node, address, shard?.length, groups?.length].filter(Boolean).length > 1)
    throw invalid('Filtering by node, address, or shard simultaneously is not supported.');
  if (node) return { node_uuid: (await nodeOfFilter(node, projectOfList(request, context, 'portgroup'), request, context)).uuid };
  return address ? { address } : {};
}

function checkName(name: unknown, sentence: string): void {
  if (name && !isLogicalName(name)) throw invalid(`${sentence} invalid name '${str(name)}'`);
}

/** A patch may move the portgroup to another node by its UUID or name. It cannot remove the mode. */
async function patched(
  values: Values,
  patch: readonly PatchOperation[],
  before: PortgroupRecord,
  request: Request,
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

/** @param before absent for a new portgroup */
async function check(values: Values, request: Request, context: ApiContext, before?: PortgroupRecord): Promise<Values> {
  const uuid = values['node_uuid'] as string;
  const [found, unknown] = [context.store.nodes.find(uuid), new Fault('NodeUnknown', { node: uuid })];
  if (before) {
    checkNotInspecting(`portgroup "${before.uuid}" on node`, await asBadRequest(found, unknown), request.minor);
    return values;
  }
  await nodeOfNew('portgroup', found, unknown, request, context);
  checkName(values['name'], 'Cannot create portgroup with');
  return { ...values, mode: values['mode'] || context.options['DEFAULT.default_portgroup_mode'] };
}

const PORTGROUPS: Resource<PortgroupRecord> = {
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
  wholeLists: true,
  table: ({ store }) => store.portgroups,
  projects: ({ node_uuid: uuid }, { current }) => current.node(uuid),
  hidden: ['node:get', (ident) => new Fault('PortgroupNotFound', { portgroup: ident })],
  filter: filterOf,
  ofNodes: (request, context) => {
    const { query } = request;
    const project = projectOfList(request, context, 'portgroup');
    const { shard: shards, conductor_groups: groups } = query as ListQuery;
    return {
      ...(project === undefined ? {} : { project }),
      ...(shards?.length ? { shards } : {}),
      ...(groups?.length ? { conductorGroups: groups } : {}),
    };
  },
  check,
  patched,
  create: (record, { store }) => store.portgroups.create(record as unknown as NewOf<PortgroupRecord, 'node_uuid'>),
  update: ({ uuid }, changes, { conductor }) => conductor.updatePortgroup(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deletePortgroup(uuid),
};

async function listOfNode(request: Request, context: ApiContext, detail?: true): Promise<Answer> {
  await nodeOfList(request, context);
  return listOf(PORTGROUPS, request, context, detail ? { detail } : {});
}

export const portgroupHandlers: Handlers = {
  ...handlersOf(PORTGROUPS),
  listPortgroupsDetail: (request, context) => listOf(PORTGROUPS, request, context, { detail: true }),
  listNodePortgroups: (request, context) => listOfNode(request, context),
  listNodePortgroupsDetail: (request, context) => listOfNode(request, context, true),
};
