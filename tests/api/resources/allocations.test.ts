/** Allocations, shards and events: what the API takes, shows and refuses. */
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const ask = (...given: Parameters<typeof api.ask>) => api.ask(...given);
const NODE = 'a0000000-0000-4000-8000-000000000001';
const NOBODY = 'c0000000-0000-4000-8000-000000000000';
const UUID = 'd0000000-0000-4000-8000-000000000001';
beforeEach(async () => {
  await api.database.query('DELETE FROM nodes; DELETE FROM allocations');
  await api.database.store().nodes.create({ uuid: NODE, driver: 'fake-hardware', name: 'one', resource_class: 'gold', shard: 'left' });
});
const make = (body: object, minor = NEWEST) =>
  ask('POST', '/v1/allocations', minor, { body: { uuid: UUID, resource_class: 'gold', ...body } });

it('an allocation is created, shown, changed and deleted', async () => {
  const made = await make({ name: 'al', traits: ['CUSTOM_A'], candidate_nodes: ['one', NODE], extra: { a: 1 }, owner: 'alice' });
  expect(made).toMatchObject({
    status: 201,
    body: { uuid: UUID, name: 'al', state: 'allocating', node_uuid: null, candidate_nodes: [NODE, NODE], owner: 'alice', last_error: null },
  });
  expect(made.headers['location']).toMatch(new RegExp(`/v1/allocations/${UUID}$`));
  expect((await ask('GET', '/v1/allocations/al')).body).toEqual(made.body);
  expect((await ask('GET', '/v1/allocations/al', 59)).body).not.toHaveProperty('owner');
  const body = [
    { op: 'replace', path: '/name', value: 'other' },
    { op: 'remove', path: '/extra' },
  ];
  expect(await ask('PATCH', '/v1/allocations/al', 57, { body })).toMatchObject({ status: 200, body: { name: 'other', extra: {} } });
  // RFC 6901 §4.
  const escaped = [{ op: 'add', path: '/extra/a~1b~0c', value: 1 }];
  expect(await ask('PATCH', '/v1/allocations/other', 57, { body: escaped })).toMatchObject({
    status: 200,
    body: { extra: { 'a/b~c': 1 } },
  });
  const broken = [{ op: 'add', path: '/extra/a~2', value: 1 }];
  expect((await ask('PATCH', '/v1/allocations/other', 57, { body: broken })).status).toBe(400);
  expect((await ask('DELETE', '/v1/allocations/other')).status).toBe(204);
  expect((await ask('GET', '/v1/allocations')).body).toEqual({ allocations: [] });
});

it('a backfilled allocation takes its UUID and resource class from the node', async () => {
  await api.database.store().nodes.update(NODE, { instance_uuid: UUID });
  const body = { node: 'one' };
  expect(await ask('POST', '/v1/allocations', 58, { body })).toMatchObject({ status: 201, body: { uuid: UUID, resource_class: 'gold' } });
  expect(api.conductor.calls.at(-1)).toMatchObject({ name: 'createAllocation', arguments: [{ uuid: UUID }, NODE] });
  expect((await ask('GET', '/v1/nodes/one/allocation?fields=uuid,node_uuid')).body).toMatchObject({ uuid: UUID, node_uuid: NODE });
  expect((await ask('GET', '/v1/allocations?node=one&state=active')).body['allocations']).toMatchObject([{ uuid: UUID }]);
  expect((await ask('DELETE', '/v1/nodes/one/allocation')).status).toBe(204);
  expect(await ask('GET', '/v1/nodes/one/allocation')).toMatchObject({ status: 404, fault: 'Allocation for node one was not found' });
});

const NAMES =
  "['candidate_nodes', 'created_at', 'extra', 'last_error', 'links', 'name', 'node_uuid', 'resource_class', 'state', 'traits', 'updated_at', 'uuid'";
