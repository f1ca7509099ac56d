import { matching, useApi } from '../../support/api';
import { NEWEST } from '../../support/newest';

const api = useApi();
const ONE = 'aaaaaaaa-0000-4000-8000-000000000001';
const PORT = 'bbbbbbbb-0000-4000-8000-000000000001';
const MAC = '52:54:00:00:00:01';
const create = (body: object, minor = NEWEST) =>
  api.ask('POST', '/v1/ports', minor, { body: { address: '52:54:00:00:00:02', node_uuid: ONE, ...body } });
const patch = (body: unknown, minor = NEWEST) => api.ask('PATCH', `/v1/ports/${PORT}`, minor, { body });

beforeEach(async () => {
  await api.database.query('DELETE FROM nodes');
  await api.ask('POST', '/v1/nodes', NEWEST, { body: { driver: 'fake-hardware', uuid: ONE, name: 'one', shard: 'left' } });
  await create({
    uuid: PORT,
    address: MAC.toUpperCase(),
    name: 'eth0',
    local_link_connection: { switch_id: '0A:0B:0C:0D:0E:0F', port_id: 'Eth1' },
  });
});

it('stores and shows MAC addresses in lower case', async () => {
  const { body } = await api.ask('GET', '/v1/ports/eth0');
  expect(body).toMatchObject({
    uuid: PORT,
    address: MAC,
    node_uuid: ONE,
    local_link_connection: { switch_id: '0a:0b:0c:0d:0e:0f', port_id: 'Eth1' },
    pxe_enabled: true,
  });
  expect(body.links[0]).toEqual({ href: `${api.url()}/v1/ports/${PORT}`, rel: 'self' });
});

it.each([
  [{ address: '52-54-00-00-00-02' }, NEWEST, 400, 'Expected valid MAC address for address: 52-54-00-00-00-02'],
  [{ address: MAC }, NEWEST, 409, `A port with MAC address ${MAC} already exists.`],
  [{ node_uuid: PORT }, NEWEST, 400, `Node ${PORT} could not be found.`],
  [{ node_uuid: 'zz' }, NEWEST, 400, 'Expected UUID for node_uuid: zz'],
  [{ node_uuid: undefined, node_ident: 'nobody' }, NEWEST, 400, 'Node None could not be found.'],
  [{ node_uuid: undefined, node_ident: 'one' }, 93, 406, 'Request not acceptable.'],
  [{ node_ident: 'one' }, NEWEST, 400, /is valid under each of {'required': \['node_uuid'\]}, {'required': \['node_ident'\]}$/],
  [{ bogus: 1 }, NEWEST, 400, "Schema error for port: Additional properties are not allowed ('bogus' was unexpected)"],
  [{ pxe_enabled: true }, 18, 406, 'Request not acceptable.'],
  [{ physical_network: '' }, NEWEST, 400, 'A non-empty value is required when setting physical_network'],
  [{ portgroup_uuid: PORT }, NEWEST, 400, `Portgroup ${PORT} could not be found.`],
  [
    { local_link_connection: { switch_id: 'zz', port_id: 'p' } },
    NEWEST,
    400,
    'Expected a MAC address or OpenFlow datapath ID but received zz.',
  ],
  [{ local_link_connection: { x: 1 } }, NEWEST, 400, /Possible root cause: Additional properties are not allowed \('x' was unexpected\)$/],
  [{ local_link_connection: { network_type: 'unmanaged' } }, 63, 406, 'Request not acceptable.'],
  [
    { is_smartnic: true, local_link_connection: { port_id: 'p', switch_id: MAC } },
    NEWEST,
    400,
    'Smart NIC port must have port_id and hostname in local_link_connection',
  ],
])('refuses %j at 1.%p with %p', async (body, minor, status, sentence) => {
  const answer = await create(body, minor);
  expect(answer.status).toBe(status);
  expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
  expect((await api.ask('GET', '/v1/ports')).body.ports).toHaveLength(1);
});

it.each([
  ['?node=one', 1],
  ['?node=nobody', 'Node nobody could not be found.'],
  [`?node_uuid=${ONE}`, 1],
  [`?address=${MAC.toUpperCase()}`, 1],
  ['?address=52:54:00:00:00:99', 0],
  ['?address=zz', 'Expected valid MAC address for address: zz'],
  ['?shard=left', 1],
  ['?shard=right', 0],
  ['?shard=left&node=one', 'Operation not permitted.'],
  ['?portgroup=x', 'Portgroup x could not be found.'],
  [
    '?conductor_groups=x&node=one',
    'Filtering by conductor_groups cannot be combined with node_ident, portgroup_ident, or node address filters.',
  ],
  ['?fields=nosuch', 'Field(s) "nosuch" are not valid'],
  ['?sort_key=extra', 'The sort_key value extra is an invalid field for sorting'],
])('answers the list query %s', async (query, expected) => {
  const { body, fault } = await api.ask('GET', `/v1/ports${query}`);
  expect(fault ?? body.ports.length).toEqual(expected);
});
it('links to the next page', async () => {
  await create({});
  const { body } = await api.ask('GET', '/v1/ports?limit=1');
  expect(body.next).toBe(`${api.url()}/v1/ports?sort_key=id&sort_dir=asc&fields=uuid,address&limit=1&marker=${PORT}`);
});
it('lists the ports of a node by its UUID only', async () => {
  expect((await api.ask('GET', `/v1/nodes/${ONE}/ports/detail`)).body.ports[0]).toMatchObject({ uuid: PORT, node_uuid: ONE });
  expect(await api.ask('GET', '/v1/nodes/one/ports')).toMatchObject({ status: 404, fault: 'Portgroup None could not be found.' });
  expect(await api.ask('GET', `/v1/nodes/${ONE}/ports/${PORT}`)).toMatchObject({ status: 400, fault: 'Malformed request URI.' });
});

