/** Portgroups and their ports, chassis and their nodes, VIFs. */
import { MAX, at, document, get, quietly, send, type Sent, type Step } from './steps';

const ONE = 'aaaaaaaa-0000-4000-8000-0000000000e1';
const TWO = 'aaaaaaaa-0000-4000-8000-0000000000e2';
const NOBODY = 'cccccccc-0000-4000-8000-00000000eeee';
const BOND = 'bbbbbbbb-0000-4000-8000-0000000000e1';
const TEAM = 'bbbbbbbb-0000-4000-8000-0000000000e2';
const NEW = 'bbbbbbbb-0000-4000-8000-0000000000ef';
const PORT = 'bbbbbbbb-0000-4000-8000-00000000e001';
const NEW_PORT = 'bbbbbbbb-0000-4000-8000-00000000e00f';
const RACK = 'cccccccc-0000-4000-8000-0000000000e1';
const NEW_RACK = 'cccccccc-0000-4000-8000-0000000000ef';
const mac = (last: string): string => `52:54:00:00:e0:${last}`;
const groups = '/v1/portgroups';
const bond = `${groups}/${BOND}`;
const rack = `/v1/chassis/${RACK}`;
const escape = encodeURIComponent;

const post = (path: string, body: unknown, minor = MAX): Sent => send('POST', path, body, minor);
const patch = (path: string, body: unknown, minor = MAX): Sent => send('PATCH', path, body, minor);
const remove = (path: string, minor = MAX): Sent => send('DELETE', path, undefined, minor);
const replace = (path: string, value: unknown): object => ({ op: 'replace', path, value });
const add = (path: string, value: unknown): object => ({ op: 'add', path, value });
const drop = (path: string): object => ({ op: 'remove', path });

const VERSIONS: readonly (string | null)[] = [
  null,
  ...[1, 22, 23, 24, 25, 26, 31, 50, 80, 96, 101, 102, 103, 105, 106, 109, 110, 111, MAX].map(at),
  'latest',
  '1.999',
  'zz',
];
const everywhere = (path: string): Sent[] => VERSIONS.map((version) => ({ method: 'GET', path, version }));

const start = (): Step[] => [
  post('/v1/nodes', { driver: 'fake-hardware', uuid: ONE, name: 'bonded', shard: 'left' }),
  post('/v1/nodes', { driver: 'fake-hardware', uuid: TWO, name: 'teamed' }),
  post(groups, { node_uuid: ONE, uuid: BOND, name: 'bond0', address: mac('AA'), properties: { miimon: 100 } }),
  post(groups, { node_uuid: TWO, uuid: TEAM, name: 'team0', standalone_ports_supported: 'off', mode: '802.3ad', category: 'c' }),
  post('/v1/ports', { address: mac('01'), node_uuid: ONE, uuid: PORT, portgroup_uuid: BOND }),
];

