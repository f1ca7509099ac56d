/** /v1/volume: connectors and targets for booting nodes from volumes, and those of one node. */
import { Fault, invalid, invalidParameter } from '../../model/errors';
import { isUuid } from '../../model/idents';
import { maskSecrets } from '../../model/masks';
import { valuesAt, type PatchOperation } from '../../model/patch';
import { str } from '../../model/python';
import type { Inputs } from '../schema/operations';
import type { VolumeConnectorRecord, VolumeTargetRecord } from '../../model/records';
import { checkPolicy, projectOfList } from '../pipeline/access';
import type { Present, Values } from '../pipeline/fields';
import type { ListQuery } from '../pipeline/lists';
import type { PatchRequest } from '../pipeline/patch';
import { linksTo } from '../pipeline/present';
import { linkedNode, nodeOfFilter, nodeOfNew } from '../pipeline/node-find';
import { createOf, listOf, removeOf, showOf, updateOf, type ListFilter, type ListRequest, type Resource } from '../pipeline/resource';
import type { Answer, Request, RequestOn, SomeHandlers, ApiContext } from '../pipeline/handler';

type VolumeRecord = VolumeConnectorRecord | VolumeTargetRecord;

type VolumeQuery = ListQuery & { readonly node?: string };

async function filter(
  request: ListRequest<VolumeQuery>,
  context: ApiContext,
  project: string | undefined,
): Promise<ListFilter<VolumeRecord>> {
  const { node } = request.query;
  return {
    where: node ? { node_uuid: (await nodeOfFilter(node, project, request, context)).uuid } : undefined,
    nodeScope: project === undefined ? undefined : { project },
  };
}
/** The node of a new connector or target must exist; otherwise the request is bad (400). */
async function withNode<Volume extends { readonly node_uuid: string }>(values: Volume, request: Request, context: ApiContext) {
  const value = values.node_uuid;
  const unknown = invalid(`Invalid input for field/attribute node_uuid. Value: '${value}'. `);
  const node = await nodeOfNew('volume', context.store.nodes.find(value), unknown, request, context);
  return { ...values, node_uuid: node.uuid };
}
/** A patch may change the node. Removing the node has no effect. */
async function patched(
  values: Values,
  { record: before }: { readonly record: VolumeRecord },
  patch: readonly PatchOperation[],
  request: PatchRequest,
  context: ApiContext,
): Promise<Values> {
  const newNodes = valuesAt(patch, '/node_uuid');
  for (const value of newNodes) if (!isUuid(value)) throw invalid(`Expected a UUID for node_uuid, but received ${str(value)}.`);
  if (newNodes.length === 0) return { ...values, node_uuid: before.node_uuid };
  const { owner } = await context.store.nodes.find(before.node_uuid);
  return { ...values, node_uuid: (await linkedNode('node_uuid', newNodes[0], owner, request, context)).uuid };
}
const SHARED = {
  policy: 'volume',
  computed: ['node_uuid'],
  strict: true,
  alwaysUpdates: true,
  projects: ({ node_uuid: node }: VolumeRecord, { current }: ApiContext) => current.node(node),
  projectOf: (request: Request, context: ApiContext) => projectOfList(request, context, 'volume'),
  filter,
  check: withNode,
  patched,
} as const;

const CONNECTORS: Resource<VolumeConnectorRecord, 'VolumeConnector', Present<Inputs['VolumeConnector']>, VolumeQuery> = {
  ...SHARED,
  ident: 'connector_uuid',
  schema: 'VolumeConnector',
  path: 'volume/connectors',
  list: 'connectors',
  bodyLabel: 'connector',
  brief: ['uuid', 'node_uuid', 'type', 'connector_id'],
  unsortable: ['extra'],
  hidden: ['node:get', (connector) => new Fault('VolumeConnectorNotFound', { connector })],
  table: ({ store }) => store.volumeConnectors,
  create: (record, { store }) => store.volumeConnectors.create(record),
  update: ({ uuid }, changes, { conductor }) => conductor.updateVolume('connector', uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteVolume('connector', uuid),
};

const REDACTED = '** Value redacted: Requires permission baremetal:volume:view_target_properties access. Permission denied. **';
const TARGETS: Resource<VolumeTargetRecord, 'VolumeTarget', Present<Inputs['VolumeTarget']>, VolumeQuery> = {
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
  hidden: ['node:get', (target) => new Fault('VolumeTargetNotFound', { target })],
  table: ({ store }) => store.volumeTargets,
  create: (record, { store }) => store.volumeTargets.create(record),
  update: ({ uuid }, changes, { conductor }) => conductor.updateVolume('target', uuid, changes),
  remove: ({ uuid }, { conductor }) => conductor.deleteVolume('target', uuid),
};

type VolumeResource<RecordType extends VolumeRecord> = Resource<RecordType, 'VolumeConnector' | 'VolumeTarget', object, VolumeQuery>;
/** A list with its own error message for `fields` together with `detail`. */
function list<RecordType extends VolumeRecord>(
  resource: VolumeResource<RecordType>,
  request: ListRequest<VolumeQuery>,
  context: ApiContext,
): Promise<Answer> {
  const { fields, detail } = request.query;
  if (fields && fields.length > 0 && detail) throw invalidParameter("Can't fetch a subset of fields with 'detail' set");
  // The link to the next page has `detail` only if it is true.
  return listOf(resource, { ...request, query: { ...request.query, detail: detail === true || null } }, context);
}
/** The list of a node, by its UUID only. The link to the next page is that of all nodes, as in Ironic. */
async function listOfNode<RecordType extends VolumeRecord>(
  resource: VolumeResource<RecordType>,
  request: ListRequest<VolumeQuery> & RequestOn<'node_ident'>,
  context: ApiContext,
): Promise<Answer> {
  const ident = request.params.node_ident;
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

export const volumeHandlers = {
  showVolume: async (request, context) => volumeLinks(request, context, 'volume'),
  showNodeVolume: async (request, context) => volumeLinks(request, context, `nodes/${request.params.node_ident}/volume`),
  listVolumeConnectors: (request, context) => list(CONNECTORS, request, context),
  listNodeVolumeConnectors: (request, context) => listOfNode(CONNECTORS, request, context),
  createVolumeConnector: (request, context) => createOf(CONNECTORS, request, context),
  showVolumeConnector: (request, context) => showOf(CONNECTORS, request, context),
  updateVolumeConnector: (request, context) => updateOf(CONNECTORS, request, context),
  deleteVolumeConnector: (request, context) => removeOf(CONNECTORS, request, context),
  listVolumeTargets: (request, context) => list(TARGETS, request, context),
  listNodeVolumeTargets: (request, context) => listOfNode(TARGETS, request, context),
  // Whoever creates a target knows its properties.
  createVolumeTarget: (request, context) =>
    createOf({ ...TARGETS, values: { properties: ({ properties }) => maskSecrets(properties) } }, request, context),
  showVolumeTarget: (request, context) => showOf(TARGETS, request, context),
  updateVolumeTarget: (request, context) => updateOf(TARGETS, request, context),
  deleteVolumeTarget: (request, context) => removeOf(TARGETS, request, context),
} satisfies SomeHandlers;
