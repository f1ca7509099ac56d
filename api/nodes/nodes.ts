/** /v1/nodes: create, show, change, delete, validate. */
import { Fault } from '../../model/errors';
import { isUuid, newUuid } from '../../model/idents';
import { repr } from '../../model/python';
import type { NewNode, NodeRecord } from '../../model/records';
import { open } from '../../model/versions';
import type { NodeHead } from '../../store/store';
import { refuse } from '../schema/arguments';
import { checkedRecord, refuseNewer, type Values } from '../resource/fields';
import { location } from '../resource/links';
import { checkFieldsAllowed, checkNewer } from '../resource/lists';
import { checkChassis, checkName, checkServed, linkedNode, nodeHeadOf, nodeNamed, nodeOf } from '../resource/node-find';
import { changedNode } from './patch';
import { noticed } from '../resource/notices';
import { checkNodeFields, nodePresenter, nodeRowsToShow, viewShape } from '../resource/present';
import type { Answer, Handlers, Request, Rooms } from '../resource/routes';

/**
 * The whole node, or some fields, as this caller sees it; what is rendered is kept for the next.
 * @param node its record, or what stands for it
 */
async function nodeBytes(
  node: NodeHead | NodeRecord,
  request: Request,
  { document, auth, heads, fragments, store }: Rooms,
  fields?: readonly string[],
): Promise<readonly Buffer[]> {
  const { base, minor, who } = request;
  const rows = nodeRowsToShow(document.fields('Node'), minor, fields);
  const view = { base, minor, who, auth, rows };
  const { word, conductors } = await heads.conductors('alive' in node ? node.alive : undefined);
  const [fragment] = await fragments.of({
    shape: viewShape('nodes', view, rows.some(({ name }) => name === 'conductor') ? word : ''),
    versions: [node],
    read: async (ids) => ('driver' in node ? [node] : store.nodes.list({ ids, children: 'all' })),
    renderer: () => nodePresenter(view, conductors),
  });
  if (!fragment) throw new Fault('NodeNotFound', { node: node.uuid });
  return [fragment.bytes];
}

/** Who creates in a project owns what he creates, and nothing else. */
function ownerOf(record: Values, { who }: Request): string | null {
  if (who.system) return (record['owner'] as string | null | undefined) ?? null;
  if (record['owner'] && record['owner'] !== who.project)
    throw new Fault('Invalid', { message: 'Cannot create a node as a project scoped admin with an owner other than your own project.' });
  return who.project;
}

async function createNode(request: Request, rooms: Rooms): Promise<Answer> {
  const { minor, base, body } = request;
  const { document, options, conductor, random } = rooms;
  const rows = document.fields('Node').filter(({ create }) => create);
  const record = checkedRecord('node', 'Node', rows, body, rooms);
  refuseNewer(record, rows, minor);
  // null means what absence means.
  const given = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
  if ('name' in given) checkName(given['name'], minor, 'Cannot create node with invalid name');
  const owner = ownerOf(given, request);
  await checkChassis(given['chassis_uuid'], rooms);
  const parent = given['parent_node']
    ? (await linkedNode('parent_node', given['parent_node'], owner, request, rooms)).uuid
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
  await checkServed({ driver: node.driver, conductor_group: node.conductor_group! }, rooms);
  const made = await noticed(rooms, request, 'node', 'create', node, () => conductor.createNode(node));
  return { status: 201, bytes: await nodeBytes(made, request, rooms), headers: location(base, `nodes/${made.uuid}`) };
}

async function showNode(request: Request, rooms: Rooms): Promise<Answer> {
  const { minor, query } = request;
  const rows = rooms.document.fields('Node');
  const node = await nodeHeadOf(request, rooms, 'node:get');
  const fields = (query['fields'] as readonly string[] | null | undefined) ?? undefined;
  checkFieldsAllowed(fields, minor);
  checkNewer(
    fields ?? [],
    rows.filter(({ selectable }) => selectable),
    minor,
  );
  checkNodeFields(fields, rows);
  return { status: 200, bytes: await nodeBytes(node, request, rooms, fields) };
}

async function updateNode(request: Request, rooms: Rooms): Promise<Answer> {
  const { node, changes, resetInterfaces } = await changedNode(request, rooms);
  const changed = await noticed(rooms, request, 'node', 'update', { ...node, ...changes }, () =>
    rooms.conductor.updateNode(node.uuid, changes, resetInterfaces),
  );
  return { status: 200, bytes: await nodeBytes(changed, request, rooms) };
}

async function deleteNode(request: Request, rooms: Rooms): Promise<Answer> {
  const node = await nodeOf(request, rooms, 'node:delete', true);
  await noticed(rooms, request, 'node', 'delete', node, () => rooms.conductor.deleteNode(node.uuid));
  return { status: 204 };
}

/** Names only from 1.5 on, which this door says with 406. */
async function validate(ident: unknown, request: Request, rooms: Rooms): Promise<Answer> {
  const { minor, who } = request;
  if (typeof ident !== 'string')
    throw minor < 5 ? new Fault('NodeNotFound', { node: repr(ident) }) : new Fault('InvalidUuidOrName', { name: repr(ident) });
  if (!isUuid(ident) && !open({ since: 5 }, minor)) refuse([406, 'Request not acceptable.'], 5);
  const node = await nodeNamed(ident, minor, rooms);
  if (!rooms.auth.allowed(who, 'node:validate', node)) throw new Fault('NotAuthorized');
  return { status: 200, body: await rooms.conductor.validate(node.uuid) };
}

export const nodeHandlers: Handlers = {
  createNode,
  showNode,
  updateNode,
  deleteNode,
  validateNode: (request, rooms) => validate(request.query['node_uuid'] ?? request.query['node'], request, rooms),
  validateThisNode: (request, rooms) => validate(request.params['node_ident'], request, rooms),
};
