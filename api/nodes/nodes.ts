/** /v1/nodes: create, show, change, delete, validate. */
import { AlreadyRead } from '../../conductor/conductor';
import { Fault } from '../../model/errors';
import { isUuid, newUuid } from '../../model/idents';
import { repr } from '../../model/python';
import type { NewNode, NodeRecord } from '../../model/records';
import { isGateOpen } from '../../model/versions';
import type { AliveConductors, NodeSummary } from '../../store/store';
import { refuseByGate } from '../schema/arguments';
import { checkedRecord, refuseNewer, type Values } from '../resource/fields';
import { checkInPlaceOf, checkPolicy } from '../resource/access';
import { location } from '../resource/links';
import { nodeAccess } from '../resource/node-access';
import { checkFieldsAllowed, checkNewer } from '../resource/lists';
import { checkChassis, checkName, checkServed, linkedNode, nodeHeadOf, nodeOf, visibleNode } from '../resource/node-find';
import { changedNode } from './patch';
import { withNotifications } from '../resource/notifications';
import { checkNodeFields, nodePresenter, nodeRowsToShow, viewShape } from '../resource/present';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';

/**
 * The JSON of the node, or of some of its fields, for this caller. Rendered fragments are cached.
 * @param node the record, or its head if the cached fragment may be enough
 * @param alive the conductors, if the request has read them
 */
async function nodeBytes(
  node: NodeSummary | NodeRecord,
  request: Request,
  context: ApiContext,
  { fields, alive }: { readonly fields?: readonly string[] | undefined; readonly alive?: AliveConductors } = {},
): Promise<readonly Buffer[]> {
  const { document, current, fragments, store } = context;
  const { base, minor } = request;
  const rows = nodeRowsToShow(document.fields('Node'), minor, fields);
  const view = { base, minor, rows };
  const access = nodeAccess(request, context, rows, false);
  const { version: word, conductors } =
    alive ?? (await current.conductors('conductors_version' in node ? node.conductors_version : undefined));
  const shape = viewShape('nodes', view, rows.some(({ name }) => name === 'conductor') ? word : '');
  const [fragment] = await fragments.of<NodeRecord, NodeSummary | NodeRecord>({
    shape: (one) => shape + access.to(one).key,
    versions: [node],
    read: async (ids) => ('driver' in node ? [node] : store.nodes.list({ ids, children: 'all' })),
    renderer: () => nodePresenter(view, access, conductors),
  });
  if (!fragment) throw new Fault('NodeNotFound', { node: node.uuid });
  return [fragment.bytes];
}

/** Whether the caller creates the node as the administrator of its own project. @throws Fault HTTPForbidden */
function isOwnNode(request: Request, context: ApiContext): boolean {
  const { options, auth } = context;
  const ownPolicy = 'node:create:self_owned_node';
  const { exempt, system, project } = request.caller;
  // The node of a caller without a project would have no owner.
  const hasScope = exempt || system || (project !== null && project !== '');
  const isOwn = hasScope && options['api.project_admin_can_manage_own_nodes'] && auth.allowed(request.caller, ownPolicy);
  checkInPlaceOf('node:create', [isOwn ? ownPolicy : 'node:create'], request, context);
  return isOwn;
}
/** @param isOwn from isOwnNode: the caller's project becomes the owner, unless the caller's scope is the system */
function ownerOf(record: Values, { caller }: Request, isOwn: boolean): string | null {
  if (caller.system || !isOwn) return (record['owner'] as string | null | undefined) ?? null;
  if (record['owner'] && record['owner'] !== caller.project)
    throw new Fault('Invalid', { message: 'Cannot create a node as a project scoped admin with an owner other than your own project.' });
  return caller.project;
}

