/** The requests that both servers are asked, generated from openapi.yaml's rows and from tables of good and bad values. */
import type { Argument, FieldRow } from '../../api/document';
import { around, at, document, get, MAX, quietly, send, type Step } from './steps';
import { allocationGroups } from './requests-allocations';
import { volumeGroups } from './requests-volumes';
import { HARDWARE_GROUPS } from './requests-hardware';
import { templateGroups } from './requests-templates';
import { provisioningGroups } from './requests-provisioning';
import { PORTGROUP_GROUPS } from './requests-portgroups';
import { inspectionGroups } from './requests-inspection';

const json = 'application/json';
const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const SECOND = 'aaaaaaaa-0000-4000-8000-000000000002';
const NEW = 'aaaaaaaa-0000-4000-8000-0000000000ff';
const PORT = 'bbbbbbbb-0000-4000-8000-000000000001';
const NEW_PORT = 'bbbbbbbb-0000-4000-8000-0000000000ff';
const NOBODY = 'cccccccc-0000-4000-8000-000000000000';
const MAC = '52:54:00:00:00:01';

const escape = encodeURIComponent;

/** Two nodes and two ports that the other requests talk about. */
const setup: Step[] = [
  send('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    name: 'one',
    uuid: NODE,
    driver_info: { ipmi_password: 'x', a: { token: 'y', b: [1] } },
  }),
  send('POST', '/v1/nodes', {
    driver: 'fake-hardware',
    name: 'two',
    uuid: SECOND,
    resource_class: 'big',
    description: 'the second',
    shard: 'left',
  }),
  send('POST', '/v1/ports', { address: MAC, node_uuid: NODE, uuid: PORT, name: 'eth0', description: 'first port' }),
  send('POST', '/v1/ports', { address: '52:54:00:00:00:02', node_ident: 'two', uuid: 'bbbbbbbb-0000-4000-8000-000000000002' }),
];

const negotiation = (): Step[] => {
  const versions = [
    'latest',
    'LATEST',
    '1',
    '1.0',
    '1.1',
    '1.116',
    '2.0',
    '0.9',
    'abc',
    '1.x',
    '1.1.1',
    '',
    ' 1.50 ',
    '1.050',
    'v1.1',
    '1.50,1.60',
    '-1.5',
    null,
  ];
  const common = [
    'baremetal 1.50',
    'baremetal latest',
    'compute 2.1',
    'compute 2.1, baremetal 1.30',
    'baremetal 9',
    'baremetal',
    'BareMetal 1.4',
    'baremetal 1.200',
  ];
  return ['/', '/v1', '/v1/nodes', '/v1/nosuch', '/v2/', '/nodes'].flatMap((path): Step[] => [
    ...versions.map((version) => ({ method: 'GET', path, version })),
    ...common.map((value) => ({ method: 'GET', path, version: null, headers: { 'OpenStack-API-Version': value } })),
    { method: 'GET', path, version: '1.40', headers: { 'OpenStack-API-Version': 'baremetal 1.50' } },
    { method: 'GET', path, version: '1.40', headers: { Accept: '*/*' } },
  ]);
};

/** The whole of what is shown, at every version. */
const everyVersion = (): Step[] =>
  Array.from({ length: MAX }, (_, index) => index + 1).flatMap((minor) =>
    [
      '/v1',
      `/v1/nodes/${NODE}`,
      `/v1/nodes/${SECOND}/states`,
      `/v1/ports/${PORT}`,
      '/v1/drivers/fake-hardware',
      '/v1/conductors',
      `/v1/nodes/${NODE}/traits`,
      `/v1/nodes/${NODE}/inventory`,
    ].map((path) => get(path, minor)),
  );

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** What Ironic does not have: the stream of events, for one, has no end. */
const isOurs = (path: string): boolean => /^\/v1\/(?:openapi\.json|docs|events|hardware)|\/readiness$|\/hardware(?:$|\/)/.test(path);
/** The reference's process ends the connection there, without an answer. */
const SILENT = /^\/v1\/nodes\/[^/]+\/children$/;
/** Every path with every method; bodies that no one takes, so that nothing changes. */
const routing = (): Step[] => {
  const idents: Readonly<Record<string, readonly string[]>> = {
    node_ident: [NODE, 'nobody', NOBODY, 'a b', 'one.json'],
    port_ident: [PORT, 'nobody', NOBODY, MAC],
    driver_name: ['fake-hardware', 'nobody'],
    hostname: ['nobody', 'a:b'],
    trait: ['CUSTOM_NONE'],
    setting_name: ['x'],
    indicator: ['led'],
    method: ['x'],
  };
  const filled = (path: string): string[] => {
    const name = /\{(\w+)\}/.exec(path)?.[1];
    // Others are asked for in files of their own.
    return name ? (idents[name] ?? []).flatMap((ident) => filled(path.replace(`{${name}}`, escape(ident)))) : [path];
  };
  const paths = document.places.flatMap(({ path }) => (isOurs(path) ? [] : filled(path))).filter((path) => !SILENT.test(path));
  const odd = [
    '/',
    '/v1/',
    '/v1/nodes/',
    '/nodes',
    `/nodes/${NODE}/`,
    '/v1/nodes/one.json',
    '/v1/nodes.json',
    '/v1/nosuch',
    '/v1/nodes/ports',
    '/v1/nodes/one/uuid',
    '/v1/nodes/one/nosuch',
    '/v1/ports/eth0/address',
    '/v1/drivers/fake-hardware/name',
    '/v1/nodes/detail/x',
    '/v1/x/y/z',
  ];
  const harmless: Readonly<Record<string, unknown>> = { POST: { nosuch: 1 }, PUT: { nosuch: 1 }, PATCH: [{ op: 'nosuch' }] };
  // What is deleted by a bare request stays out: the fields below need it.
  const isSpared = (method: string, path: string): boolean =>
    method === 'DELETE' && new RegExp(`/(nodes/(${NODE}|one)(\\.json)?/?(maintenance|traits|vmedia)?|ports/${PORT})$`).test(path);
  return [...paths, ...odd].flatMap((path) =>
    METHODS.filter((method) => !isSpared(method, path)).flatMap((method) =>
      [1, 36, 95, MAX].map((minor) => ({ method, path, version: at(minor), ...(method in harmless ? { body: harmless[method] } : {}) })),
    ),
  );
};

