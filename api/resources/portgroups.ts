/** /v1/portgroups, and the portgroups of a node. */
import { Fault } from '../../model/errors';
import { isLogicalName } from '../../model/idents';
import type { PatchOperation } from '../../model/patch';
import { valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { NewOf, NodeRecord, PortgroupRecord } from '../../model/records';
import type { Values } from '../resource/fields';
import { checkNotInspecting, known, linkedNode, nodeNamed, nodeOfList } from '../resource/node-find';
import { createOf, listOf, removeOf, showOf, updateOf, type Resource } from '../resource/resource';
import type { Answer, Handlers, Request, Rooms } from '../resource/routes';

const invalid = (message: string): Fault => new Fault('Invalid', { message });

interface Said {
  readonly node?: string | null;
  readonly address?: string | null;
  readonly shard?: readonly string[] | null;
  readonly conductor_groups?: readonly string[] | null;
}
/** At most one filter; the node of the path is one. */
async function filterOf({ query, params, minor }: Request, rooms: Rooms): Promise<Partial<Pick<PortgroupRecord, 'node_uuid' | 'address'>>> {
  const { node: asked, address, shard, conductor_groups: groups } = query as Said;
  const node = params['node_ident'] ?? asked;
  if ([node, address, shard?.length, groups?.length].filter(Boolean).length > 1)
    throw invalid('Filtering by node, address, or shard simultaneously is not supported.');
  if (node) return { node_uuid: (await nodeNamed(node, minor, rooms)).uuid };
  return address ? { address } : {};
}

function checkName(name: unknown, sentence: string): void {
  if (name && !isLogicalName(name)) throw invalid(`${sentence} invalid name '${str(name)}'`);
}

/** A patch may move the portgroup to another node, whose name it may say; the mode is for good. */
async function patched(
  values: Values,
  patch: readonly PatchOperation[],
  before: PortgroupRecord,
  request: Request,
  rooms: Rooms,
): Promise<Values> {
  // Ironic looks at the first operation only, and there also below the field.
  const [, first] = patch[0]?.path.split('/') ?? [];
  if (request.minor < 26 && (first === 'mode' || first === 'properties'))
    throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  for (const name of valuesAt(patch, '/name')) checkName(name, `Portgroup ${request.params['portgroup_ident']!}: Cannot change name to`);
  const node = await rooms.store.nodes.find(before.node_uuid);
  const [wanted] = valuesAt(patch, '/node_uuid');
  const owner: NodeRecord = wanted === undefined ? node : await linkedNode('node_uuid', wanted, node.owner, request, rooms);
  if (!('mode' in values)) throw invalid("'mode' is a mandatory attribute and can not be removed");
  return { ...values, node_uuid: owner.uuid };
}

/** @param before absent: a new one */
async function check(values: Values, request: Request, rooms: Rooms, before?: PortgroupRecord): Promise<Values> {
  const uuid = values['node_uuid'] as string;
  const node = await known(rooms.store.nodes.find(uuid), new Fault('NodeUnknown', { node: uuid }));
  if (before) {
    checkNotInspecting(`portgroup "${before.uuid}" on node`, node, request.minor);
    return values;
  }
  if (!rooms.auth.allowed(request.who, 'portgroup:create', node)) throw new Fault('NotAuthorized');
  checkName(values['name'], 'Cannot create portgroup with');
  return { ...values, mode: values['mode'] || rooms.options['DEFAULT.default_portgroup_mode'] };
}

const PORTGROUPS: Resource<PortgroupRecord> = {
  schema: 'Portgroup',
  path: 'portgroups',
  list: 'portgroups',
  said: 'portgroup',
  ident: 'portgroup_ident',
  policy: 'portgroup',
  brief: ['uuid', 'address', 'name'],
  unsortable: ['extra', 'internal_info', 'properties'],
  computed: ['node_uuid'],
  strict: true,
  wholeLists: true,
  table: ({ store }) => store.portgroups,
  owner: ({ node_uuid: uuid }, { store }) => store.nodes.find(uuid),
  filter: filterOf,
  ofNodes: ({ query }) => {
    const { shard: shards, conductor_groups: groups } = query as Said;
    return { ...(shards?.length ? { shards } : {}), ...(groups?.length ? { conductorGroups: groups } : {}) };
  },
  check,
  patched,
  create: (record, { store }) => store.portgroups.create(record as unknown as NewOf<PortgroupRecord, 'node_uuid'>),
  update: ({ uuid }, changes, { conductor }) => conductor.updatePortgroup(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deletePortgroup(uuid),
};

async function listOfNode(request: Request, rooms: Rooms, detail?: true): Promise<Answer> {
  await nodeOfList(request, rooms);
  return listOf(PORTGROUPS, request, rooms, detail ? { detail } : {});
}

export const portgroupHandlers: Handlers = {
  listPortgroups: (request, rooms) => listOf(PORTGROUPS, request, rooms),
  listPortgroupsDetail: (request, rooms) => listOf(PORTGROUPS, request, rooms, { detail: true }),
  listNodePortgroups: (request, rooms) => listOfNode(request, rooms),
  listNodePortgroupsDetail: (request, rooms) => listOfNode(request, rooms, true),
  createPortgroup: (request, rooms) => createOf(PORTGROUPS, request, rooms),
  showPortgroup: (request, rooms) => showOf(PORTGROUPS, request, rooms),
  updatePortgroup: (request, rooms) => updateOf(PORTGROUPS, request, rooms),
  deletePortgroup: (request, rooms) => removeOf(PORTGROUPS, request, rooms),
};
