/** Volume connectors and targets: every rule by version, state and power, with good and bad values. */
import { MAX, around, at, get, send, type Sent, type Step } from './steps';

const ONE = 'aaaaaaaa-0000-4000-8000-0000000000c1';
const TWO = 'aaaaaaaa-0000-4000-8000-0000000000c2';
const THREE = 'aaaaaaaa-0000-4000-8000-0000000000c3';
const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
const uuid = (last: string): string => `bbbbbbbb-0000-4000-8000-0000000000${last}`;
const post = (path: string, body: unknown, minor = MAX): Sent => send('POST', path, body, minor);
const replace = (path: string, value: unknown): object => ({ op: 'replace', path, value });

const nodes: Step[] = [
  ...[ONE, TWO, THREE].map((node, index) => post('/v1/nodes', { driver: 'fake-hardware', uuid: node, name: `volumes-${index + 1}` })),
  send('PUT', `/v1/nodes/${ONE}/states/power`, { target: 'power off' }),
  { settle: ONE },
  send('PUT', `/v1/nodes/${THREE}/states/power`, { target: 'power on' }),
  { settle: THREE },
];

interface Kind {
  readonly path: string;
  /** Valid bodies, each with other identifying fields. */
  readonly good: readonly object[];
  readonly wrong: readonly object[];
  readonly patches: readonly (readonly object[])[];
  readonly fields: readonly string[];
}
const KINDS: readonly Kind[] = [
  {
    path: '/v1/volume/connectors',
    good: [
      { type: 'iqn', connector_id: 'iqn.x' },
      { type: 'ip', connector_id: '10.0.0.1', extra: { a: 1 } },
      { type: '', connector_id: '', extra: null },
    ],
    wrong: [
      { type: 'ip' },
      { connector_id: '1' },
      { type: 5, connector_id: '2' },
      { type: null, connector_id: '2' },
      { type: 'ip', connector_id: ['2'] },
      { type: 'ip', connector_id: '2', extra: [] },
      { type: 'ip', connector_id: '2', nosuch: 1, other: 2 },
      { type: 'iqn', connector_id: 'iqn.x' },
      { type: 'ip', connector_id: '2', links: [] },
    ],
    patches: [
      [replace('/type', 'mac'), replace('/connector_id', '52:54:00:00:00:01')],
      [replace('/type', 'ip'), replace('/connector_id', '10.0.0.1')],
      [replace('/type', 5)],
      [replace('/type', null)],
      [{ op: 'remove', path: '/connector_id' }],
    ],
    fields: ['type', 'connector_id,extra', 'boot_index'],
  },
  {
    path: '/v1/volume/targets',
    good: [
      {
        volume_type: 'iscsi',
        volume_id: 'v1',
        boot_index: 0,
        properties: { auth_password: 'x', a: { secret: 'y' }, l: [{ token: 'z' }], n: 1 },
      },
      { volume_type: 'fibre_channel', volume_id: 'v1', boot_index: 1.0, extra: { a: 1 } },
      { volume_type: '', volume_id: '', boot_index: -1, properties: null },
    ],
    wrong: [
      { volume_type: 'iscsi', volume_id: 'v' },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: '3' },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: true },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: 1.5 },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: null },
      { volume_type: 'iscsi', volume_id: 5, boot_index: 3 },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: 3, properties: 'x' },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: 0 },
      { volume_type: 'iscsi', volume_id: 'v', boot_index: 4, type: 'x' },
    ],
    patches: [
      [replace('/boot_index', 9), replace('/volume_type', 'rbd'), replace('/volume_id', 'w')],
      [replace('/boot_index', 1)],
      [replace('/boot_index', '7')],
      [{ op: 'remove', path: '/boot_index' }],
      [replace('/properties', null)],
      [{ op: 'add', path: '/properties/password', value: 'p' }],
      [{ op: 'remove', path: '/properties' }],
    ],
    fields: ['volume_id', 'properties', 'connector_id'],
  },
];

