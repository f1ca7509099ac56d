/**
 * Simulated machines that a real Ironic has deployed, behind each kind of BMC: after the import they run on untouched, and our server
 * rebuilds and undeploys them.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../simulator/fleet/fleet';
import { timeoutSignal } from '../../wire/timeout-signal';
import { startRealIronic, type RealIronic } from '../lab/inspection/real-ironic';
import { startServerProcess, type RunningServer } from '../../demo/lab/server';
import { root } from '../lab/support/venv';
import { freePort } from '../support/free-port';
import { until } from '../support/until';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'bloomery-import-machines-'));
const images = ['first', 'second'].map((name) => {
  const bytes = randomBytes(300_000);
  return { name, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
});
const http = join(folder, 'http');
let files: Server;
let bootUrl: string;
let ironic: RealIronic;
let fleet: Fleet;
let ours: RunningServer | undefined;
/** The API of the server that has the nodes now. */
let api: string;

/** Interfaces of both servers: a node whose interface is not enabled cannot be rebuilt, and the import reports it. */
const ENABLED = {
  enabled_hardware_types: 'ipmi,redfish',
  enabled_bios_interfaces: 'no-bios,redfish',
  enabled_console_interfaces: 'no-console',
  enabled_firmware_interfaces: 'no-firmware,redfish',
  enabled_management_interfaces: 'ipmitool,redfish',
  enabled_power_interfaces: 'ipmitool,redfish',
  enabled_raid_interfaces: 'no-raid,agent,redfish',
  enabled_rescue_interfaces: 'no-rescue,agent',
  enabled_storage_interfaces: 'noop',
  enabled_vendor_interfaces: 'no-vendor,ipmitool,redfish',
  enabled_boot_interfaces: 'ipxe',
  enabled_deploy_interfaces: 'direct',
  enabled_inspect_interfaces: 'no-inspect,agent',
  enabled_network_interfaces: 'noop',
};
const ramdisk = {
  deploy_kernel: `file://${folder}/kernel`,
  deploy_ramdisk: `file://${folder}/ramdisk`,
  file_url_allowed_paths: folder,
};