/** Values for an argument: what fits, what does not. */
function valuesFor({ name, kind }: Argument): readonly string[] {
  const special: Readonly<Record<string, readonly string[]>> = {
    provision_state: ['enroll', 'nosuch'],
    fault: ['power failure', 'nosuch'],
    sort_key: ['uuid', 'nosuch', 'driver_info', 'extra', 'links', 'created_at'],
    sort_dir: ['desc', 'up'],
    fields: ['uuid', 'uuid,nosuch', 'links', ''],
    conductor: ['real-ironic', 'nosuch'],
    limit: ['1', '0', '-1', 'x', '', '1000000'],
    marker: [NODE, PORT, NOBODY, 'zz'],
    type: ['dynamic', 'classic', 'nosuch'],
    driver: ['fake-hardware', 'nosuch'],
    chassis_uuid: [NOBODY, 'zz'],
    parent_node: [NODE, 'zz'],
    addresses: [MAC, 'zz', `zz,${MAC}`, ''],
  };
  const byKind: Readonly<Record<string, readonly string[]>> = {
    boolean: ['true', 'False', 'ON', '0', 'zz', ''],
    integer: ['1', '0', '-1', 'x', ''],
    uuid: [NODE, NOBODY, 'zz', NODE.replaceAll('-', '')],
    ident: [NODE, 'one', 'nobody', 'a b'],
    mac: [MAC, MAC.toUpperCase(), 'zz'],
    names: ['left', 'left,right', ''],
    string: ['big', 'second', ''],
  };
  return special[name] ?? byKind[kind] ?? ['x'];
}
const queries = (): Step[] =>
  document.places.flatMap(({ path, operations }) => {
    const operation = operations.get('GET');
    if (isOurs(path)) return [];
    const real = path
      .replace('{node_ident}', NODE)
      .replace('{port_ident}', PORT)
      .replace('{driver_name}', 'fake-hardware')
      .replace('{hostname}', 'real-ironic')
      .replace(/\{\w+\}/g, NOBODY);
    const known = operation?.arguments.filter(({ from }) => from === 'query') ?? [];
    return known.flatMap((argument) =>
      around(argument.gate.since).flatMap((minor) =>
        valuesFor(argument).map((value) => get(`${real}?${argument.name}=${escape(value)}`, Math.max(minor, operation!.gate.since))),
      ),
    );
  });
