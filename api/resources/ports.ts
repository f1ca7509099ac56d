/** /v1/ports, and the ports of a node. */
import { invalid, Fault } from '../../model/errors';
import { isUuid, newUuid } from '../../model/idents';
import { applyPatch, equalJson, valuesAt, type PatchOperation } from '../../model/patch';
import { str } from '../../model/python';
import type { JsonObject, NewPort, NodeRecord, PortgroupRecord, PortRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { PortFilter } from '../../store/store';
import { checkPolicy, projectOfList } from '../resource/access';
import { checkedPatch, checkedRecord, emptyOf, type Values } from '../resource/fields';
import { location } from '../resource/links';
import { checkFieldsAllowed, checkNewer, checkSortable, envelopeOf, fieldsToShow, pageOf } from '../resource/lists';
import {
  checkNotInspecting,
  asBadRequest,
  linkedNode,
  nodeByIdent,
  nodeOfList,
  nodeOfFilter,
  nodeOfNew,
  isOf,
} from '../resource/node-find';
import { withNotifications } from '../resource/notifications';
import { checkFields, hasVtep, portPresenter, rowsToShow, viewShape } from '../resource/present';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';

const BRIEF = ['uuid', 'address'];
const UNSORTABLE = ['extra', 'internal_info', 'local_link_connection'];
const unacceptable = (): Fault => new Fault('NotAcceptable', { message: 'Request not acceptable.' });

const shown = (rows: ReturnType<ApiContext['document']['fields']>) => rows.filter(({ hidden }) => !hidden);

function presentPort(port: PortRecord, request: Request, context: ApiContext, fields?: readonly string[]): object {
  const { base, minor } = request;
  return portPresenter({ base, minor, rows: rowsToShow(context.document.fields('Port'), minor, fields) })(port);
}

/**
 * The port of the path. Callers that may not see its node get 404.
 * @param find reads the node, or its head
 */
async function portOf<Node extends Pick<NodeRecord, 'owner' | 'lessee'>>(
  request: Request,
  context: ApiContext,
  policy: string,
  find: (uuid: string) => Promise<Node>,
): Promise<{ readonly port: PortRecord; readonly node: Node }> {
  const ident = request.params['port_ident']!;
  const port = await context.store.ports.find(ident);
  const node = await find(port.node_uuid);
  if (!context.auth.allowed(request.caller, 'node:get', node)) throw new Fault('PortNotFound', { port: ident });
  checkPolicy(request, context, policy, node);
  return { port, node };
}

interface ListQuery {
  readonly node?: string | null;
  readonly node_uuid?: string | null;
  readonly portgroup?: string | null;
  readonly address?: string | null;
  readonly shard?: readonly string[] | null;
  readonly conductor_groups?: readonly string[] | null;
  readonly description_contains?: string | null;
}
/** The node or the portgroup of the path. */
type Parent = Readonly<Partial<Pick<PortRecord, 'node_uuid' | 'portgroup_uuid'>>>;
/** The portgroup that the filter of a list names. A portgroup of another project is answered as one that does not exist. */
async function portgroupOfFilter(ident: string, project: string | undefined, { store, current }: ApiContext): Promise<PortgroupRecord> {
  const portgroup = await store.portgroups.find(ident);
  if (project === undefined || isOf(await current.node(portgroup.node_uuid), project)) return portgroup;
  throw new Fault('PortgroupNotFound', { portgroup: ident });
}
/** The filter of a list: at most one of node, portgroup and shard. */
async function filterOf(request: Request, context: ApiContext, parent: Parent, project: string | undefined): Promise<PortFilter> {
  const { query, minor } = request;
  const { shard: shards, conductor_groups: groups, address, node_uuid: uuid, description_contains: description } = query as ListQuery;
  const node = parent.node_uuid ?? uuid ?? (query as ListQuery).node;
  const portgroup = parent.portgroup_uuid ?? (query as ListQuery).portgroup;
  if (!parent.node_uuid && !uuid && node && minor < 5 && !isUuid(node)) throw unacceptable();
  if ([node, portgroup, shards?.length].filter(Boolean).length > 1) throw new Fault('OperationNotPermitted');
  if (groups?.length && (node ?? portgroup ?? address))
    throw invalid('Filtering by conductor_groups cannot be combined with node_ident, portgroup_ident, or node address filters.');
  const own = project === undefined ? {} : { project };
  const also = { ...own, ...(description ? { descriptionContains: description } : {}) };
  if (portgroup) return { ...also, where: { portgroup_uuid: (await portgroupOfFilter(portgroup, project, context)).uuid } };
  if (node) return { ...also, where: { node_uuid: (await nodeOfFilter(node, project, request, context)).uuid } };
  if (address) return { ...own, where: { address } };
  if (shards?.length) return { ...also, shards };
  return { ...also, ...(groups?.length ? { conductorGroups: groups } : {}) };
}

/** @param path of the list in the link to the next page, which for the ports of a node is /v1/ports, as in Ironic */
async function list(request: Request, context: ApiContext, path: string, brief?: readonly string[], parent: Parent = {}): Promise<Answer> {
  const { query, base, minor } = request;
  const project = projectOfList(request, context, 'port');
  const all = context.document.fields('Port');
  checkNewer([...((query['fields'] as readonly string[] | null | undefined) ?? []), query['sort_key'] as string], shown(all), minor);
  const fields = brief ? fieldsToShow(query, brief) : undefined;
  const page = pageOf(query, UNSORTABLE, context.options);
  const filter = await filterOf(request, context, parent, project);
  checkSortable(
    page.sortKey,
    ['id', ...all.filter(({ hidden, links }) => !hidden && !links).map(({ name }) => name)].filter((name) => name !== 'portgroup_uuid'),
  );
  checkFields(fields, all);
  const view = { base, minor, rows: rowsToShow(all, minor, fields) };
  const shape = viewShape('ports', view);
  const versions = await context.store.ports.versions({ ...filter, ...page });
  const items = context.fragments.slices({
    shape: () => shape,
    versions,
    read: (ids) => context.store.ports.list({ ...filter, ids }),
    sizes: (ids) => context.store.ports.sizes(ids),
    renderer: () => portPresenter(view),
  });
  const also = [
    ...(typeof query['detail'] === 'boolean' ? [['detail', query['detail']] as const] : []),
    ...(fields ? [['fields', fields.join(',')] as const] : []),
  ];
  return { status: 200, slices: envelopeOf('ports', items, versions.length, { base, path, page, limit: page.limit, also }) };
}
async function listOfNode(request: Request, context: ApiContext, path: string, brief?: readonly string[]): Promise<Answer> {
  const { uuid } = await nodeOfList(request, context);
  return list(request, context, path, brief, { node_uuid: uuid });
}
async function listOfPortgroup(request: Request, context: ApiContext, path: string, brief?: readonly string[]): Promise<Answer> {
  const ident = request.params['portgroup_ident']!;
  const missing = new Fault('PortgroupNotFound', { portgroup: ident });
  if (!isUuid(ident)) throw missing;
  const portgroup = await context.store.portgroups.find(ident);
  if (!context.auth.allowed(request.caller, 'node:get', await context.current.node(portgroup.node_uuid))) throw missing;
  return list(request, context, path, brief, { portgroup_uuid: portgroup.uuid });
}

const isFilled = (value: unknown): value is JsonObject => value !== null && typeof value === 'object';
/** Checks values that depend on each other. */
function checkTogether(record: Values, minor: number): void {
  const link = record['local_link_connection'];
  if (isFilled(link)) {
    if ('network_type' in link && minor < 64) throw unacceptable();
    if ('vtep-logical-switch' in link && !hasVtep(minor)) throw unacceptable();
    if (record['is_smartnic'] === true && !('port_id' in link && 'hostname' in link))
      throw invalid('Smart NIC port must have port_id and hostname in local_link_connection');
  }
  if (record['physical_network'] === '') throw invalid('A non-empty value is required when setting physical_network');
}

/** The portgroup of a port. It must exist and belong to the same node. */
async function portgroupFor(uuid: unknown, node: NodeRecord, { store }: ApiContext): Promise<PortgroupRecord> {
  const unknown = new Fault('PortgroupUnknown', { portgroup: str(uuid) });
  if (!isUuid(uuid)) throw unknown;
  const portgroup = await asBadRequest(store.portgroups.find(uuid), unknown);
  if (portgroup.node_uuid !== node.uuid) throw invalid('Port can not be added to a portgroup belonging to a different node.');
  return portgroup;
}

async function createPort(request: Request, context: ApiContext): Promise<Answer> {
  const { minor, base, body } = request;
  const { document, conductor, random } = context;
  const rows = document.fields('Port').filter(({ create }) => create);
  const record = checkedRecord('port', 'Port', rows, body, context);
  const { node_ident: ident, node_uuid: uuid, ...given } = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
  if (ident !== undefined && minor < 94) throw unacceptable();
  // The message names node_uuid, also if the client gave node_ident.
  const unknown = new Fault('NodeUnknown', { node: (uuid as string | undefined) ?? 'None' });
  const node = await nodeOfNew('port', nodeByIdent((ident ?? uuid) as string, minor, context), unknown, request, context);
  // Unlike other resources, an empty value of a newer field is refused too.
  if (rows.some(({ name, gate }) => name in record && !isGateOpen(gate, minor))) throw unacceptable();
  const portgroup = given['portgroup_uuid'] ? await portgroupFor(given['portgroup_uuid'], node, context) : undefined;
  checkTogether(given, minor);
  if (portgroup && given['pxe_enabled'] === true && !portgroup.standalone_ports_supported)
    throw new Fault('Conflict', {
      message:
        `Port group ${portgroup.uuid} doesn't support standalone ports. This port cannot be created as a member of that portgroup ` +
        `as the port's 'pxe_enabled' field was set to True.`,
    });
  const port: NewPort = {
    ...given,
    uuid: (given['uuid'] as string | undefined)?.toLowerCase() ?? newUuid(random),
    node_uuid: node.uuid,
    address: given['address'] as string,
  };
  const created = await withNotifications(context, request, 'port', 'create', port, () => conductor.createPort(port));
  return { status: 201, body: presentPort(created, request, context), headers: location(base, `ports/${created.uuid}`) };
}

async function showPort(request: Request, context: ApiContext): Promise<Answer> {
  const { minor, query } = request;
  const { port } = await portOf(request, context, 'port:get', (uuid) => context.current.node(uuid));
  const fields = (query['fields'] as readonly string[] | null | undefined) ?? undefined;
  const all = context.document.fields('Port');
  checkFieldsAllowed(fields, minor);
  checkNewer(fields ?? [], shown(all), minor);
  checkFields(fields, all);
  return { status: 200, body: presentPort(port, request, context, fields) };
}

/** A PATCH checks the version of these fields only. Every version accepts the later fields. */
const GATED = ['pxe_enabled', 'local_link_connection', 'portgroup_uuid', 'physical_network', 'is_smartnic'];
function checkPatchGates(patch: readonly PatchOperation[], rows: ReturnType<ApiContext['document']['fields']>, minor: number): void {
  const touches = (path: string): boolean =>
    valuesAt(patch, path).length > 0 || patch.some((one) => one.op === 'remove' && `${one.path}/`.startsWith(`${path}/`));
  if (rows.some(({ name, gate }) => GATED.includes(name) && !isGateOpen(gate, minor) && touches(`/${name}`))) throw unacceptable();
  if (minor < 64 && touches('/local_link_connection/network_type')) throw unacceptable();
}

async function updatePort(request: Request, context: ApiContext): Promise<Answer> {
  const { minor } = request;
  const rows = context.document.fields('Port');
  const patch = checkedPatch(request.body, rows);
  checkPatchGates(patch, rows, minor);
  const { port, node } = await portOf(request, context, 'port:update', (uuid) => context.store.nodes.find(uuid));
  const [newNode] = valuesAt(patch, '/node_uuid');
  const owner = newNode !== undefined ? await linkedNode('node_uuid', newNode, node.owner, request, context) : node;
  const patched: Values = { ...applyPatch(port as unknown as Values, patch), node_uuid: owner.uuid };
  const patchable = rows.filter(({ create, patch: may }) => create || may);
  const known = Object.fromEntries(Object.entries(patched).filter(([name]) => patchable.some((row) => row.name === name)));
  const group = patched['portgroup_uuid'];
  const isNone = !group || (typeof group === 'object' && Object.keys(group).length === 0);
  if (!isNone && (group !== port.portgroup_uuid || owner.uuid !== port.node_uuid)) await portgroupFor(group, owner, context);
  const checked = checkedRecord('patch', 'Port', patchable, known, context);
  checkNotInspecting(`port "${port.uuid}" on`, owner, minor);
  if (patch.some(({ path }) => path === '/physical_network') && checked['physical_network'] === '')
    throw invalid('A non-empty value is required when setting physical_network');
  // Checked in the first operation only, because clients that add a port to a portgroup send its physical network too.
  if (minor >= 102 && patch[0]?.path === '/physical_network' && !isNone)
    throw invalid('physical_network cannot be changed while the port belongs to a portgroup.');
  const before = port as unknown as Values;
  const changes: Values = {};
  for (const row of patchable.filter(({ hidden, patch: may }) => !hidden && may)) {
    const value = checked[row.name] ?? emptyOf(row);
    if (!equalJson(value, before[row.name])) changes[row.name] = value;
  }
  const changed = await withNotifications(context, request, 'port', 'update', { ...port, ...changes }, () =>
    context.conductor.updatePort(port.uuid, changes),
  );
  return { status: 200, body: presentPort(changed, request, context) };
}

async function deletePort(request: Request, context: ApiContext): Promise<Answer> {
  const { port } = await portOf(request, context, 'port:delete', (uuid) => context.current.node(uuid));
  await withNotifications(context, request, 'port', 'delete', port, () => context.conductor.deletePort(port.uuid));
  return { status: 204 };
}

export const portHandlers: Handlers = {
  listPorts: (request, context) => list(request, context, 'ports', BRIEF),
  listPortsDetail: (request, context) => list(request, context, 'ports/detail'),
  listNodePorts: (request, context) => listOfNode(request, context, 'ports', BRIEF),
  listNodePortsDetail: (request, context) => listOfNode(request, context, 'ports/detail'),
  listPortgroupPorts: (request, context) => listOfPortgroup(request, context, 'ports', BRIEF),
  listPortgroupPortsDetail: (request, context) => listOfPortgroup(request, context, 'ports/detail'),
  createPort,
  showPort,
  updatePort,
  deletePort,
};
