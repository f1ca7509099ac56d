import { matching, useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi({ 'api.max_limit': 3 });
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const create = (body: object) => api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', ...body } });
const patch = (ident: string, body: unknown, minor = NEWEST) => api.ask('PATCH', `/v1/nodes/${ident}`, minor, { body });

/** Replaces a function of a table by one that does the same and notes each call. */
function spy(asked: string[], name: string, table: Record<string, (...given: unknown[]) => unknown>) {
  const real = table[name]!;
  return jest.spyOn(table, name).mockImplementation((...given: unknown[]): unknown => {
    asked.push(name);
    return real.apply(table, given);
  });
}

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await create({ uuid: ONE, name: 'one', driver_info: { ipmi_password: 'x' }, instance_info: { configdrive: 'y' } });
});

describe('creation', () => {
  it('returns the node with its location and masked secrets', async () => {
    const { status, headers, body } = await create({ name: 'two', extra: { a: 1 }, driver_info: { password: 'x' } });
    expect(status).toBe(201);
    expect(headers['location']).toBe(`${api.url()}/v1/nodes/${body.uuid}`);
    expect(body).toMatchObject({
      name: 'two',
      provision_state: 'enroll',
      extra: { a: 1 },
      driver_info: { password: '******' },
      power_interface: 'fake',
      conductor: 'here',
    });
    expect(body.ports).toEqual([
      { href: `${api.url()}/v1/nodes/${body.uuid}/ports`, rel: 'self' },
      { href: `${api.url()}/nodes/${body.uuid}/ports`, rel: 'bookmark' },
    ]);
  });
  it.each([
    [{ driver: 5 }, "Schema error for node: 5 is not of type 'string'"],
    [{ bogus: 1, other: 2 }, "Schema error for node: Additional properties are not allowed ('bogus', 'other' were unexpected)"],
    [{ uuid: 'zz' }, 'Expected UUID for uuid: zz'],
    [
      { maintenance: 'maybe' },
      "Invalid maintenance: Unrecognized value 'maybe', acceptable values are: '0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'",
    ],
    [{ name: 'a b' }, "Cannot create node with invalid name 'a b'"],
    [
      { name: 'detail' },
      'The word "detail" is reserved and can not be used as a node name. Reserved words are: maintenance, management, states, vendor_passthru, detail, validate.',
    ],
    [
      { driver: 'nosuch' },
      'No valid host was found. Reason: No conductor service registered which supports driver nosuch for conductor group "". Ensure the driver is valid and enabled.',
    ],
    [{ owner: 'me' }, 'Cannot create a node as a project scoped admin with an owner other than your own project.'],
    [{ parent_node: 'nobody' }, "Unable to apply the requested parent_node 'nobody'. Requested value was invalid."],
    [{ chassis_uuid: ONE }, `Chassis ${ONE} could not be found.`],
    [{ traits: [] }, "Schema error for node: Additional properties are not allowed ('traits' was unexpected)"],
    [{ instance_name: '' }, "Schema error for node: '' should be non-empty"],
  ])('refuses %j, and creates nothing', async (body, sentence) => {
    expect(await create(body)).toMatchObject({ status: 400, fault: sentence });
    expect((await api.ask('GET', '/v1/nodes')).body.nodes).toHaveLength(1);
  });
  it.each([
    [{ uuid: ONE }, `A node with UUID ${ONE} already exists.`],
    [{ name: 'one' }, 'A node with name one already exists.'],
  ])('refuses %j of an existing node', async (body, sentence) =>
    expect(await create(body)).toMatchObject({ status: 409, fault: sentence }),
  );
  it("accepts the caller's project as the owner, and uses the initial state of the version", async () => {
    const headers = { 'X-Project-Id': 'mine' };
    expect((await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', owner: 'mine' }, headers })).body.owner).toBe(
      'mine',
    );
    const old = await api.ask('POST', '/v1/nodes', 10, { body: { driver: 'fake-hardware' } });
    expect(old.body.provision_state).toBe('available');
  });
});

describe('names', () => {
  it.each([
    ['one', 4, 404, 'Node one could not be found.'],
    ['one', 5, 200, undefined],
    ['a_b', 9, 400, 'Expected a logical name or UUID but received a_b.'],
    ['a_b', 10, 404, 'Node a_b could not be found.'],
  ])('%s at 1.%p gets %p', async (ident, minor, status, sentence) =>
    expect(await api.ask('GET', `/v1/nodes/${ident}`, minor)).toMatchObject({ status, fault: sentence }),
  );
  it('may end with .json, which before 1.91 may also be a suffix of the path', async () => {
    await create({ name: 'two.json' });
    expect((await api.ask('GET', '/v1/nodes/two.json', 90)).body.name).toBe('two.json');
    expect((await api.ask('GET', '/v1/nodes/one.json', 90)).body.name).toBe('one');
    expect((await api.ask('GET', '/v1/nodes/one.json', 91)).status).toBe(404);
  });
});

it('shows the requested fields, the UUID first, and the links and the conductor last', async () => {
  const { body } = await api.ask('GET', '/v1/nodes/one?fields=maintenance,conductor,name,uuid');
  expect(Object.keys(body)).toEqual(['uuid', 'maintenance', 'name', 'links', 'conductor']);
});

describe('lists', () => {
  beforeEach(async () => {
    for (const name of ['two', 'three', 'four']) await create({ name, resource_class: 'big', description: `${name} of them`, shard: name });
  });
  const names = async (query: string, minor = NEWEST): Promise<unknown> => {
    const { body, fault } = await api.ask('GET', `/v1/nodes${query}`, minor);
    return body.nodes?.map(({ name }) => name) ?? fault;
  };
  it.each([
    ['', ['one', 'two', 'three']],
    ['?limit=2', ['one', 'two']],
    ['?limit=2&sort_key=name', ['four', 'one']],
    ['?sort_key=name&sort_dir=desc', ['two', 'three', 'one']],
    [`?marker=${ONE}`, ['two', 'three', 'four']],
    ['?resource_class=big&limit=1', ['two']],
    ['?shard=two,four', ['two', 'four']],
    ['?sharded=false', ['one']],
    ['?description_contains=of', ['two', 'three', 'four']],
    ['?conductor=here&limit=1', ['one']],
    ['?conductor=elsewhere', []],
    ['?provision_state=active', []],
    ['?associated=true', []],
    ['?limit=0', 'Limit must be positive'],
    ['?limit=x', 'Expected an integer for limit: x'],
    ['?limit=1&limit=2', "Expected an integer for limit: ['1', '2']"],
    ['?sort_dir=up', "Invalid sort direction: up. Acceptable values are 'asc' or 'desc'"],
    ['?sort_key=nosuch', 'The sort_key value "nosuch" is an invalid field for sorting'],
    ['?sort_key=driver_info', 'The sort_key value driver_info is an invalid field for sorting'],
    ['?marker=zz', 'Expected UUID for marker: zz'],
    ['?provision_state=nosuch', 'Provision state "nosuch" is not valid'],
    ['?provision_state=', 'Provision state "" is not valid'],
    [
      '?fault=',
      `Unrecognized fault "" is specified, allowed faults are ('power failure', 'clean failure', 'rescue abort failure', 'service failure')`,
    ],
    [
      '?fault=x',
      `Unrecognized fault "x" is specified, allowed faults are ('power failure', 'clean failure', 'rescue abort failure', 'service failure')`,
    ],
    ['?fields=nosuch', 'Field nosuch is not a valid field.'],
    ['?fields=uuid&detail=true', 'Can not specify ?detail=True and fields in the same request.'],
  ])('with the query "%s"', async (query, expected) => expect(await names(query)).toEqual(expected));
  it('link to the next page while there may be one', async () => {
    const first = await api.ask('GET', '/v1/nodes?limit=2&maintenance=false&associated=False&fields=name,uuid');
    const last = first.body.nodes.at(-1)!.uuid;
    expect(first.body.next).toBe(`${api.url()}/v1/nodes?sort_key=id&sort_dir=asc&fields=name,uuid&limit=2&marker=${last}`);
    const second = await api.ask('GET', first.body.next.slice(api.url().length));
    expect(second.body.nodes.map(({ name }) => name)).toEqual(['three', 'four']);
    expect(second.body.next).toBeDefined();
    expect((await api.ask('GET', `/v1/nodes?limit=2&marker=${second.body.nodes[1]!.uuid}`)).body).toEqual({ nodes: [] });
  });
  it.each([
    ['provision_state=enroll', 9, 'Request not acceptable.'],
    ['driver=x', 16, 'Request not acceptable. The minimal required API version should be 1.16'],
    ['shard=x', 82, 'Request not acceptable. The minimal required API version should be 1.82'],
    ['instance_name=x', 104, 'instance_name is not acceptable in this API version'],
    ['fields=uuid', 8, 'Request not acceptable.'],
  ])('accept ?%s since 1.%p', async (query, since, sentence) => {
    expect(await api.ask('GET', `/v1/nodes?${query}`, since - 1)).toMatchObject({ status: 406, fault: sentence });
    expect((await api.ask('GET', `/v1/nodes?${query}`, since)).status).toBe(200);
  });
  it('take a number of database queries that does not grow with the list', async () => {
    const asked: string[] = [];
    const { nodes, conductors, ports } = api.database.store();
    const spies = [nodes, conductors, ports].flatMap((table) =>
      (['list', 'find', 'ofNode', 'versions', 'alive'] as const)
        .filter((name) => name in table)
        .map((name) => spy(asked, name, table as unknown as Record<string, (...given: unknown[]) => unknown>)),
    );
    const count = async (limit: number): Promise<number> => {
      asked.length = 0;
      await api.ask('GET', `/v1/nodes/detail?limit=${limit}`, 101);
      return asked.length;
    };
    // Three queries: the live conductors, the versions of the rows, and the rows that the cache lacks.
    expect([await count(1), await count(3), await count(3)]).toEqual([3, 3, 2]);
    for (const item of spies) item.mockRestore();
  });
  it('contain children only on request', async () => {
    await create({ name: 'child', parent_node: 'one' });
    expect(await names('?sort_key=name&limit=1')).toEqual(['four']);
    expect(await names(`?parent_node=${ONE}`)).toEqual(['child']);
    expect(await names('?include_children=true&sort_key=name&limit=1')).toEqual(['child']);
  });
});

describe('patches', () => {
  it('change only the fields that differ', async () => {
    expect(
      (
        await patch('one', [
          { op: 'replace', path: '/extra', value: { a: 1 } },
          { op: 'replace', path: '/name', value: 'one' },
        ])
      ).body,
    ).toMatchObject({ extra: { a: 1 } });
    expect(api.conductor.calls.at(-1)).toEqual({ name: 'updateNode', arguments: [ONE, { extra: { a: 1 } }, false] });
  });
  it.each([
    [
      [{ op: 'replace', path: '/uuid', value: 'x' }],
      400,
      /^Cannot patch \/uuid\. Only the following can be updated: automated_clean, bios_interface, .*, vendor_interface, parent_node, firmware_interface$/,
    ],
    [[{ op: 'test', path: '/name' }], 400, /^Schema error for patch: 'test' is not one of \['add', 'replace', 'remove'\]$/],
    [{}, 400, /^Schema error for patch: {} is not of type 'array'$/],
    [[{ op: 'add', path: '/extra/a.b', value: 1 }], 400, /does not match '\^\(\/\[\\\\w-\]\+\)\+\$'$/],
    [[{ op: 'remove', path: '/automated_clean' }], 400, /^automated_clean cannot be removed: replace it with null/],
    [[{ op: 'remove', path: '/driver' }], 400, /^Schema error for patch: 'driver' is a required property$/],
    [[{ op: 'replace', path: '/name', value: 'a b' }], 400, /^Node one: Cannot change name to invalid name 'a b'$/],
    [[{ op: 'replace', path: '/instance_uuid', value: 'x' }], 400, /^Expected UUID for instance_uuid: x$/],
    [[{ op: 'replace', path: '/network_data', value: { a: 1 } }], 400, /^Invalid network_data: 'links' is a required property $/],
    [[{ op: 'replace', path: '/conductor_group', value: 'nosuch' }], 400, /for conductor group "nosuch"/],
    [[{ op: 'replace', path: '/description', value: 'x'.repeat(5000) }], 400, /exceeding 4096 characters$/],
  ])('are refused: %j', async (body, status, sentence) => {
    const before = api.conductor.calls.length;
    expect(await patch('one', body)).toMatchObject({ status, fault: matching(sentence) });
    expect(api.conductor.calls.length).toBe(before);
  });
  it('are refused during a state transition except in maintenance, and since 1.39 during an inspection', async () => {
    const store = api.database.store();
    await store.nodes.update(ONE, { provision_state: 'cleaning', target_provision_state: 'available' });
    expect(await patch('one', [])).toMatchObject({
      status: 409,
      fault: 'Node one can not be updated while a state transition is in progress.',
    });
    await store.nodes.update(ONE, { maintenance: true });
    expect((await patch('one', [{ op: 'remove', path: '/instance_uuid' }])).status).toBe(200);
    await store.nodes.update(ONE, { provision_state: 'inspecting', target_provision_state: 'manageable' });
    expect((await patch('one', [], 38)).status).toBe(200);
    expect(await patch('one', [], 39)).toMatchObject({
      status: 409,
      fault: `Cannot update node "${ONE}" while it is in state "inspecting".`,
    });
  });
  it('accept reset_interfaces only with a change of the driver', async () => {
    const at = (minor: number, body: unknown) => api.ask('PATCH', '/v1/nodes/one?reset_interfaces=true', minor, { body });
    expect((await at(44, [])).status).toBe(406);
    expect((await at(45, [])).fault).toBe("The reset_interfaces parameter can only be used when changing the node's driver.");
    await at(45, [{ op: 'replace', path: '/driver', value: 'fake-hardware' }]);
    expect(api.conductor.calls.at(-1)).toEqual({ name: 'updateNode', arguments: [ONE, {}, true] });
  });
  it('set instance_name to instance_info.display_name', async () => {
    await patch('one', [{ op: 'add', path: '/instance_info/display_name', value: 'shown' }]);
    expect((await api.ask('GET', '/v1/nodes/one')).body).toMatchObject({
      instance_name: 'shown',
      instance_info: { display_name: 'shown', configdrive: '******' },
    });
  });
});

describe('traits', () => {
  const traits = async () => (await api.ask('GET', '/v1/nodes/one/traits')).body.traits;
  it('are replaced, added and removed', async () => {
    expect(
      (await api.ask('PUT', '/v1/nodes/one/traits', NEWEST, { body: { traits: ['CUSTOM_A', 'HW_CPU_X86_VMX', 'CUSTOM_A'] } })).status,
    ).toBe(204);
    const added = await api.ask('PUT', '/v1/nodes/one/traits/CUSTOM_B');
    expect(added.headers['location']).toBe(`${api.url()}/v1/nodes/one/traits/CUSTOM_B`);
    expect((await api.ask('DELETE', '/v1/nodes/one/traits/CUSTOM_A')).status).toBe(204);
    expect(await traits()).toEqual(['CUSTOM_B', 'HW_CPU_X86_VMX']);
    await api.ask('DELETE', '/v1/nodes/one/traits');
    expect(await traits()).toEqual([]);
  });
  it.each([
    [{ traits: ['lower'] }, /'lower' is not valid under any of the given schemas. Possible root cause: 'lower' does not match '\^CUSTOM_/],
    [
      { traits: Array.from({ length: 51 }, (_, index) => `CUSTOM_${index}`) },
      /exceed the maximum number of traits per node \(51 vs. 50\)$/,
    ],
    [{}, /^A single node trait may be added via PUT/],
    [{ traits: 5 }, /^Schema error for body: 5 is not of type 'array'$/],
  ])('are refused: %j', async (body, sentence) => {
    expect(await api.ask('PUT', '/v1/nodes/one/traits', NEWEST, { body })).toMatchObject({
      status: 400,
      fault: matching(sentence),
    });
  });
  it('that the node does not have cannot be removed', async () => {
    expect(await api.ask('DELETE', '/v1/nodes/one/traits/CUSTOM_Z')).toMatchObject({
      status: 404,
      fault: `Node ${ONE} doesn't have a trait 'CUSTOM_Z'`,
    });
  });
});

it('returns the inventory with its plugin data', async () => {
  expect(await api.ask('GET', '/v1/nodes/one/inventory')).toMatchObject({
    status: 404,
    fault: expect.stringMatching(/^Node inventory record for node \d+ could not be found\.$/) as unknown,
  });
  const record = { inventory: { interfaces: [], cpu: { count: 2 } }, plugin_data: { a: 1 } };
  await api.database.store().inventories.put(ONE, record);
  expect((await api.ask('GET', '/v1/nodes/one/inventory')).body).toEqual(record);
});
it('validates a node by its path and by a query', async () => {
  const expected = { power: { result: true }, boot: { result: false, reason: 'no' } };
  expect((await api.ask('GET', '/v1/nodes/one/validate')).body).toEqual(expected);
  expect((await api.ask('GET', '/v1/nodes/validate?node=one')).body).toEqual(expected);
  expect((await api.ask('GET', `/v1/nodes/validate?node_uuid=${ONE}`, 1)).body).toEqual(expected);
  expect((await api.ask('GET', '/v1/nodes/validate?node=one', 4)).status).toBe(406);
  expect((await api.ask('GET', '/v1/nodes/validate')).fault).toBe('Expected a logical name or UUID but received None.');
});
it('deletes a node', async () => {
  expect(await api.ask('DELETE', '/v1/nodes/one')).toMatchObject({ status: 204, text: '' });
  expect((await api.ask('GET', '/v1/nodes/one')).status).toBe(404);
});