const combinations = (): Step[] =>
  [
    '/v1/nodes?limit=1',
    '/v1/nodes?limit=1&detail=true',
    '/v1/nodes?limit=1&fields=uuid,name&maintenance=false&associated=False',
    '/v1/nodes?limit=1&maintenance=false&retired=false',
    `/v1/nodes?limit=1&marker=${NODE}&sort_dir=desc`,
    `/v1/nodes?limit=1&marker=${NODE}&sort_key=name`,
    '/v1/nodes?detail=true&fields=uuid',
    '/v1/nodes?nosuch=1',
    '/v1/nodes?nosuch=1&other=2',
    '/v1/nodes?limit=1&limit=2',
    '/v1/nodes?fields=uuid&fields=name',
    '/v1/nodes/detail?limit=1',
    '/v1/nodes/detail?limit=1&sort_key=created_at',
    '/v1/nodes/detail?fields=uuid',
    `/v1/nodes?instance_uuid=${NOBODY}&limit=1`,
    '/v1/ports?limit=1',
    '/v1/ports?limit=1&detail=true',
    '/v1/ports?limit=1&fields=uuid,node_uuid',
    '/v1/ports/detail?limit=1&sort_key=address&sort_dir=desc',
    `/v1/ports?node=one&address=${MAC}`,
    '/v1/ports?node=one&shard=left',
    '/v1/ports?conductor_groups=a&node=one',
    `/v1/nodes/${NODE}/ports?limit=1`,
    `/v1/nodes/${SECOND}/ports/detail?limit=1`,
    '/v1/drivers?detail=true',
    '/v1/drivers?fields=name,hosts',
    '/v1/drivers?fields=name&detail=true',
    '/v1/conductors?limit=1',
    '/v1/conductors?limit=1&detail=true',
    '/v1/conductors?fields=hostname,alive',
    '/v1/conductors?marker=real-ironic',
    '/v1/conductors?detail=true&fields=alive',
    '/v1/nodes/validate?node=one',
    '/v1/nodes/validate',
    `/v1/nodes/validate?node_uuid=${NODE}&node=nobody`,
  ].flatMap((path) => [get(path), get(path, 96)]);

/** Each field asked for alone, and sorted by. */
const fields = (): Step[] =>
  (
    [
      ['Node', '/v1/nodes', `/v1/nodes/${NODE}`],
      ['Port', '/v1/ports', `/v1/ports/${PORT}`],
      ['Driver', '/v1/drivers', '/v1/drivers/fake-hardware'],
      ['Conductor', '/v1/conductors', '/v1/conductors/real-ironic'],
    ] as const
  ).flatMap(([resource, list, one]) =>
    document.fields(resource).flatMap(({ name, gate }) =>
      around(gate.since).flatMap((minor) => [
        get(`${list}?fields=${name}`, minor),
        get(`${one}?fields=${name}`, minor),
        ...(['portgroups', 'volume'].includes(name) ? [] : [get(`${one}/${name}`, minor)]),
        // A lock stamps the row there, not here.
        ...(resource === 'Driver' || name === 'updated_at' ? [] : [get(`${list}?sort_key=${name}`, minor)]),
      ]),
    ),
  );

/** Values of a field: one that fits and several that do not. */
function fieldValues({ name, schema }: FieldRow): readonly unknown[] {
  const fitting: Readonly<Record<string, unknown>> = {
    uuid: NEW,
    name: 'three',
    driver: 'fake-hardware',
    instance_uuid: NOBODY,
    chassis_uuid: NOBODY,
    conductor_group: '',
    parent_node: NODE,
    network_data: {},
    resource_class: 'r',
    owner: null,
    address: '52:54:00:00:00:ff',
    node_uuid: NODE,
    node_ident: 'one',
    portgroup_uuid: NOBODY,
    local_link_connection: { switch_id: '0A:1b:2C:3d:4E:5f', port_id: 'Eth1' },
  };
  const isInterface = name.endsWith('_interface');
  const fit =
    name in fitting
      ? fitting[name]
      : isInterface
        ? null
        : { object: { key: 'value' }, boolean: true, string: 'text' }[schema['type'] as string];
  return [fit, null, 5, 'zz', '', [], {}, true, 'yes', ['x'], 'x'.repeat(5000)];
}
const creations = (): Step[] =>
  (
    [
      ['Node', '/v1/nodes', NEW, { driver: 'fake-hardware', uuid: NEW }],
      ['Port', '/v1/ports', NEW_PORT, { address: '52:54:00:00:00:ff', node_uuid: NODE, uuid: NEW_PORT }],
    ] as const
  ).flatMap(([resource, path, uuid, base]) => {
    // A body that fits leaves something behind: away with it.
    const tried = (body: object, minor: number): Step[] => [
      send('POST', path, body, minor),
      // A node with an instance goes in maintenance only.
      ...('instance_uuid' in body ? [quietly(send('PUT', `${path}/${uuid}/maintenance`, {}, minor))] : []),
      quietly(send('DELETE', `${path}/${uuid}`, undefined, minor)),
    ];
    return document.fields(resource).flatMap((row) => {
      if (!row.create) return tried({ ...base, [row.name]: null }, MAX);
      // Text for secure_boot is taken as yes there, whatever it says, and a node may have the parent ''.
      const values = fieldValues(row).filter(
        (value) =>
          !(row.name === 'uuid' && (value === null || value === NEW)) &&
          !(row.name === 'secure_boot' && typeof value === 'string') &&
          !(row.name === 'parent_node' && value === ''),
      );
      return [
        ...values.flatMap((value) => tried({ ...base, [row.name]: value }, MAX)),
        ...around(row.gate.since).flatMap((minor) => tried({ ...base, [row.name]: values[0] }, minor)),
      ];
    });
  });
