/** The rows of the policy table: requests of every operation, with inputs that change nothing or are refused after the policies. */
import { LESSEE, OTHER, OWNER } from './personas';

/** `owned` belongs to the owner and is leased to the lessee. `unowned` belongs to nobody; its runbook is public. */
export const KINDS = ['owned', 'unowned'] as const;
export type Kind = (typeof KINDS)[number];

const LABELS = [
  'node',
  'port',
  'portgroup',
  'connector',
  'target',
  'allocation',
  'runbook',
  'instance',
  'newNode',
  'newPort',
  'newPortgroup',
  'newConnector',
  'newTarget',
  'newAllocation',
  'newRunbook',
] as const;
type Label = (typeof LABELS)[number];
const SHARED = ['chassis', 'template', 'rule', 'newChassis', 'newTemplate', 'newRule', 'foreign', 'missing'] as const;
type Things = Readonly<Record<Label | (typeof SHARED)[number], string>> & {
  readonly kind: Kind;
  readonly owner: string | null;
  readonly lessee: string | null;
};

const uuidOf = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
/** Fixed UUIDs, equal on both servers. */
export function thingsOf(kind: Kind): Things {
  const first = kind === 'owned' ? 100 : 200;
  const own = Object.fromEntries(LABELS.map((label, index) => [label, uuidOf(first + index)])) as Record<Label, string>;
  const shared = Object.fromEntries(SHARED.map((label, index) => [label, uuidOf(300 + index)])) as Record<(typeof SHARED)[number], string>;
  const projects = kind === 'owned' ? { owner: OWNER, lessee: LESSEE } : { owner: null, lessee: null };
  return { ...own, ...shared, ...projects, kind };
}
export const LABEL_OF: ReadonlyMap<string, string> = new Map(
  KINDS.flatMap((kind) => {
    const things = thingsOf(kind);
    return [
      ...LABELS.map((label) => [things[label], `${kind}.${label}`] as const),
      ...SHARED.map((label) => [things[label], label] as const),
    ];
  }),
);
const macOf = (uuid: string): string => `52:54:00:00:00:${Number(uuid.slice(-3)).toString(16).padStart(2, '0').slice(-2)}`;

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}
export interface Operation {
  readonly name: string;
  readonly call: (things: Things) => Call;
  /** The administrator sends this before each request, and ignores the result. */
  readonly before?: (things: Things) => Call;
  /** The administrator sends this after a successful request. */
  readonly after?: (things: Things) => Call;
  /** The request reserves the node for a moment: no two may run at the same time. */
  readonly alone?: true;
  /** The work continues after the response, with the node reserved. */
  readonly settles?: true;
  /** The request does not depend on the node. */
  readonly once?: true;
}

const get = (name: string, path: (things: Things) => string): Operation => ({
  name,
  call: (things) => ({ method: 'GET', path: path(things) }),
});
const once = (name: string, path: string): Operation => ({ ...get(name, () => path), once: true });
const send = (name: string, method: string, path: (things: Things) => string, body?: (things: Things) => unknown): Operation => ({
  name,
  call: (things) => ({ method, path: path(things), ...(body ? { body: body(things) } : {}) }),
});
const add = (field: string, value: (things: Things) => unknown): Operation =>
  send(
    `PATCH node ${field}`,
    'PATCH',
    ({ node }) => `/v1/nodes/${node}`,
    (things) => [{ op: 'add', path: `/${field}`, value: value(things) }],
  );

/** Creation, which is undone, and deletion of a row that the administrator has created. */
const lifeOf = (
  name: string,
  collection: string,
  created: Label | (typeof SHARED)[number],
  body: (things: Things) => object,
): readonly Operation[] => {
  const path = (things: Things): string => `/v1/${collection}/${things[created]}`;
  const post = (things: Things): Call => ({ method: 'POST', path: `/v1/${collection}`, body: { uuid: things[created], ...body(things) } });
  const remove = (things: Things): Call => ({ method: 'DELETE', path: path(things) });
  return [
    { name: `POST ${name}`, call: post, after: remove },
    { name: `DELETE ${name}`, before: post, call: remove },
    // `before` deletes a row that is left over.
    { name: `DELETE missing ${name}`, before: remove, call: remove },
  ];
};
const creation = (name: string, collection: string, created: Label, body: (things: Things) => object): Operation => ({
  name,
  call: (things) => ({ method: 'POST', path: `/v1/${collection}`, body: { uuid: things[created], ...body(things) } }),
  after: (things) => ({ method: 'DELETE', path: `/v1/${collection}/${things[created]}` }),
});

