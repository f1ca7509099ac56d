/** /v1/allocations: allocations of nodes by resource class and traits, and the allocation of a node. */
import { Fault, invalid, invalidParameter, notAcceptable, notFound } from '../../model/errors';
import { isLogicalName, isUuid } from '../../model/idents';
import { isObject } from '../../model/json';
import { equalJson, valuesAt } from '../../model/patch';
import { str } from '../../model/python';
import type { Inputs } from '../schema/operations';
import type { AllocationRecord, NodeRecord } from '../../model/records';
import { checkInPlaceOf, checkPolicy, projectOfList } from '../pipeline/access';
import type { Present } from '../pipeline/fields';
import { nodeOf, visibleNode } from '../pipeline/node-find';
import { checkFields } from '../pipeline/present';
import { withNotifications } from '../pipeline/notifications';
import { createOf, listOf, presenterOf, removeOf, showOf, updateOf, type Resource } from '../pipeline/resource';
import type { Answer, Request, RequestOf, RequestOn, SomeHandlers, ApiContext } from '../pipeline/handler';

/** A visible node that a query or a body names. If there is none, the request is bad (400). */
const nodeInRequest = (ident: string, request: Request, context: ApiContext): Promise<NodeRecord> =>
  visibleNode(ident, request, context).catch((error: unknown) => {
    throw error instanceof Fault && error.name === 'NodeNotFound' ? new Fault('NodeUnknown', { node: ident }) : error;
  });
/**
 * The node whose allocations are listed. For a hidden node Ironic answers 404, for an unknown one 400. Callers that see only some nodes
 * get 404 for both, so that they do not learn which of them exist.
 */
const nodeOfAllocations = (ident: string, request: Request, context: ApiContext): Promise<NodeRecord> =>
  context.auth.allowed(request.caller, 'node:list_all')
    ? nodeInRequest(ident, request, context)
    : visibleNode(ident, request, context).catch((error: unknown) => {
        throw error instanceof Fault && error.name === 'NodeNotFound' ? notFound() : error;
      });

/**
 * Converts names and UUIDs to UUIDs, in the request's order.
 * @param project whose nodes may be candidates; null: the nodes of all projects
 */
async function candidatesOf(idents: readonly string[], project: string | null, { store }: ApiContext): Promise<readonly string[]> {
  const among = { children: 'all', project: project ?? undefined } as const;
  const [byUuid, byName] = await Promise.all([
    store.nodes.listColumns(['uuid', 'name'], { where: { uuid: idents.filter(isUuid) }, ...among }),
    store.nodes.listColumns(['uuid', 'name'], { where: { name: idents.filter((ident) => !isUuid(ident)) }, ...among }),
  ]);
  const known = new Map<string | null, string>();
  for (const node of [...byUuid, ...byName]) known.set(node.uuid, node.uuid).set(node.name, node.uuid);
  const missing = [...new Set(idents)].filter((ident) => !known.has(ident));
  if (missing.length > 0) throw invalid(`Nodes cannot be found: ${missing.join(', ')}`);
  return idents.map((ident) => known.get(ident)!);
}

type AllocationInput = Present<Inputs['Allocation']>;
/**
 * The owner of a new allocation. It is the caller's project if only the policy `create_restricted` allows the creation.
 * @throws Fault HTTPForbidden, OwnerNotAuthorized
 */
function ownerOf(values: AllocationInput, request: Request, context: ApiContext): string | null | undefined {
  const { caller } = request;
  const { auth, options } = context;
  const given = values.owner;
  const isNewOnly = options['oslo_policy.enforce_new_defaults'];
  const isFormer = auth.allowed(caller, 'allocation:create_pre_rbac');
  if (!auth.allowed(caller, 'allocation:create') || (!isNewOnly && !given && !isFormer)) {
    if (caller.project && given && given !== caller.project) checkPolicy(request, context, 'allocation:create');
    if (!isNewOnly && given) checkPolicy(request, context, 'allocation:create_pre_rbac');
    checkInPlaceOf('allocation:create', ['allocation:create_restricted'], request, context);
    return caller.project;
  }
  checkPolicy(request, context, 'allocation:create');
  if (caller.system || !isNewOnly) return given;
  if (given && given !== caller.project && !auth.allowed(caller, 'allocation:create_restricted')) {
    const [requested, project] = [str(given), str(caller.project)];
    throw new Fault('OwnerNotAuthorized', {
      message:
        `Cannot create allocation with an owner Project ID value ${requested} not matching the requester Project ID ${project}. ` +
        `Policy baremetal:allocation:create_restricted is required for this capability.`,
    });
  }
  return given || caller.project;
}

/** The project whose nodes may be candidates; null: the nodes of all projects. */
const projectOfCandidates = ({ caller }: Request, { auth }: ApiContext): string | null =>
  auth.allowed(caller, 'allocation:create_restricted') ? null : caller.project;

