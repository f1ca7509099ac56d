/** Inspection by Redfish: the real Ironic and our server read the same machines, and must make the same node, ports and inventory. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { until } from '../../../demo/lab/machines';
import { startSushyTools, type SushyTools } from '../../lab/redfish/sushy-tools';
import { startBoth, type Both } from '../both';

jest.setTimeout(600_000);
const UUID = '86ff2e5e-0000-4000-8000-00000000ab01';
const GIB = 1024 ** 3;
/** libvirt's own driver for tests: the domains and volumes of this file, which do not run. */
const libvirtNode = (folder: string): string => `<node>
 <domain type='test'><name>anvil</name><uuid>${UUID}</uuid><memory unit='GiB'>3</memory><vcpu>4</vcpu>
  <os><type arch='x86_64'>hvm</type><loader type='rom'>/usr/share/seabios/bios-256k.bin</loader></os>
  <devices>
   <disk type='file' device='disk'><source file='${folder}/small'/><target dev='vda' bus='virtio'/></disk>
   <disk type='file' device='disk'><source file='${folder}/large'/><target dev='vdb' bus='virtio'/></disk>
   <interface type='network'><mac address='52:54:00:0a:0b:01'/><source network='default'/></interface>
   <interface type='network'><mac address='52:54:00:0a:0b:02'/><source network='default'/></interface>
  </devices></domain>
 <pool type='dir'><name>default</name><target><path>${folder}</path></target>
  <volume type='file'><name>small</name><key>${folder}/small</key><capacity unit='GiB'>2</capacity><target><path>${folder}/small</path></target></volume>
  <volume type='file'><name>large</name><key>${folder}/large</key><capacity unit='GiB'>20</capacity><target><path>${folder}/large</path></target></volume>
 </pool>
</node>`;
/** Options in Python's notation; for these values it is the same as JSON. */
const STORAGE = {
  STORAGE: JSON.stringify({
    [UUID]: [{ Id: '1', Name: 'RAID', StorageControllers: [{ MemberId: '0', Name: 'HBA', SpeedGbps: 12 }], Drives: ['d1', 'd2'] }],
  }),
  DRIVES: `{("${UUID}", "1"): ${JSON.stringify(
    [899527000000, 4000000000].map((CapacityBytes, index) => ({
      Id: `d${index + 1}`,
      Name: `Bay ${index}`,
      CapacityBytes,
      Manufacturer: 'Contoso',
      Model: 'M',
      Protocol: 'SAS',
      SerialNumber: `S${index}`,
    })),
  )}}`,
  VOLUMES: `{("${UUID}", "1"): ${JSON.stringify([
    { Id: '1', Name: 'System', VolumeType: 'Mirrored', CapacityBytes: 20 * GIB, libvirtPoolName: 'default', libvirtVolName: 'large' },
  ])}}`,
};

