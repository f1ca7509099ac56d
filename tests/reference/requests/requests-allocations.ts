/** Allocations, shards and events: every rule by version, and the results of allocations with the existing nodes. */
import { MAX, around, at, get, quietly, send, type Sent, type Step } from './steps';

const node = (last: string): string => `aaaaaaaa-0000-4000-8000-0000000000${last}`;
const uuid = (last: string): string => `bbbbbbbb-0000-4000-8000-0000000000${last}`;
const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
/** Comes after each UUID that a server generates, so both servers agree on the first one in descending order. */
const LAST = 'ffffffff-ffff-4fff-bfff-ffffffffffff';
const PATH = '/v1/allocations';
const post = (body: unknown, minor = MAX): Sent => send('POST', PATH, body, minor);
const replace = (path: string, value: unknown): object => ({ op: 'replace', path, value });
const provision = (ident: string, target: string): Step[] => [
  send('PUT', `/v1/nodes/${ident}/states/provision`, { target }),
  { settle: ident },
];
/**
 * Follows each allocation. The real Ironic, on SQLite, loses the result of an allocation if another request writes at that moment: its log has
 * "Could not save the failed allocation" and "database is locked", and the allocation stays in the state `allocating`.
 */
const SETTLED: Step = { settleAllocations: true };

const NODES = ['f1', 'f2', 'f3', 'f4'].map(node);
const [FIRST, SECOND, THIRD, FOURTH] = NODES as [string, string, string, string];
const setup: Step[] = [
  send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: FIRST, name: 'alloc-1', resource_class: 'gold', shard: 'left' }),
  send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: SECOND, name: 'alloc-2', resource_class: 'gold', shard: 'right' }),
  send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: THIRD, name: 'alloc-3', resource_class: 'silver', shard: 'right' }),
  send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: FOURTH, name: 'alloc-4' }),
  send('PUT', `/v1/nodes/${SECOND}/traits`, { traits: ['CUSTOM_GPU', 'HW_CPU_X86_VMX'] }),
  ...[FIRST, SECOND, THIRD].flatMap((item) => [send('PUT', `/v1/nodes/${item}/states/power`, { target: 'power off' }), { settle: item }]),
  ...[FIRST, SECOND].flatMap((item) => [...provision(item, 'manage'), ...provision(item, 'provide')]),
];

const bodies: readonly unknown[] = [
  {},
  [],
  'x',
  5,
  '{bad',
  { nosuch: 1 },
  { nosuch: 1, other: 2 },
  { resource_class: 5 },
  { resource_class: null },
  { resource_class: '' },
  { resource_class: 'x'.repeat(81) },
  { resource_class: 'none', name: 'a b' },
  { resource_class: 'none', name: 5 },
  { resource_class: 'none', name: {} },
  { resource_class: 'none', uuid: 5 },
  { resource_class: 'none', uuid: uuid('e0') },
  { resource_class: 'none', name: 'taken' },
  { resource_class: 'none', traits: ['lower'] },
  { resource_class: 'none', traits: [5] },
  { resource_class: 'none', traits: [''] },
  { resource_class: 'none', traits: 'CUSTOM_X' },
  { resource_class: 'none', traits: [`CUSTOM_${'X'.repeat(260)}`] },
  { resource_class: 'none', traits: ['HW_NOSUCH'] },
  { resource_class: 'none', candidate_nodes: ['nobody'] },
  { resource_class: 'none', candidate_nodes: [NOBODY] },
  { resource_class: 'none', candidate_nodes: ['a b'] },
  { resource_class: 'none', candidate_nodes: [''] },
  { resource_class: 'none', candidate_nodes: [5] },
  { resource_class: 'none', candidate_nodes: 'alloc-1' },
  { resource_class: 'none', extra: [] },
  { resource_class: 'none', extra: 'x' },
  { resource_class: 'none', owner: 5 },
  { resource_class: 'none', state: 'active' },
  { resource_class: 'none', node_uuid: FIRST },
  { node: 'nobody' },
  { node: NOBODY },
  { node: 'a b' },
  { node: 5 },
];

