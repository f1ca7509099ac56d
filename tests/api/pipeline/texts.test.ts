/** Texts of users with characters that the database refuses: refused where they are texts, stored where they are in an object. */
import { loadDocument, type FieldRow } from '../../../api/schema/document';
import { incompressible } from '../../support/any-text';
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const document = loadDocument();
const uuid = (digit: string): string => `${digit.repeat(8)}-0000-4000-8000-000000000001`;
const [NODE, PORT, CHASSIS, GROUP] = [uuid('a'), uuid('b'), uuid('c'), uuid('d')];

beforeAll(async () => {
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: NODE, name: 'one' } });
  await api.ask('POST', '/v1/ports', NEWEST, { body: { node_uuid: NODE, uuid: PORT, address: '52:54:00:00:00:01' } });
  await api.ask('POST', '/v1/chassis', NEWEST, { body: { uuid: CHASSIS } });
  await api.ask('POST', '/v1/portgroups', NEWEST, { body: { node_uuid: NODE, uuid: GROUP } });
});

const PATHS = {
  Node: `/v1/nodes/${NODE}`,
  Port: `/v1/ports/${PORT}`,
  Chassis: `/v1/chassis/${CHASSIS}`,
  Portgroup: `/v1/portgroups/${GROUP}`,
};
const fields = (type: string): (readonly [resource: keyof typeof PATHS, name: string])[] =>
  (Object.keys(PATHS) as (keyof typeof PATHS)[]).flatMap((resource) =>
    document
      .fields(resource)
      .flatMap(({ name, patch, schema }: FieldRow) => (patch && schema['type'] === type ? [[resource, name] as const] : [])),
  );
const patch = (resource: keyof typeof PATHS, name: string, value: unknown) =>
  api.ask('PATCH', PATHS[resource], NEWEST, { body: [{ op: 'add', path: `/${name}`, value }] });

it.each(fields('string'))('%s: %s with U+0000 or a lone surrogate is a 400', async (resource, name) => {
  for (const text of ['a\0b', 'a\ud800b', '\0']) expect([text, (await patch(resource, name, text)).status]).toEqual([text, 400]);
});
it.each(['description', 'owner', 'lessee', 'resource_class', 'shard'])('the message names %s', async (name) => {
  const { status, body } = await patch('Node', name, 'a\0b');
  expect([status, JSON.stringify(body)]).toEqual([
    400,
    expect.stringContaining(`A value cannot be stored: ${name} has the character U+0000`),
  ]);
});
it.each([
  ['Node', 'extra'],
  ['Node', 'properties'],
  ['Node', 'driver_info'],
  ['Node', 'instance_info'],
  ['Port', 'extra'],
  ['Chassis', 'extra'],
  ['Portgroup', 'extra'],
  ['Portgroup', 'properties'],
] as const)('%s: %s keeps such characters', async (resource, name) => {
  const value = { 'a\0': ['\0', '\ud800'] };
  const { status, body } = await patch(resource, name, value);
  expect([status, body[name]]).toEqual([200, value]);
  expect((await api.ask('GET', PATHS[resource], NEWEST)).body[name]).toEqual(value);
});
it.each(['owner', 'lessee', 'resource_class', 'shard', 'conductor_group', 'driver', 'description_contains'])(
  'a list with such a text as %s is empty',
  async (name) => {
    const { status, body } = await api.ask('GET', `/v1/nodes?${name}=a%00`, NEWEST);
    expect([status, body['nodes']]).toEqual([200, []]);
  },
);
it('a reason for maintenance with such characters is a 400', async () => {
  for (const reason of ['a\0b', 'a\ud800b'])
    expect((await api.ask('PUT', `${PATHS.Node}/maintenance`, NEWEST, { body: { reason } })).status).toBe(400);
});
it('texts that are too long for an index are a 400', async () => {
  const long = incompressible(5000);
  for (const name of ['owner', 'lessee', 'resource_class', 'shard', 'name'])
    expect([name, (await patch('Node', name, long)).status]).toEqual([name, 400]);
});
