/** /v1/volume: connectors and targets for booting nodes from volumes, and those of one node. */
import { Fault } from '../../model/errors';
import { isUuid } from '../../model/idents';
import { maskSecrets } from '../../model/masks';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { str } from '../../model/python';
import type { VolumeConnectorRecord, VolumeTargetRecord } from '../../model/records';
import { checkPolicy, projectOfList } from '../resource/access';
import type { Values } from '../resource/fields';
import { linksTo } from '../resource/links';
import { linkedNode, nodeOfFilter, nodeOfNew } from '../resource/node-find';
import { handlersOf, listOf, type Resource } from '../resource/resource';
import type { Answer, Handlers, Request, ApiContext } from '../resource/handler';

type VolumeRecord = VolumeConnectorRecord | VolumeTargetRecord;

async function filterByNode(request: Request, context: ApiContext): Promise<{ readonly node_uuid?: string }> {
  const node = request.query['node'] as string | null | undefined;
  return node ? { node_uuid: (await nodeOfFilter(node, projectOfList(request, context, 'volume'), request, context)).uuid } : {};
}
function ofNodes(request: Request, context: ApiContext): { readonly project?: string } {
  const project = projectOfList(request, context, 'volume');
  return project === undefined ? {} : { project };
}
/** The node of a new connector or target must exist; otherwise the request is bad (400). */
async function checkNode(values: Values, request: Request, context: ApiContext, before?: VolumeRecord): Promise<Values> {
  if (before) return values;
  const value = values['node_uuid'] as string;
  const unknown = new Fault('Invalid', { message: `Invalid input for field/attribute node_uuid. Value: '${value}'. ` });
  const node = await nodeOfNew('volume', context.store.nodes.find(value), unknown, request, context);
  return { ...values, node_uuid: node.uuid };
}
/** A patch may change the node. Removing the node has no effect. */
async function withNode(
  patched: Values,
  patch: readonly PatchOperation[],
  before: VolumeRecord,
  request: Request,
  context: ApiContext,
): Promise<Values> {
  const newNodes = valuesAt(patch, '/node_uuid');
  for (const value of newNodes)
    if (!isUuid(value)) throw new Fault('Invalid', { message: `Expected a UUID for node_uuid, but received ${str(value)}.` });
  if (newNodes.length === 0) return { ...patched, node_uuid: before.node_uuid };
  const { owner } = await context.store.nodes.find(before.node_uuid);
  return { ...patched, node_uuid: (await linkedNode('node_uuid', newNodes[0], owner, request, context)).uuid };
}
const SHARED = {
  ident: 'connector_uuid',
  policy: 'volume',
  computed: ['node_uuid'],
  strict: true,
  alwaysUpdates: true,
  projects: ({ node_uuid: node }: VolumeRecord, { current }: ApiContext) => current.node(node),
  ofNodes,
  filter: filterByNode,
  patched: withNode,
  check: checkNode,
} as const;

const CONNECTORS: Resource<VolumeConnectorRecord> = {
  ...SHARED,
  schema: 'VolumeConnector',
  path: 'volume/connectors',
  list: 'connectors',
  bodyLabel: 'connector',
  brief: ['uuid', 'node_uuid', 'type', 'connector_id'],
  unsortable: ['extra'],
  hidden: ['node:get', (connector) => new Fault('VolumeConnectorNotFound', { connector })],
  table: ({ store }) => store.volumeConnectors,
  create: (record, { store }) => store.volumeConnectors.create(record as never),
  update: ({ uuid }, changes, { conductor }) => conductor.updateVolume('connector', uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteVolume('connector', uuid),
};

const REDACTED = '** Value redacted: Requires permission baremetal:volume:view_target_properties access. Permission denied. **';
const TARGETS: Resource<VolumeTargetRecord> = {
  ...SHARED,
  ident: 'target_uuid',
  schema: 'VolumeTarget',
  path: 'volume/targets',
  list: 'targets',
  bodyLabel: 'target',
  brief: ['uuid', 'node_uuid', 'volume_type', 'boot_index', 'volume_id'],
  unsortable: ['extra', 'properties'],
  values: {
    properties: ({ properties }, { caller }, { auth }) =>
      auth.allowed(caller, 'volume:view_target_properties') ? maskSecrets(properties) : { redacted_contents: REDACTED },
  },
  // Whoever creates a target knows its properties.
  valuesOfNew: { properties: ({ properties }) => maskSecrets(properties) },
  hidden: ['node:get', (target) => new Fault('VolumeTargetNotFound', { target })],
  table: ({ store }) => store.volumeTargets,
  create: (record, { store }) => store.volumeTargets.create(record as never),
  update: ({ uuid }, changes, { conductor }) => conductor.updateVolume('target', uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteVolume('target', uuid),
};

/** A list with its own error message for `fields` together with `detail`. */
function list<RecordType extends VolumeRecord>(resource: Resource<RecordType>, request: Request, context: ApiContext): Promise<Answer> {
  const { fields, detail } = request.query as { readonly fields?: readonly string[] | null; readonly detail?: boolean | null };
  if (fields && fields.length > 0 && detail)
    throw new Fault('InvalidParameterValue', { message: "Can't fetch a subset of fields with 'detail' set" });
  // The link to the next page has `detail` only if it is true.
  return listOf(resource, { ...request, query: { ...request.query, detail: detail === true || null } }, context);
}
/** The list of a node, by its UUID only. The link to the next page is that of all nodes, as in Ironic. */
async function listOfNode<RecordType extends VolumeRecord>(
  resource: Resource<RecordType>,
  request: Request,
  context: ApiContext,
): Promise<Answer> {
  const ident = request.params['node_ident']!;
  const node = isUuid(ident) ? await context.store.nodes.find(ident) : undefined;
  if (!node || !context.auth.allowed(request.caller, 'node:get', node)) throw new Fault('NodeNotFound', { node: ident });
  return list(resource, { ...request, query: { ...request.query, node: node.uuid } }, context);
}

function volumeLinks(request: Request, context: ApiContext, path: string): Answer {
  checkPolicy(request, context, 'volume:get');
  const { base } = request;
  const body = {
    links: linksTo(base, `${path}/`),
    connectors: linksTo(base, `${path}/connectors`),
    targets: linksTo(base, `${path}/targets`),
  };
  return { status: 200, body };
}

export const volumeHandlers: Handlers = {
  ...handlersOf(CONNECTORS),
  ...handlersOf(TARGETS),
  showVolume: async (request, context) => volumeLinks(request, context, 'volume'),
  showNodeVolume: async (request, context) => volumeLinks(request, context, `nodes/${request.params['node_ident']!}/volume`),
  listVolumeConnectors: (request, context) => list(CONNECTORS, request, context),
  listNodeVolumeConnectors: (request, context) => listOfNode(CONNECTORS, request, context),
  listVolumeTargets: (request, context) => list(TARGETS, request, context),
  listNodeVolumeTargets: (request, context) => listOfNode(TARGETS, request, context),
};