/** Queries of lists, one by one and together; also for the list of a node. */
const QUERIES = [
  '', 'node=bonded', `node=${ONE}`, 'node=nobody', `node=${NOBODY}`, 'node=a%20b', 'node=', 'node=bonded&node=teamed', `address=${mac('aa')}`,
  'address=zz', 'address=', 'address=52-54-00-00-e0-aa', 'marker=zz', 'marker=', `marker=${NOBODY}`, `marker=${BOND}`, 'limit=1', 'limit=0', 'limit=-1',
  'limit=x', 'limit=', 'limit=1&limit=2', 'sort_dir=desc', 'sort_dir=up', 'sort_dir=', 'fields=uuid,name', 'fields=uuid,nosuch', 'fields=', 'fields=ports,links',
  'fields=mode', 'fields=physical_network,category', 'fields=dynamic_portgroup', 'fields=UUID', 'detail=true', 'detail=false&limit=1', 'detail=zz', 'detail=true&fields=uuid',
  'shard=left', 'shard=left,right', 'shard=', 'shard=left&node=bonded', 'conductor_groups=x', 'conductor_groups=x&node=bonded', `address=${mac('aa')}&node=bonded`,
  'nosuch=1', 'nosuch=1&other=2', 'limit=1&sort_key=name&sort_dir=desc',
  ...document.fields('Portgroup').filter(({ name }) => name !== 'node_uuid').map(({ name }) => `sort_key=${name}`), 'sort_key=nosuch', 'sort_key=id',
]; // prettier-ignore
const lists = (): Step[] => [
  ...[groups, `${groups}/detail`, bond, `${bond}/ports`, `/v1/nodes/${ONE}/portgroups`, `/v1/nodes/${ONE}/portgroups/detail`, `/v1/nodes/${ONE}/vifs`, '/v1/nodes/nobody/vifs', rack].flatMap(everywhere),
  ...QUERIES.flatMap((query) => [MAX, 23, 42, 105].map((minor) => get(`${groups}?${query}`, minor))),
  ...QUERIES.flatMap((query) => [MAX, 23].map((minor) => get(`${groups}/detail?${query}`, minor))),
  ...QUERIES.map((query) => get(`/v1/nodes/${ONE}/portgroups?${query}`)),
  ...QUERIES.map((query) => get(`${bond}/ports?${query}`)),
  ...['bonded', 'nobody', NOBODY, 'a b'].flatMap((node) =>
    ['', '/detail'].flatMap((more) => [23, MAX].map((minor) => get(`/v1/nodes/${escape(node)}/portgroups${more}`, minor))),
  ),
  ...['bond0', 'nobody', NOBODY, 'a b', 'bond0.json'].flatMap((name) =>
    ['', '/ports', '/ports/detail'].flatMap((more) => [22, 23, 24, 90, MAX].map((minor) => get(`${groups}/${escape(name)}${more}`, minor))),
  ),
  ...['portgroup=bond0', `portgroup=${BOND}`, 'portgroup=nobody', 'portgroup=a%20b', 'portgroup=bond0&node=bonded', 'portgroup=bond0&shard=left', 'portgroup=bond0&limit=1'].flatMap((query) =>
    [23, 24, MAX].flatMap((minor) => [get(`/v1/ports?${query}`, minor), get(`/v1/ports/detail?${query}`, minor)]),
  ),
  get(`${bond}/ports?portgroup=nobody`),
  get(`${bond}/ports/x`),
  get(`${bond}/uuid`),
  get(`${bond}/detail`),
  get(`/v1/nodes/${ONE}/portgroups/${BOND}`),
  ...['uuid', 'mode', 'nosuch', 'physical_network', 'dynamic_portgroup', 'node_uuid,ports', ''].flatMap((fields) =>
    [23, 26, 101, 110, MAX].map((minor) => get(`${bond}?fields=${fields}`, minor)),
  ),
  get(`${bond}?nosuch=1`),
]; // prettier-ignore

/** Deletes a portgroup that was created. */
const tried = (body: object, minor = MAX): Step[] => [post(groups, body, minor), quietly(remove(`${groups}/${NEW}`))];
const WRONG: readonly unknown[] = [5, '', [], {}, true, 'yes', ['x'], 'x'.repeat(300), 'a b'];
const creations = (): Step[] => [
  ...[{}, [], null, 'x', 5, { node_uuid: 5 }, { node_uuid: 'zz' }, { node_uuid: NOBODY }, { node_uuid: 'bonded' }].map((body) => post(groups, body)),
  ...[{ name: 'bond0' }, { address: mac('aa') }, { uuid: BOND }, { name: 'a b' }, { name: 'detail' }, { name: ONE }, { address: 'zz' }, { dynamic_portgroup: true },
    { internal_info: {} }, { links: [] }, { bogus: 1, other: 2 }, { mode: 'x', properties: { a: 1 } }, { mode: '' }, { mode: null, extra: null, properties: null, name: null },
    { physical_network: '' }, { standalone_ports_supported: 'off' }].flatMap((body) => tried({ node_uuid: ONE, uuid: NEW, ...body })),
  ...document.fields('Portgroup').filter(({ create }) => create).flatMap(({ name }) => WRONG.flatMap((value) => tried({ node_uuid: ONE, uuid: NEW, [name]: value }))),
  ...[1, 22, 23, 25, 26, 101, 110].flatMap((minor) =>
    [{}, { mode: 'x' }, { properties: { a: 1 } }, { physical_network: 'p' }, { category: 'c' }].flatMap((body) => tried({ node_uuid: ONE, uuid: NEW, ...body }, minor)),
  ),
  post(bond, {}), post(`/v1/nodes/${ONE}/portgroups`, { nosuch: 1 }), send('PUT', groups, {}), send('PUT', bond, {}),
  ...['nobody', NOBODY, 'a b'].flatMap((name) => [22, 23, MAX].flatMap((minor) => [remove(`${groups}/${escape(name)}`, minor), patch(`${groups}/${escape(name)}`, [], minor)])),
]; // prettier-ignore

