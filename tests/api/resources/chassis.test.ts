import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const ask = (...given: Parameters<typeof api.ask>) => api.ask(...given);
beforeEach(() => api.database.query('DELETE FROM chassis'));
const UUID = 'c0000000-0000-4000-8000-000000000001';
const make = (more: object = {}) =>
  ask('POST', '/v1/chassis', NEWEST, { body: { uuid: UUID, description: 'row 3', extra: { a: 1 }, ...more } });

it('a chassis is created, shown, changed and deleted', async () => {
  const made = await make();
  expect(made).toMatchObject({ status: 201, body: { uuid: UUID, description: 'row 3', extra: { a: 1 }, updated_at: null } });
  expect(made.headers['location']).toMatch(new RegExp(`/v1/chassis/${UUID}$`));
  expect(made.body['nodes']).toEqual([
    [
      expect.objectContaining({ rel: 'self' }),
      expect.objectContaining({ rel: 'bookmark', href: expect.stringMatching(/chassis\/.*\/nodes$/) as unknown }),
    ],
  ]);
  expect((await make()).fault).toBe(`A chassis with UUID ${UUID} already exists.`);
  expect((await ask('GET', `/v1/chassis/${UUID}`)).body).toEqual(made.body);
  const body = [
    { op: 'remove', path: '/extra' },
    { op: 'replace', path: '/description', value: 'row 4' },
  ];
  expect(await ask('PATCH', `/v1/chassis/${UUID}`, NEWEST, { body })).toMatchObject({
    status: 200,
    body: { description: 'row 4', extra: {} },
  });
  expect((await ask('DELETE', `/v1/chassis/${UUID}`)).status).toBe(204);
  expect((await ask('GET', `/v1/chassis/${UUID}`)).fault).toBe(`Chassis ${UUID} could not be found.`);
});

it('chassis are listed with and without details', async () => {
  await make();
  expect((await ask('GET', '/v1/chassis')).body).toEqual({
    chassis: [{ uuid: UUID, description: 'row 3', links: expect.any(Array) as unknown }],
  });
  expect((await ask('GET', '/v1/chassis/detail')).body['chassis']).toMatchObject([{ extra: { a: 1 } }]);
  expect((await ask('GET', '/v1/chassis?limit=1')).body.next).toMatch(
    new RegExp(`/v1/chassis\\?sort_key=id&sort_dir=asc&fields=uuid,description&limit=1&marker=${UUID}$`),
  );
});

it.each([
  [
    'GET',
    '/v1/chassis?fields=nosuch',
    400,
    "Schema error: 'nosuch' is not one of ['created_at', 'description', 'extra', 'links', 'nodes', 'updated_at', 'uuid']",
  ],
  ['GET', '/v1/chassis?sort_dir=up', 400, "Schema error: 'up' is not one of ['asc', 'desc']"],
  ['GET', '/v1/chassis?sort_key=extra', 400, 'The sort_key value extra is an invalid field for sorting'],
  ['GET', '/v1/chassis?sort_key=nodes', 400, 'The sort_key value "nodes" is an invalid field for sorting'],
  ['GET', '/v1/chassis?detail=true&fields=uuid', 400, 'Can not specify ?detail=True and fields in the same request.'],
  ['GET', '/v1/chassis/nobody', 400, 'Expected UUID for chassis_uuid: nobody'],
  ['DELETE', '/v1/chassis', 400, 'Missing mandatory parameter: chassis_uuid'],
] as const)('%s %s is refused', async (method, path, status, fault) => expect(await ask(method, path)).toMatchObject({ status, fault }));

it.each([
  [{ description: 7 }, "Schema error for chassis: 7 is not of type 'string', 'null'"],
  [{ nosuch: 7 }, "Schema error for chassis: Additional properties are not allowed ('nosuch' was unexpected)"],
  [[], "Schema error for chassis: [] is not of type 'object'"],
])('a new chassis with the body %j is refused', async (body, fault) =>
  expect(await ask('POST', '/v1/chassis', NEWEST, { body })).toMatchObject({ status: 400, fault }),
);

it('a patch cannot change the UUID of a chassis or add an unknown field', async () => {
  await make();
  const patch = (body: unknown) => ask('PATCH', `/v1/chassis/${UUID}`, NEWEST, { body });
  expect((await patch([{ op: 'remove', path: '/uuid' }])).fault).toBe('Cannot overwrite UUID for an existing Chassis.');
  expect((await patch([{ op: 'add', path: '/nosuch', value: 1 }])).fault).toBe(
    'Cannot patch /nosuch. Only the following can be updated: uuid, extra, description',
  );
});

it('a chassis lists its nodes, and cannot be deleted while it has nodes', async () => {
  await make();
  const node = 'a0000000-0000-4000-8000-000000000001';
  const nowhere = 'c0000000-0000-4000-8000-00000000000f';
  const enrol = (chassis: string) =>
    ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: node, chassis_uuid: chassis } });
  expect(await enrol(nowhere)).toMatchObject({ status: 400, fault: `Chassis ${nowhere} could not be found.` });
  expect((await enrol(UUID)).body['chassis_uuid']).toBe(UUID);
  expect(await ask('DELETE', `/v1/chassis/${UUID}`)).toMatchObject({
    status: 400,
    fault: `Cannot complete the requested action because chassis ${UUID} contains nodes.`,
  });
  for (const path of [`/v1/chassis/${UUID}/nodes`, `/v1/chassis/${UUID}/nodes/detail`, `/v1/nodes?chassis_uuid=${UUID}`])
    expect((await ask('GET', path)).body.nodes).toMatchObject([{ uuid: node }]);
  expect((await ask('GET', `/v1/chassis/${UUID}/nodes?limit=1`)).body.next).toMatch(/\/v1\/nodes\?sort_key=id/);
  expect(await ask('GET', `/v1/chassis/${nowhere}/nodes`)).toMatchObject({ status: 404, fault: `Chassis ${nowhere} could not be found.` });
  expect((await ask('GET', `/v1/chassis/${UUID}/nodes/${node}`)).fault).toBe('Malformed request URI.');
  const patch = (body: unknown, minor: number) => ask('PATCH', `/v1/nodes/${node}`, minor, { body });
  expect((await patch([{ op: 'remove', path: '/chassis_uuid' }], 24)).status).toBe(406);
  expect((await patch([{ op: 'replace', path: '/chassis_uuid', value: nowhere }], 24)).fault).toBe(
    `Chassis ${nowhere} could not be found.`,
  );
  expect((await patch([{ op: 'remove', path: '/chassis_uuid' }], 25)).status).toBe(200);
  expect((await patch([{ op: 'add', path: '/chassis_uuid', value: UUID }], 24)).status).toBe(200);
  expect((await ask('DELETE', `/v1/nodes/${node}`)).status).toBe(204);
});