let folder: string;
let both: Both;
let fleet: Fleet;
let emulator: SushyTools;
const machines: Record<string, JsonObject> = {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-inspection-'));
  const file = join(folder, 'node.xml');
  writeFileSync(file, libvirtNode(folder));
  emulator = await startSushyTools(join(folder, 'emulator'), { LIBVIRT_URI: `"test://${file}"`, ...STORAGE });
  machines['libvirt'] = { redfish_address: emulator.url, redfish_system_id: `/redfish/v1/Systems/${UUID}` };
  fleet = await startFleet({ count: 1, host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes });
  const { redfish } = fleet.machines[0]!;
  machines['simulator'] = {
    redfish_address: redfish.address,
    redfish_system_id: redfish.systemId,
    redfish_username: redfish.username,
    redfish_password: redfish.password,
  };
  both = await startBoth({
    DEFAULT: {
      enabled_hardware_types: 'redfish',
      enabled_bios_interfaces: 'no-bios',
      enabled_boot_interfaces: 'ipxe',
      enabled_console_interfaces: 'no-console',
      enabled_deploy_interfaces: 'direct',
      enabled_firmware_interfaces: 'no-firmware',
      enabled_inspect_interfaces: 'redfish,agent',
      enabled_management_interfaces: 'redfish',
      enabled_power_interfaces: 'redfish',
      enabled_raid_interfaces: 'no-raid',
      enabled_rescue_interfaces: 'no-rescue',
      enabled_storage_interfaces: 'noop',
      enabled_vendor_interfaces: 'no-vendor',
    },
    inspector: { require_managed_boot: 'false' },
  });
});
afterAll(async () => {
  await both?.stop();
  await fleet?.close();
  await emulator?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function call(server: string, method: string, path: string, body?: unknown): Promise<JsonObject> {
  const answer = await fetch(`${server}/v1${path}`, {
    method,
    headers: { 'x-openstack-ironic-api-version': '1.95', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as JsonObject;
}
interface Inspected {
  readonly node: JsonObject;
  readonly ports: readonly JsonObject[];
  readonly data: JsonObject;
}
/** Enrols, inspects and deletes the machine. @returns what the inspection made of its node */
async function inspect(server: string, name: string, properties: JsonObject): Promise<Inspected> {
  // The verification sets the vendor, unless the node has one.
  const node = { name, driver: 'redfish', driver_info: machines[name], properties: { vendor: 'v', ...properties } };
  await call(server, 'POST', '/nodes', node);
  const reach = async (verb: string): Promise<JsonObject> => {
    await call(server, 'PUT', `/nodes/${name}/states/provision`, { target: verb });
    let node: JsonObject = {};
    await until(
      120,
      () => `${name} at ${server}: ${JSON.stringify(node)}`,
      async () => {
        node = await call(server, 'GET', `/nodes/${name}`);
        return node['target_provision_state'] === null || /fail/.test(String(node['provision_state']));
      },
    );
    return node;
  };
  await reach('manage');
  const { provision_state, last_error, properties: found, uuid } = await reach('inspect');
  const { ports } = (await call(server, 'GET', `/ports?node=${name}&detail=true`)) as { ports: readonly JsonObject[] };
  const data = await call(server, 'GET', `/nodes/${name}/inventory`).catch((error: unknown) => ({
    error: String(error).replace(/^.*?: /, ''),
  }));
  await call(server, 'DELETE', `/nodes/${name}`);
  const withoutUuid = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value).replaceAll(String(uuid), 'UUID')) as JsonObject;
  return {
    node: withoutUuid({ provision_state, last_error, properties: found }),
    ports: ports
      .map(({ address, pxe_enabled, extra, local_link_connection }) => ({ address, pxe_enabled, extra, local_link_connection }))
      .sort((a, b) => String(a.address).localeCompare(String(b.address))),
    data: withoutUuid(data),
  };
}

it.each([
  ['simulator', {}],
  ['simulator', { capabilities: 'boot_mode:bios,x:1', memory_mb: 5 }],
  ['libvirt', {}],
])('both servers inspect a machine of %s alike, with properties %j', async (name, properties) => {
  const theirs = await inspect(both.reference, name, properties);
  const ours = await inspect(both.ours, name, properties);
  expect(ours).toEqual(theirs);
  expect(ours.node).toMatchObject({ provision_state: 'manageable', last_error: null });
  expect(ours.data['inventory']).toMatchObject({ cpu: { architecture: 'x86_64' } });
});

it('both servers create the ports that the BMC knows before the agent reports', async () => {
  const [theirs, ours] = await Promise.all(
    [both.reference, both.ours].map(async (server) => {
      const name = 'waiting';
      const info = { driver_info: machines['simulator'], inspect_interface: 'agent', properties: { vendor: 'v' } };
      await call(server, 'POST', '/nodes', { name, driver: 'redfish', ...info });
      for (const [verb, state] of [
        ['manage', 'manageable'],
        ['inspect', 'inspect wait'],
      ]) {
        await call(server, 'PUT', `/nodes/${name}/states/provision`, { target: verb });
        let node: JsonObject = {};
        await until(
          120,
          () => `${state} at ${server}: ${JSON.stringify(node)}`,
          async () => {
            node = await call(server, 'GET', `/nodes/${name}`);
            return node['provision_state'] === state && node['reservation'] === null;
          },
        );
      }
      const { ports } = (await call(server, 'GET', `/ports?node=${name}&detail=true`)) as { ports: readonly JsonObject[] };
      await call(server, 'PUT', `/nodes/${name}/maintenance`, {});
      await call(server, 'DELETE', `/nodes/${name}`);
      return ports
        .map(({ address, pxe_enabled, extra, is_smartnic, name }) => ({ address, pxe_enabled, extra, is_smartnic, name }))
        .sort((a, b) => String(a.address).localeCompare(String(b.address)));
    }),
  );
  expect(ours).toEqual(theirs);
  expect(ours!.map(({ address }) => String(address).toLowerCase())).toEqual([...fleet.machines[0]!.macs].sort());
});