const created: readonly Sent[] = [
  post({ resource_class: 'none', name: 'taken', uuid: uuid('e0'), extra: { a: 1 } }),
  post({ resource_class: 'none', uuid: LAST }),
  ...bodies.map((body) => post(body)),
  ...[1, 31, 51, 52, 57, 58, 59, 60, 80, 96, 109, MAX].map((minor) => post({}, minor)),
  ...[57, 58].flatMap((minor) => [
    post({ node: 'nobody' }, minor),
    post({ node: null, resource_class: 'v', name: `node-${minor}` }, minor),
  ]),
  ...[59, 60].flatMap((minor) => [
    post({ owner: 'alice', resource_class: 'v', uuid: uuid(`${minor}`) }, minor),
    post({ owner: null, resource_class: 'v' }, minor),
  ]),
  post({ resource_class: 'none', uuid: null, name: null, traits: null, candidate_nodes: null, extra: null, owner: null, node: null }),
  { method: 'POST', path: PATH, version: null, body: {} },
  { method: 'POST', path: PATH, version: '1.116', body: {} },
  { method: 'POST', path: PATH, version: 'junk', body: {} },
];
const creations = (): Step[] => [...created.flatMap((item) => [item, SETTLED]), get(`${PATH}/taken`), get(`${PATH}/${uuid('60')}`, 59)];

/** Allocations and their results. */
const matching = (): Step[] => {
  const made = (name: string, body: object): Step[] => [post({ name, ...body }), SETTLED, get(`${PATH}/${name}`)];
  return [
    ...made('no-class', { resource_class: 'bronze' }),
    // The node of this class is not available.
    ...made('no-state', { resource_class: 'silver' }),
    ...made('no-candidate', { resource_class: 'gold', candidate_nodes: ['alloc-3', FOURTH, 'alloc-3'] }),
    ...made('no-traits', { resource_class: 'gold', traits: ['CUSTOM_FPGA'] }),
    ...made('no-owner', { resource_class: 'gold', owner: 'alice' }),
    ...made('gpu', { resource_class: 'gold', traits: ['CUSTOM_GPU'], uuid: uuid('a1'), extra: { b: 1 } }),
    get(`/v1/nodes/${SECOND}?fields=instance_uuid,allocation_uuid,instance_info`),
    ...made('gpu-again', { resource_class: 'gold', traits: ['CUSTOM_GPU'] }),
    send('PATCH', `/v1/nodes/${FIRST}`, [replace('/owner', 'bob')]),
    ...made('alloc-1', { resource_class: 'gold', owner: 'bob', candidate_nodes: ['alloc-1', SECOND], uuid: uuid('a2') }),
    get(`/v1/nodes/${FIRST}?fields=instance_uuid,allocation_uuid,instance_info`),
    send('PATCH', `/v1/nodes/${FIRST}`, [replace('/owner', 'carol')]),
    ...made('full', { resource_class: 'gold' }),
  ];
};

const queries: readonly string[] = [
  '',
  '/',
  ...['uuid', 'uuid,state', 'links', 'nosuch', '', 'owner', 'OWNER', 'node_uuid', 'node'].map((value) => `?fields=${value}`),
  ...['1', '2', '0', '-1', 'x', '', '1000000'].map((value) => `?limit=${value}`),
  '?limit=1&fields=uuid',
  '?limit=1&state=error&sort_key=uuid&sort_dir=desc&fields=uuid',
  ...['uuid', 'id', 'name', 'nosuch', 'extra', 'traits', 'candidate_nodes', 'links', 'created_at', 'node_uuid', 'owner', ''].map(
    (value) => `?fields=uuid,name&state=active&sort_key=${value}`,
  ),
  ...['desc', 'up', ''].map((value) => `?sort_dir=${value}`),
  ...[uuid('e0'), NOBODY, 'zz', ''].map((value) => `?marker=${value}`),
  ...[FIRST, 'alloc-2', THIRD, 'nobody', NOBODY, 'a%20b', ''].map((value) => `?node=${value}`),
  ...['gold', 'nosuch', ''].map((value) => `?resource_class=${value}`),
  ...['active', 'error', 'allocating', 'nosuch', ''].map((value) => `?state=${value}`),
  ...['bob', 'nobody', ''].map((value) => `?owner=${value}`),
  '?state=active&resource_class=gold&node=alloc-2',
  '?nosuch=1',
  '?detail=true',
];
const reads = (): Step[] => [
  ...queries.flatMap((query) => [59, MAX].map((minor) => get(`${PATH}${query}`, minor))),
  ...[1, 31, 51, 52, 80].flatMap((minor) => [get(PATH, minor), get(`${PATH}/gpu`, minor), get(`${PATH}/gpu?fields=owner`, minor)]),
  ...['gpu', uuid('a1'), 'taken'].flatMap((ident) =>
    ['', '?fields=uuid', '?fields=owner,name', '?fields=nosuch', '?nosuch=1', '/uuid'].flatMap((query) =>
      [59, MAX].map((minor) => get(`${PATH}/${ident}${query}`, minor)),
    ),
  ),
  get(`${PATH}/gpu.json`, 80),
  get(`${PATH}.json`, 80),
  ...['nobody', NOBODY, 'a%20b', 'detail'].flatMap((ident) =>
    [51, MAX].flatMap((minor) => [
      get(`${PATH}/${ident}`, minor),
      send('PATCH', `${PATH}/${ident}`, [], minor),
      send('DELETE', `${PATH}/${ident}`, undefined, minor),
    ]),
  ),
  ...['PUT', 'PATCH', 'DELETE'].map((method) => send(method, PATH, method === 'DELETE' ? undefined : [])),
  ...[51, 56, MAX].flatMap((minor) => [send('PUT', `${PATH}/gpu`, {}, minor), send('POST', `${PATH}/gpu`, {}, minor)]),
];