const bodies = (): Step[] =>
  ['/v1/nodes', '/v1/ports']
    .flatMap((path) => [
      ...[[], null, 'text', 5, {}, { bogus: 1, other: 2 }, { driver: 5, extra: 5 }, { address: MAC }, { node_ident: 'one' }].map((body) =>
        send('POST', path, body),
      ),
      { method: 'POST', path, version: at(MAX), body: '' },
      { method: 'POST', path, version: at(MAX), body: '{bad' },
      { method: 'POST', path, version: at(MAX), body: '{"driver":"x"', headers: { 'Content-Type': json } },
      { method: 'POST', path, version: at(MAX), body: `${'['.repeat(26)}${']'.repeat(26)}` },
      { method: 'POST', path, version: at(MAX), body: JSON.stringify({ driver: 'x'.repeat(1_100_000) }) },
    ])
    .concat([
      send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: NODE }),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'one' }),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'one' }, 4),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'a_b' }, 9),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'Upper' }, 9),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'detail' }),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', name: NODE }),
      send('POST', '/v1/nodes', { driver: 'nosuch' }),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', conductor_group: 'Nobody' }),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', owner: 'me' }),
      send('POST', '/v1/nodes', { driver: 'fake-hardware', parent_node: 'nobody' }),
      ...[1, 10, 11].flatMap((minor) => [
        send('POST', '/v1/nodes', { driver: 'fake-hardware', uuid: NEW }, minor),
        get(`/v1/nodes/${NEW}`, 1),
        send('DELETE', `/v1/nodes/${NEW}`, undefined, minor),
      ]),
      send('POST', '/v1/ports', { address: MAC, node_uuid: NODE }),
      send('POST', '/v1/ports', { address: '52:54:00:00:00:aa', node_uuid: NODE, uuid: PORT }),
      send('POST', '/v1/ports', { address: '52:54:00:00:00:aa', node_uuid: NOBODY }),
      send('POST', '/v1/ports', { address: '52:54:00:00:00:aa', node_ident: 'nobody' }),
      send('POST', '/v1/ports', { address: '52:54:00:00:00:aa', node_ident: 'a b' }),
      send('POST', '/v1/ports', { address: '52:54:00:00:00:aa', node_ident: 'one' }, 93),
      send('POST', '/v1/ports', { address: '52:54:00:00:00:aa', node_ident: 'one', node_uuid: NODE }),
      ...LINKS.flatMap((link) =>
        [63, 64, 89, 90, 104, 105, MAX].flatMap((minor) => [
          send('POST', '/v1/ports', { address: '52:54:00:00:00:ff', node_uuid: NODE, uuid: NEW_PORT, local_link_connection: link }, minor),
          send('DELETE', `/v1/ports/${NEW_PORT}`, undefined),
        ]),
      ),
      ...LINKS.flatMap((link) => [
        send('POST', '/v1/ports', {
          address: '52:54:00:00:00:ff',
          node_uuid: NODE,
          uuid: NEW_PORT,
          is_smartnic: true,
          local_link_connection: link,
        }),
        send('DELETE', `/v1/ports/${NEW_PORT}`, undefined),
      ]),
    ]);
const LINKS: readonly unknown[] = [
  {},
  { x: 1 },
  { port_id: 'p' },
  { port_id: 5 },
  { port_id: 'p', hostname: 'h' },
  { port_id: 'p', switch_id: 'zz' },
  { port_id: 'p', switch_id: '00000A1b2C3d4E5f' },
  { network_type: 'unmanaged' },
  { network_type: 'managed' },
  { network_type: 'nosuch' },
  { port_id: 'p', 'vtep-logical-switch': 'a', 'vtep-physical-switch': 'b' },
];