const made = (kind: Kind, index: number): string => uuid(`${kind === KINDS[0] ? 'c' : 'd'}${index}`);
const creations = (kind: Kind): Step[] => [
  ...kind.good.map((item, index) => post(kind.path, { node_uuid: ONE, uuid: made(kind, index), ...item })),
  ...kind.wrong.map((item) => post(kind.path, { node_uuid: ONE, ...item })),
  ...[{}, [], 'x', 5, '{bad'].map((body) => post(kind.path, body)),
  ...['zz', 'volumes-1', NOBODY, null, 5].map((node) => post(kind.path, { ...kind.good[0], node_uuid: node })),
  post(kind.path, { ...kind.good[0], node_uuid: ONE, uuid: 'zz' }),
  post(kind.path, { ...kind.wrong[0], ...kind.good[0], connector_id: undefined, node_uuid: TWO, uuid: made(kind, 0) }),
  post(kind.path, {
    ...kind.good[0],
    type: kind === KINDS[0] ? 'new' : undefined,
    boot_index: kind === KINDS[0] ? undefined : 7,
    node_uuid: ONE,
    uuid: made(kind, 1),
  }),
  ...[1, 31, 32, 96].map((minor) => post(kind.path, {}, minor)),
  post(`${kind.path}/${made(kind, 0)}`, {}),
];

const queries = (path: string, fields: readonly string[]): Step[] =>
  [
    '',
    '/',
    ...[...fields, 'uuid', 'links', 'uuid,links', 'nosuch', 'UUID', '', 'node_uuid', 'updated_at'].map((value) => `?fields=${value}`),
    ...['true', 'False', 'yes', 'zz', ''].map((value) => `?detail=${value}`),
    '?detail=true&fields=uuid',
    '?detail=false&fields=uuid',
    ...['1', '2', '0', '-1', 'x', '', '1000000'].map((value) => `?limit=${value}`),
    '?limit=1&detail=true',
    '?limit=1&fields=uuid,extra',
    '?limit=1&node=volumes-1',
    ...['uuid', 'id', 'nosuch', 'extra', 'properties', 'links', 'created_at', 'node_uuid', ''].map((value) => `?sort_key=${value}`),
    '?sort_key=uuid&sort_dir=desc&limit=2',
    ...['desc', 'up', ''].map((value) => `?sort_dir=${value}`),
    ...[uuid('c0'), uuid('d0'), NOBODY, 'zz'].map((value) => `?marker=${value}`),
    ...[ONE, TWO, 'volumes-1', 'nobody', NOBODY, 'a%20b', ''].map((value) => `?node=${value}`),
    '?nosuch=1',
    '?limit=1&limit=2',
  ].map((query) => get(`${path}${query}`));

const shows = (kind: Kind): Step[] => {
  const { path, fields } = kind;
  const one = `${path}/${made(kind, 0)}`;
  return [
    ...[1, 31, 32, 50, 80, 96, 109].flatMap((minor) => [get(one, minor), get(path, minor), get(`${path}?detail=true`, minor)]),
    { method: 'GET', path, version: null },
    { method: 'GET', path, version: '1.116' },
    { method: 'GET', path, version: 'junk' },
    { method: 'GET', path: one, version: 'latest' },
    ...[...fields, 'uuid', 'nosuch', 'links', ''].map((value) => get(`${one}?fields=${value}`)),
    get(`${one}/uuid`),
    get(`${one}?detail=true`),
    get(`${one}?nosuch=1`),
    get(`${one}.json`, 80),
    get(`${path}.json`, 80),
    ...[NOBODY, 'zz', 'detail'].flatMap((ident) => [
      get(`${path}/${ident}`),
      send('DELETE', `${path}/${ident}`, undefined),
      send('PATCH', `${path}/${ident}`, []),
    ]),
    ...['PUT', 'PATCH', 'DELETE'].flatMap((method) =>
      [31, MAX].map((minor) => send(method, path, method === 'DELETE' ? undefined : [], minor)),
    ),
    ...['PUT', 'POST'].flatMap((method) => [31, MAX].map((minor) => send(method, one, {}, minor))),
  ];
};

const patches = (kind: Kind): Step[] => {
  const one = `${kind.path}/${made(kind, 0)}`;
  const shared: readonly unknown[] = [
    [],
    {},
    'x',
    [{ op: 'nosuch' }],
    [{ op: 'test', path: '/extra', value: 1 }],
    [replace('extra', {})],
    [replace('/uuid', 'x')],
    [replace('/nosuch', 'x')],
    [replace('/links', [])],
    [{ op: 'remove', path: '/extra' }],
    [{ op: 'add', path: '/extra/b', value: { c: [1] } }],
    [{ op: 'remove', path: '/extra/zzz' }],
    [replace('/extra', 5)],
    [replace('/extra', null)],
    [replace('/node_uuid', 'zz')],
    [replace('/node_uuid', 'volumes-1')],
    [replace('/node_uuid', null)],
    [replace('/node_uuid', 5)],
    [replace('/node_uuid', NOBODY)],
    [replace('/node_uuid', TWO)],
    [replace('/node_uuid', THREE)],
    [replace('/node_uuid', ONE), replace('/node_uuid', TWO)],
    [{ op: 'remove', path: '/node_uuid' }],
  ];
  return [
    ...[...shared, ...kind.patches].flatMap((body) => [send('PATCH', one, body)]),
    ...[1, 31, 32, 80].map((minor) => send('PATCH', one, [replace('/extra', { minor })], minor)),
    get(one),
  ];
};