it('a patch changes only what differs', async () => {
  expect(
    (
      await patch([
        { op: 'replace', path: '/extra', value: { a: 1 } },
        { op: 'replace', path: '/name', value: 'eth0' },
      ])
    ).body.extra,
  ).toEqual({ a: 1 });
  expect(api.conductor.calls.at(-1)).toEqual({ name: 'updatePort', arguments: [PORT, { extra: { a: 1 } }] });
});
it.each([
  [[{ op: 'replace', path: '/address', value: 'zz' }], NEWEST, 400, 'Expected valid MAC address for address: zz'],
  [[{ op: 'remove', path: '/address' }], NEWEST, 400, "Schema error for patch: 'address' is a required property"],
  [
    [{ op: 'replace', path: '/node_uuid', value: 'zz' }],
    NEWEST,
    400,
    "Unable to apply the requested node_uuid 'zz'. Requested value was invalid.",
  ],
  [
    [{ op: 'add', path: '/node_ident', value: 'one' }],
    NEWEST,
    400,
    'Adding a new attribute (/node_ident) to the root of the resource is not allowed',
  ],
  [[{ op: 'replace', path: '/pxe_enabled', value: true }], 18, 406, 'Request not acceptable.'],
  [[{ op: 'remove', path: '/local_link_connection/port_id' }], NEWEST, 400, /Possible root cause: 'port_id' is a required property$/],
  [[{ op: 'add', path: '/local_link_connection/network_type', value: 'managed' }], 63, 406, 'Request not acceptable.'],
  [[{ op: 'replace', path: '/physical_network', value: '' }], NEWEST, 400, 'A non-empty value is required when setting physical_network'],
  [
    [{ op: 'replace', path: '/uuid', value: 'x' }],
    NEWEST,
    400,
    /^Cannot patch \/uuid\. Only the following can be updated: address, extra, is_smartnic, local_link_connection, node_ident, node_uuid, physical_network, portgroup_uuid, pxe_enabled, name, description, vendor, category, available_for_dynamic_portgroup$/,
  ],
])('refuses the patch %j at 1.%p with %p', async (body, minor, status, sentence) => {
  const answer = await patch(body, minor);
  expect(answer.status).toBe(status);
  expect(answer.fault).toEqual(typeof sentence === 'string' ? sentence : matching(sentence));
});
it('accepts later fields in a patch at every version, as Ironic does', async () => {
  expect((await patch([{ op: 'replace', path: '/vendor', value: 'v' }], 50)).status).toBe(200);
});
it('a port is deleted by its UUID only', async () => {
  expect((await api.ask('DELETE', '/v1/ports/eth0')).fault).toBe('Expected UUID for port_uuid: eth0');
  expect((await api.ask('DELETE', `/v1/ports/${PORT}`)).status).toBe(204);
});

describe('drivers and conductors', () => {
  it('are the drivers that the live conductors report', async () => {
    expect((await api.ask('GET', '/v1/drivers', 1)).body.drivers).toEqual([
      {
        name: 'fake-hardware',
        hosts: ['here'],
        links: [
          { href: `${api.url()}/v1/drivers/fake-hardware`, rel: 'self' },
          { href: `${api.url()}/drivers/fake-hardware`, rel: 'bookmark' },
        ],
      },
    ]);
    expect((await api.ask('GET', '/v1/drivers/fake-hardware', 40)).body).toMatchObject({
      type: 'dynamic',
      default_bios_interface: 'fake',
      enabled_power_interfaces: ['fake'],
    });
    expect((await api.ask('GET', '/v1/drivers/nosuch')).fault).toBe('Could not find the following driver(s) or hardware type(s): nosuch.');
    expect((await api.ask('GET', '/v1/drivers/fake-hardware/properties')).body).toEqual({ address: 'where it is' });
    expect((await api.ask('GET', '/v1/drivers/nosuch/properties')).status).toBe(404);
  });
  it('include conductors since 1.49', async () => {
    expect((await api.ask('GET', '/v1/conductors', 48)).fault).toBe('The API is not supported for this version');
    expect((await api.ask('GET', '/v1/conductors', 49)).body.conductors).toMatchObject([
      { hostname: 'here', conductor_group: '', alive: true },
    ]);
    expect((await api.ask('GET', '/v1/conductors/here')).body.drivers).toEqual(['fake-hardware']);
    expect((await api.ask('GET', '/v1/conductors/there')).fault).toBe('Conductor there could not be found.');
    expect((await api.ask('GET', '/v1/conductors?fields=x')).fault).toBe(
      "Schema error: 'x' is not one of ['alive', 'conductor_group', 'created_at', 'drivers', 'hostname', 'links', 'updated_at']",
    );
  });
});