const op = (name: string, path: string, value?: unknown): object => ({ op: name, path, ...(value === undefined ? {} : { value }) });
const patches = (): Step[] => {
  const targets = [
    ['Node', `/v1/nodes/${SECOND}`],
    ['Port', `/v1/ports/${PORT}`],
  ] as const;
  return targets.flatMap(([resource, path]) => [
    ...[
      [],
      {},
      null,
      'x',
      [5],
      [{}],
      [{ op: 'replace' }],
      [{ op: 'replace', path: 5 }],
      [{ op: 'test', path: '/extra', value: 1 }],
      [{ op: 'replace', path: 'extra', value: {} }],
      [{ op: 'move', path: '/extra', from: '/x' }],
      [{ op: 'add', path: '/extra/a.b', value: 1 }],
      [{ op: 'add', path: '/extra/a~1b', value: 1 }],
      [{ op: 'add', path: '/extra/a', value: 1, more: 2 }],
      [{ op: 'add', path: '' }],
    ].map((body) => send('PATCH', path, body)),
    send('PATCH', path, [op('add', '/extra/a', [1, 2])]),
    ...[
      [op('add', '/extra/a/0', 0)],
      [op('add', '/extra/a/-', 9)],
      [op('add', '/extra/a/99', 9)],
      [op('remove', '/extra/a/99')],
      [op('remove', '/extra/a/x')],
      [op('replace', '/extra/a/99', 1)],
      [op('replace', '/extra/a/-', 1)],
      [op('replace', '/extra/a/0/deep', 1)],
      [op('replace', '/extra/nosuch', 1)],
      [op('remove', '/extra/nosuch')],
      [op('add', '/extra/nosuch/deep', 1)],
      [op('add', '/extra/__proto__', { x: 1 })],
      [op('add', '/extra/__proto__/x', 1)],
      [op('add', '/extra/constructor/prototype', 1)],
      [op('add', '/nosuch', 1)],
      [op('replace', '/extra/a', 'x'), op('replace', '/extra/nosuch', 1)],
    ].map((body) => send('PATCH', path, body)),
    ...document.fields(resource).flatMap((row) => patchesOf(row, path)),
    send('PATCH', `${path}?reset_interfaces=true`, []),
    send('PATCH', `${path}?nosuch=true`, []),
    send('PATCH', path.replace(/[^/]*$/, 'nobody'), []),
  ]);
};
/** Each field with each operation, put back afterwards. */
function patchesOf(row: FieldRow, path: string): Step[] {
  const { name, patch, gate } = row;
  if (!patch) return [send('PATCH', path, [op('replace', `/${name}`, 'x')]), send('PATCH', path, [op('remove', `/${name}`)])];
  // A port stays where it is, and keeps its address, as later requests know them.
  // Booleans without a value are null there, where we say no.
  const nullable = !['is_smartnic', 'retired', 'disable_power_off'].includes(name);
  const values = fieldValues(row).filter((value) => !(name === 'address' && value === '52:54:00:00:00:ff') && (nullable || value !== null));
  const back: Readonly<Record<string, Step>> = {
    name: send('PATCH', path, [op('replace', '/name', path.includes('ports') ? 'eth0' : 'two')]),
    resource_class: send('PATCH', path, [op('replace', '/resource_class', 'big')]),
    shard: send('PATCH', path, [op('replace', '/shard', 'left')]),
    description: send('PATCH', path, [op('replace', '/description', 'again')]),
    automated_clean: send('PATCH', path, [op('replace', '/automated_clean', null)]),
    ...Object.fromEntries(
      ['maintenance', 'is_smartnic', 'retired', 'disable_power_off', 'protected'].map((one) => [
        one,
        send('PATCH', path, [op('replace', `/${one}`, false)]),
      ]),
    ),
    pxe_enabled: send('PATCH', path, [op('replace', '/pxe_enabled', true)]),
  };
  const undo =
    back[name] ??
    (name === 'driver' || name === 'address' || name.startsWith('node_') ? undefined : send('PATCH', path, [op('remove', `/${name}`)]));
  return [
    ...values.map((value) => send('PATCH', path, [op('replace', `/${name}`, value)])),
    ...(nullable ? [send('PATCH', path, [op('remove', `/${name}`)])] : []),
    ...(undo ? [undo] : []),
    ...around(gate.since).flatMap((minor) => [
      send('PATCH', path, [op('add', `/${name}`, values[0])], minor),
      ...(nullable ? [send('PATCH', path, [op('remove', `/${name}`)], minor)] : []),
    ]),
    ...(undo ? [undo] : []),
    send('PATCH', path, [{ op: 'replace', path: `/${name}` }]),
  ];
}
const renames = (): Step[] =>
  ['one', 'a b', 'detail', NODE, null, '', 'x'.repeat(256), 'A.b~c']
    .map((name) => send('PATCH', `/v1/nodes/${SECOND}`, [op('replace', '/name', name)]))
    .concat([
      send('PATCH', `/v1/nodes/${SECOND}`, [op('replace', '/name', 'two')], 4),
      send('PATCH', `/v1/nodes/${SECOND}`, [op('replace', '/name', 'a_b')], 9),
      send('PATCH', `/v1/nodes/${SECOND}`, [op('replace', '/name', 'two')], 9),
      send('PATCH', `/v1/nodes/${SECOND}`, [op('add', '/instance_info/display_name', 'shown')]),
      send('PATCH', `/v1/nodes/${SECOND}`, [
        op('add', '/instance_info', { configdrive: 'x', image_url: 'y', admin_password: 'z', ok: 'password=1' }),
      ]),
      send('PATCH', `/v1/nodes/${SECOND}`, [op('remove', '/instance_info'), op('remove', '/instance_name')]),
      send('PATCH', `/v1/nodes/${SECOND}`, [
        op('add', '/driver_info', {
          ipmi_password: 'x',
          snmp_auth_key: 'k',
          list: [{ token: 't' }, 'token=5'],
          deep: { secret: { a: 1 } },
        }),
      ]),
      send('PATCH', `/v1/nodes/${SECOND}`, [op('replace', '/driver_info', {})]),
    ]);

