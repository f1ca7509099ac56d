import { matching, useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const TWO = 'aaaaaaaa-0000-4000-8000-000000000002';
const BOND = 'dddddddd-0000-4000-8000-000000000001';
const OTHER = 'dddddddd-0000-4000-8000-000000000002';
const PORT = 'bbbbbbbb-0000-4000-8000-000000000001';
const MAC = '52:54:00:00:00:01';
const create = (body: object, minor = NEWEST) => api.ask('POST', '/v1/portgroups', minor, { body: { node_uuid: ONE, ...body } });
const patch = (body: unknown, minor = NEWEST) => api.ask('PATCH', `/v1/portgroups/${BOND}`, minor, { body });
const addPort = (body: object, minor = NEWEST) =>
  api.ask('POST', '/v1/ports', minor, { body: { address: MAC, node_uuid: ONE, uuid: PORT, ...body } });
const patchPort = (body: unknown, minor = NEWEST) => api.ask('PATCH', `/v1/ports/${PORT}`, minor, { body });

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: ONE, name: 'one', shard: 'left' } });
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: TWO, name: 'two' } });
  await create({ uuid: BOND, name: 'bond0', address: '52:54:00:00:00:AA' });
});

it('a portgroup has the configured mode by default, and shows its ports as links', async () => {
  const { body } = await api.ask('GET', '/v1/portgroups/bond0');
  expect(body).toMatchObject({ uuid: BOND, address: '52:54:00:00:00:aa', mode: 'active-backup', standalone_ports_supported: true });
  expect(body.ports[0]).toEqual({ href: `${api.url()}/v1/portgroups/${BOND}/ports`, rel: 'self' });
  expect((await create({ mode: '' })).body['mode']).toBe('active-backup');
});

it.each([
  [{ name: 'bond0' }, NEWEST, 409, 'A portgroup with name bond0 already exists.'],
  [{ address: '52:54:00:00:00:aa' }, NEWEST, 409, 'A portgroup with MAC address 52:54:00:00:00:aa already exists.'],
  [{ uuid: BOND }, NEWEST, 409, `A portgroup with UUID ${BOND} already exists.`],
  [{ name: 'a b' }, NEWEST, 400, "Cannot create portgroup with invalid name 'a b'"],
  [{ node_uuid: BOND }, NEWEST, 400, `Node ${BOND} could not be found.`],
  [{ node_uuid: undefined }, NEWEST, 400, "Schema error for portgroup: 'node_uuid' is a required property"],
  [{ dynamic_portgroup: true }, NEWEST, 400, /'dynamic_portgroup' was unexpected/],
  [{ mode: 'x' }, 25, 406, 'Request not acceptable.'],
  [{}, 22, 404, 'The API is not supported for this version'],
])('a new portgroup with %j at 1.%p is refused with %p', async (body, minor, status, sentence) => {
  const answer = await create(body, minor);
  expect(answer.status).toBe(status);
  expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
});

it.each([
  ['?node=one', 1],
  ['?node=two', 0],
  [`?address=52:54:00:00:00:aa`, 1],
  ['?shard=left', 1],
  ['?shard=right', 0],
  ['?conductor_groups=x', 0],
  ['?shard=left&node=one', 'Filtering by node, address, or shard simultaneously is not supported.'],
  ['?marker=zz', "Schema error: 'zz' is not a 'uuid'"],
  ['?address=zz', "Schema error: 'zz' is not a 'mac-address'"],
  ['?node=a%20b', "Schema error: 'a b' is not valid under any of the given schemas. Possible root cause: 'a b' is not a 'uuid'"],
  ['?sort_key=node_uuid', 'The sort_key value "node_uuid" is an invalid field for sorting'],
])('answers the list query %s', async (query, expected) => {
  const { body, fault } = await api.ask('GET', `/v1/portgroups${query}`);
  expect(fault ?? (body['portgroups'] as unknown[]).length).toEqual(expected);
});
it('old versions show fields in lists that they hide in a single portgroup', async () => {
  expect((await api.ask('GET', '/v1/portgroups/detail', 23)).body['portgroups']).toMatchObject([
    { physical_network: null, mode: 'active-backup' },
  ]);
  expect((await api.ask('GET', '/v1/portgroups/bond0', 23)).body['mode']).toBeUndefined();
});
it('the portgroups of a node are listed by its UUID only, with a next link to all portgroups', async () => {
  expect((await api.ask('GET', `/v1/nodes/${ONE}/portgroups?limit=1`)).body.next).toMatch(/\/v1\/portgroups\?sort_key=id/);
  expect((await api.ask('GET', `/v1/nodes/${TWO}/portgroups`)).body['portgroups']).toEqual([]);
  expect((await api.ask('GET', '/v1/nodes/one/portgroups')).fault).toBe('Portgroup None could not be found.');
  expect((await api.ask('GET', `/v1/nodes/${ONE}/portgroups/${BOND}`)).fault).toBe('Malformed request URI.');
});

