/** An unknown machine reports itself to the real Ironic and to our server: both make the same node, ports and data, or refuse alike. */
import type { JsonObject } from '../../../model/records';
import { startBoth, type Both } from '../both';
import { until } from '../../../demo/lab/machines';

jest.setTimeout(600_000);
let both: Both;
beforeAll(async () => {
  both = await startBoth({
    DEFAULT: { default_inspect_interface: 'agent', default_resource_class: 'baremetal' },
    auto_discovery: { enabled: 'True', driver: 'fake-hardware' },
    inspector: { require_managed_boot: 'False', hooks: 'ramdisk-error,validate-interfaces,ports,architecture' },
  });
}, 600_000);
afterAll(async () => both.stop(), 60_000);

const inventory = (mac: string): JsonObject => ({
  interfaces: [
    { name: 'eth0', mac_address: mac, ipv4_address: '192.0.2.10', has_carrier: true },
    { name: 'eth1', mac_address: mac.replace('52:54:00', '52:54:01'), ipv4_address: null, has_carrier: true },
  ],
  cpu: { architecture: 'x86_64', count: 2 },
  memory: { physical_mb: 1024 },
  disks: [],
  bmc_address: '0.0.0.0',
  boot: { current_boot_mode: 'uefi', pxe_interface: mac },
});

async function call(
  server: string,
  method: string,
  path: string,
  body?: unknown,
  version = '1.95',
): Promise<{ status: number; body: JsonObject }> {
  const headers = { 'content-type': 'application/json', ...(version === '' ? {} : { 'x-openstack-ironic-api-version': version }) };
  const response = await fetch(`${server}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as JsonObject) };
}

const FIELDS = [
  'name',
  'driver',
  'driver_info',
  'properties',
  'extra',
  'instance_info',
  'provision_state',
  'target_provision_state',
  'last_error',
  'maintenance',
  'resource_class',
  'conductor_group',
  'inspect_interface',
  'owner',
  'description',
  'power_state',
  'inspection_finished_at',
];

async function discover(server: string, body: JsonObject, version: string): Promise<JsonObject> {
  const before = new Set(((await call(server, 'GET', '/v1/nodes')).body['nodes'] as { uuid: string }[]).map(({ uuid }) => uuid));
  const posted = await call(server, 'POST', '/v1/continue_inspection', body, version);
  const all = (await call(server, 'GET', '/v1/nodes/detail')).body['nodes'] as (JsonObject & { readonly uuid: string })[];
  const made = all.filter(({ uuid }) => !before.has(uuid));
  const [first] = made;
  if (!first) return { status: posted.status, answer: Object.keys(posted.body).sort(), nodes: 0 };
  let node: JsonObject = first;
  let data = { status: 0, body: {} as JsonObject };
  await until(
    30,
    () => `what was found: ${JSON.stringify(node)}`,
    async () => {
      node = (await call(server, 'GET', `/v1/nodes/${first.uuid}`)).body;
      data = await call(server, 'GET', `/v1/nodes/${first.uuid}/inventory`);
      const isOver = data.status === 200 || node['last_error'] !== null;
      return node['reservation'] === null && node['power_state'] !== null && isOver;
    },
  );
  const again = await call(server, 'POST', '/v1/continue_inspection', body, version);
  const { ports } = (await call(server, 'GET', `/v1/ports?node=${first.uuid}&detail=true`)).body as { ports: readonly JsonObject[] };
  const withoutUuid = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value).replaceAll(first.uuid, 'UUID')) as JsonObject;
  return withoutUuid({
    status: posted.status,
    answer: Object.keys(posted.body).sort(),
    nodes: made.length,
    // Only the reason of an error is compared: the sentences around it differ.
    node: {
      ...Object.fromEntries(FIELDS.map((field) => [field, node[field]])),
      last_error: String(node['last_error']).replace(/^.*: /s, ''),
    },
    internal: Object.keys(node['driver_internal_info'] as object)
      .filter((key) => key !== 'agent_secret_token')
      .sort(),
    ports: ports.map(({ address, pxe_enabled, extra }) => ({ address, pxe_enabled, extra })),
    data: data.status === 200 ? data.body : data.status,
    again: data.status === 200 ? again.status : 'free',
  });
}

it.each<[string, JsonObject, string]>([
  ['a report of a current agent', { inventory: inventory('52:54:00:00:0d:01'), root_disk: null, logs: 'AAAA' }, '1.95'],
  ['a report without a version', { inventory: inventory('52:54:00:00:0d:02') }, ''],
  [
    'a report without MAC addresses, but with a BMC address',
    { inventory: { ...inventory('no such'), bmc_address: '192.0.2.200' } },
    '1.95',
  ],
  ['a report without MAC and BMC addresses', { inventory: inventory('no such') }, '1.95'],
  ['a report with an error of the ramdisk', { inventory: inventory('52:54:00:00:0d:03'), error: 'it broke' }, '1.95'],
])('both servers create the same node, or refuse alike, after %s', async (what, body, version) => {
  const given =
    what === 'a report without MAC and BMC addresses' ? { inventory: { ...(body['inventory'] as JsonObject), bmc_address: '' } } : body;
  const theirs = await discover(both.reference, given, version);
  const ours = await discover(both.ours, given, version);
  expect(ours).toEqual(theirs);
});