beforeAll(async () => {
  mkdirSync(http);
  for (const { name, bytes } of images) writeFileSync(join(http, name), bytes);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), name);
  // Serves Ironic's files for iPXE at the paths that the firmware of simulated machines requests.
  files = createServer((request, response) => {
    const path = request.url!.replace(/^\/ipxe\//, '/pxelinux.cfg/');
    const file = [http, join(folder, 'ironic/http')].map((place) => join(place, path)).find((candidate) => existsSync(candidate));
    if (file === undefined) response.writeHead(404).end();
    else {
      const bytes = readFileSync(file);
      response.writeHead(200, { 'content-length': bytes.length }).end(request.method === 'HEAD' ? '' : bytes);
    }
  });
  await new Promise<void>((done) => files.listen(0, '127.0.0.1', done));
  bootUrl = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', await freePort(), {
    DEFAULT: ENABLED,
    deploy: { http_root: join(folder, 'ironic/http'), http_url: bootUrl },
    conductor: ramdisk,
    ipmi: { min_command_interval: '1' },
    // Ironic drops the heartbeat of a step that ends before it has released the node: the next one is seconds away.
    api: { ramdisk_heartbeat_timeout: '20' },
  });
  api = ironic.url;
  const behaviour = { stepMs: 3000 };
  fleet = await startFleet({ count: 2, bootUrl, host: '127.0.0.1', behaviour, log: silentLog, clock: systemClock, random: randomBytes });
}, 600_000);
afterAll(async () => {
  await ours?.stop();
  await ironic?.stop();
  await fleet?.close();
  files?.closeAllConnections();
  files?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

type Body = Readonly<Record<string, unknown>>;
async function call(method: string, path: string, body?: unknown): Promise<Body> {
  const response = await fetch(`${api}/v1${path}`, {
    method,
    headers: { 'x-openstack-ironic-api-version': '1.95', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}
async function reach(name: string, verb: string, state: string): Promise<void> {
  await call('PUT', `/nodes/${name}/states/provision`, { target: verb });
  // The response comes when the state has changed.
  await until(
    `${name} ${verb}`,
    async () => {
      const { provision_state: now, last_error: error, reservation } = await call('GET', `/nodes/${name}`);
      if (/fail|error/.test(String(now))) throw new Error(`${name} is ${String(now)}: ${String(error)}`);
      return now === state && reservation === null;
    },
    200,
  );
}
const instanceInfo = (index: number): readonly Body[] => {
  const { name, sha256 } = images[index]!;
  const wanted = {
    image_source: `${bootUrl}/${name}`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: sha256,
    image_disk_format: 'raw',
  };
  return Object.entries(wanted).map(([key, value]) => ({ op: 'add', path: `/instance_info/${key}`, value }));
};

const DRIVERS: Readonly<Record<string, (machine: FleetMachine) => object>> = {
  ipmi: ({ ipmi: { address, port, username, password } }) => ({
    ipmi_address: address,
    ipmi_port: port,
    ipmi_username: username,
    ipmi_password: password,
    ipmi_cipher_suite: 17,
  }),
  redfish: ({ redfish: { address, systemId, username, password } }) => ({
    redfish_address: address,
    redfish_system_id: systemId,
    redfish_username: username,
    redfish_password: password,
  }),
};

const machines = (): readonly FleetMachine[] => Object.keys(DRIVERS).map((_, index) => fleet.machines[index]!);
const expectSystem = async ({ control }: FleetMachine, index: number): Promise<void> => {
  await until('the deployed system', () => control.phase() === 'system', 100);
  const { sha256, bytes } = images[index]!;
  expect(control.content('/dev/sda')).toMatchObject({ sha256, size: bytes.length });
};

it('our server rebuilds and undeploys machines that the real Ironic deployed and the import took over', async () => {
  for (const [index, [driver, info]] of Object.entries(DRIVERS).entries()) {
    const machine = machines()[index]!;
    const { uuid } = await call('POST', '/nodes', { name: machine.name, driver, driver_info: info(machine) });
    await call('POST', '/ports', { node_uuid: uuid, address: machine.macs[0] });
    await reach(machine.name, 'manage', 'manageable');
    await reach(machine.name, 'provide', 'available');
    await call('PATCH', `/nodes/${machine.name}`, instanceInfo(0));
    await reach(machine.name, 'active', 'active');
    await expectSystem(machine, 0);
  }

  await ironic.stop();
  const node = execFileSync(process.execPath, [join(root, 'scripts/release/node.mjs')], { encoding: 'utf8' }).trim();
  const configuration = join(folder, 'ironic/ironic.conf');
  const words = ['import', '--ironic-config', configuration, '--state-dir', join(folder, 'ours/state')];
  const enabled = Object.entries(ENABLED).map(([name, value]) => [`OS_DEFAULT__${name.toUpperCase()}`, value]);
  const environment: NodeJS.ProcessEnv = { ...process.env, DATABASE_URL: '', ...(Object.fromEntries(enabled) as NodeJS.ProcessEnv) };
  const { stdout } = await run(node, [join(root, 'bin/bloomery'), ...words], { env: environment });
  expect(stdout).toMatch(/^Imported:\n {7}2 nodes\n {7}2 ports\n/);
  expect(stdout).not.toContain('To do:');

  // Our server listens on the port from which the machines boot.
  const { port } = new URL(bootUrl);
  files.closeAllConnections();
  await new Promise((closed) => files.close(closed));
  ours = await startServerProcess(join(folder, 'ours'), {
    DEFAULT: { ...ENABLED, auth_strategy: 'noauth', my_ip: '127.0.0.1', host: 'real-ironic' },
    api: { host_ip: '127.0.0.1', port: 0 },
    boot: { http_host: '127.0.0.1', http_port: port, tftp: 'false' },
    deploy: { http_root: http },
    conductor: { ...ramdisk, sync_power_state_interval: 1 },
  });
  api = /API (\S+?),/.exec(ours.ready)![1]!;
  // A round of the power synchronisation has read both BMCs.
  const rounds = /^bloomery_periodic_items\{task="power synchronisation"\} 2$/m;
  await until('the power synchronisation', async () => rounds.test(await (await fetch(`${api}/metrics`)).text()), 200);
  for (const [index, machine] of machines().entries()) {
    const { control, name } = machine;
    expect(await call('GET', `/nodes/${name}`)).toMatchObject({
      provision_state: 'active',
      driver: Object.keys(DRIVERS)[index],
      last_error: null,
    });
    await expectSystem(machine, 0);

    await call('PATCH', `/nodes/${name}`, instanceInfo(1));
    await reach(name, 'rebuild', 'active');
    await expectSystem(machine, 1);
    await reach(name, 'deleted', 'available');
    expect(control.content('/dev/sda')).toBeUndefined();
    expect(control.isOn()).toBe(false);
  }
}, 3_000_000);