const patches: readonly unknown[] = [
  [],
  {},
  'x',
  5,
  [{ op: 'nosuch', path: '/name', value: 'x' }],
  [{ op: 'replace' }],
  [{ path: '/name' }],
  [{ op: 'replace', path: 5 }],
  [{ op: 'replace', path: '/name', value: 'x', from: '/x' }],
  [replace('name', 'x')],
  [replace('', 'x')],
  [replace('/owner', 'x')],
  [replace('/state', 'x')],
  [replace('/uuid', 'x')],
  [replace('/nosuch', 'x')],
  [replace('/name', 'a b')],
  [replace('/name', 5)],
  [replace('/name', true)],
  [replace('/name', {})],
  [replace('/name', [])],
  [replace('/name', 1.5)],
  [replace('/name', 'gpu')],
  [replace('/name', 'taken')],
  [{ op: 'remove', path: '/extra' }],
  [{ op: 'add', path: '/extra/b', value: { c: [1] } }],
  [{ op: 'add', path: '/extra/c.d', value: null }],
  [{ op: 'add', path: '/extra/c', value: [1] }],
  [{ op: 'add', path: '/extra/c/', value: 1 }],
  [{ op: 'add', path: '/extra/x/y', value: 1 }],
  [{ op: 'remove', path: '/extra/zzz' }],
  [replace('/extra', 5)],
  [replace('/extra', null)],
  [replace('/extra', { z: 1 }), replace('/name', 'a b')],
];
const updates = (): Step[] => [
  ...patches.map((body) => send('PATCH', `${PATH}/${uuid('e0')}`, body)),
  ...[1, 51, 52, 56, 57, 80].map((minor) => send('PATCH', `${PATH}/${uuid('e0')}`, [replace('/extra', { minor })], minor)),
  send('PATCH', `${PATH}/${uuid('e0')}`, [{ op: 'remove', path: '/name' }]),
  get(`${PATH}/${uuid('e0')}`),
];

const ofNodes = (): Step[] => [
  ...[SECOND, 'alloc-2', 'alloc-3', 'nobody', NOBODY, 'a%20b'].flatMap((ident) =>
    ['', '?fields=uuid,node_uuid', '?fields=nosuch', '?nosuch=1'].flatMap((query) =>
      around(52).map((minor) => get(`/v1/nodes/${ident}/allocation${query}`, minor)),
    ),
  ),
  get('/v1/nodes/alloc-2/allocation', 59),
  get('/v1/nodes/alloc-2/allocation.json', 80),
  ...['POST', 'PUT', 'PATCH'].map((method) => send(method, '/v1/nodes/alloc-2/allocation', [])),
  ...['alloc-3', 'nobody'].flatMap((ident) => around(52).map((minor) => send('DELETE', `/v1/nodes/${ident}/allocation`, undefined, minor))),
];

