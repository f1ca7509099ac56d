/** GET /v1/nodes and /v1/nodes/detail: filters, fields, pages. */
import { invalid, invalidParameter } from '../../model/errors';
import { conductorOf } from '../../model/ring';
import { STATES } from '../../model/states';
import type { NodeRecord } from '../../model/records';
import type { AliveConductors, NodeFilter, OwnedVersion, RowVersion } from '../../store/store';
import type { FieldRow } from '../schema/document';
import { projectOfList } from '../pipeline/access';
import { nodeAccess } from '../pipeline/node-access';
import { checkNewer, checkSortable, envelopeOf, fieldsToShow, pageOf } from '../pipeline/lists';
import { checkNodeFields, nodePresenter, nodeRowsToShow, viewShape } from '../pipeline/present';
import type { Answer, OperationTypes, Request, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

const BRIEF = ['instance_uuid', 'maintenance', 'power_state', 'provision_state', 'uuid', 'name'];
const UNSORTABLE = [
  'properties',
  'driver_info',
  'extra',
  'instance_info',
  'driver_internal_info',
  'clean_step',
  'deploy_step',
  'raid_config',
  'target_raid_config',
  'traits',
  'network_data',
  'service_step',
  'out_of_service',
];
/** Fields that are not columns of the node. */
const NO_COLUMNS = ['chassis_uuid', 'allocation_uuid', 'conductor', 'links', 'ports', 'states', 'portgroups', 'volume'];
const FAULTS_OF_NODES = ['power failure', 'clean failure', 'rescue abort failure', 'service failure'];
/** Parameters that filter by the equality of a column. */
const EXACT = [
  'chassis_uuid',
  'instance_uuid',
  'maintenance',
  'retired',
  'provision_state',
  'driver',
  'resource_class',
  'fault',
  'conductor_group',
  'owner',
  'lessee',
  'instance_name',
] as const;

/** On /detail any text in include_children counts as true. */
type NodeQuery = Omit<RequestOf<'listNodes'>['query'], 'include_children'> & { readonly include_children?: boolean | string };

function checkValues({ provision_state: state, fault }: NodeQuery): void {
  if (state !== undefined && !Object.hasOwn(STATES, state)) throw invalidParameter(`Provision state "${state}" is not valid`);
  if (fault !== undefined && !FAULTS_OF_NODES.includes(fault)) {
    const known = FAULTS_OF_NODES.map((faultsOfNode) => `'${faultsOfNode}'`).join(', ');
    throw invalid(`Unrecognized fault "${fault}" is specified, allowed faults are (${known})`);
  }
}

/** The columns that determine a node's conductor, and those of its version. */
const HASHED = ['id', 'revision', 'owner', 'lessee', 'uuid', 'driver', 'conductor_group', 'reservation'] as const;
const NO_CONDUCTORS: AliveConductors = { version: '', conductors: [] };

/** @param project whose nodes are listed; absent: the nodes of all projects */
function filterOf(query: NodeQuery, project: string | undefined): NodeFilter {
  const where = Object.fromEntries(EXACT.filter((name) => query[name] !== undefined).map((name) => [name, query[name]]));
  const { shard: shards, associated, sharded, description_contains: part, parent_node: parent, include_children: all } = query;
  const { out_of_service: outOfService } = query;
  const children = parent ?? (all ? 'all' : undefined);
  return {
    where: { ...where, ...(shards ? { shard: shards } : {}) },
    associated: typeof associated === 'boolean' ? associated : undefined,
    outOfService: outOfService ?? undefined,
    sharded: typeof sharded === 'boolean' ? sharded : undefined,
    descriptionContains: typeof part === 'string' ? part : undefined,
    project,
    children: typeof children === 'string' ? children : undefined,
  };
}

/** Refuses to sort by a field that the caller may not read in every node, because the order would reveal its values. */
function checkReadableOrder(key: string, request: Request, context: ApiContext, fields: readonly FieldRow[]): void {
  const guarded = fields.filter(({ name, readPolicy }) => name === key && readPolicy !== null);
  if (guarded.length > 0 && !nodeAccess(request, context, guarded, true).isUniform) checkSortable(key, []);
}

/** @param path of the list, for the link to its next page */
async function list(
  request: Request<OperationTypes & { readonly query: NodeQuery }>,
  context: ApiContext,
  path: string,
  fields: readonly string[] | undefined,
): Promise<Answer> {
  const { query, base, minor } = request;
  const { document, store, options, fragments } = context;
  const project = projectOfList(request, context, 'node', query.project) ?? query.project;
  const all = document.fields('Node');
  checkNewer(
    [...(query.fields ?? []), query.sort_key],
    all.filter(({ selectable }) => selectable),
    minor,
  );
  checkValues(query);
  const page = pageOf(query, UNSORTABLE, options);
  checkSortable(page.sortKey, ['id', ...all.map(({ name }) => name).filter((name) => !NO_COLUMNS.includes(name))]);
  checkNodeFields(fields, all);
  // An unknown chassis is 404, for callers that may know which chassis exist.
  const chassis = query.chassis_uuid;
  if (chassis && context.auth.allowed(request.caller, 'chassis:get')) await store.chassis.find(chassis);

  const rows = nodeRowsToShow(all, minor, fields);
  const hostname = query.conductor;
  const { version: word, conductors } =
    hostname || rows.some(({ name }) => name === 'conductor') ? await context.current.conductors() : NO_CONDUCTORS;
  const filter = filterOf(query, project);
  const view = { base, minor, rows };
  checkReadableOrder(page.sortKey, request, context, all);
  const access = nodeAccess(request, context, rows, true);
  // The hash ring maps nodes to conductors, so the database cannot apply this filter.
  const found = hostname ? await store.nodes.listColumns(HASHED, { ...filter, ...page }) : undefined;
  const versions =
    found?.filter((node) => conductorOf(conductors, node)?.hostname === hostname) ??
    (await (access.isUniform ? store.nodes.versions({ ...filter, ...page }) : store.nodes.ownedVersions({ ...filter, ...page })));
  const shape = viewShape('nodes', view, word);
  const items = fragments.slices<NodeRecord, RowVersion | OwnedVersion>({
    shape: (node) => shape + access.to(access.isUniform ? undefined : (node as OwnedVersion)).key,
    versions,
    // The filter applies again: a node may have changed since its version was read.
    read: (ids) => store.nodes.list({ ...filter, ids }),
    sizes: (ids) => store.nodes.sizes(ids),
    renderer: () => nodePresenter(view, access, conductors),
  });

  const also = [
    ...(['associated', 'maintenance', 'retired', 'out_of_service'] as const)
      .filter((name) => query[name] === true)
      .map((name) => [name, true] as const),
    ...(typeof query.detail === 'boolean' ? [['detail', query.detail] as const] : []),
    ...(fields && fields.length > 0 ? [['fields', fields.join(',')] as const] : []),
  ];
  // At most one node has an instance, so there is no next page.
  const limit = query.instance_uuid ? 0 : page.limit;
  return { status: 200, slices: envelopeOf('nodes', items, versions.length, { base, path, page, limit, also }) };
}

export const nodeListHandlers = {
  listNodes: (request, context) => list(request, context, 'nodes', fieldsToShow(request.query, BRIEF)),
  listNodesDetail: (request, context) => list(request, context, 'nodes/detail', undefined),
  // The path parameter `chassis_uuid` is an argument, and so a filter of the list.
  listChassisNodes: (request, context) => list(request, context, 'nodes', fieldsToShow(request.query, BRIEF)),
  listChassisNodesDetail: (request, context) => list(request, context, 'nodes/detail', undefined),
} satisfies SomeHandlers;