/** Verbs and their bodies on a node that is taken through its life. */
const states = (): Step[] => {
  const power = `/v1/nodes/${NODE}/states/power`;
  const provision = `/v1/nodes/${NODE}/states/provision`;
  const verbs = [
    'active',
    'deploy',
    'rebuild',
    'deleted',
    'undeploy',
    'manage',
    'provide',
    'inspect',
    'abort',
    'clean',
    'adopt',
    'rescue',
    'unrescue',
    'unhold',
    'service',
    'nosuch',
    'done',
    '',
  ];
  // In a state in which none of them is possible, all of them can be tried.
  const impossible = (...possible: string[]): Step[] =>
    verbs
      .filter((verb) => !possible.includes(verb))
      .flatMap((target) =>
        [1, 3, 4, 5, 6, 12, 13, 14, 15, 16, 17, 37, 38, 72, 73, 84, 85, 86, 87, MAX].map((minor) =>
          send('PUT', provision, { target }, minor),
        ),
      );
  const clean = [
    [],
    [{}],
    [5],
    [{ interface: 'power' }],
    [{ interface: 'nosuch', step: 'x' }],
    [{ interface: 'power', step: '' }],
    [{ interface: 'power', step: 'x', args: [] }],
    [{ interface: 'power', step: 'x', bogus: 1 }],
    [{ interface: 'vendor', step: 'send_raw' }],
    [{ interface: 'power', step: 'x', priority: 1 }],
  ];
  const keys = [
    { configdrive: 'abc' },
    { configdrive: {} },
    { configdrive: { meta_data: {} } },
    { configdrive: 5 },
    { clean_steps: 5 },
    { clean_steps: [] },
    { deploy_steps: 5 },
    { deploy_steps: [] },
    { deploy_steps: [{ interface: 'deploy', step: 's', args: {}, priority: 1 }] },
    { service_steps: [{ interface: 'deploy', step: 's' }] },
    { clean_steps: [{ interface: 'deploy', step: 's' }] },
    { rescue_password: 'x' },
    { rescue_password: 5 },
    { disable_ramdisk: true },
    { disable_ramdisk: 'zz' },
    { runbook: 'x' },
    { runbook: 5 },
    { nosuch: 1 },
  ];
  const drives = [
    'abc=',
    '{"a":1}',
    'http://x/y',
    { meta_data: {} },
    { vendor_data: {} },
    { bogus: 1 },
    { meta_data: 5 },
    { user_data: ['a'] },
  ];
  return [
    ...impossible('manage'),
    send('PUT', provision, {}),
    send('PUT', provision, { target: null }),
    send('PUT', provision, { target: 5 }),
    { method: 'PUT', path: provision, version: at(MAX), body: '{bad' },
    send('PUT', `/v1/nodes/one/states/provision`, { target: 'manage' }, 4),
    ...keys
      .filter(
        (body) =>
          !('deploy_steps' in body && (body.deploy_steps as unknown[]).length === 0) &&
          !('clean_steps' in body && (body.clean_steps as unknown[]).length === 0),
      )
      .map((body) => send('PUT', provision, { target: 'manage', ...body }))
      .filter(
        ({ body }) => !('configdrive' in (body as object) && JSON.stringify((body as { configdrive: unknown }).configdrive) === '{}'),
      ),
    ...[
      { target: 'power on' },
      {},
      { target: null },
      { target: 'nosuch' },
      { target: 5 },
      { target: 'power on', timeout: 0 },
      { target: 'power on', timeout: 'x' },
      { target: 'power on', timeout: '5' },
      { target: 'power on', nosuch: 1 },
    ].flatMap((body) => [send('PUT', power, body), { settle: NODE }]),
    ...['soft power off', 'soft rebooting', 'rebooting', 'power off'].flatMap((target) =>
      [26, 27].flatMap((minor) => [send('PUT', power, { target }, minor), { settle: NODE }]),
    ),
    send('PUT', power, { target: 'power on', timeout: 5 }, 26),
    send('PUT', '/v1/nodes/one/states/power', { target: 'power on' }, 4),
    send('PUT', '/v1/nodes/nobody/states/power', { target: 'power on' }),
    send('PUT', `${power}?target=power%20on`, undefined),
    { settle: NODE },
    send('PUT', provision, { target: 'manage' }, 4),
    { settle: NODE },
    ...impossible('provide', 'inspect', 'clean', 'adopt', 'manage'),
    ...clean.map((steps) => send('PUT', provision, { target: 'clean', clean_steps: steps })),
    send('PUT', provision, { target: 'clean' }),
    send('PUT', provision, { target: 'clean', clean_steps: [{ interface: 'power', step: 'x' }], disable_ramdisk: true }, 69),
    send('PUT', provision, { target: 'clean', runbook: 'nosuch' }),
    send('PUT', provision, { target: 'clean', runbook: 'nosuch' }, 91),
    send('PUT', provision, { target: 'inspect' }),
    { settle: NODE },
    get(`/v1/nodes/${NODE}/inventory`),
    send('PUT', provision, { target: 'provide' }),
    { settle: NODE },
    get(`/v1/nodes/${NODE}`, 1),
    get(`/v1/nodes/${NODE}`, 2),
    get(`/v1/nodes/${NODE}/states`, 1),
    ...impossible('active', 'deploy', 'manage'),
    ...drives.flatMap((configdrive) => [34, 55, 56, 58].map((minor) => send('PUT', provision, { target: 'deploy', configdrive }, minor))),
    ...drives.slice(5, 7).map((configdrive) => send('PUT', provision, { target: 'active', configdrive })),
    send('PUT', provision, { target: 'active', configdrive: '{"a":1}' }),
    send('PUT', provision, { target: 'active', deploy_steps: [{ interface: 'deploy', step: 's' }] }),
    send('PUT', provision, { target: 'active', deploy_steps: [{ interface: 'deploy', step: 's', args: {}, priority: 1 }] }, 68),
    send('PUT', provision, { target: 'deploy', deploy_steps: [{ interface: 'deploy', step: 's', args: {}, priority: 1 }] }),
    send('PUT', `/v1/nodes/${NODE}/maintenance`, { reason: 'tested' }),
    send('PUT', provision, { target: 'active' }),
    send('DELETE', `/v1/nodes/${NODE}/maintenance`, undefined),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/retired', true)]),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/protected', true)]),
    send('PUT', provision, { target: 'active' }),
    { settle: NODE },
    ...impossible('rebuild', 'deleted', 'undeploy', 'rescue', 'service'),
    send('PUT', provision, { target: 'rescue' }),
    send('PUT', provision, { target: 'rescue', rescue_password: ' ' }),
    send('PUT', provision, { target: 'service' }),
    send('PUT', provision, { target: 'service', service_steps: [{ interface: 'power', step: 'x' }] }, 86),
    send('PUT', provision, { target: 'service', service_steps: [{ interface: 'network', step: 5 }] }),
    send('PUT', provision, { target: 'service', service_steps: [{ interface: 'power', step: 'x' }], disable_ramdisk: true }, 107),
    send('DELETE', `/v1/nodes/${NODE}`, undefined),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/protected', true), op('replace', '/protected_reason', 'kept')]),
    send('PUT', provision, { target: 'deleted' }),
    send('PUT', provision, { target: 'rebuild' }),
    send('DELETE', `/v1/nodes/${NODE}`, undefined),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/resource_class', 'x')]),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/boot_interface', 'ipxe')]),
    send('PATCH', `/v1/ports/${PORT}`, [op('replace', '/address', '52:54:00:00:00:cc')]),
    send('PATCH', `/v1/ports/${PORT}`, [op('replace', '/pxe_enabled', false)]),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/protected', false)]),
    get(`/v1/nodes/${NODE}`),
    send('PUT', provision, { target: 'undeploy' }),
    { settle: NODE },
    send('PUT', provision, { target: 'manage' }),
    get(`/v1/nodes/${NODE}`),
  ];
};

