/**
 * Simulated machines under the real Ironic: its ipmitool and sushy drive their BMCs, its conductor inspects, cleans and deploys them
 * through their agents. A small server turns what Ironic puts down for iPXE into what the machines' firmware asks for.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../simulator/fleet';
import { until } from '../lab/machines';
import { startRealIronic, type RealIronic } from '../lab/real-ironic';

const PATIENCE = 240;
const PORT = 21610;
let folder: string;
let files: Server;
let ironic: RealIronic;
let fleet: Fleet;
let bootUrl: string;
const image = randomBytes(300_000);
const sha256 = createHash('sha256').update(image).digest('hex');

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'simulator-reference-'));
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), name);
  files = createServer((request, response) => {
    const path = request.url!.replace(/^\/ipxe\//, '/pxelinux.cfg/');
    const file = join(folder, 'ironic/http', path);
    if (path === '/image') response.writeHead(200, { 'content-length': image.length }).end(request.method === 'HEAD' ? '' : image);
    else if (existsSync(file)) response.end(readFileSync(file));
    else response.writeHead(404).end();
  });
  await new Promise<void>((done) => files.listen(0, '127.0.0.1', done));
  bootUrl = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', PORT, {
    deploy: { http_root: join(folder, 'ironic/http'), http_url: bootUrl },
    conductor: {
      deploy_kernel: `file://${folder}/kernel`,
      deploy_ramdisk: `file://${folder}/ramdisk`,
      file_url_allowed_paths: folder,
    },
    agent: { require_tls: 'false' },
    ipmi: { min_command_interval: '1' },
    inspector: { require_managed_boot: 'true' },
  });
  fleet = await startFleet({
    count: 2,
    bootUrl,
    host: '127.0.0.1',
    // Ironic drops the heartbeat of a step that is over before it has let the node go; the next one is minutes away.
    behaviour: { stepMs: 3000 },
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
}, 600_000);
afterAll(async () => {
  await ironic.stop();
  await fleet.close();
  files.closeAllConnections();
  await new Promise((closed) => files.close(closed));
  rmSync(folder, { recursive: true });
}, 60_000);

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${ironic.url}/v1${path}`, {
    method,
    headers: { 'x-openstack-ironic-api-version': '1.95', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
async function reach(name: string, verb: string, state: string, more: object = {}): Promise<void> {
  await call('PUT', `/nodes/${name}/states/provision`, { target: verb, ...more });
  let seen = '';
  await until(
    PATIENCE,
    () => `${name} to be ${state}; it is ${seen}\n${readFileSync(ironic.log, 'utf8').slice(-3000)}`,
    async () => {
      const node = await call<{ provision_state: string; last_error: string | null }>('GET', `/nodes/${name}`);
      seen = `${node.provision_state}: ${node.last_error ?? ''}`;
      if (/fail|error/.test(node.provision_state)) throw new Error(`${name}: ${seen}`);
      return node.provision_state === state;
    },
  );
}

const DRIVERS: Readonly<Record<string, (machine: FleetMachine) => object>> = {
  ipmi: ({ ipmi }) => ({
    ipmi_address: ipmi.address,
    ipmi_port: ipmi.port,
    ipmi_username: ipmi.username,
    ipmi_password: ipmi.password,
    ipmi_cipher_suite: 17,
  }),
  redfish: ({ redfish }) => ({
    redfish_address: redfish.address,
    redfish_system_id: redfish.systemId,
    redfish_username: redfish.username,
    redfish_password: redfish.password,
  }),
};

it.each(Object.keys(DRIVERS))(
  'a machine behind %s is enrolled, inspected, cleaned, deployed and given back',
  async (driver) => {
    const machine = fleet.machines[Object.keys(DRIVERS).indexOf(driver)]!;
    const { name, control } = machine;
    const interfaces = { boot_interface: 'ipxe', deploy_interface: 'direct', inspect_interface: 'agent', network_interface: 'noop' };
    const { uuid } = await call<{ uuid: string }>('POST', '/nodes', {
      name,
      driver,
      driver_info: DRIVERS[driver]!(machine),
      ...interfaces,
    });
    await call('POST', '/ports', { node_uuid: uuid, address: machine.macs[0] });
    await reach(name, 'manage', 'manageable');

    await reach(name, 'inspect', 'manageable');
    const { inventory } = await call<{ inventory: { disks: object[]; interfaces: object[] } }>('GET', `/nodes/${name}/inventory`);
    expect(inventory).toMatchObject({ cpu: { count: 8 }, memory: { physical_mb: 16384 } });
    expect(inventory.interfaces).toHaveLength(machine.macs.length);

    await reach(name, 'provide', 'available');
    const wanted = {
      image_source: `${bootUrl}/image`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: sha256,
      image_disk_format: 'raw',
    };
    const patch = Object.entries(wanted).map(([key, value]) => ({ op: 'add', path: `/instance_info/${key}`, value }));
    await call('PATCH', `/nodes/${name}`, patch);
    await reach(name, 'active', 'active', { configdrive: { meta_data: { hello: 'world' } } });
    await until(
      30,
      () => `the deployed system; the machine is at ${control.phase()}`,
      () => control.phase() === 'system',
    );
    expect(control.content('/dev/sda')).toMatchObject({ sha256, size: image.length });
    expect(control.content('/dev/sda')!.configDrive!.includes('"hello": "world"')).toBe(true);

    await reach(name, 'deleted', 'available');
    expect(control.content('/dev/sda')).toBeUndefined();
    expect(control.isOn()).toBe(false);
  },
  900_000,
);

it('shows Redfish as the real client reads it', async () => {
  const { name } = fleet.machines[1]!;
  await reach(name, 'manage', 'manageable');
  const path = `/nodes/${name}/management/boot_device`;
  await call('PUT', path, { boot_device: 'pxe', persistent: true });
  expect(await call('GET', path)).toEqual({ boot_device: 'pxe', persistent: true });
  expect(fleet.machines[1]!.control.boot()).toMatchObject({ device: 'pxe', persistent: true });
  await call('PATCH', `/nodes/${name}`, [{ op: 'replace', path: '/inspect_interface', value: 'redfish' }]);
  await reach(name, 'inspect', 'manageable');
  const { inventory } = await call<{ inventory: object }>('GET', `/nodes/${name}/inventory`);
  expect(inventory).toMatchObject({ memory: { physical_mb: 16384 }, cpu: { architecture: 'x86_64' } });
}, 300_000);