/** The ends of allocations: by a deletion, by removing the node's instance_uuid, by an undeployment; and what forbids them. */
const ends = (): Step[] => [
  ...provision('alloc-2', 'active'),
  get('/v1/nodes/alloc-2?fields=provision_state,instance_uuid,allocation_uuid'),
  send('DELETE', `${PATH}/gpu`, undefined),
  send('DELETE', '/v1/nodes/alloc-2/allocation', undefined),
  send('PATCH', '/v1/nodes/alloc-2', [{ op: 'remove', path: '/instance_uuid' }]),
  ...provision('alloc-2', 'deleted'),
  get(`${PATH}/gpu`),
  get('/v1/nodes/alloc-2?fields=provision_state,instance_uuid,allocation_uuid,instance_info'),
  send('PATCH', '/v1/nodes/alloc-1', [{ op: 'remove', path: '/instance_uuid' }]),
  get(`${PATH}/alloc-1`),
  get('/v1/nodes/alloc-1?fields=provision_state,instance_uuid,allocation_uuid,instance_info'),
  post({ name: 'again', resource_class: 'gold', candidate_nodes: ['alloc-1'], uuid: uuid('a3') }),
  SETTLED,
  send('DELETE', '/v1/nodes/alloc-1', undefined),
  send('DELETE', '/v1/nodes/alloc-1/allocation', undefined),
  get('/v1/nodes/alloc-1?fields=instance_uuid,allocation_uuid,instance_info'),
  post({ name: 'third', resource_class: 'gold', candidate_nodes: ['alloc-1'], uuid: uuid('a4') }),
  SETTLED,
  // Backfilled: an allocation for a node that is in use already.
  send('DELETE', `${PATH}/third`, undefined),
  ...provision('alloc-1', 'active'),
  post({ node: 'alloc-1', resource_class: 'gold', name: 'filled', uuid: uuid('a5'), traits: [], extra: { f: 1 } }),
  get(`${PATH}/filled`),
  get('/v1/nodes/alloc-1?fields=instance_uuid,allocation_uuid,instance_info'),
  post({ node: 'alloc-1', name: 'twice', uuid: uuid('a6') }),
  // Our server keeps no row of the failed allocation; the reference keeps one in the state `error`.
  quietly(send('DELETE', `${PATH}/twice`, undefined)),
  send('DELETE', `${PATH}/filled`, undefined),
  send('PUT', '/v1/nodes/alloc-1/maintenance', {}),
  send('DELETE', `${PATH}/filled`, undefined),
  send('PATCH', '/v1/nodes/alloc-1', [replace('/instance_uuid', uuid('a7'))]),
  post({ node: FIRST, name: 'by-instance' }),
  get(`${PATH}/by-instance`),
  // The deletion of a node also deletes its allocation.
  send('DELETE', '/v1/nodes/alloc-1', undefined),
  get(`${PATH}/by-instance`),
];

const event = { event: 'network.bind_port', port_id: FIRST, mac_address: '52:54:00:00:00:01', status: 'ACTIVE' };
const shardsAndEvents = (): Step[] => [
  ...['/v1/shards', '/v1/shards/', '/v1/shards/left', '/v1/shards.json'].flatMap((path) =>
    around(82).flatMap((minor) => ['GET', 'POST', 'DELETE', 'PUT'].map((method) => ({ method, path, version: at(minor) }))),
  ),
  ...['shard=left', 'shard=right,left', 'shard=nosuch', 'shard=', 'sharded=true', 'sharded=false', 'sharded=zz'].flatMap((query) =>
    around(82).map((minor) => get(`/v1/nodes?${query}`, minor)),
  ),
  ...[
    {},
    [],
    5,
    { events: [] },
    { events: [{}] },
    { events: [5] },
    { events: 5 },
    { events: null },
    { events: [event] },
    { events: [event, { ...event, event: 'network.unbind_port' }] },
    { events: [event], nosuch: 1 },
    { events: [{ ...event, event: 'nosuch' }] },
    { events: [{ ...event, event: null }] },
    { events: [{ ...event, port_id: 'zz' }] },
    { events: [{ ...event, port_id: FIRST.replaceAll('-', '').toUpperCase() }] },
    { events: [{ ...event, port_id: 5 }] },
    { events: [{ ...event, mac_address: 'zz' }] },
    { events: [{ ...event, mac_address: null }] },
    { events: [{ ...event, status: 5 }] },
    { events: [{ ...event, status: undefined }] },
    { events: [{ ...event, device_id: null, 'binding:host_id': null, 'binding:vnic_type': null }] },
    { events: [{ ...event, device_id: FIRST, 'binding:host_id': FIRST, 'binding:vnic_type': 'baremetal' }] },
    { events: [{ ...event, device_id: 'zz' }] },
    { events: [{ ...event, device_id: 5 }] },
    { events: [{ ...event, 'binding:host_id': 'host' }] },
    { events: [{ ...event, 'binding:vnic_type': 5 }] },
    { events: [{ ...event, nosuch: 1 }] },
    { events: [event, { ...event, nosuch: 1, other: 1 }] },
  ].flatMap((body) => [53, 54, MAX].map((minor) => send('POST', '/v1/events', body, minor))),
  ...['GET', 'PUT', 'PATCH', 'DELETE'].flatMap((method) => around(54).map((minor) => ({ method, path: '/v1/events', version: at(minor) }))),
];

export const allocationGroups: Readonly<Record<string, () => readonly Step[]>> = {
  allocations: () => [
    ...setup,
    ...creations(),
    ...matching(),
    ...reads(),
    ...updates(),
    ...ofNodes(),
    ...ends(),
    ...shardsAndEvents(),
    get(`${PATH}?fields=name,state,last_error,node_uuid`),
  ],
};