const STEP = { interface: 'deploy', step: 'erase_devices', args: {}, order: 1 };
const ofNode = ({ node }: Things): string => `/v1/nodes/${node}`;
const MAKER: Readonly<Record<string, (things: Things) => object>> = {
  node: ({ owner, lessee }) => ({ driver: 'fake-hardware', ...(owner ? { owner, lessee } : {}) }),
  port: ({ node, newPort }) => ({ node_uuid: node, address: macOf(newPort) }),
  portgroup: ({ node, newPortgroup }) => ({ node_uuid: node, address: macOf(newPortgroup) }),
  connector: ({ node, newConnector }) => ({ node_uuid: node, type: 'ip', connector_id: newConnector }),
  target: ({ node, newTarget }) => ({
    node_uuid: node,
    volume_type: 'iscsi',
    volume_id: newTarget,
    boot_index: 7,
    properties: { target_iqn: 'iqn', auth_password: 'secret' },
  }),
  runbook: () => ({ name: 'CUSTOM_NEW', steps: [STEP] }),
};

/** What the administrator creates first, in this order. */
export const SETUP: readonly ((things: Things) => Call | undefined)[] = [
  ({ kind, chassis }) => (kind === 'owned' ? { method: 'POST', path: '/v1/chassis', body: { uuid: chassis } } : undefined),
  ({ kind, foreign }) =>
    kind === 'owned'
      ? { method: 'POST', path: '/v1/nodes', body: { uuid: foreign, driver: 'fake-hardware', owner: OTHER, name: 'foreign' } }
      : undefined,
  ({ kind, node, owner, lessee, chassis, instance }) => ({
    method: 'POST',
    path: '/v1/nodes',
    body: {
      uuid: node,
      name: kind,
      driver: 'fake-hardware',
      chassis_uuid: chassis,
      instance_uuid: instance,
      shard: 's1',
      resource_class: 'small',
      driver_info: { address: 'secret.example', password: 'p' },
      instance_info: { configdrive: 'c', key: 'k' },
      ...(owner ? { owner, lessee } : {}),
    },
  }),
  ({ node, port }) => ({ method: 'POST', path: '/v1/ports', body: { uuid: port, node_uuid: node, address: macOf(port) } }),
  ({ node, portgroup, kind }) => ({
    method: 'POST',
    path: '/v1/portgroups',
    body: { uuid: portgroup, node_uuid: node, address: macOf(portgroup), name: `${kind}-group` },
  }),
  ({ node, connector }) => ({
    method: 'POST',
    path: '/v1/volume/connectors',
    body: { uuid: connector, node_uuid: node, type: 'ip', connector_id: connector },
  }),
  ({ node, target }) => ({
    method: 'POST',
    path: '/v1/volume/targets',
    body: {
      uuid: target,
      node_uuid: node,
      volume_type: 'iscsi',
      volume_id: target,
      boot_index: 0,
      properties: { auth_password: 'p', a: 'b' },
    },
  }),
  ({ allocation, owner }) => ({
    method: 'POST',
    path: '/v1/allocations',
    body: { uuid: allocation, resource_class: 'none-such', ...(owner ? { owner } : {}) },
  }),
  ({ runbook, owner, kind }) => ({
    method: 'POST',
    path: '/v1/runbooks',
    body: { uuid: runbook, name: `CUSTOM_${kind.toUpperCase()}`, steps: [STEP], ...(owner ? { owner } : { public: true }) },
  }),
  ({ runbook }) => ({ method: 'PUT', path: `/v1/runbooks/${runbook}/traits`, body: { traits: ['CUSTOM_A'] } }),
  ({ kind, template }) =>
    kind === 'owned'
      ? {
          method: 'POST',
          path: '/v1/deploy_templates',
          body: { uuid: template, name: 'CUSTOM_T', steps: [{ ...STEP, order: undefined, priority: 10 }] },
        }
      : undefined,
  ({ kind, rule }) =>
    kind === 'owned'
      ? {
          method: 'POST',
          path: '/v1/inspection_rules',
          body: { uuid: rule, conditions: [], actions: [{ op: 'fail', args: { msg: 'x' } }] },
        }
      : undefined,
  ({ node }) => ({ method: 'PUT', path: `/v1/nodes/${node}/states/provision`, body: { target: 'manage' } }),
];

