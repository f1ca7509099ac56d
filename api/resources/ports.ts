/** /v1/ports, and the ports of a node. */
import { conflict, Fault, invalid, notAcceptable } from '../../model/errors';
import { isUuid } from '../../model/idents';
import { isObject } from '../../model/json';
import type { Inputs } from '../schema/operations';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { str } from '../../model/python';
import type { NewPort, NodeRecord, PortgroupRecord, PortRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { FieldRow } from '../schema/document';
import { projectOfList } from '../pipeline/access';
import { checkedRecord, presentOf, type Present } from '../pipeline/fields';
import { checkFieldsAllowed, checkNewer } from '../pipeline/lists';
import {
  asBadRequest,
  checkNotInspecting,
  isOf,
  linkedNode,
  nodeByIdent,
  nodeOfFilter,
  nodeOfList,
  nodeOfNew,
} from '../pipeline/node-find';
import { checkPaths, type Found, type PatchRequest } from '../pipeline/patch';
import { checkFields, viewShape } from '../pipeline/present';
import {
  createRecord,
  listOf,
  presenterOf,
  recordOf,
  removeOf,
  updateOf,
  type ListFilter,
  type ListRequest,
  type Resource,
  type ShowRequest,
} from '../pipeline/resource';
import type { Answer, ApiContext, Request, RequestOf, RequestOn, SomeHandlers } from '../pipeline/handler';

const shown = (rows: readonly FieldRow[]) => rows.filter(({ hidden }) => !hidden);
const portNotFound = (port: string): Fault => new Fault('PortNotFound', { port });

/** VTEP switches exist from 1.90 to 1.104 only. */
const VTEP = ['vtep-logical-switch', 'vtep-physical-switch'];
const hasVtep = (minor: number): boolean => minor >= 90 && minor < 105;

type PortQuery = RequestOf<'listPorts'>['query'];
/** The portgroup that the filter of a list names. A portgroup of another project is answered as one that does not exist. */
async function portgroupOfFilter(ident: string, project: string | undefined, { store, current }: ApiContext): Promise<PortgroupRecord> {
  const portgroup = await store.portgroups.find(ident);
  if (project === undefined || isOf(await current.node(portgroup.node_uuid), project)) return portgroup;
  throw new Fault('PortgroupNotFound', { portgroup: ident });
}
/** Checks values that depend on each other. */
function checkTogether(record: Present<Inputs['Port']>, minor: number): void {
  const link = record.local_link_connection;
  if (link) {
    if ('network_type' in link && minor < 64) throw notAcceptable();
    if ('vtep-logical-switch' in link && !hasVtep(minor)) throw notAcceptable();
    if (record.is_smartnic === true && !('port_id' in link && 'hostname' in link))
      throw invalid('Smart NIC port must have port_id and hostname in local_link_connection');
  }
  if (record.physical_network === '') throw invalid('A non-empty value is required when setting physical_network');
}

/** The portgroup of a port. It must exist and belong to the same node. */
async function portgroupFor(uuid: unknown, node: NodeRecord, { store }: ApiContext): Promise<PortgroupRecord> {
  const unknown = new Fault('PortgroupUnknown', { portgroup: str(uuid) });
  if (!isUuid(uuid)) throw unknown;
  const portgroup = await asBadRequest(store.portgroups.find(uuid), unknown);
  if (portgroup.node_uuid !== node.uuid) throw invalid('Port can not be added to a portgroup belonging to a different node.');
  return portgroup;
}

/** The names of a new port's node come in two fields; the port has its UUID. */
type NewFields = Omit<NewPort, 'uuid'> & { readonly uuid?: string };

/** A PATCH checks the version of these fields only. Every version accepts the later fields. */
const GATED = ['pxe_enabled', 'local_link_connection', 'portgroup_uuid', 'physical_network', 'is_smartnic'];
/** `owner`: the node after the patch. */
interface FoundPort extends Found<PortRecord> {
  readonly owner: NodeRecord;
}
async function find(patch: readonly PatchOperation[], request: PatchRequest, context: ApiContext): Promise<FoundPort> {
  let node: NodeRecord | undefined;
  const projects = async ({ node_uuid: uuid }: PortRecord) => (node = await context.store.nodes.find(uuid));
  const record = await recordOf({ ...PORTS, projects }, 'port:update', request, context);
  const [newNode] = valuesAt(patch, '/node_uuid');
  return { record, owner: newNode === undefined ? node! : await linkedNode('node_uuid', newNode, node!.owner, request, context) };
}
const isNone = (group: unknown): boolean => !group || (typeof group === 'object' && Object.keys(group).length === 0);

const PORTS: Resource<PortRecord, 'Port', NewFields, PortQuery, FoundPort> = {
  schema: 'Port',
  path: 'ports',
  list: 'ports',
  bodyLabel: 'port',
  ident: 'port_ident',
  policy: 'port',
  brief: ['uuid', 'address'],
  unsortable: ['extra', 'internal_info', 'local_link_connection'],
  computed: ['portgroup_uuid'],
  strict: false,
  table: ({ store: { ports }, fragments }) => ({
    find: (ident) => ports.find(ident),
    async page({ nodeScope, where = {}, ...more }, present, view) {
      const selected = { ...nodeScope, ...more, where };
      const shape = viewShape('ports', view);
      const versions = await ports.versions(selected);
      const read = (ids: readonly number[]) => ports.list({ ...selected, ids });
      const slices = fragments.slices({ shape: () => shape, versions, read, sizes: (ids) => ports.sizes(ids), renderer: () => present });
      return { count: versions.length, slices };
    },
  }),
  projects: ({ node_uuid: uuid }, { current }) => current.node(uuid),
  hidden: ['node:get', portNotFound],
  projectOf: (request, context) => projectOfList(request, context, 'port'),
  /** At most one of node, portgroup and shard. The node or the portgroup of the path comes first, by its UUID. */
  async filter(request, context, project) {
    const { query, minor, params } = request;
    const { shard: shards, conductor_groups: groups, address, node_uuid: uuid, description_contains: description } = query;
    const node = params['node_ident'] ?? uuid ?? query.node;
    const portgroup = params['portgroup_ident'] ?? query.portgroup;
    if (!params['node_ident'] && !uuid && node && minor < 5 && !isUuid(node)) throw notAcceptable();
    if ([node, portgroup, shards?.length].filter(Boolean).length > 1) throw new Fault('OperationNotPermitted');
    if (groups?.length && (node ?? portgroup ?? address))
      throw invalid('Filtering by conductor_groups cannot be combined with node_ident, portgroup_ident, or node address filters.');
    const own = project === undefined ? {} : { project };
    const also = description ? { descriptionContains: description } : {};
    const ofNode = (where: ListFilter<PortRecord>['where']) => ({ ...also, nodeScope: own, where: where! });
    if (portgroup) return ofNode({ portgroup_uuid: (await portgroupOfFilter(portgroup, project, context)).uuid });
    if (node) return ofNode({ node_uuid: (await nodeOfFilter(node, project, request, context)).uuid });
    if (address) return { nodeScope: own, where: { address } };
    if (shards?.length) return { ...also, nodeScope: { ...own, shards } };
    return { ...also, nodeScope: { ...own, ...(groups?.length ? { conductorGroups: groups } : {}) } };
  },
  values: {
    local_link_connection: ({ local_link_connection: link }, { minor }) => (!hasVtep(minor) && VTEP.some((key) => key in link) ? {} : link),
  },
  async check({ node_ident: ident, node_uuid: uuid, ...given }, request, context) {
    const { minor, body } = request;
    if (ident !== undefined && minor < 94) throw notAcceptable();
    // The message names node_uuid, also if the client gave node_ident.
    const unknown = new Fault('NodeUnknown', { node: uuid ?? 'None' });
    const node = await nodeOfNew('port', nodeByIdent(ident ?? uuid!, minor, context), unknown, request, context);
    // Unlike other resources, an empty value of a newer field is refused too.
    const rows = context.document.fields('Port').filter(({ create }) => create);
    if (isObject(body) && rows.some(({ name, gate }) => name in body && !isGateOpen(gate, minor))) throw notAcceptable();
    const portgroup = given.portgroup_uuid ? await portgroupFor(given.portgroup_uuid, node, context) : undefined;
    checkTogether(given, minor);
    if (portgroup && given.pxe_enabled === true && !portgroup.standalone_ports_supported)
      throw conflict(
        `Port group ${portgroup.uuid} doesn't support standalone ports. This port cannot be created as a member of that portgroup ` +
          `as the port's 'pxe_enabled' field was set to True.`,
      );
    return { ...given, node_uuid: node.uuid };
  },
  create: (port, { conductor }) => conductor.createPort(port),
  checkPatch(patch, { minor }, { document }) {
    const rows = document.fields('Port');
    checkPaths(patch, rows);
    const touches = (path: string): boolean =>
      valuesAt(patch, path).length > 0 ||
      patch.some((candidate) => candidate.op === 'remove' && `${candidate.path}/`.startsWith(`${path}/`));
    if (rows.some(({ name, gate }) => GATED.includes(name) && !isGateOpen(gate, minor) && touches(`/${name}`))) throw notAcceptable();
    if (minor < 64 && touches('/local_link_connection/network_type')) throw notAcceptable();
  },
  find,
  async patched(values, { record: before, owner }, _patch, _request, context) {
    const group = values['portgroup_uuid'];
    if (!isNone(group) && (group !== before.portgroup_uuid || owner.uuid !== before.node_uuid)) await portgroupFor(group, owner, context);
    return { ...values, node_uuid: owner.uuid };
  },
  checkPatched(values, { record: { uuid }, owner }, patch, { minor }) {
    checkNotInspecting(`port "${uuid}" on`, owner, minor);
    if (patch.some(({ path }) => path === '/physical_network') && values.physical_network === '')
      throw invalid('A non-empty value is required when setting physical_network');
    // Checked in the first operation only, because clients that add a port to a portgroup send its physical network too.
    if (minor >= 102 && patch[0]?.path === '/physical_network' && !isNone(values.portgroup_uuid))
      throw invalid('physical_network cannot be changed while the port belongs to a portgroup.');
    return values;
  },
  alwaysUpdates: true,
  update: ({ uuid }, changes, { conductor }) => conductor.updatePort(uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deletePort(uuid),
};

async function createPort(request: Request, context: ApiContext): Promise<Answer> {
  const rows = context.document.fields('Port').filter(({ create }) => create);
  const record = checkedRecord('port', 'Port', rows, request.body, context);
  return createRecord(PORTS, await PORTS.check(presentOf(record), request, context), request, context);
}

/** The fields of the query are checked after the port. */
async function showPort(request: ShowRequest, context: ApiContext): Promise<Answer> {
  const { fields } = request.query;
  const port = await recordOf(PORTS, 'port:get', request, context);
  const all = context.document.fields('Port');
  checkFieldsAllowed(fields, request.minor);
  checkNewer(fields ?? [], shown(all), request.minor);
  checkFields(fields, all);
  return { status: 200, body: presenterOf(PORTS, request, context, fields)(port) };
}

type Detail = { readonly detail?: true };
async function listOfNode(request: ListRequest<PortQuery> & RequestOn<'node_ident'>, context: ApiContext, detail: Detail = {}) {
  await nodeOfList(request, context);
  return listOf(PORTS, request, context, detail);
}
async function listOfPortgroup(request: ListRequest<PortQuery> & RequestOn<'portgroup_ident'>, context: ApiContext, detail: Detail = {}) {
  const ident = request.params.portgroup_ident;
  const missing = new Fault('PortgroupNotFound', { portgroup: ident });
  if (!isUuid(ident)) throw missing;
  const portgroup = await context.store.portgroups.find(ident);
  if (!context.auth.allowed(request.caller, 'node:get', await context.current.node(portgroup.node_uuid))) throw missing;
  return listOf(PORTS, request, context, detail);
}

export const portHandlers = {
  listPorts: (request, context) => listOf(PORTS, request, context),
  listPortsDetail: (request, context) => listOf(PORTS, request, context, { detail: true }),
  listNodePorts: (request, context) => listOfNode(request, context),
  listNodePortsDetail: (request, context) => listOfNode(request, context, { detail: true }),
  listPortgroupPorts: (request, context) => listOfPortgroup(request, context),
  listPortgroupPortsDetail: (request, context) => listOfPortgroup(request, context, { detail: true }),
  createPort,
  showPort,
  updatePort: (request, context) => updateOf(PORTS, request, context),
  deletePort: (request, context) => removeOf(PORTS, request, context),
} satisfies SomeHandlers;