/** Switches the node on and off: what may be changed and removed in each state. */
const powers = (kind: Kind): Step[] => {
  const [one, two] = [`${kind.path}/${made(kind, 1)}`, `${kind.path}/${made(kind, 2)}`];
  const fresh = uuid(`${kind === KINDS[0] ? 'c' : 'd'}9`);
  return [
    send('PUT', `/v1/nodes/${ONE}/states/power`, { target: 'power on' }),
    { settle: ONE },
    send('PATCH', one, [replace('/extra', { on: true })]),
    send('PATCH', one, []),
    send('PATCH', one, [replace('/nosuch', 1)]),
    // Not in use: can be removed although the node is on.
    send('DELETE', one, undefined),
    send('PUT', `/v1/nodes/${ONE}/states/provision`, { target: 'manage' }),
    { settle: ONE },
    send('DELETE', two, undefined),
    send('PUT', `/v1/nodes/${ONE}/states/provision`, { target: 'provide' }),
    { settle: ONE },
    send('PUT', `/v1/nodes/${ONE}/states/power`, { target: 'power on' }),
    { settle: ONE },
    post(kind.path, { node_uuid: ONE, uuid: fresh, ...kind.good[1] }),
    send('DELETE', `${kind.path}/${fresh}`, undefined),
    send('PUT', `/v1/nodes/${ONE}/states/power`, { target: 'power off' }),
    { settle: ONE },
    send('DELETE', `${kind.path}/${fresh}`, undefined, 31),
    send('DELETE', `${kind.path}/${fresh}`, undefined),
    send('DELETE', `${kind.path}/${fresh}`, undefined),
    get(kind.path),
  ];
};

const ofNodes = (): Step[] => [
  ...['/v1/volume', '/v1/volume/', `/v1/nodes/${ONE}/volume`, '/v1/nodes/nobody/volume', '/v1/nodes/a%20b/volume'].flatMap((path) =>
    ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].flatMap((method) =>
      around(32).map((minor) => ({ method, path, version: at(minor), ...(method === 'GET' ? {} : { body: [] }) })),
    ),
  ),
  get('/v1/volume.json', 80),
  ...KINDS.flatMap(({ path, fields, good }) => {
    const below = (node: string): string => path.replace('/v1', `/v1/nodes/${node}`);
    return [
      ...queries(below(ONE), fields),
      ...[TWO, 'volumes-1', NOBODY, 'a%20b'].flatMap((node) => around(32).map((minor) => get(below(node), minor))),
      get(`${below(ONE)}/${uuid(path.includes('connectors') ? 'c0' : 'd0')}`),
      post(below(ONE), { node_uuid: ONE, ...good[0] }),
      send('PUT', below(ONE), {}),
      get(`${below(ONE)}/zz`, 31),
    ];
  }),
];

export const volumeGroups: Readonly<Record<string, () => readonly Step[]>> = {
  volumes: () => [
    ...nodes,
    ...KINDS.flatMap(creations),
    ...KINDS.flatMap(shows),
    ...KINDS.flatMap(({ path, fields }) => queries(path, fields)),
    ...ofNodes(),
    ...KINDS.flatMap(patches),
    ...powersInOrder(),
    ...KINDS.map(({ path }) => get(`${path}?detail=true`)),
    // The deletion of a node also deletes these.
    ...[ONE, TWO, THREE].map((node) => send('DELETE', `/v1/nodes/${node}`, undefined)),
    ...KINDS.map(({ path }) => get(path)),
  ],
};
/** For the second kind, the node is available already. */
function powersInOrder(): Step[] {
  return KINDS.flatMap((kind) => [
    ...powers(kind),
    send('PUT', `/v1/nodes/${ONE}/states/provision`, { target: 'manage' }),
    { settle: ONE },
  ]);
}