async function createNode(request: Request, context: ApiContext): Promise<Answer> {
  const { minor, base, body } = request;
  const { document, options, conductor, random } = context;
  const rows = document.fields('Node').filter(({ create }) => create);
  const record = checkedRecord('node', 'Node', rows, body, context);
  const isOwn = isOwnNode(request, context);
  refuseNewer(record, rows, minor);
  // null means absent.
  const given = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
  if ('name' in given) checkName(given['name'], minor, 'Cannot create node with invalid name');
  const owner = ownerOf(given, request, isOwn);
  await checkChassis(given['chassis_uuid'], context);
  const parent = given['parent_node']
    ? (await linkedNode('parent_node', given['parent_node'], owner, request, context)).uuid
    : ((given['parent_node'] as '' | undefined) ?? null);
  const node: NewNode = {
    ...given,
    uuid: (given['uuid'] as string | undefined)?.toLowerCase() ?? newUuid(random),
    driver: given['driver'] as string,
    conductor_group: (given['conductor_group'] as string | undefined) || options['DEFAULT.default_conductor_group'],
    resource_class: (given['resource_class'] as string | undefined) || options['DEFAULT.default_resource_class'],
    provision_state: minor < 11 ? 'available' : 'enroll',
    owner,
    parent_node: parent,
  };
  const alive = await checkServed({ driver: node.driver, conductor_group: node.conductor_group! }, context);
  const made = await withNotifications(context, request, 'node', 'create', node, () => conductor.createNode(node));
  return { status: 201, bytes: await nodeBytes(made, request, context, { alive }), headers: location(base, `nodes/${made.uuid}`) };
}

async function showNode(request: Request, context: ApiContext): Promise<Answer> {
  const { minor, query } = request;
  const rows = context.document.fields('Node');
  const node = await nodeHeadOf(request, context, 'node:get');
  const fields = (query['fields'] as readonly string[] | null | undefined) ?? undefined;
  checkFieldsAllowed(fields, minor);
  checkNewer(
    fields ?? [],
    rows.filter(({ selectable }) => selectable),
    minor,
  );
  checkNodeFields(fields, rows);
  return { status: 200, bytes: await nodeBytes(node, request, context, { fields }) };
}

async function updateNode(request: Request, context: ApiContext): Promise<Answer> {
  const { node, changes, resetInterfaces, alive } = await changedNode(request, context);
  const changed = await withNotifications(context, request, 'node', 'update', { ...node, ...changes }, () =>
    context.conductor.updateNode(node.uuid, changes, resetInterfaces, new AlreadyRead(node)),
  );
  return { status: 200, bytes: await nodeBytes(changed, request, context, { alive }) };
}

async function deleteNode(request: Request, context: ApiContext): Promise<Answer> {
  const { auth, options } = context;
  const node = await nodeOf(request, context, 'node:get', true);
  const ownPolicy = options['api.project_admin_can_manage_own_nodes'] ? 'node:delete:self_owned_node' : 'node:delete';
  const policy = auth.allowed(request.caller, 'node:delete', node) ? 'node:delete' : ownPolicy;
  checkInPlaceOf('node:delete', [policy], request, context, node);
  await withNotifications(context, request, 'node', 'delete', node, () => context.conductor.deleteNode(node.uuid));
  return { status: 204 };
}

/** Accepts names from 1.5 on. Earlier versions get 406 here, not 404. */
async function validate(ident: unknown, request: Request, context: ApiContext): Promise<Answer> {
  const { minor } = request;
  if (typeof ident !== 'string')
    throw minor < 5 ? new Fault('NodeNotFound', { node: repr(ident) }) : new Fault('InvalidUuidOrName', { name: repr(ident) });
  if (!isUuid(ident) && !isGateOpen({ since: 5 }, minor)) refuseByGate([406, 'Request not acceptable.'], 5);
  const node = await visibleNode(ident, request, context);
  checkPolicy(request, context, 'node:validate', node);
  return { status: 200, body: await context.conductor.validate(node.uuid) };
}

export const nodeHandlers: Handlers = {
  createNode,
  showNode,
  updateNode,
  deleteNode,
  validateNode: (request, context) => validate(request.query['node_uuid'] ?? request.query['node'], request, context),
  validateThisNode: (request, context) => validate(request.params['node_ident'], request, context),
};