export const OPERATIONS: readonly Operation[] = [
  // Nodes.
  once('GET nodes', '/v1/nodes'),
  once('GET nodes/detail', '/v1/nodes/detail'),
  once('GET nodes fields', '/v1/nodes?fields=uuid,last_error,reservation,driver_info,driver_internal_info,instance_info'),
  once('GET nodes of the owner', `/v1/nodes?owner=${OWNER}`),
  once('GET nodes of the project of the owner', `/v1/nodes?project=${OWNER}`),
  once('GET nodes of the project of others', `/v1/nodes?project=${OTHER}`),
  once('GET nodes sorted by last_error', '/v1/nodes?sort_key=last_error'),
  once('GET nodes sorted by reservation', '/v1/nodes?sort_key=reservation&sort_dir=desc'),
  once('GET nodes sorted by name', '/v1/nodes?sort_key=name'),
  get('GET nodes of a missing chassis', ({ missing }) => `/v1/nodes?chassis_uuid=${missing}`),
  get('GET nodes of a chassis', ({ chassis }) => `/v1/nodes?chassis_uuid=${chassis}`),
  get('GET nodes of an instance', ({ instance }) => `/v1/nodes?instance_uuid=${instance}`),
  get('GET nodes of a parent', ({ node }) => `/v1/nodes?parent_node=${node}`),
  get('GET node', ofNode),
  get('GET node fields', ({ node }) => `/v1/nodes/${node}?fields=last_error,driver_info`),
  get('GET missing node', ({ missing }) => `/v1/nodes/${missing}`),
  get('GET validate', ({ node }) => `/v1/nodes/${node}/validate`),
  get('GET nodes/validate', ({ node }) => `/v1/nodes/validate?node=${node}`),
  ...lifeOf('node', 'nodes', 'newNode', MAKER['node']!),
  creation('POST node without an owner', 'nodes', 'newNode', () => ({ driver: 'fake-hardware' })),
  creation('POST node of others', 'nodes', 'newNode', () => ({ driver: 'fake-hardware', owner: OTHER })),
  creation('POST child node', 'nodes', 'newNode', ({ node, owner }) => ({
    driver: 'fake-hardware',
    parent_node: node,
    ...(owner ? { owner } : {}),
  })),
  add('extra', () => ({ a: 1 })),
  add('instance_info', () => ({ configdrive: 'c', key: 'k' })),
  add('instance_name', () => 'name'),
  add('driver_info', () => ({ address: 'secret.example', password: 'p' })),
  add('properties', () => ({ cpus: 2 })),
  add('chassis_uuid', ({ chassis }) => chassis),
  add('instance_uuid', ({ instance }) => instance),
  add('lessee', ({ lessee }) => lessee),
  add('owner', ({ owner }) => owner),
  add('driver', () => 'fake-hardware'),
  add('boot_interface', () => 'fake'),
  add('network_data', () => ({})),
  add('conductor_group', () => ''),
  add('name', ({ kind }) => kind),
  add('retired', () => false),
  add('retired_reason', () => 'none'),
  add('shard', () => 's1'),
  add('parent_node', ({ missing }) => missing),
  add('disable_power_off', () => false),
  add('automated_clean', () => true),
  add('automated_clean', () => false),
  add('resource_class', () => 'small'),
  add('description', () => 'd'),
  add('protected', () => false),
  send('PATCH node extra and driver_info', 'PATCH', ofNode, () => [
    { op: 'add', path: '/extra/b', value: 1 },
    { op: 'add', path: '/driver_info/b', value: 1 },
  ]),
  get('GET states', ({ node }) => `/v1/nodes/${node}/states`),
  send(
    'PUT power',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/power`,
    () => ({ target: 'nonsense' }),
  ),
  send(
    'PUT provision',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/provision`,
    () => ({ target: 'nonsense' }),
  ),
  send(
    'PUT provision clean_steps',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/provision`,
    () => ({
      target: 'clean',
      clean_steps: [{ interface: 'nonsense', step: 'x' }],
    }),
  ),
  send(
    'PUT provision service_steps',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/provision`,
    () => ({
      target: 'service',
      service_steps: [{ interface: 'nonsense', step: 'x' }],
    }),
  ),
  send(
    'PUT provision runbook',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/provision`,
    ({ runbook }) => ({ target: 'clean', runbook }),
  ),
  {
    ...send(
      'PUT maintenance',
      'PUT',
      ({ node }) => `/v1/nodes/${node}/maintenance`,
      () => ({ reason: 'r' }),
    ),
  },
  { ...send('DELETE maintenance', 'DELETE', ({ node }) => `/v1/nodes/${node}/maintenance`) },
  { ...get('GET boot_device', ({ node }) => `/v1/nodes/${node}/management/boot_device`), alone: true },
  { ...get('GET boot_device/supported', ({ node }) => `/v1/nodes/${node}/management/boot_device/supported`), alone: true },
  send(
    'PUT boot_device',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/management/boot_device`,
    () => ({ boot_device: 'pxe' }),
  ),
  send(
    'PUT boot_mode',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/boot_mode`,
    () => ({ target: 'nonsense' }),
  ),
  {
    ...send(
      'PUT secure_boot',
      'PUT',
      ({ node }) => `/v1/nodes/${node}/states/secure_boot`,
      () => ({ target: 'false' }),
    ),
    settles: true,
  },
  get('GET console', ({ node }) => `/v1/nodes/${node}/states/console`),
  {
    ...send(
      'PUT console',
      'PUT',
      ({ node }) => `/v1/nodes/${node}/states/console`,
      () => ({ enabled: true }),
    ),
    settles: true,
  },
  send(
    'PUT raid',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/raid`,
    () => ({ logical_disks: [] }),
  ),
  get('GET indicators', ({ node }) => `/v1/nodes/${node}/management/indicators`),
  { ...get('GET indicator', ({ node }) => `/v1/nodes/${node}/management/indicators/led@chassis`), alone: true },
  send(
    'PUT indicator',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/management/indicators/led@chassis`,
    () => ({ state: 'on' }),
  ),
  send(
    'PUT inject_nmi',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/management/inject_nmi`,
    () => ({}),
  ),
  get('GET vendor methods', ({ node }) => `/v1/nodes/${node}/vendor_passthru/methods`),
  send(
    'POST vendor method',
    'POST',
    ({ node }) => `/v1/nodes/${node}/vendor_passthru?method=nonsense`,
    () => ({}),
  ),
  get('GET traits', ({ node }) => `/v1/nodes/${node}/traits`),
  send(
    'PUT traits',
    'PUT',
    ({ node }) => `/v1/nodes/${node}/traits`,
    () => ({ traits: ['CUSTOM_B'] }),
  ),
  send('PUT trait', 'PUT', ({ node }) => `/v1/nodes/${node}/traits/CUSTOM_B`),
  {
    ...send('DELETE trait', 'DELETE', ({ node }) => `/v1/nodes/${node}/traits/CUSTOM_B`),
    before: ({ node }) => ({ method: 'PUT', path: `/v1/nodes/${node}/traits/CUSTOM_B` }),
  },
  send('DELETE traits', 'DELETE', ({ node }) => `/v1/nodes/${node}/traits`),
  get('GET vifs', ({ node }) => `/v1/nodes/${node}/vifs`),
  send(
    'POST vif',
    'POST',
    ({ node }) => `/v1/nodes/${node}/vifs`,
    ({ missing }) => ({ id: missing }),
  ),
  send('DELETE vif', 'DELETE', ({ node, missing }) => `/v1/nodes/${node}/vifs/${missing}`),
  get('GET bios', ({ node }) => `/v1/nodes/${node}/bios`),
  get('GET bios setting', ({ node }) => `/v1/nodes/${node}/bios/none`),
  get('GET firmware', ({ node }) => `/v1/nodes/${node}/firmware`),
  get('GET history', ({ node }) => `/v1/nodes/${node}/history`),
  get('GET history entry', ({ node, missing }) => `/v1/nodes/${node}/history/${missing}`),
  get('GET inventory', ({ node }) => `/v1/nodes/${node}/inventory`),
  get('GET children', ({ node }) => `/v1/nodes/${node}/children`),
  get('GET vmedia', ({ node }) => `/v1/nodes/${node}/vmedia`),
  {
    ...send(
      'POST vmedia',
      'POST',
      ({ node }) => `/v1/nodes/${node}/vmedia`,
      () => ({ device_type: 'cdrom', image_url: 'http://127.0.0.1:1/x' }),
    ),
    settles: true,
  },
  { ...send('DELETE vmedia', 'DELETE', ({ node }) => `/v1/nodes/${node}/vmedia`), settles: true },
  get('GET node allocation', ({ node }) => `/v1/nodes/${node}/allocation`),
  send('DELETE node allocation', 'DELETE', ({ node }) => `/v1/nodes/${node}/allocation`),
  // Ports and portgroups.
  ...['ports', 'portgroups'].flatMap((path) => [
    once(`GET ${path}`, `/v1/${path}`),
    once(`GET ${path}/detail`, `/v1/${path}/detail`),
    get(`GET ${path} of a node`, ({ node }) => `/v1/${path}?node=${node}`),
    get(`GET ${path} of a missing node`, ({ missing }) => `/v1/${path}?node=${missing}`),
    get(`GET node ${path}`, ({ node }) => `/v1/nodes/${node}/${path}`),
  ]),
  get('GET ports of an address', ({ port }) => `/v1/ports?address=${macOf(port)}`),
  get('GET portgroups of an address', ({ portgroup }) => `/v1/portgroups?address=${macOf(portgroup)}`),
  get('GET ports of a portgroup', ({ portgroup }) => `/v1/ports?portgroup=${portgroup}`),
  get('GET portgroup ports', ({ portgroup }) => `/v1/portgroups/${portgroup}/ports`),
  get('GET ports of a shard', () => '/v1/ports?shard=s1'),
  get('GET port', ({ port }) => `/v1/ports/${port}`),
  get('GET portgroup', ({ portgroup }) => `/v1/portgroups/${portgroup}`),
  get('GET missing port', ({ missing }) => `/v1/ports/${missing}`),
  get('GET missing portgroup', ({ missing }) => `/v1/portgroups/${missing}`),
  send(
    'PATCH port',
    'PATCH',
    ({ port }) => `/v1/ports/${port}`,
    () => [{ op: 'add', path: '/extra', value: {} }],
  ),
  send(
    'PATCH portgroup',
    'PATCH',
    ({ portgroup }) => `/v1/portgroups/${portgroup}`,
    () => [{ op: 'add', path: '/extra', value: {} }],
  ),
  send(
    'PATCH port to a missing node',
    'PATCH',
    ({ port }) => `/v1/ports/${port}`,
    ({ missing }) => [{ op: 'replace', path: '/node_uuid', value: missing }],
  ),
  send(
    'PATCH port to a foreign node',
    'PATCH',
    ({ port }) => `/v1/ports/${port}`,
    ({ foreign }) => [{ op: 'replace', path: '/node_uuid', value: foreign }],
  ),
  ...lifeOf('port', 'ports', 'newPort', MAKER['port']!),
  ...lifeOf('portgroup', 'portgroups', 'newPortgroup', MAKER['portgroup']!),
  send(
    'POST port of a missing node',
    'POST',
    () => '/v1/ports',
    ({ missing, newPort }) => ({ node_uuid: missing, address: macOf(newPort) }),
  ),
  send(
    'POST portgroup of a missing node',
    'POST',
    () => '/v1/portgroups',
    ({ missing }) => ({ node_uuid: missing }),
  ),
  // Volumes.
  once('GET volume', '/v1/volume'),
  get('GET node volume', ({ node }) => `/v1/nodes/${node}/volume`),
  ...(['connector', 'target'] as const).flatMap((item) => [
    once(`GET ${item}s`, `/v1/volume/${item}s`),
    once(`GET ${item}s detail`, `/v1/volume/${item}s?detail=True`),
    get(`GET ${item}s of a node`, ({ node }) => `/v1/volume/${item}s?node=${node}`),
    get(`GET node ${item}s`, ({ node }) => `/v1/nodes/${node}/volume/${item}s`),
    get(`GET ${item}`, (things) => `/v1/volume/${item}s/${things[item]}`),
    get(`GET missing ${item}`, ({ missing }) => `/v1/volume/${item}s/${missing}`),
    send(
      `PATCH ${item}`,
      'PATCH',
      (things) => `/v1/volume/${item}s/${things[item]}`,
      () => [{ op: 'add', path: '/extra', value: {} }],
    ),
    ...lifeOf(item, `volume/${item}s`, item === 'connector' ? 'newConnector' : 'newTarget', MAKER[item]!),
    send(
      `POST ${item} of a missing node`,
      'POST',
      () => `/v1/volume/${item}s`,
      ({ missing }) =>
        item === 'connector'
          ? { node_uuid: missing, type: 'ip', connector_id: 'x' }
          : { node_uuid: missing, volume_type: 'iscsi', volume_id: 'x', boot_index: 1 },
    ),
  ]),
  // Allocations.
  once('GET allocations', '/v1/allocations'),
  once('GET allocations of the owner', `/v1/allocations?owner=${OWNER}`),
  once('GET allocations of others', `/v1/allocations?owner=${OTHER}`),
  get('GET allocations of a node', ({ node }) => `/v1/allocations?node=${node}`),
  get('GET allocation', ({ allocation }) => `/v1/allocations/${allocation}`),
  get('GET missing allocation', ({ missing }) => `/v1/allocations/${missing}`),
  send(
    'PATCH allocation',
    'PATCH',
    ({ allocation }) => `/v1/allocations/${allocation}`,
    () => [{ op: 'add', path: '/extra', value: {} }],
  ),
  creation('POST allocation', 'allocations', 'newAllocation', () => ({ resource_class: 'none-such' })),
  creation('POST allocation of the owner', 'allocations', 'newAllocation', () => ({ resource_class: 'none-such', owner: OWNER })),
  creation('POST allocation of others', 'allocations', 'newAllocation', () => ({ resource_class: 'none-such', owner: OTHER })),
  creation('POST allocation with candidates', 'allocations', 'newAllocation', ({ node }) => ({
    resource_class: 'none-such',
    candidate_nodes: [node],
  })),
  creation('POST allocation with a missing candidate', 'allocations', 'newAllocation', ({ missing }) => ({
    resource_class: 'none-such',
    candidate_nodes: [missing],
  })),
  send(
    'POST allocation of a node',
    'POST',
    () => '/v1/allocations',
    ({ node, missing }) => ({ node, candidate_nodes: [missing] }),
  ),
  ...lifeOf('allocation', 'allocations', 'newAllocation', ({ owner }) => ({
    resource_class: 'none-such',
    ...(owner ? { owner } : {}),
  })).slice(1),
  // Runbooks.
  once('GET runbooks', '/v1/runbooks'),
  once('GET runbooks project', '/v1/runbooks?project=True'),
  get('GET runbook', ({ runbook }) => `/v1/runbooks/${runbook}`),
  get('GET missing runbook', ({ missing }) => `/v1/runbooks/${missing}`),
  get('GET runbook traits', ({ runbook }) => `/v1/runbooks/${runbook}/traits`),
  send(
    'PUT runbook traits',
    'PUT',
    ({ runbook }) => `/v1/runbooks/${runbook}/traits`,
    () => ({ traits: ['CUSTOM_A'] }),
  ),
  send('PUT runbook trait', 'PUT', ({ runbook }) => `/v1/runbooks/${runbook}/traits/CUSTOM_A`),
  send('DELETE runbook trait', 'DELETE', ({ runbook }) => `/v1/runbooks/${runbook}/traits/CUSTOM_C`),
  send(
    'PATCH runbook',
    'PATCH',
    ({ runbook }) => `/v1/runbooks/${runbook}`,
    () => [{ op: 'add', path: '/extra', value: {} }],
  ),
  send(
    'PATCH runbook owner',
    'PATCH',
    ({ runbook }) => `/v1/runbooks/${runbook}`,
    ({ owner }) => [{ op: 'add', path: '/owner', value: owner }],
  ),
  send(
    'PATCH runbook extra and owner',
    'PATCH',
    ({ runbook }) => `/v1/runbooks/${runbook}`,
    ({ owner }) => [
      { op: 'add', path: '/extra', value: {} },
      { op: 'add', path: '/owner', value: owner },
    ],
  ),
  {
    ...send(
      'PATCH runbook public',
      'PATCH',
      ({ runbook }) => `/v1/runbooks/${runbook}`,
      ({ kind }) => [{ op: 'add', path: '/public', value: kind === 'unowned' }],
    ),
    // A public runbook has no owner: restores it.
    after: ({ runbook, owner }) => ({
      method: 'PATCH',
      path: `/v1/runbooks/${runbook}`,
      body: owner ? [{ op: 'add', path: '/owner', value: owner }] : [{ op: 'add', path: '/public', value: true }],
    }),
  },
  ...lifeOf('runbook', 'runbooks', 'newRunbook', MAKER['runbook']!),
  creation('POST public runbook', 'runbooks', 'newRunbook', () => ({ name: 'CUSTOM_NEW', steps: [STEP], public: true })),
  creation('POST runbook of others', 'runbooks', 'newRunbook', () => ({ name: 'CUSTOM_NEW', steps: [STEP], owner: OTHER })),
  // Resources that belong to no project.
  ...[
    once('GET chassis list', '/v1/chassis'),
    get('GET chassis', ({ chassis }) => `/v1/chassis/${chassis}`),
    get('GET chassis nodes', ({ chassis }) => `/v1/chassis/${chassis}/nodes`),
    send(
      'PATCH chassis',
      'PATCH',
      ({ chassis }) => `/v1/chassis/${chassis}`,
      () => [{ op: 'add', path: '/extra', value: {} }],
    ),
    ...lifeOf('chassis', 'chassis', 'newChassis', () => ({})),
    once('GET templates', '/v1/deploy_templates'),
    get('GET template', ({ template }) => `/v1/deploy_templates/${template}`),
    get('GET missing template', ({ missing }) => `/v1/deploy_templates/${missing}`),
    send(
      'PATCH template',
      'PATCH',
      ({ template }) => `/v1/deploy_templates/${template}`,
      () => [{ op: 'add', path: '/extra', value: {} }],
    ),
    ...lifeOf('template', 'deploy_templates', 'newTemplate', () => ({
      name: 'CUSTOM_NEW',
      steps: [{ ...STEP, order: undefined, priority: 1 }],
    })),
    once('GET rules', '/v1/inspection_rules'),
    get('GET rule', ({ rule }) => `/v1/inspection_rules/${rule}`),
    send(
      'PATCH rule',
      'PATCH',
      ({ rule }) => `/v1/inspection_rules/${rule}`,
      () => [{ op: 'replace', path: '/description', value: 'd' }],
    ),
    ...lifeOf('rule', 'inspection_rules', 'newRule', () => ({ conditions: [], actions: [{ op: 'fail', args: { msg: 'x' } }] })),
    once('GET conductors', '/v1/conductors'),
    once('GET conductor', '/v1/conductors/real-ironic'),
    once('GET drivers', '/v1/drivers'),
    once('GET driver', '/v1/drivers/fake-hardware'),
    once('GET driver properties', '/v1/drivers/fake-hardware/properties'),
    once('GET driver raid properties', '/v1/drivers/fake-hardware/raid/logical_disk_properties'),
    once('GET driver vendor methods', '/v1/drivers/fake-hardware/vendor_passthru/methods'),
    send(
      'POST driver vendor method',
      'POST',
      () => '/v1/drivers/fake-hardware/vendor_passthru/nonsense',
      () => ({}),
    ),
    once('GET shards', '/v1/shards'),
    send(
      'POST events',
      'POST',
      () => '/v1/events',
      () => ({
        events: [
          {
            event: 'network.bind_port',
            port_id: thingsOf('owned').missing,
            mac_address: '52:54:00:00:00:01',
            status: 'ACTIVE',
            device_id: thingsOf('owned').missing,
            'binding:host_id': 'h',
            'binding:vnic_type': 'baremetal',
          },
        ],
      }),
    ),
  ].map((operation): Operation => ({ ...operation, once: true })),
];

/** The states whose checks differ from those of `manageable`, in which all operations are tested. */
export const STATES = ['available', 'active', 'clean failed', 'inspect wait'] as const;
export type State = (typeof STATES)[number];

const target = (name: string, body: object = {}): Operation =>
  send(
    `PUT provision ${name}`,
    'PUT',
    ({ node }) => `/v1/nodes/${node}/states/provision`,
    () => ({ target: name, ...body }),
  );
/** Operations of `OPERATIONS` with checks of the state, after or before those of policies. */
const WITH_STATE =
  /^(?:GET (?:node|states)|PATCH node (?:extra|instance_info|driver_info|chassis_uuid|lessee|owner|driver|resource_class)|PUT (?:power|provision|provision clean_steps|provision service_steps|provision runbook|maintenance|raid|trait)|DELETE (?:vif|node allocation|port)|POST vif|PATCH port)$/;
/** The rows of each state. The requests leave the state as it is: the state machine refuses them after the policies. */
export const STATE_OPERATIONS: readonly Operation[] = [
  ...OPERATIONS.filter(({ name }) => WITH_STATE.test(name)),
  target('provide'),
  target('verify'),
  target('unrescue'),
  target('unhold'),
];