const management = (): Step[] => {
  const device = `/v1/nodes/${NODE}/management/boot_device`;
  const maintenance = `/v1/nodes/${NODE}/maintenance`;
  const traits = `/v1/nodes/${NODE}/traits`;
  const many = Array.from({ length: 51 }, (_, index) => `CUSTOM_${index}`);
  return [
    get(device),
    get(`${device}/supported`),
    ...[
      {},
      { boot_device: 'pxe' },
      { boot_device: 'nosuch' },
      { boot_device: 5 },
      { boot_device: null },
      { boot_device: 'pxe', persistent: 'zz' },
      { boot_device: 'pxe', persistent: true },
      { boot_device: 'pxe', persistent: 'yes' },
      { boot_device: 'pxe', nosuch: 1 },
    ].map((body) => send('PUT', device, body)),
    send('PUT', `${device}?boot_device=pxe`, undefined),
    ...[{}, { reason: 'r' }, { reason: null }, { reason: 5 }, { nosuch: 1 }, []].flatMap((body) => [
      send('PUT', maintenance, body),
      get(`/v1/nodes/${NODE}?fields=maintenance,maintenance_reason,fault`),
    ]),
    send('DELETE', `${maintenance}?x=1`, undefined),
    send('DELETE', maintenance, undefined),
    get(`/v1/nodes/${NODE}/states`),
    ...[
      { traits: ['CUSTOM_A', 'CUSTOM_B'] },
      { traits: ['a'] },
      { traits: [''] },
      { traits: [5] },
      { traits: 'CUSTOM_A' },
      { traits: null },
      {},
      { nosuch: 1 },
      [],
      { traits: ['HW_CPU_X86_VMX'] },
      { traits: ['HW_NOSUCH'] },
      { traits: ['CUSTOM_' + 'X'.repeat(260)] },
      { traits: many },
    ].flatMap((body) => [36, 37, MAX].map((minor) => send('PUT', traits, body, minor))),
    ...['CUSTOM_C', 'custom', 'HW_CPU_X86_AVX', 'HW_NOSUCH', 'X'.repeat(260)].flatMap((trait) =>
      [36, 37, MAX].map((minor) => send('PUT', `${traits}/${trait}`, undefined, minor)),
    ),
    send('PUT', `${traits}/CUSTOM_C`, { traits: [] }),
    send('PUT', `${traits}/CUSTOM_C`, {}),
    send('PUT', `${traits}/CUSTOM_C`, { x: 1 }),
    get(traits, 36),
    get(traits),
    get(`/v1/nodes/${NODE}?fields=traits`),
    ...['CUSTOM_C', 'CUSTOM_NONE', 'zz'].flatMap((trait) =>
      [36, MAX].map((minor) => send('DELETE', `${traits}/${trait}`, undefined, minor)),
    ),
    send('DELETE', traits, undefined, 36),
    send('DELETE', traits, undefined),
    get(traits),
  ];
};

