/** /v1/allocations: allocations of nodes by resource class and traits, and the allocation of a node. */
import { Fault } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { same, valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { AllocationRecord, NodeRecord } from '../../model/records';
import type { Values } from '../resource/fields';
import { nodeByIdent, nodeOf } from '../resource/node-find';
import { checkFields } from '../resource/present';
import { withNotifications } from '../resource/notifications';
import { createOf, listOf, presenterOf, removeOf, showOf, updateOf, type Resource } from '../resource/resource';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';

const invalid = (message: string): Fault => new Fault('Invalid', { message });

/** A node that a query or a body names. If it does not exist, the request is bad (400). */
async function nodeInRequest(ident: string, { minor, caller }: Request, context: ApiContext): Promise<NodeRecord> {
  const node = await nodeByIdent(ident, minor, context).catch((error: unknown) => {
    if (error instanceof Fault && error.name === 'NodeNotFound') return undefined;
    throw error;
  });
  if (!node || !context.auth.allowed(caller, 'node:get', node)) throw new Fault('NodeUnknown', { node: ident });
  return node;
}

/** Converts names and UUIDs to UUIDs, in the request's order. */
async function candidatesOf(idents: readonly string[], { caller }: Request, { store, auth }: ApiContext): Promise<readonly string[]> {
  const all = { children: 'all' } as const;
  const [byUuid, byName] = await Promise.all([
    store.nodes.list({ where: { uuid: idents.filter(isUuid) }, ...all }),
    store.nodes.list({ where: { name: idents.filter((ident) => !isUuid(ident)) }, ...all }),
  ]);
  const known = new Map<string | null, string>();
  for (const node of [...byUuid, ...byName])
    if (auth.allowed(caller, 'node:get', node)) known.set(node.uuid, node.uuid).set(node.name, node.uuid);
  const missing = [...new Set(idents)].filter((ident) => !known.has(ident));
  if (missing.length > 0) throw invalid(`Nodes cannot be found: ${missing.join(', ')}`);
  return idents.map((ident) => known.get(ident)!);
}

async function checked(values: Values, request: Request, context: ApiContext): Promise<Values> {
  const {
    name,
    node: ident,
    candidate_nodes: named = [],
  } = values as { name?: string; node?: string; candidate_nodes?: readonly string[] };
  if (name && !isLogicalName(name)) throw invalid(`Cannot create allocation with invalid name '${str(name)}'`);
  const node = ident ? await nodeInRequest(ident, request, context) : undefined;
  const { resource_class: resourceClass, uuid } = values;
  if (!resourceClass && !node) throw invalid('The resource_class field is mandatory when not backfilling');
  return {
    ...values,
    // A node in use may have its instance's UUID already.
    ...(uuid || !node?.instance_uuid ? {} : { uuid: node.instance_uuid }),
    resource_class: resourceClass || (node?.resource_class ?? null),
    candidate_nodes: named.length > 0 ? await candidatesOf(named, request, context) : [],
    node: node?.uuid,
    // The default owner is the caller's project.
    owner: values['owner'] || request.caller.project,
  };
}

const ALLOCATIONS: Resource<AllocationRecord> = {
  schema: 'Allocation',
  path: 'allocations',
  list: 'allocations',
  bodyLabel: '',
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
  filter: async (request, context) => {
    const { node, resource_class: resourceClass, state, owner } = request.query as Readonly<Record<string, string | null | undefined>>;
    const filters = Object.entries({ resource_class: resourceClass, state, owner }).filter(([, value]) => (value ?? null) !== null);
    return { ...Object.fromEntries(filters), ...(node ? { node_uuid: (await nodeInRequest(node, request, context)).uuid } : {}) };
  },
  patched: async (patched, patch) => {
    for (const name of valuesAt(patch, '/name'))
      if (name && !same(name, {}) && !isLogicalName(name)) throw invalid(`Cannot update allocation with invalid name '${str(name)}'`);
    return patched;
  },
  check: (values, request, context, before) => (before ? values : checked(values, request, context)),
  create: ({ node, ...allocation }, { conductor }) => conductor.createAllocation(allocation, node as string | undefined),
  update: ({ uuid }, changes, { store }) => store.allocations.update(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteAllocation(uuid),
};

/** The checks of the body that depend on the version: early versions do not know `node`, and refuse `owner`. */
async function createAllocation(request: Request, context: ApiContext): Promise<Answer> {
  const { body, minor } = request;
  const hasMember = (name: string): boolean =>
    body !== null && typeof body === 'object' && !Array.isArray(body) && Object.hasOwn(body, name);
  if (minor < 58 && hasMember('node'))
    throw new Fault('InvalidParameterValue', { message: "Schema error: Additional properties are not allowed ('node' was unexpected)" });
  if (minor < 60 && hasMember('owner')) throw new Fault('NotAcceptable', { message: 'Request not acceptable.' });
  return createOf(ALLOCATIONS, request, context);
}

/** The allocation of a node, which has at most one. */
async function ofNode(
  node: NodeRecord,
  { params, caller }: Request,
  { store, auth }: ApiContext,
  policy: string,
): Promise<AllocationRecord> {
  const [allocation] = await store.allocations.list({ where: { node_uuid: node.uuid }, limit: 1 });
  if (!allocation || !auth.allowed(caller, 'allocation:get', { owner: allocation.owner, lessee: null }))
    throw new Fault('NotFound', { message: `Allocation for node ${params['node_ident']!} was not found` });
  if (!auth.allowed(caller, policy, { owner: allocation.owner, lessee: null })) throw new Fault('NotAuthorized');
  return allocation;
}
async function showOfNode(request: Request, context: ApiContext): Promise<Answer> {
  const fields = (request.query['fields'] as readonly string[] | null | undefined) ?? undefined;
  const node = await nodeInRequest(request.params['node_ident']!, request, context);
  const allocation = await ofNode(node, request, context, 'allocation:get');
  checkFields(fields, context.document.fields('Allocation'));
  return { status: 200, body: presenterOf(ALLOCATIONS, request, context, fields)(allocation) };
}
async function deleteOfNode(request: Request, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:get', true);
  const allocation = await ofNode(node, request, context, 'allocation:delete');
  await withNotifications(context, request, 'allocation', 'delete', allocation, () => context.conductor.deleteAllocation(allocation.uuid));
  return { status: 204 };
}

export const allocationHandlers: Handlers = {
  listAllocations: (request, context) => listOf(ALLOCATIONS, request, context),
  createAllocation,
  showAllocation: (request, context) => showOf(ALLOCATIONS, request, context),
  updateAllocation: (request, context) => updateOf(ALLOCATIONS, request, context),
  deleteAllocation: (request, context) => removeOf(ALLOCATIONS, request, context),
  showNodeAllocation: showOfNode,
  deleteNodeAllocation: deleteOfNode,
};
