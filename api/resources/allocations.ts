/** /v1/allocations: a node asked for by what it must be, and the allocation of a node. */
import { Fault } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { same, valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { AllocationRecord, NodeRecord } from '../../model/records';
import type { Values } from '../resource/fields';
import { nodeNamed, nodeOf } from '../resource/node-find';
import { checkFields } from '../resource/present';
import { noticed } from '../resource/notices';
import { createOf, listOf, presenterOf, removeOf, showOf, updateOf, type Resource } from '../resource/resource';
import type { Answer, Handlers, Request, Rooms } from '../resource/routes';

const invalid = (message: string): Fault => new Fault('Invalid', { message });

/** A node that a query or a body names: the caller's mistake if it is not there. */
async function nodeSaid(ident: string, { minor, who }: Request, rooms: Rooms): Promise<NodeRecord> {
  const node = await nodeNamed(ident, minor, rooms).catch((error: unknown) => {
    if (error instanceof Fault && error.name === 'NodeNotFound') return undefined;
    throw error;
  });
  if (!node || !rooms.auth.allowed(who, 'node:get', node)) throw new Fault('NodeUnknown', { node: ident });
  return node;
}

/** Names and UUIDs as UUIDs, in the caller's order. */
async function candidatesOf(idents: readonly string[], { who }: Request, { store, auth }: Rooms): Promise<readonly string[]> {
  const all = { children: 'all' } as const;
  const [byUuid, byName] = await Promise.all([
    store.nodes.list({ where: { uuid: idents.filter(isUuid) }, ...all }),
    store.nodes.list({ where: { name: idents.filter((ident) => !isUuid(ident)) }, ...all }),
  ]);
  const known = new Map<string | null, string>();
  for (const node of [...byUuid, ...byName])
    if (auth.allowed(who, 'node:get', node)) known.set(node.uuid, node.uuid).set(node.name, node.uuid);
  const missing = [...new Set(idents)].filter((ident) => !known.has(ident));
  if (missing.length > 0) throw invalid(`Nodes cannot be found: ${missing.join(', ')}`);
  return idents.map((ident) => known.get(ident)!);
}

async function checked(values: Values, request: Request, rooms: Rooms): Promise<Values> {
  const {
    name,
    node: ident,
    candidate_nodes: named = [],
  } = values as { name?: string; node?: string; candidate_nodes?: readonly string[] };
  if (name && !isLogicalName(name)) throw invalid(`Cannot create allocation with invalid name '${str(name)}'`);
  const node = ident ? await nodeSaid(ident, request, rooms) : undefined;
  const { resource_class: resourceClass, uuid } = values;
  if (!resourceClass && !node) throw invalid('The resource_class field is mandatory when not backfilling');
  return {
    ...values,
    // A node in use may have its instance's UUID already.
    ...(uuid || !node?.instance_uuid ? {} : { uuid: node.instance_uuid }),
    resource_class: resourceClass || (node?.resource_class ?? null),
    candidate_nodes: named.length > 0 ? await candidatesOf(named, request, rooms) : [],
    node: node?.uuid,
    // Whoever asks for a project gets it for that project.
    owner: values['owner'] || request.who.project,
  };
}

const ALLOCATIONS: Resource<AllocationRecord> = {
  schema: 'Allocation',
  path: 'allocations',
  list: 'allocations',
  said: '',
  ident: 'allocation_ident',
  policy: 'allocation',
  unsortable: ['extra', 'candidate_nodes', 'traits'],
  computed: ['node_uuid'],
  strict: 'versioned',
  table: ({ store: { allocations } }) => ({
    list: (filter) => allocations.list(filter),
    find: async (ident) => {
      if (!isUuid(ident) && !isLogicalName(ident)) throw new Fault('InvalidUuidOrName', { name: ident });
      return allocations.find(ident);
    },
  }),
  owner: async ({ owner }) => ({ owner, lessee: null }),
  filter: async (request, rooms) => {
    const { node, resource_class: resourceClass, state, owner } = request.query as Readonly<Record<string, string | null | undefined>>;
    const said = Object.entries({ resource_class: resourceClass, state, owner }).filter(([, value]) => (value ?? null) !== null);
    return { ...Object.fromEntries(said), ...(node ? { node_uuid: (await nodeSaid(node, request, rooms)).uuid } : {}) };
  },
  patched: async (patched, patch) => {
    for (const name of valuesAt(patch, '/name'))
      if (name && !same(name, {}) && !isLogicalName(name)) throw invalid(`Cannot update allocation with invalid name '${str(name)}'`);
    return patched;
  },
  check: (values, request, rooms, before) => (before ? values : checked(values, request, rooms)),
  create: ({ node, ...allocation }, { conductor }) => conductor.createAllocation(allocation, node as string | undefined),
  update: ({ uuid }, changes, { store }) => store.allocations.update(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteAllocation(uuid),
};

/** What the body's schema says by version: `node` is no member of it at first, `owner` is one that is refused. */
async function createAllocation(request: Request, rooms: Rooms): Promise<Answer> {
  const { body, minor } = request;
  const says = (name: string): boolean => body !== null && typeof body === 'object' && !Array.isArray(body) && Object.hasOwn(body, name);
  if (minor < 58 && says('node'))
    throw new Fault('InvalidParameterValue', { message: "Schema error: Additional properties are not allowed ('node' was unexpected)" });
  if (minor < 60 && says('owner')) throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  return createOf(ALLOCATIONS, request, rooms);
}

/** The allocation of a node: it has one at most. */
async function ofNode(node: NodeRecord, { params, who }: Request, { store, auth }: Rooms, policy: string): Promise<AllocationRecord> {
  const [allocation] = await store.allocations.list({ where: { node_uuid: node.uuid }, limit: 1 });
  if (!allocation || !auth.allowed(who, 'allocation:get', { owner: allocation.owner, lessee: null }))
    throw new Fault('NotFound', { message: `Allocation for node ${params['node_ident']!} was not found` });
  if (!auth.allowed(who, policy, { owner: allocation.owner, lessee: null })) throw new Fault('NotAuthorized');
  return allocation;
}
async function showOfNode(request: Request, rooms: Rooms): Promise<Answer> {
  const fields = (request.query['fields'] as readonly string[] | null | undefined) ?? undefined;
  const node = await nodeSaid(request.params['node_ident']!, request, rooms);
  const allocation = await ofNode(node, request, rooms, 'allocation:get');
  checkFields(fields, rooms.document.fields('Allocation'));
  return { status: 200, body: presenterOf(ALLOCATIONS, request, rooms, fields)(allocation) };
}
async function deleteOfNode(request: Request, rooms: Rooms): Promise<Answer> {
  const node = await nodeOf(request, rooms, 'node:get', true);
  const allocation = await ofNode(node, request, rooms, 'allocation:delete');
  await noticed(rooms, request, 'allocation', 'delete', allocation, () => rooms.conductor.deleteAllocation(allocation.uuid));
  return { status: 204 };
}

export const allocationHandlers: Handlers = {
  listAllocations: (request, rooms) => listOf(ALLOCATIONS, request, rooms),
  createAllocation,
  showAllocation: (request, rooms) => showOf(ALLOCATIONS, request, rooms),
  updateAllocation: (request, rooms) => updateOf(ALLOCATIONS, request, rooms),
  deleteAllocation: (request, rooms) => removeOf(ALLOCATIONS, request, rooms),
  showNodeAllocation: showOfNode,
  deleteNodeAllocation: deleteOfNode,
};
