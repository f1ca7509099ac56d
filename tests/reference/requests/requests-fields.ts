/** Requests about each field of nodes and ports: in queries, at the creation, in bodies and in patches, with valid and invalid values. */
import type { FieldRow } from '../../../api/schema/document';
import { around, at, document, get, MAX, quietly, send, type Step } from './steps';
import { MAC, NEW, NEW_PORT, NOBODY, NODE, PORT, SECOND, op } from './requests-world';

const json = 'application/json';
/** Selects each field alone, and sorts by it. */
const fields = (): Step[] =>
  (
    [
      ['Node', '/v1/nodes', `/v1/nodes/${NODE}`],
      ['Port', '/v1/ports', `/v1/ports/${PORT}`],
      ['Driver', '/v1/drivers', '/v1/drivers/fake-hardware'],
      ['Conductor', '/v1/conductors', '/v1/conductors/real-ironic'],
    ] as const
  ).flatMap(([resource, list, item]) =>
    document.fields(resource).flatMap(({ name, gate }) =>
      around(gate.since).flatMap((minor) => [
        get(`${list}?fields=${name}`, minor),
        get(`${item}?fields=${name}`, minor),
        ...(['portgroups', 'volume'].includes(name) ? [] : [get(`${item}/${name}`, minor)]),
        // A reservation changes the row's updated_at there, but not here.
        ...(resource === 'Driver' || name === 'updated_at' ? [] : [get(`${list}?sort_key=${name}`, minor)]),
      ]),
    ),
  );

/** Values of a field: a valid one and several invalid ones. */
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
    // Deletes what an accepted body has created.
    const tried = (body: object, minor: number): Step[] => [
      send('POST', path, body, minor),
      // A node with an instance can be deleted in maintenance only.
      ...('instance_uuid' in body ? [quietly(send('PUT', `${path}/${uuid}/maintenance`, {}, minor))] : []),
      quietly(send('DELETE', `${path}/${uuid}`, undefined, minor)),
    ];
    return document.fields(resource).flatMap((row) => {
      if (!row.create) return tried({ ...base, [row.name]: null }, MAX);
      // The reference takes any text for secure_boot as true, and accepts the parent ''.
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
/** Patches each field with each operation, and restores it afterwards. */
function patchesOf(row: FieldRow, path: string): Step[] {
  const { name, patch, gate } = row;
  if (!patch) return [send('PATCH', path, [op('replace', `/${name}`, 'x')]), send('PATCH', path, [op('remove', `/${name}`)])];
  // A port keeps its node and its address, on which later requests rely.
  // Without null for these booleans, although both servers store it by now (migration 0004).
  const nullable = !['is_smartnic', 'retired', 'disable_power_off'].includes(name);
  const values = fieldValues(row).filter((value) => !(name === 'address' && value === '52:54:00:00:00:ff') && (nullable || value !== null));
  const back: Readonly<Record<string, Step>> = {
    name: send('PATCH', path, [op('replace', '/name', path.includes('ports') ? 'eth0' : 'two')]),
    resource_class: send('PATCH', path, [op('replace', '/resource_class', 'big')]),
    shard: send('PATCH', path, [op('replace', '/shard', 'left')]),
    description: send('PATCH', path, [op('replace', '/description', 'again')]),
    automated_clean: send('PATCH', path, [op('replace', '/automated_clean', null)]),
    ...Object.fromEntries(
      ['maintenance', 'is_smartnic', 'retired', 'disable_power_off', 'protected'].map((item) => [
        item,
        send('PATCH', path, [op('replace', `/${item}`, false)]),
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

export const fieldGroups: Readonly<Record<string, () => readonly Step[]>> = { fields, bodies, creations, patches, renames };