it.each([
  ['GET', '/v1/allocations', 51, undefined, 404, 'The API version does not allow allocations'],
  ['POST', '/v1/allocations', 51, {}, 405, 'The API version does not allow allocations'],
  ['PATCH', '/v1/allocations/x', 56, [], 405, 'The API version does not allow updating allocations'],
  ['GET', '/v1/allocations?owner=x', 59, undefined, 406, 'Request not acceptable.'],
  ['GET', '/v1/allocations?fields=owner', 59, undefined, 400, `Schema error: 'owner' is not one of ${NAMES}]`],
  ['GET', '/v1/allocations?fields=nosuch', 60, undefined, 400, `Schema error: 'nosuch' is not one of ${NAMES}, 'owner']`],
  ['GET', '/v1/allocations?marker=zz', NEWEST, undefined, 400, "Schema error: 'zz' is not a 'uuid'"],
  ['GET', '/v1/allocations?node=nobody', NEWEST, undefined, 400, 'Node nobody could not be found.'],
  ['GET', '/v1/allocations/a%20b', NEWEST, undefined, 400, 'Expected a logical name or UUID but received a b.'],
  ['GET', '/v1/nodes/nobody/allocation', NEWEST, undefined, 400, 'Node nobody could not be found.'],
  ['POST', '/v1/allocations', NEWEST, {}, 400, 'The resource_class field is mandatory when not backfilling'],
  ['POST', '/v1/allocations', NEWEST, { uuid: 'zz', resource_class: 'x' }, 400, 'Expected UUID for uuid: zz'],
  ['POST', '/v1/allocations', NEWEST, { name: 'a b', resource_class: 'x' }, 400, "Cannot create allocation with invalid name 'a b'"],
  ['POST', '/v1/allocations', NEWEST, { node: NOBODY }, 400, `Node ${NOBODY} could not be found.`],
  ['POST', '/v1/allocations', 57, { node: 'one' }, 400, "Schema error: Additional properties are not allowed ('node' was unexpected)"],
  ['POST', '/v1/allocations', 59, { owner: null, resource_class: 'x' }, 406, 'Request not acceptable.'],
  ['POST', '/v1/allocations', NEWEST, { resource_class: 'x', candidate_nodes: ['one', 'nobody'] }, 400, 'Nodes cannot be found: nobody'],
  [
    'POST',
    '/v1/allocations',
    NEWEST,
    { resource_class: 'x', traits: ['lower'] },
    400,
    "Schema error: 'lower' is not valid under any of the given schemas. Possible root cause: 'lower' does not match '^CUSTOM_[A-Z0-9_]+$'",
  ],
  ['GET', '/v1/shards', 81, undefined, 404, 'The API version does not allow shards'],
  ['GET', '/v1/shards/left', NEWEST, undefined, 404, 'The resource could not be found.'],
  ['POST', '/v1/events', 53, {}, 404, 'The API is not supported for this version'],
  ['POST', '/v1/events', NEWEST, {}, 400, "Schema error: 'events' is a required property"],
  ['POST', '/v1/events', NEWEST, { events: [] }, 400, 'Schema error: [] should be non-empty'],
] as const)('%s %s at 1.%s: %j is refused', async (method, path, minor, body, status, fault) =>
  expect(await ask(method, path, minor, { body })).toMatchObject({ status, fault }),
);

it.each([
  [[{ op: 'replace', path: '/owner', value: 'x' }], 'Cannot patch /owner. Only the following can be updated: name, extra'],
  [[{ op: 'replace', path: 'name', value: 'x' }], 'Cannot patch name. Only the following can be updated: name, extra'],
  [[{ op: 'replace', path: '/name', value: 'a b' }], "Cannot update allocation with invalid name 'a b'"],
  [[{ op: 'replace', path: '/name', value: 1.5 }], "Schema error: 1.5 is not of type 'string', 'object', 'null', 'integer', 'boolean'"],
  [[{ op: 'replace', path: '/extra', value: 5 }], "Schema error for patch: 5 is not of type 'object', 'null'"],
] as const)('refuses the patch %j', async (body, fault) => {
  await make({});
  expect(await ask('PATCH', `/v1/allocations/${UUID}`, NEWEST, { body })).toMatchObject({ status: 400, fault });
});

it('an allocation is owned by the project of the request', async () => {
  const body = { uuid: UUID, resource_class: 'gold' };
  const made = await ask('POST', '/v1/allocations', NEWEST, { body, headers: { 'x-project-id': 'alice' } });
  expect(made).toMatchObject({ status: 201, body: { owner: 'alice' } });
});

it("the owner of a node cannot be changed while the node's allocation has an owner", async () => {
  await make({ owner: 'alice' });
  await api.database.store().nodes.update(NODE, { allocation_uuid: UUID, instance_uuid: UUID });
  const body = [{ op: 'replace', path: '/owner', value: 'bob' }];
  expect(await ask('PATCH', '/v1/nodes/one', NEWEST, { body })).toMatchObject({
    status: 409,
    fault: `Cannot update owner of node "${NODE}" while it is allocated to an allocation with an  owner.`,
  });
});

it('counts the nodes of each shard', async () => {
  for (const shard of ['right', 'right', null])
    await api.database.store().nodes.create({ uuid: crypto.randomUUID(), driver: 'fake-hardware', shard });
  expect((await ask('GET', '/v1/shards')).body).toEqual({
    shards: [
      { name: 'right', count: 2 },
      { name: 'None', count: 1 },
      { name: 'left', count: 1 },
    ],
  });
});

const EVENT = { event: 'network.bind_port', port_id: NODE, mac_address: '52:54:00:00:00:01', status: 'ACTIVE' };
it.each([
  [EVENT, undefined],
  [{ ...EVENT, port_id: 'zz' }, "Schema error: 'zz' is not a 'uuid'"],
  [{ ...EVENT, mac_address: 'zz' }, "Schema error: 'zz' is not a 'mac-address'"],
  [{ ...EVENT, device_id: 5 }, "Schema error: 5 is not of type 'string', 'null'"],
  [{ ...EVENT, nosuch: 1 }, "Schema error: Additional properties are not allowed ('nosuch' was unexpected)"],
])('accepts or refuses the event %j', async (event, fault) => {
  const body = { events: [event] };
  expect(await ask('POST', '/v1/events', 54, { body })).toMatchObject({ status: fault ? 400 : 204, fault });
});