const changes = (): Step[] => [
  ...[[], {}, null, [5], [{}], [{ op: 'test', path: '/extra', value: 1 }], [{ op: 'replace', path: 'extra', value: {} }], [replace('/uuid', 'x')], [replace('/nosuch/a', 1)],
    [replace('/dynamic_portgroup', true)], [replace('/internal_info', {})], [add('/extra/a', 1)], [replace('/extra/a', 2)], [replace('/extra/b', 2)], [drop('/extra')], [add('/properties/a', 1)],
    [drop('/properties')], [drop('/mode')], [replace('/mode', null)], [replace('/mode', 'active-backup')], [drop('/mode'), add('/mode', 'x')], [replace('/mode', 5)],
    [replace('/name', 'a b')], [replace('/name', 5)], [replace('/name', 'team0')], [replace('/name', null)], [drop('/name')], [replace('/name', 'bond0')],
    [replace('/address', 'zz')], [replace('/address', mac('BB'))], [drop('/address')], [replace('/address', mac('aa'))],
    [replace('/standalone_ports_supported', 'off')], [replace('/standalone_ports_supported', 'zz')], [replace('/standalone_ports_supported', 5)], [replace('/standalone_ports_supported', true)],
    [drop('/node_uuid')], [replace('/node_uuid', 'zz')], [replace('/node_uuid', NOBODY)], [replace('/node_uuid', 'bonded')], [replace('/node_uuid', TWO)], [replace('/node_uuid', 5)],
    [replace('/category', 'c')], [replace('/category', 'x'.repeat(81))], [drop('/category')], [replace('/physical_network', 'x'.repeat(65))], [replace('/physical_network', 5)],
    [replace('/physical_network', 'left')], [replace('/physical_network', null)],
  ].map((body) => patch(bond, body)),
  ...[22, 23, 25, 26, 101, 102].flatMap((minor) =>
    [[replace('/mode', 'm')], [add('/properties/a', 1)], [drop('/properties')], [replace('/category', 'd')], [replace('/physical_network', null)]].map((body) => patch(bond, body, minor)),
  ),
  patch(`${groups}/bond0`, [replace('/extra', { by: 'name' })]),
  patch(`${bond}?nosuch=1`, []),
  get(bond),
]; // prettier-ignore

