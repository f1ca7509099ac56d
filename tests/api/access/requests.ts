/** A request for each operation of openapi.yaml, and what it must answer to a caller. */
import { randomUUID } from 'node:crypto';
import type { Document, Operation } from '../../../api/schema/document';
import { LESSEE, OWNER, type Scope } from './callers';
import { may } from './expected';

/** `owned`: the node of the owner, leased to the lessee. `unowned`: a node without projects. */
export type Kind = 'owned' | 'unowned';
const uuid = (kind: Kind, number: number): string =>
  `00000000-0000-4000-8000-0000000${kind === 'owned' ? 1 : 2}${String(number).padStart(4, '0')}`;
const NAMES = [
  'node',
  'port',
  'portgroup',
  'connector',
  'target',
  'allocation',
  'runbook',
  'snapshot',
  'erasure',
  'history',
  'chassis',
  'template',
  'rule',
  'image',
  'config',
  'alert',
] as const;
type Things = Readonly<Record<(typeof NAMES)[number], string>>;
export const thingsOf = (kind: Kind): Things =>
  Object.fromEntries(NAMES.map((name, index) => [name, uuid(kind, index)])) as Record<(typeof NAMES)[number], string>;

/** `allowed`: the handler is reached, and succeeds or is stopped where it would change something. */
type Outcome = 'allowed' | 403 | 404;
export interface Row {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly expected: (caller: Scope, kind: Kind) => Outcome;
  /** The answer depends on the projects of the node. */
  readonly hasTarget: boolean;
  /** What else an allowed request is answered with. */
  readonly also?: readonly number[];
}

const projectsOf = (kind: Kind): readonly [string | null, string | null] => (kind === 'owned' ? [OWNER, LESSEE] : [null, null]);
type Expected = Row['expected'];
const oneOf = (isAllowed: boolean): Outcome => (isAllowed ? 'allowed' : 403);
const ofNode =
  (policy: string): Expected =>
  (caller, kind) =>
    may(caller, 'node:get', ...projectsOf(kind)) ? oneOf(may(caller, policy, ...projectsOf(kind))) : 404;
const ofCaller =
  (policy: string): Expected =>
  (caller) =>
    oneOf(may(caller, policy));
/** A list shows all, or what belongs to the project of the caller. */
const ofList =
  (kind: string): Expected =>
  (caller) =>
    oneOf(may(caller, `${kind}:list_all`) || (caller.project !== undefined && may(caller, `${kind}:list`)));
const inNode =
  (inner: Expected): Expected =>
  (caller, kind) =>
    may(caller, 'node:get', ...projectsOf(kind)) ? inner(caller, kind) : 404;
const ofOwner =
  (policy: string): Expected =>
  (caller, kind) =>
    oneOf(may(caller, policy, projectsOf(kind)[0]));
const ofAllocation =
  (policy: string): Expected =>
  (caller, kind) =>
    may(caller, 'allocation:get', projectsOf(kind)[0]) ? ofOwner(policy)(caller, kind) : 404;