async function checked(values: AllocationInput, request: Request, context: ApiContext) {
  const owner = ownerOf(values, request, context);
  const { name, node: ident, candidate_nodes: named = [] } = values;
  if (name && !isLogicalName(name)) throw invalid(`Cannot create allocation with invalid name '${str(name)}'`);
  const node = ident ? await nodeInRequest(ident, request, context) : undefined;
  const { resource_class: resourceClass, uuid, owner: _, ...others } = values;
  if (!resourceClass && !node) throw invalid('The resource_class field is mandatory when not backfilling');
  return {
    ...others,
    ...(uuid === undefined ? {} : { uuid }),
    // Backfilling: the allocation of a node that is in use gets the UUID of its instance.
    ...(uuid || !node?.instance_uuid ? {} : { uuid: node.instance_uuid }),
    resource_class: resourceClass || (node?.resource_class ?? null),
    candidate_nodes: named.length > 0 ? await candidatesOf(named, projectOfCandidates(request, context), context) : [],
    node: node?.uuid,
    ...(owner === undefined ? {} : { owner }),
  };
}

type AllocationQuery = RequestOf<'listAllocations'>['query'];
const ALLOCATIONS: Resource<AllocationRecord, 'Allocation', Awaited<ReturnType<typeof checked>>, AllocationQuery> = {
  schema: 'Allocation',
  path: 'allocations',
  list: 'allocations',
  bodyLabel: '',
  ident: 'allocation_ident',
  policy: 'allocation',
  unsortable: ['extra', 'candidate_nodes', 'traits'],
  computed: ['node_uuid'],
  strict: true,
  ignoresLater: true,
  table: ({ store: { allocations } }) => ({
    sizes: (filter) => allocations.sizes(filter),
    byUuids: (uuids) => allocations.byUuids(uuids),
    find: async (ident) => {
      if (!isUuid(ident) && !isLogicalName(ident)) throw new Fault('InvalidUuidOrName', { name: ident });
      return allocations.find(ident);
    },
  }),
  projects: async ({ owner }) => ({ owner, lessee: null }),
  hidden: ['allocation:get', (allocation) => new Fault('AllocationNotFound', { allocation })],
  filter: async (request, context) => {
    const { node, resource_class: resourceClass, state, owner: named } = request.query;
    const owner = projectOfList(request, context, 'allocation', named) ?? named;
    return {
      where: {
        ...(resourceClass === undefined ? {} : { resource_class: resourceClass }),
        ...(state === undefined ? {} : { state }),
        ...(owner === undefined ? {} : { owner }),
        ...(node ? { node_uuid: (await nodeOfAllocations(node, request, context)).uuid } : {}),
      },
    };
  },
  patched: (values, _found, patch) => {
    for (const name of valuesAt(patch, '/name'))
      if (name && !equalJson(name, {}) && !isLogicalName(name)) throw invalid(`Cannot update allocation with invalid name '${str(name)}'`);
    return values;
  },
  check: checked,
  create: ({ node, ...allocation }, { conductor }) => conductor.createAllocation(allocation, node),
  update: ({ uuid }, changes, { store }) => store.allocations.update(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteAllocation(uuid),
};

/** The checks of the body that depend on the version: early versions do not know `node`, and refuse `owner`. */
async function createAllocation(request: Request, context: ApiContext): Promise<Answer> {
  const { body, minor } = request;
  const hasMember = (name: string): boolean => isObject(body) && Object.hasOwn(body, name);
  if (minor < 58 && hasMember('node'))
    throw invalidParameter("Schema error: Additional properties are not allowed ('node' was unexpected)");
  if (minor < 60 && hasMember('owner')) throw notAcceptable();
  return createOf(ALLOCATIONS, request, context);
}

/** The allocation of a node, which has at most one. */
async function ofNode(node: NodeRecord, request: RequestOn<'node_ident'>, context: ApiContext, policy: string): Promise<AllocationRecord> {
  const [allocation] = await context.store.allocations.list({ where: { node_uuid: node.uuid }, limit: 1 });
  if (!allocation) throw notFound(`Allocation for node ${request.params.node_ident} was not found`);
  checkPolicy(request, context, policy, { owner: allocation.owner, lessee: null });
  return allocation;
}
async function showOfNode(request: RequestOf<'showNodeAllocation'>, context: ApiContext): Promise<Answer> {
  const { fields } = request.query;
  const node = await nodeOfAllocations(request.params.node_ident, request, context);
  const allocation = await ofNode(node, request, context, 'allocation:get');
  checkFields(fields, context.document.fields('Allocation'));
  return { status: 200, body: presenterOf(ALLOCATIONS, request, context, fields)(allocation) };
}
async function deleteOfNode(request: RequestOf<'deleteNodeAllocation'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:get', true);
  const allocation = await ofNode(node, request, context, 'allocation:delete');
  await withNotifications(context, request, 'allocation', 'delete', allocation, () => context.conductor.deleteAllocation(allocation.uuid));
  return { status: 204 };
}

export const allocationHandlers = {
  listAllocations: (request, context) =>
    listOf(ALLOCATIONS, request, context, {
      checkEach: (owner) => checkPolicy(request, context, 'allocation:get', { owner, lessee: null }),
    }),
  createAllocation,
  showAllocation: (request, context) => showOf(ALLOCATIONS, request, context),
  updateAllocation: (request, context) => updateOf(ALLOCATIONS, request, context),
  deleteAllocation: (request, context) => removeOf(ALLOCATIONS, request, context),
  showNodeAllocation: showOfNode,
  deleteNodeAllocation: deleteOfNode,
} satisfies SomeHandlers;
