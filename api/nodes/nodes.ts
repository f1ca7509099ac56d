/** /v1/nodes: create, show, delete, validate. */
import { Fault, invalid, notAcceptable } from '../../model/errors';
import { isUuid, newUuid } from '../../model/idents';
import { repr } from '../../model/python';
import type { NewNode } from '../../model/records';
import { checkedRecord, presentOf, refuseNewer } from '../pipeline/fields';
import { checkInPlaceOf, checkPolicy } from '../pipeline/access';
import { checkFieldsAllowed, checkNewer } from '../pipeline/lists';
import { checkChassis, checkName, checkServed, linkedNode, nodeHeadOf, nodeOf, visibleNode } from '../pipeline/node-find';
import { withNotifications } from '../pipeline/notifications';
import { checkSnapshotSource } from '../pipeline/snapshot-sources';
import { checkNodeFields, location, nodeBytes } from '../pipeline/present';
import type { Answer, Request, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

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
function ownerOf(owner: string | undefined, { caller }: Request, isOwn: boolean): string | null {
  if (caller.system || !isOwn) return owner ?? null;
  if (owner && owner !== caller.project)
    throw invalid('Cannot create a node as a project scoped admin with an owner other than your own project.');
  return caller.project;
}

async function createNode(request: Request, context: ApiContext): Promise<Answer> {
  const { minor, base, body } = request;
  const { document, options, conductor, random } = context;
  const rows = document.fields('Node').filter(({ create }) => create);
  const record = checkedRecord('node', 'Node', rows, body, context);
  const isOwn = isOwnNode(request, context);
  refuseNewer(record, rows, minor);
  const given = presentOf(record);
  if ('name' in given) checkName(given.name, minor, 'Cannot create node with invalid name');
  const owner = ownerOf(given.owner, request, isOwn);
  await checkSnapshotSource(given.instance_info ?? undefined, {}, request, context);
  await checkChassis(given.chassis_uuid, context);
  const parent = given.parent_node
    ? (await linkedNode('parent_node', given.parent_node, owner, request, context)).uuid
    : (given.parent_node ?? null);
  const node: NewNode = {
    ...given,
    uuid: given.uuid?.toLowerCase() ?? newUuid(random),
    conductor_group: given.conductor_group || options['DEFAULT.default_conductor_group'],
    resource_class: given.resource_class || options['DEFAULT.default_resource_class'],
    provision_state: minor < 11 ? 'available' : 'enroll',
    owner,
    parent_node: parent,
  };
  const alive = await context.current.conductors();
  checkServed({ driver: node.driver, conductor_group: node.conductor_group! }, alive);
  const made = await withNotifications(context, request, 'node', 'create', node, () => conductor.createNode(node));
  return { status: 201, bytes: await nodeBytes(made, request, context, { alive }), headers: location(base, `nodes/${made.uuid}`) };
}

async function showNode(request: RequestOf<'showNode'>, context: ApiContext): Promise<Answer> {
  const { minor } = request;
  const { fields } = request.query;
  const rows = context.document.fields('Node');
  const node = await nodeHeadOf(request, context, 'node:get');
  checkFieldsAllowed(fields, minor);
  checkNewer(
    fields ?? [],
    rows.filter(({ selectable }) => selectable),
    minor,
  );
  checkNodeFields(fields, rows);
  return { status: 200, bytes: await nodeBytes(node, request, context, { fields }) };
}

async function deleteNode(request: RequestOf<'deleteNode'>, context: ApiContext): Promise<Answer> {
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
  if (minor < 5 && !isUuid(ident)) throw notAcceptable();
  const node = await visibleNode(ident, request, context);
  checkPolicy(request, context, 'node:validate', node);
  return { status: 200, body: await context.conductor.validate(node.uuid) };
}

export const nodeHandlers = {
  createNode,
  showNode,
  deleteNode,
  validateNode: (request, context) => validate(request.query.node_uuid ?? request.query.node, request, context),
  validateThisNode: (request, context) => validate(request.params.node_ident, request, context),
} satisfies SomeHandlers;