/** Ports join and leave a portgroup; all are in one physical network. */
const members = (): Step[] => {
  const port = `/v1/ports/${PORT}`;
  const joined = (body: object, minor = MAX): Step[] => [
    post('/v1/ports', { address: mac('0f'), uuid: NEW_PORT, node_uuid: ONE, ...body }, minor),
    quietly(remove(`/v1/ports/${NEW_PORT}`)),
  ];
  return [
    ...[TEAM, NOBODY, 'bond0', 'zz', '', null, 5, BOND].flatMap((uuid) => joined({ portgroup_uuid: uuid })),
    ...[23, 24, 50].flatMap((minor) => joined({ portgroup_uuid: BOND }, minor)),
    ...[true, false, 'yes'].flatMap((pxe) => joined({ node_uuid: TWO, portgroup_uuid: TEAM, pxe_enabled: pxe })),
    ...joined({ portgroup_uuid: BOND, physical_network: 'left' }),
    ...[NOBODY, 'bond0', 'zz', '', 5, {}, [], null, BOND].map((uuid) => patch(port, [replace('/portgroup_uuid', uuid)])),
    patch(port, [drop('/portgroup_uuid')], 23),
    patch(port, [drop('/portgroup_uuid')], 24),
    patch(port, [add('/portgroup_uuid', BOND)], 23),
    patch(port, [add('/portgroup_uuid', BOND)], 24),
    patch(port, [replace('/physical_network', 'left')]),
    patch(port, [replace('/physical_network', 'left')], 101),
    get(bond),
    ...joined({ portgroup_uuid: BOND }),
    post('/v1/ports', { address: mac('02'), uuid: NEW_PORT, node_uuid: ONE, portgroup_uuid: BOND, physical_network: 'left' }),
    patch(`/v1/ports/${NEW_PORT}`, [replace('/physical_network', 'right')], 101),
    patch(`/v1/ports/${NEW_PORT}`, [replace('/physical_network', 'right')]),
    patch(bond, [replace('/physical_network', 'right')]),
    get(port),
    get(`/v1/ports/${NEW_PORT}`),
    patch(port, [drop('/portgroup_uuid')]),
    patch(port, [replace('/physical_network', 'left')]),
    patch(port, [add('/portgroup_uuid', BOND)]),
    patch(port, [add('/portgroup_uuid', BOND), add('/physical_network', 'right')]),
    remove(`${groups}/bond0`),
    patch(bond, [replace('/node_uuid', TWO)]),
    remove(`/v1/ports/${NEW_PORT}`),
    remove(port),
    // In a state in which the machine is used, ports cannot be moved.
    send('PUT', `/v1/nodes/${ONE}/states/provision`, { target: 'manage' }),
    { settle: ONE },
    post('/v1/ports', { address: mac('01'), node_uuid: ONE, uuid: PORT }),
    patch(port, [add('/portgroup_uuid', BOND)]),
    patch(port, [drop('/portgroup_uuid')]),
    send('PUT', `/v1/nodes/${ONE}/states/provision`, { target: 'provide' }),
    { settle: ONE },
    patch(port, [add('/portgroup_uuid', BOND)]),
    patch(bond, [replace('/extra', { a: 1 })]),
    remove(port),
  ];
};

const VIFS: readonly unknown[] = [
  {}, [], 'x', 5, { id: 5 }, { id: null }, { id: '' }, { id: 'a b' }, { id: 'vif-1' }, { id: ONE, more: [1] }, { id: 'v', port_uuid: PORT }, { id: 'v', port_uuid: 5 },
  { id: 'v', portgroup_uuid: BOND }, { id: 'v', port_uuid: PORT, portgroup_uuid: BOND }, { id: 'v', port_uuid: null, portgroup_uuid: null },
]; // prettier-ignore
const vifs = (): Step[] => {
  const path = `/v1/nodes/${ONE}/vifs`;
  return [
    ...VIFS.flatMap((body) => [27, 28, 66, 67, MAX].map((minor) => post(path, body, minor))),
    ...['bonded', 'nobody', 'a b'].flatMap((node) =>
      [27, 28, MAX].flatMap((minor) => [get(`/v1/nodes/${escape(node)}/vifs`, minor), post(`/v1/nodes/${escape(node)}/vifs`, { id: 'v' }, minor), remove(`/v1/nodes/${escape(node)}/vifs/v`, minor)]),
    ),
    ...['v', ONE, 'a b'].flatMap((vif) => [27, 28, MAX].map((minor) => remove(`${path}/${escape(vif)}`, minor))),
    post(`${path}?nosuch=1`, { id: 'v' }),
    remove(`${path}/v?nosuch=1`),
    remove(path),
    get(`${path}/v`),
    send('PUT', path, {}),
  ];
}; // prettier-ignore

