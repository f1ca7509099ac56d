import { matching, useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const ask = (...given: Parameters<typeof api.ask>) => api.ask(...given);
const NODE = 'a0000000-0000-4000-8000-000000000001';
const OTHER = 'a0000000-0000-4000-8000-000000000002';
const UUID = 'f0000000-0000-4000-8000-000000000001';
const CONNECTOR = { uuid: UUID, node_uuid: NODE, type: 'iqn', connector_id: 'iqn.x', extra: { a: 1 } };
const TARGET = {
  uuid: UUID,
  node_uuid: NODE,
  volume_type: 'iscsi',
  volume_id: 'v',
  boot_index: 0,
  properties: { auth_password: 'x', n: 1 },
};

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await api.database.store().nodes.create({ uuid: NODE, driver: 'fake-hardware', name: 'one' });
  await api.database.store().nodes.create({ uuid: OTHER, driver: 'fake-hardware', owner: 'alice' });
});
const make = (kind: string, body: object) => ask('POST', `/v1/volume/${kind}`, NEWEST, { body });

it.each([
  ['connectors', CONNECTOR, { connector_id: 'iqn.y' }],
  ['targets', TARGET, { boot_index: 3 }],
] as const)('%s are created, shown, changed and deleted', async (kind, item, change) => {
  const made = await make(kind, item);
  expect(made).toMatchObject({ status: 201, body: { uuid: UUID, node_uuid: NODE, updated_at: null } });
  expect(made.headers['location']).toMatch(new RegExp(`/v1/volume/${kind}/${UUID}$`));
  expect((await ask('GET', `/v1/volume/${kind}/${UUID}`)).body).toEqual(made.body);
  const [[field, value]] = Object.entries(change) as [[string, unknown]];
  const body = [{ op: 'replace', path: `/${field}`, value }];
  expect(await ask('PATCH', `/v1/volume/${kind}/${UUID}`, NEWEST, { body })).toMatchObject({ status: 200, body: change });
  expect(api.conductor.calls.at(-1)).toMatchObject({ name: 'updateVolume', arguments: [kind.slice(0, -1), UUID, change] });
  expect((await ask('DELETE', `/v1/volume/${kind}/${UUID}`)).status).toBe(204);
  expect(await ask('GET', `/v1/volume/${kind}/${UUID}`)).toMatchObject({
    status: 404,
    fault: `Volume ${kind.slice(0, -1)} ${UUID} could not be found.`,
  });
});

it('shows no secrets of a target', async () => {
  const shown = { properties: { auth_password: '******', n: 1 } };
  expect((await make('targets', TARGET)).body).toMatchObject(shown);
  expect((await ask('GET', '/v1/volume/targets?detail=true')).body['targets']).toMatchObject([shown]);
  expect((await api.database.store().volumeTargets.find(UUID)).properties).toEqual(TARGET.properties);
});

it('lists the connectors of all nodes, or of one', async () => {
  await make('connectors', CONNECTOR);
  await make('connectors', { ...CONNECTOR, uuid: undefined, node_uuid: OTHER, connector_id: 'iqn.z' });
  const count = async (query: string) => ((await ask('GET', query)).body['connectors'] as unknown[]).length;
  expect(await count('/v1/volume/connectors')).toBe(2);
  expect(await count('/v1/volume/connectors?node=one')).toBe(1);
  expect(await count(`/v1/nodes/${OTHER}/volume/connectors`)).toBe(1);
  expect((await ask('GET', '/v1/volume/connectors?limit=1')).body.next).toMatch(
    new RegExp(`/v1/volume/connectors\\?sort_key=id&sort_dir=asc&fields=uuid,node_uuid,type,connector_id&limit=1&marker=${UUID}$`),
  );
});

it('passes even a patch that changes nothing to the conductor', async () => {
  await make('connectors', CONNECTOR);
  expect((await ask('PATCH', `/v1/volume/connectors/${UUID}`, NEWEST, { body: [] })).status).toBe(200);
  expect(api.conductor.calls.at(-1)).toMatchObject({ name: 'updateVolume', arguments: ['connector', UUID, {}] });
});

it('links to the lists of connectors and targets, also below a node', async () => {
  expect((await ask('GET', '/v1/volume')).body).toMatchObject({ links: [{ href: matching(/\/v1\/volume\/$/) }, {}], connectors: [{}, {}] });
  expect((await ask('GET', '/v1/nodes/one/volume')).body).toMatchObject({
    targets: [{ href: matching(/\/v1\/nodes\/one\/volume\/targets$/) }, {}],
  });
});

const NOBODY = 'c0000000-0000-4000-8000-000000000000';
it.each([
  ['GET', '/v1/volume', 31, undefined, 404, 'The API is not supported for this version'],
  ['GET', '/v1/volume/connectors', 31, undefined, 404, ''],
  ['GET', '/v1/volume/connectors?fields=uuid&detail=true', NEWEST, undefined, 400, "Can't fetch a subset of fields with 'detail' set"],
  [
    'GET',
    '/v1/volume/connectors?sort_key=node_uuid',
    NEWEST,
    undefined,
    400,
    'The sort_key value "node_uuid" is an invalid field for sorting',
  ],
  ['GET', '/v1/nodes/one/volume/connectors', NEWEST, undefined, 404, 'Node one could not be found.'],
  ['GET', `/v1/nodes/${NODE}/volume/connectors/x`, NEWEST, undefined, 400, 'Malformed request URI.'],
  ['POST', '/v1/volume/connectors', NEWEST, {}, 400, "Schema error for connector: 'connector_id' is a required property"],
  ['POST', '/v1/volume/targets', NEWEST, { ...TARGET, boot_index: '1' }, 400, "Schema error for target: '1' is not of type 'integer'"],
  ['POST', '/v1/volume/targets', NEWEST, { ...TARGET, node_uuid: 'one' }, 400, 'Expected UUID for node_uuid: one'],
  [
    'POST',
    '/v1/volume/targets',
    NEWEST,
    { ...TARGET, node_uuid: NOBODY },
    400,
    `Invalid input for field/attribute node_uuid. Value: '${NOBODY}'. `,
  ],
  ['DELETE', '/v1/volume/targets', NEWEST, undefined, 400, 'Missing mandatory parameter: target_uuid'],
] as const)('%s %s at 1.%s is refused', async (method, path, minor, body, status, fault) =>
  expect(await ask(method, path, minor, { body })).toMatchObject({ status, fault }),
);

it.each([
  [
    [{ op: 'replace', path: '/uuid', value: NOBODY }],
    'Cannot patch /uuid. Only the following can be updated: connector_id, extra, node_uuid, type',
  ],
  [[{ op: 'remove', path: '/type' }], "Schema error for patch: 'type' is a required property"],
  [[{ op: 'replace', path: '/node_uuid', value: 'one' }], 'Expected a UUID for node_uuid, but received one.'],
  // A node of another owner: the answer does not tell that it exists.
  [
    [{ op: 'replace', path: '/node_uuid', value: OTHER }],
    `Unable to apply the requested node_uuid '${OTHER}'. Requested value was invalid.`,
  ],
] as const)('refuses the patch %j', async (body, fault) => {
  await make('connectors', CONNECTOR);
  expect(await ask('PATCH', `/v1/volume/connectors/${UUID}`, NEWEST, { body })).toMatchObject({ status: 400, fault });
});
