/**
 * Bad callbacks over HTTP, at the API and at the introspection service: they are refused, or fail as a whole; and what a deleted node
 * leaves in a folder.
 */
import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../../../config/load';
import { startServer } from '../../../server/server';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { useDatabase } from '../../support/database';
import { timeoutSignal } from '../../../wire/timeout-signal';
import type { Server } from '../../support/whole-server';

const database = useDatabase();
let folder: string;
let server: Server;
const only = (kinds: readonly string[], name: string) =>
  Object.fromEntries(kinds.map((kind) => [`DEFAULT.enabled_${kind}_interfaces`, [name]]));

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-callbacks-'));
  server = await startServer({
    options: {
      ...loadOptions([], {}).options,
      'DEFAULT.enabled_hardware_types': ['fake-hardware'],
      ...only(['bios', 'boot', 'console', 'deploy', 'firmware', 'management', 'power', 'raid', 'rescue', 'storage', 'vendor'], 'fake'),
      ...only(['inspect'], 'agent'),
      ...only(['network'], 'noop'),
      'DEFAULT.auth_strategy': 'noauth',
      'DEFAULT.my_ip': '127.0.0.1',
      'DEFAULT.listen_address': '127.0.0.1',
      'DEFAULT.listen_port': 0,
      'api.host_ip': '127.0.0.1',
      'api.port': 0,
      'api.max_json_body_size_inspection': 64,
      'conductor.graceful_shutdown_timeout': 2,
      'inspector.require_managed_boot': false,
      'inventory.data_backend': 'directory',
      'inventory.directory': join(folder, 'inventories'),
    },
    roles: ['api', 'conductor', 'inspector'],
    stateDir: join(folder, 'state'),
    log: silentLog,
    databaseUrl: database.connection(),
  });
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly body: JsonObject;
}
async function send(method: string, url: string, text?: string | Buffer): Promise<Answer> {
  const headers = { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.95' };
  const signal = timeoutSignal(240_000);
  const answer = await fetch(url, { method, headers, signal, ...(text === undefined ? {} : { body: text }) });
  const said = await answer.text();
  return { status: answer.status, body: (said === '' ? {} : JSON.parse(said)) as JsonObject };
}
async function must(method: string, path: string, body?: unknown): Promise<JsonObject> {
  const answer = await send(method, `${server.apiUrl!}/v1${path}`, body === undefined ? undefined : JSON.stringify(body));
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

let made = 0;
const macOf = (index: number): string => `52:54:00:0c:00:${index.toString(16).padStart(2, '0')}`;
/** A manageable node with a port; its UUID and the port's address. */
async function manageable(): Promise<{ readonly uuid: string; readonly mac: string }> {
  const { uuid } = (await must('POST', '/nodes', { driver: 'fake-hardware' })) as { uuid: string };
  const mac = macOf(++made);
  await must('POST', '/ports', { node_uuid: uuid, address: mac });
  await must('PUT', `/nodes/${uuid}/states/provision`, { target: 'manage' });
  await server.conductor!.idle();
  return { uuid, mac };
}
/** What a callback can change. */
async function seen(uuid: string): Promise<JsonObject> {
  const node = { ...(await must('GET', `/nodes/${uuid}`)), updated_at: undefined };
  const introspection = await send('GET', `${server.inspectorUrl!}/v1/introspection/${uuid}`);
  const { ports } = await must('GET', `/ports?node=${uuid}&detail=true`);
  return { node, ports, introspection, files: readdirSync(join(folder, 'inventories')) };
}

const inventory = (mac: string): JsonObject => ({
  interfaces: [{ name: 'eth0', mac_address: mac, ipv4_address: '192.0.2.1', has_carrier: true }],
  cpu: { architecture: 'x86_64', count: 4, flags: ['vmx'] },
  memory: { physical_mb: 2048 },
  disks: [{ name: '/dev/sda', size: 10 * 1024 ** 3 }],
});
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const having = (mac: string, part: JsonObject): JsonObject => ({ inventory: { ...inventory(mac), ...part } });
const told = (mac: string, more: object = {}): JsonObject => ({ inventory: inventory(mac), ...more });

const ENDPOINTS = ['/v1/continue_inspection', ':5050/v1/continue'] as const;
type Endpoint = (typeof ENDPOINTS)[number];
const urlOf = (endpoint: Endpoint): string =>
  endpoint === ENDPOINTS[0] ? `${server.apiUrl!}${endpoint}` : `${server.inspectorUrl!}/v1/continue`;
async function waiting(endpoint: Endpoint): Promise<{ readonly uuid: string; readonly mac: string }> {
  const machine = await manageable();
  if (endpoint === ENDPOINTS[0]) await must('PUT', `/nodes/${machine.uuid}/states/provision`, { target: 'inspect' });
  else expect(await send('POST', `${server.inspectorUrl!}/v1/introspection/${machine.uuid}?manage_boot=0`)).toMatchObject({ status: 202 });
  await server.conductor!.idle();
  return machine;
}

/** Parts of an inventory with types that agents do not send. Unknown members are allowed. */
const ILL_TYPED: readonly (readonly [string, JsonObject])[] = [
  ['a processor that is a number', { cpu: 5 }],
  ['a processor that is null', { cpu: null }],
  ['an architecture that is an object', { cpu: { architecture: {} } }],
  ['a count that is a text', { cpu: { architecture: 'x86_64', count: '4' } }],
  ['a negative count', { cpu: { architecture: 'x86_64', count: -4 } }],
  ['flags that are not a list', { cpu: { architecture: 'x86_64', flags: 7 } }],
  ['a flag that is a number', { cpu: { architecture: 'x86_64', flags: [7] } }],
  ['memory that is a text', { memory: 'lots' }],
  ['memory of a text', { memory: { physical_mb: 'lots' } }],
  ['memory of an object', { memory: { physical_mb: {} } }],
  ['disks that are an object', { disks: {} }],
  ['a disk that is null', { disks: [null] }],
  ['a disk of a negative size', { disks: [{ name: '/dev/sda', size: -1 }] }],
  ['a disk of a size that is a text', { disks: [{ name: '/dev/sda', size: '10 GiB' }] }],
  ['a serial number that is a list', { disks: [{ name: '/dev/sda', size: 1, serial: [] }] }],
  ['a boot that is a list', { boot: [] }],
  ['a boot interface that is a number', { boot: { pxe_interface: 1 } }],
  ['a vendor that is a number', { system_vendor: 1 }],
  ['firmware that is a text', { system_vendor: { firmware: 'BIOS' } }],
  ['a name that is a list', { hostname: [] }],
];
const ILL_TYPED_BESIDE: readonly (readonly [string, JsonObject])[] = [
  ['an error that is an object', { error: {} }],
  ['a root disk that is a name', { root_disk: '/dev/sda' }],
  ['PCI devices that are an object', { pci_devices: {} }],
  ['a PCI device that is a text', { pci_devices: ['10de:1eb8'] }],
  ['NUMA nodes that are a list', { numa_topology: [] }],
  ['LLDP of a text', { lldp_raw: { eth0: '0207' } }],
  ['an LLDP element that is an object', { lldp_raw: { eth0: [{ type: 1 }] } }],
  ['rows of hardware that are an object', { data: {} }],
];
const REFUSED: readonly (readonly [string, number, (mac: string) => string | Buffer])[] = [
  ['a body that is too large', 413, (mac) => JSON.stringify(told(mac, { dump: 'x'.repeat(65 << 10) }))],
  ['too deep a nesting', 400, (mac) => JSON.stringify(told(mac)).replace(/}$/, `,"deep":${nested(30)}}`)],
  ['a nesting that would overflow the stack', 400, () => nested(30_000)],
  ['malformed JSON', 400, () => '{"inventory":'],
  ['bytes that are not UTF-8', 400, (mac) => Buffer.from(JSON.stringify(told(mac, { text: '\xff' })), 'latin1')],
  ['a list', 400, () => '[]'],
  ['null', 400, () => 'null'],
  ['a text', 400, () => '"inventory"'],
  ['no inventory', 400, () => '{}'],
  ['an inventory that is a list', 400, (mac) => JSON.stringify({ inventory: [mac] })],
  ['an inventory that is null', 400, () => '{"inventory":null}'],
  ['an empty inventory', 400, () => '{"inventory":{}}'],
  ['interfaces that are an object', 400, (mac) => JSON.stringify(having(mac, { interfaces: { mac_address: mac } }))],
  ['no interfaces', 400, (mac) => JSON.stringify(having(mac, { interfaces: [] }))],
  ['an interface that is a text', 400, (mac) => JSON.stringify(having(mac, { interfaces: [mac] }))],
  ['an address that is a number', 400, (mac) => JSON.stringify(having(mac, { interfaces: [{ name: 'a', mac_address: 1 }] }))],
  ['a BMC address that is a list', 400, () => JSON.stringify(having('none', { bmc_address: ['192.0.2.1'] }))],
  ...ILL_TYPED.map(([what, part]) => [what, 400, (mac: string) => JSON.stringify(having(mac, part))] as const),
  ...ILL_TYPED_BESIDE.map(([what, part]) => [what, 400, (mac: string) => JSON.stringify(told(mac, part))] as const),
];
// The inventory does not say which disk is the root disk (`root_disk`), so local_gb is 0.
const ALL = { cpu_arch: 'x86_64', cpus: 4, memory_mb: 2048, local_gb: 0, capabilities: 'cpu_vt:true' };

describe.each(ENDPOINTS)('POST %s', (endpoint) => {
  const at = ENDPOINTS.indexOf(endpoint);
  let machine: { readonly uuid: string; readonly mac: string };
  beforeAll(async () => {
    machine = await waiting(endpoint);
  });
  it.each(REFUSED)('refuses %s with %j, and changes nothing', async (_, expected, text) => {
    const before = await seen(machine.uuid);
    const { status } = await send('POST', urlOf(endpoint), text(machine.mac));
    await server.conductor!.idle();
    expect(status).toBe(expected);
    expect(await seen(machine.uuid)).toEqual(before);
  });
  it('then accepts a valid report, since the node still waits', async () => {
    expect((await send('POST', urlOf(endpoint), JSON.stringify(told(machine.mac)))).status).toBe(at === 0 ? 202 : 200);
    await server.conductor!.idle();
    expect(await seen(machine.uuid)).toMatchObject({
      node: { provision_state: 'manageable', properties: at === 0 ? { cpu_arch: 'x86_64' } : ALL },
    });
  });
});

it('a deleted node leaves no inventory in the folder', async () => {
  const { uuid, mac } = await waiting(ENDPOINTS[0]);
  expect(await send('POST', urlOf(ENDPOINTS[0]), JSON.stringify(told(mac)))).toMatchObject({ status: 202 });
  await server.conductor!.idle();
  expect(await must('GET', `/nodes/${uuid}/inventory`)).toMatchObject({ inventory: inventory(mac) });
  expect(readdirSync(join(folder, 'inventories'))).toContain(`${uuid}.a.json`);
  await must('DELETE', `/nodes/${uuid}`);
  expect(readdirSync(join(folder, 'inventories')).filter((file) => file.startsWith(uuid))).toEqual([]);
});

it.each(ENDPOINTS)(
  'a report to %s fails the inspection while the inventory folder cannot be written, and succeeds afterwards',
  async (endpoint) => {
    const place = join(folder, 'inventories');
    const failure = /cannot be written in \[inventory\]directory: ENOENT: no such file or directory$/;
    const { uuid, mac } = await waiting(endpoint);
    renameSync(place, `${place}.away`);
    try {
      // The introspection service processes a report before it answers; the API answers first.
      expect((await send('POST', urlOf(endpoint), JSON.stringify(told(mac)))).status).toBe(endpoint === ENDPOINTS[0] ? 202 : 400);
      await server.conductor!.idle();
    } finally {
      renameSync(`${place}.away`, place);
    }
    const node = await must('GET', `/nodes/${uuid}`);
    expect(node).toMatchObject({ reservation: null, properties: {} });
    if (endpoint === ENDPOINTS[0]) {
      expect(node).toMatchObject({ provision_state: 'inspect failed', last_error: expect.stringMatching(failure) as string });
      await must('PUT', `/nodes/${uuid}/states/provision`, { target: 'inspect' });
    } else {
      const at = `${server.inspectorUrl!}/v1/introspection/${uuid}`;
      expect((await send('GET', at)).body).toMatchObject({ state: 'error', error: expect.stringMatching(failure) as string });
      expect(await send('POST', `${at}?manage_boot=0`)).toMatchObject({ status: 202 });
    }
    await server.conductor!.idle();
    expect((await send('POST', urlOf(endpoint), JSON.stringify(told(mac)))).status).toBeLessThan(300);
    await server.conductor!.idle();
    expect(await must('GET', `/nodes/${uuid}/inventory`)).toMatchObject({ inventory: inventory(mac) });
  },
);