it.each([
  [[{ op: 'remove', path: '/mode' }], NEWEST, 400, "'mode' is a mandatory attribute and can not be removed"],
  [[{ op: 'add', path: '/properties/a', value: 1 }], 25, 406, 'Request not acceptable.'],
  [[{ op: 'replace', path: '/name', value: 'a b' }], NEWEST, 400, `Portgroup ${BOND}: Cannot change name to invalid name 'a b'`],
  [[{ op: 'replace', path: '/node_uuid', value: 'nobody' }], NEWEST, 400, /^Unable to apply the requested node_uuid 'nobody'/],
  [
    [{ op: 'replace', path: '/dynamic_portgroup', value: true }],
    NEWEST,
    400,
    /properties, standalone_ports_supported, physical_network, category$/,
  ],
])('the patch %j at 1.%p is refused with %p', async (body, minor, status, sentence) => {
  const answer = await patch(body, minor);
  expect(answer.status).toBe(status);
  expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
});
it('a patch changes only what differs, and may move the portgroup to a node by name', async () => {
  await patch([
    { op: 'replace', path: '/node_uuid', value: 'two' },
    { op: 'add', path: '/extra/a', value: 1 },
  ]);
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'updatePortgroup', arguments: [BOND, { node_uuid: TWO, extra: { a: 1 } }] });
  expect((await patch([{ op: 'remove', path: '/standalone_ports_supported' }])).body['standalone_ports_supported']).toBe(true);
});
it('since 1.39, a portgroup cannot be changed while its node is inspected', async () => {
  await api.database.query("UPDATE nodes SET provision_state = 'inspecting'");
  expect(await patch([])).toMatchObject({
    status: 409,
    fault: `Cannot update portgroup "${BOND}" on node "${ONE}" while it is in state "inspecting".`,
  });
  expect((await patch([], 38)).status).toBe(200);
});

describe('the ports of a portgroup', () => {
  it('are listed by its path and by a query, and prevent its deletion', async () => {
    await addPort({ portgroup_uuid: BOND });
    for (const path of [`/v1/portgroups/${BOND}/ports`, '/v1/ports?portgroup=bond0', `/v1/ports?portgroup=${BOND}`])
      expect((await api.ask('GET', path)).body.ports).toMatchObject([{ uuid: PORT }]);
    expect((await api.ask('GET', '/v1/portgroups/bond0/ports')).fault).toBe('Portgroup bond0 could not be found.');
    expect((await api.ask('GET', `/v1/portgroups/${BOND}/ports?node=one`)).fault).toBe('Operation not permitted.');
    expect((await api.ask('GET', `/v1/portgroups/${BOND}/ports`, 23)).status).toBe(404);
    expect((await api.ask('DELETE', '/v1/portgroups/bond0')).fault).toBe(
      `Cannot complete the requested action because portgroup ${BOND} contains ports.`,
    );
    expect((await api.ask('DELETE', `/v1/nodes/${ONE}`)).status).toBe(204);
  });
  it.each([
    [{ portgroup_uuid: OTHER }, NEWEST, 400, `Portgroup ${OTHER} could not be found.`],
    [{ portgroup_uuid: BOND, node_uuid: TWO }, NEWEST, 400, 'Port can not be added to a portgroup belonging to a different node.'],
    [{ portgroup_uuid: BOND }, 23, 406, 'Request not acceptable.'],
  ])('are refused with %j at 1.%p with %p', async (body, minor, status, fault) => {
    expect(await addPort(body, minor)).toMatchObject({ status, fault });
  });
  it('cannot have pxe_enabled if the portgroup does not support standalone ports', async () => {
    await create({ uuid: OTHER, standalone_ports_supported: 'off' });
    expect(await addPort({ portgroup_uuid: OTHER, pxe_enabled: true })).toMatchObject({
      status: 409,
      fault: matching(/^Port group dddddddd-0000-4000-8000-000000000002 doesn't support standalone ports\. This port cannot be created/),
    });
    expect((await addPort({ portgroup_uuid: OTHER, pxe_enabled: false })).status).toBe(201);
  });
  it('join and leave it by patches', async () => {
    await create({ uuid: OTHER, node_uuid: TWO });
    await addPort({});
    const join = (uuid: unknown) => patchPort([{ op: 'add', path: '/portgroup_uuid', value: uuid }]);
    expect((await join(BOND)).body['portgroup_uuid']).toBe(BOND);
    expect((await join('bond0')).fault).toBe('Portgroup bond0 could not be found.');
    expect((await join(OTHER)).fault).toBe('Port can not be added to a portgroup belonging to a different node.');
    expect((await patchPort([{ op: 'replace', path: '/node_uuid', value: TWO }])).fault).toMatch(/different node/);
    const network = [{ op: 'replace', path: '/physical_network', value: 'left' }];
    expect((await patchPort(network)).fault).toBe('physical_network cannot be changed while the port belongs to a portgroup.');
    expect((await patchPort(network, 101)).status).toBe(200);
    expect((await patchPort([{ op: 'remove', path: '/portgroup_uuid' }])).body['portgroup_uuid']).toBeNull();
  });
});