const ramdisk = (): Step[] => {
  const beat = `/v1/heartbeat/${NODE}`;
  const good = { callback_url: 'https://127.0.0.1:1', agent_version: '10.0', agent_token: 'x' };
  const inventory = { interfaces: [{ name: 'eth0', mac_address: MAC }] };
  return [
    ...[21, 22, 61, 62, MAX].flatMap((minor) => [
      get('/v1/lookup', minor),
      get(`/v1/lookup?addresses=${MAC}`, minor),
      get(`/v1/lookup?node_uuid=${NODE}`, minor),
      get(`/v1/lookup?node_uuid=${NOBODY}`, minor),
      get('/v1/lookup?node_uuid=zz', minor),
      get('/v1/lookup?addresses=zz', minor),
      get('/v1/lookup?nosuch=zz', minor),
    ]),
    ...[21, 22, 35, 36, 61, 62, 67, 68, 71, 72, MAX].flatMap((minor) =>
      [
        {},
        { callback_url: 'https://x' },
        good,
        { ...good, callback_url: 'http://x' },
        { ...good, callback_url: 'ftp://x' },
        { ...good, callback_url: '' },
        { ...good, callback_url: 5 },
        { ...good, callback_url: null },
        { callback_url: 'https://x', agent_token: 'x' },
        { ...good, agent_verify_ca: 'pem' },
        { ...good, agent_status: 'start' },
        { ...good, agent_status: 'nosuch' },
        { ...good, agent_status_message: 'm' },
        { ...good, nosuch: 1 },
      ].map((body) => send('POST', beat, body, minor)),
    ),
    send('POST', '/v1/heartbeat/nobody', good),
    send('POST', '/v1/heartbeat/one', good, 40),
    send('POST', '/v1/heartbeat', good),
    ...[null, '1.1', '1.2', '1.83', '1.84', '1.115'].flatMap((version): Step[] =>
      [
        {},
        { inventory: {} },
        { inventory: { interfaces: [] } },
        { inventory: { interfaces: [{}] } },
        { inventory: { interfaces: [{ mac_address: 5 }] } },
        { inventory: { interfaces: [{ mac_address: 'zz' }] } },
        { inventory },
        { inventory: { ...inventory, bmc_address: '10.0.0.1' } },
        { inventory: 'x' },
        [],
      ].flatMap((body) => [
        { method: 'POST', path: '/v1/continue_inspection', version, body },
        { method: 'POST', path: `/v1/continue_inspection?node_uuid=${NODE}`, version, body },
        { method: 'POST', path: '/v1/continue_inspection?node_uuid=zz', version, body },
      ]),
    ),
  ];
};

/** Groups of requests, in the order in which they are sent; later ones live with what earlier ones left. */
export const GROUPS: Readonly<Record<string, () => readonly Step[]>> = {
  setup: () => setup,
  negotiation,
  everyVersion,
  routing,
  queries,
  combinations,
  fields,
  bodies,
  creations,
  patches,
  renames,
  management,
  ramdisk,
  states,
  ...volumeGroups,

  ...HARDWARE_GROUPS,

  ...templateGroups,

  ...provisioningGroups,
  ...PORTGROUP_GROUPS,

  ...inspectionGroups,

  ...allocationGroups,
};
