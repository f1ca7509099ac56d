import { loadDocument, type FieldRow } from '../../../api/schema/document';
import { useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const document = loadDocument();
const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const PORT = 'bbbbbbbb-0000-4000-8000-000000000001';

beforeAll(async () => {
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: NODE, name: 'one' } });
  await api.ask('POST', '/v1/ports', NEWEST, { body: { node_uuid: NODE, uuid: PORT, address: '52:54:00:00:00:01' } });
});

const gated = (resource: string): (readonly [string, number, FieldRow])[] =>
  document.fields(resource).flatMap((row) => (row.gate.since > 1 && !row.hidden ? [[row.name, row.gate.since, row] as const] : []));
/** Field → a valid value, where the usual one of its type (below) is none. */
const FITTING: Readonly<Record<string, unknown>> = {
  local_link_connection: { port_id: 'p', switch_id: '00:00:00:00:00:01' },
  network_data: {},
  portgroup_uuid: NODE,
};
const value = ({ schema, name }: FieldRow): unknown =>
  FITTING[name] ?? { object: { a: 1 }, boolean: true, string: 'text', array: ['x'] }[schema['type'] as string];

describe.each([
  ['Node', `/v1/nodes/${NODE}`],
  ['Port', `/v1/ports/${PORT}`],
])('fields of %s', (resource, path) => {
  it.each(gated(resource))('%s is shown since 1.%p', async (name, since) => {
    const [before, then] = await Promise.all([api.ask('GET', path, since - 1), api.ask('GET', path, since)]);
    expect(name in before.body).toBe(false);
    expect(name in then.body).toBe(true);
  });
  it.each(gated(resource).filter(([name, since, { selectable }]) => selectable && since > 8 && name !== 'internal_info'))(
    '%s can be requested with ?fields since 1.%p',
    async (name, since) => {
      expect((await api.ask('GET', `${path}?fields=${name}`, since - 1)).status).toBe(406);
      expect((await api.ask('GET', `${path}?fields=${name}`, since)).status).toBe(200);
    },
  );
});

it.each(gated('Node').filter(([, , { create }]) => create))('a new node may have %s since 1.%p', async (name, since, row) => {
  const body = { driver: 'fake-hardware', [name]: value(row) };
  expect((await api.ask('POST', '/v1/nodes', since - 1, { body })).status).toBe(406);
  expect((await api.ask('POST', '/v1/nodes', since, { body })).status).not.toBe(406);
});
it.each(gated('Node').filter(([, , { patch }]) => patch))('%s of a node can be changed since 1.%p', async (name, since, row) => {
  const body = [{ op: 'replace', path: `/${name}`, value: value(row) }];
  expect((await api.ask('PATCH', `/v1/nodes/${NODE}`, since - 1, { body })).status).toBe(406);
  expect((await api.ask('PATCH', `/v1/nodes/${NODE}`, since, { body })).status).not.toBe(406);
});
it.each(gated('Port').filter(([, , { create }]) => create))('a new port may have %s since 1.%p', async (name, since, row) => {
  const body = { address: '52:54:00:00:00:99', node_uuid: NODE, [name]: value(row) };
  expect((await api.ask('POST', '/v1/ports', since - 1, { body })).status).toBe(406);
  const { status, body: made } = await api.ask('POST', '/v1/ports', since, { body });
  expect(status).not.toBe(406);
  if (status === 201) await api.ask('DELETE', `/v1/ports/${made.uuid}`);
});

it('shows provision states under their names of older versions', async () => {
  const store = api.database.store();
  for (const [state, minor, shown] of [
    ['available', 1, null],
    ['available', 2, 'available'],
    ['inspect wait', 38, 'inspecting'],
    ['inspect wait', 39, 'inspect wait'],
  ] as const) {
    await store.nodes.update(NODE, { provision_state: state });
    expect((await api.ask('GET', `/v1/nodes/${NODE}`, minor)).body.provision_state).toBe(shown);
    expect((await api.ask('GET', `/v1/nodes/${NODE}/states`, minor)).body.provision_state).toBe(shown);
  }
  await store.nodes.update(NODE, { provision_state: 'enroll' });
});

it.each([
  ['vtep-logical-switch', 89, {}],
  ['vtep-logical-switch', 90, expect.objectContaining({ port_id: 'p' })],
  ['vtep-logical-switch', 104, expect.objectContaining({ port_id: 'p' })],
  ['vtep-logical-switch', 105, {}],
])('shows local_link_connection with %s from 1.90 to 1.104 only: at 1.%p', async (_, minor, shown) => {
  await api.database
    .store()
    .ports.update(PORT, { local_link_connection: { port_id: 'p', 'vtep-logical-switch': 'a', 'vtep-physical-switch': 'b' } });
  expect((await api.ask('GET', `/v1/ports/${PORT}`, minor)).body.local_link_connection).toEqual(shown);
});