const CHASSIS_QUERIES = [
  '', 'limit=1', 'limit=0', 'limit=x', 'marker=zz', `marker=${NOBODY}`, `marker=${RACK}`, 'sort_key=extra', 'sort_key=nodes', 'sort_key=description', 'sort_key=nosuch', 'sort_dir=up',
  'sort_dir=desc', 'fields=uuid', 'fields=nodes', 'fields=nosuch', 'fields=uuid,nosuch', 'fields=', 'detail=true', 'detail=false', 'detail=zz', 'detail=true&fields=uuid', 'nosuch=1', 'limit=1&detail=true',
]; // prettier-ignore
const chassis = (): Step[] => {
  const node = `/v1/nodes/${TWO}`;
  const made = (body: unknown, minor = MAX): Step[] => [post('/v1/chassis', body, minor), quietly(remove(`/v1/chassis/${NEW_RACK}`))];
  return [
    post('/v1/chassis', { uuid: RACK, description: 'rack', extra: { a: 1 } }),
    ...['/v1/chassis', '/v1/chassis/detail', rack, `${rack}/nodes`].flatMap(everywhere),
    ...CHASSIS_QUERIES.flatMap((query) => [1, 8, 43, MAX].flatMap((minor) => [get(`/v1/chassis?${query}`, minor), get(`/v1/chassis/detail?${query}`, minor)])),
    ...['uuid', 'nodes', 'nosuch', ''].flatMap((fields) => [7, 8, MAX].map((minor) => get(`${rack}?fields=${fields}`, minor))),
    ...[{}, [], null, 5, 'x', { bogus: 1 }, { description: 5 }, { description: 'x'.repeat(256) }, { description: null, extra: null }, { extra: 5 }, { extra: [] }, { uuid: 'zz' }, { uuid: 5 }, { uuid: RACK }]
      .flatMap((body) => made(Array.isArray(body) || typeof body !== 'object' || body === null ? body : { uuid: NEW_RACK, ...body })),
    ...[[], {}, null, [replace('/description', 'x')], [replace('/description', 5)], [replace('/description', 'x'.repeat(256))], [drop('/description')], [drop('/extra')], [add('/extra/b', 1)], [replace('/extra/c', 1)],
      [replace('/uuid', NEW_RACK)], [drop('/uuid')], [replace('/nodes', [])], [add('/nosuch', 1)], [replace('/created_at', 1)]].flatMap((body) => [patch(rack, body), patch(rack, body, 1)]),
    ...['zz', NOBODY, 'detail'].flatMap((uuid) => [get(`/v1/chassis/${uuid}/nodes`), get(`/v1/chassis/${uuid}`), patch(`/v1/chassis/${uuid}`, []), remove(`/v1/chassis/${uuid}`)]),
    post('/v1/nodes', { driver: 'fake-hardware', chassis_uuid: NOBODY }),
    post('/v1/nodes', { driver: 'fake-hardware', chassis_uuid: 'zz' }),
    ...[1, 24, 25, MAX].flatMap((minor) => [
      patch(node, [add('/chassis_uuid', NOBODY)], minor),
      patch(node, [add('/chassis_uuid', 'zz')], minor),
      patch(node, [drop('/chassis_uuid')], 25),
      patch(node, [drop('/chassis_uuid')], minor),
      patch(node, [add('/chassis_uuid', RACK)], minor),
      patch(node, [add('/chassis_uuid', RACK)], minor),
      patch(node, [replace('/chassis_uuid', null)], minor),
      patch(node, [replace('/chassis_uuid', RACK)], minor),
    ]),
    ...['', 'limit=1', 'fields=uuid,chassis_uuid', 'detail=true', 'detail=true&fields=uuid', 'nosuch=1', 'maintenance=true', 'driver=x', `marker=${ONE}`, 'sort_key=chassis_uuid'].flatMap((query) =>
      [1, 42, MAX].flatMap((minor) => [get(`${rack}/nodes?${query}`, minor), get(`${rack}/nodes/detail?${query}`, minor), get(`/v1/nodes?chassis_uuid=${RACK}&${query}`, minor)]),
    ),
    get(`/v1/nodes?chassis_uuid=${NOBODY}`),
    get(`${rack}/nodes/${TWO}`),
    get(`${rack}/nodes/teamed`),
    get(`${rack}/detail`),
    get(`${rack}/uuid`),
    get(node),
    remove(rack),
    remove(node),
    remove(rack),
    remove(`/v1/nodes/${ONE}`),
  ];
}; // prettier-ignore

/** Groups of requests, one after the other. */
export const PORTGROUP_GROUPS: Readonly<Record<string, () => readonly Step[]>> = {
  'portgroups: lists': () => [...start(), ...lists()],
  'portgroups: new ones': creations,
  'portgroups: changes': changes,
  'portgroups: members': members,
  vifs,
  chassis,
};