/** By operation, where the general rule of `expectedOf` is not right. */
const SPECIAL: Readonly<Record<string, Expected>> = {
  validateNode: ofNode('node:validate'),
  createNode: (caller) =>
    oneOf(
      may(caller, 'node:create') ||
        ((caller.project !== undefined || caller.system === true) && may(caller, 'node:create:self_owned_node')),
    ),
  deleteNode: (caller, kind) =>
    ofNode('node:delete')(caller, kind) === 'allowed' ? 'allowed' : ofNode('node:delete:self_owned_node')(caller, kind),
  // A list is refused if it has an allocation that the caller may not read.
  listAllocations: (caller, kind) =>
    caller.project === OWNER && !may(caller, 'allocation:list_all') && !may(caller, 'allocation:get', OWNER)
      ? 403
      : ofList('allocation')(caller, kind),
  createAllocation: ofCaller('allocation:create'),
  listStateCounts: ofCaller('node:list_all'),
  showVolume: ofCaller('volume:get'),
  showNodeVolume: ofCaller('volume:get'),
  showNodeAllocation: inNode(ofOwner('allocation:get')),
  deleteNodeAllocation: inNode(ofOwner('allocation:delete')),
  listChildren: inNode(ofList('node')),
  heartbeat: () => 'allowed',
  pushHardware: () => 'allowed',
  checkSnapshotPart: () => 'allowed',
  receiveRedfishEvents: () => 'allowed',
  registerResidentAgent: () => 'allowed',
  putSnapshotPart: () => 'allowed',
};
/** @returns the expectation, and whether it depends on the node's projects */
function expectedOf({ operationId, path, policy }: Operation): readonly [Expected, boolean] {
  const special = SPECIAL[operationId];
  const hasTarget = /\{(?:node|port|portgroup|connector|target|allocation|runbook|snapshot|erasure)_/.test(path);
  if (special) return [special, hasTarget || operationId === 'validateNode'];
  if (policy === null) return [() => 'allowed', false];
  const [kind = ''] = policy.split(':');
  if (policy.endsWith(':list_all')) {
    const isInside = /\{(?:node|portgroup)_ident\}/.test(path);
    return isInside ? [inNode(ofList(kind)), true] : [ofList(kind), false];
  }
  if (['port', 'portgroup', 'volume'].includes(kind) && policy.endsWith(':create'))
    return [(caller, of) => oneOf(may(caller, policy, ...projectsOf(of))), true];
  if (kind === 'allocation') return [ofAllocation(policy), hasTarget];
  if (kind === 'erasure' && hasTarget) return [(caller, of) => oneOf(may(caller, policy, ...projectsOf(of))), true];
  if (['runbook', 'snapshot'].includes(kind) && hasTarget) return [ofOwner(policy), true];
  return hasTarget ? [ofNode(policy), true] : [ofCaller(policy), false];
}

const patchOf = (field: string, value: unknown) => [{ op: 'add', path: `/${field}`, value }];
/** Bodies that differ from the example of openapi.yaml. */
const BODIES: Readonly<Record<string, (things: Things) => unknown>> = {
  createNode: () => ({ driver: 'fake-hardware' }),
  createPort: ({ node }) => ({ node_uuid: node, address: '52:54:00:00:00:99' }),
  createPortgroup: ({ node }) => ({ node_uuid: node, address: '52:54:00:00:00:98' }),
  createVolumeConnector: ({ node }) => ({ node_uuid: node, type: 'ip', connector_id: 'x' }),
  createVolumeTarget: ({ node }) => ({ node_uuid: node, volume_type: 'iscsi', volume_id: 'x', boot_index: 9 }),
  createAllocation: () => ({ resource_class: 'small' }),
  createRunbook: () => ({ name: 'CUSTOM_NEW', steps: [{ interface: 'deploy', step: 'erase_devices', args: {}, order: 1 }] }),
  setProvision: () => ({ target: 'manage' }),
  declareOutOfService: () => ({ reason: 'x', until: new Date(Date.now() + 86_400_000).toISOString() }),
  // A subject of its own: another user may not change a report.
  reportHealthAlert: () => ({ source: 'x', subject: randomUUID(), severity: 'warning', text: 'x' }),
  maskHealthAlert: () => ({ reason: 'x', until: new Date(Date.now() + 86_400_000).toISOString() }),
  updateNode: () => patchOf('description', 'changed'),
  updatePort: () => patchOf('extra', { a: 1 }),
  updatePortgroup: () => patchOf('extra', { a: 1 }),
  updateChassis: () => patchOf('extra', { a: 1 }),
  updateVolumeConnector: () => patchOf('extra', { a: 1 }),
  updateVolumeTarget: () => patchOf('extra', { a: 1 }),
  updateAllocation: () => patchOf('extra', { a: 1 }),
  updateDeployTemplate: () => patchOf('extra', { a: 1 }),
  updateRunbook: () => patchOf('extra', { a: 1 }),
  updateInspectionRule: () => patchOf('description', 'changed'),
  updateDefaultConfig: () => patchOf('description', 'changed'),
  updateSnapshot: () => patchOf('description', 'changed'),
  updateImage: () => patchOf('description', 'changed'),
  addTrait: () => undefined,
  addRunbookTrait: () => undefined,
};
const QUERIES: Readonly<Record<string, (things: Things) => string>> = {
  validateNode: ({ node }) => `?node=${node}`,
  detachVirtualMedia: () => '?device_types=cdrom',
  lookup: () => '?addresses=52:54:00:00:00:77',
};
/** Answers of operations that need more than a policy: the machine's token, a known machine, an OpenID provider. */
const ALSO: Readonly<Record<string, readonly number[]>> = {
  heartbeat: [400, 401, 403, 404],
  lookup: [404],
  pushHardware: [401, 403],
  checkSnapshotPart: [401, 403],
  receiveRedfishEvents: [401, 403],
  registerResidentAgent: [401, 403],
  putSnapshotPart: [401, 403],
  // The nodes have no instance.
  createSnapshot: [400],
  registerRecorder: [404],
};

const PARAMETERS: Readonly<Record<string, (things: Things) => string>> = {
  asset: () => 'start.js',
  node_ident: ({ node }) => node,
  port_ident: ({ port }) => port,
  portgroup_ident: ({ portgroup }) => portgroup,
  connector_uuid: ({ connector }) => connector,
  target_uuid: ({ target }) => target,
  allocation_ident: ({ allocation }) => allocation,
  erasure_uuid: ({ erasure }) => erasure,
  snapshot_ident: ({ snapshot }) => snapshot,
  position: () => '0',
  runbook_ident: ({ runbook }) => runbook,
  template_ident: ({ template }) => template,
  inspection_rule_uuid: ({ rule }) => rule,
  image_ident: ({ image }) => image,
  default_config_uuid: ({ config }) => config,
  chassis_uuid: ({ chassis }) => chassis,
  event: ({ history }) => history,
  alert_uuid: ({ alert }) => alert,
  driver_name: () => 'fake-hardware',
  hostname: () => 'here',
  indicator: () => 'led@chassis',
  setting_name: () => 'setting',
  trait: () => 'CUSTOM_A',
  vif_id: ({ node }) => node,
  method: () => 'method',
  key: () => 'key',
};
type Node = Readonly<Record<string, unknown>>;

export function rowsOf(document: Document, kind: Kind): readonly Row[] {
  const things = thingsOf(kind);
  // What belongs to no node is the same for both kinds.
  const shared = {
    ...things,
    ...Object.fromEntries((['chassis', 'template', 'rule', 'image', 'config'] as const).map((name) => [name, thingsOf('owned')[name]])),
  };
  const sources = document.source['paths'] as Readonly<Record<string, Readonly<Record<string, Node>>>>;
  const rows = document.paths
    .flatMap(({ operations }) => [...operations.values()])
    .map((operation): Row => {
      const { operationId, method, path } = operation;
      const [expected, hasTarget] = expectedOf(operation);
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => PARAMETERS[name]!(shared));
      const example = sources[path]![method.toLowerCase()]!['x-example'];
      const body = Object.hasOwn(BODIES, operationId) ? BODIES[operationId]!(shared) : example;
      const query = QUERIES[operationId]?.(shared) ?? (operationId.endsWith('VendorOf') ? '?method=method' : '');
      const also = ALSO[operationId];
      return {
        name: operationId,
        method,
        path: filled + query,
        expected,
        hasTarget,
        ...(body === undefined || method === 'GET' ? {} : { body }),
        ...(also ? { also } : {}),
      };
    });
  return [...rows, ...rowsOfFields(document, things)];
}
/** A field of a node for each policy of fields. The value may be refused, after the policy. */
function rowsOfFields(document: Document, { node }: Things): readonly Row[] {
  const all = document.fields('Node').filter(({ patch, policy }) => patch && policy !== null);
  const fields = all.filter(({ policy }, index) => all.findIndex((other) => other.policy === policy) === index);
  return fields.map(({ name, policy }) => ({
    name: `updateNode ${name}`,
    method: 'PATCH',
    path: `/v1/nodes/${node}`,
    body: patchOf(name, name === 'network_data' ? { links: [], networks: [], services: [] } : null),
    expected: ofNode(policy!),
    hasTarget: true,
    also: [400, 406, 409],
  }));
}
