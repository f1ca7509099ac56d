/**
 * Simulated machines under the real Ironic: its ipmitool and sushy drive their BMCs, and its conductor inspects, cleans and deploys them
 * through their agents. A small server serves Ironic's files for iPXE at the paths that the machines' firmware requests.
 */
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { ipmiSensors } from '../../../drivers/ipmi/sensors';
import type { JsonObject } from '../../../model/records';
import type { BootSetting, MachineControl } from '../../../simulator/hardware/control';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import { serveIpmi } from '../../../simulator/ipmi/ipmi';
import { createIpmiPool } from '../../../wire/ipmi/client';
import { bmcTask } from '../../drivers/bmc-task';
import { programs } from '../../lab/support/venv';
import { until } from '../../../demo/lab/machines';
import { startRealIronic, type RealIronic } from '../../lab/inspection/real-ironic';
import { freePort } from '../../support/free-port';

const PATIENCE = 240;
jest.setTimeout((PATIENCE + 20) * 1000);
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
  ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', await freePort(), {
    deploy: { http_root: join(folder, 'ironic/http'), http_url: bootUrl },
    conductor: {
      deploy_kernel: `file://${folder}/kernel`,
      deploy_ramdisk: `file://${folder}/ramdisk`,
      file_url_allowed_paths: folder,
    },
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
  'the real Ironic enrols, inspects, cleans, deploys and undeploys a simulated machine by %s',
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

it('the real Ironic sets the boot device of a simulated machine and inspects it by Redfish', async () => {
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

describe("the real Ironic's IPMI driver, with a simulated BMC,", () => {
  const name = 'managed';
  const asked: string[] = [];
  let boot: BootSetting = { device: 'none', persistent: false, mode: null };
  let on = true;
  let bmc: Awaited<ReturnType<typeof serveIpmi>>;
  let info: JsonObject;
  beforeAll(async () => {
    const machine: MachineControl = {
      name,
      macs: [],
      isOn: () => on,
      boot: () => boot,
      act: async (action) => {
        asked.push(action);
        on = action !== 'soft' && action !== 'off';
      },
      setBoot: (setting) => {
        boot = setting;
      },
    };
    const shared = { log: silentLog, clock: systemClock, random: randomBytes };
    bmc = await serveIpmi({ host: '127.0.0.1', port: 0, username: 'admin', password: 'password', machine, ...shared });
    info = { ipmi_address: '127.0.0.1', ipmi_port: bmc.port, ipmi_username: 'admin', ipmi_password: 'password', ipmi_cipher_suite: 17 };
    await call('POST', '/nodes', { name, driver: 'ipmi', driver_info: info, network_interface: 'noop' });
    await reach(name, 'manage', 'manageable');
  }, 300_000);
  afterAll(() => bmc?.close());

  type Node = { readonly last_error: string | null; readonly reservation: string | null; readonly power_state: string };
  const settled = async (): Promise<Node> => {
    let node: Node | undefined;
    await until(
      PATIENCE,
      () => `the node not to be reserved: ${JSON.stringify(node)}`,
      async () => {
        node = await call<Node>('GET', `/nodes/${name}`);
        return node.reservation === null;
      },
    );
    return node!;
  };

  it.each(['pxe', 'disk', 'cdrom', 'bios', 'safe'] as const)('sets the boot device %s', async (device) => {
    const path = `/nodes/${name}/management/boot_device`;
    await call('PUT', path, { boot_device: device, persistent: true });
    expect(await call('GET', path)).toEqual({ boot_device: device, persistent: true });
    expect(boot).toMatchObject({ device, persistent: true, mode: 'uefi' });
    await settled();
  });
  it.each([
    ['soft power off', 'soft', 'power off'],
    ['power on', 'on', 'power on'],
    // Off, and on again.
    ['rebooting', 'on', 'power on'],
    ['power off', 'off', 'power off'],
  ])('changes the power by %s', async (target, action, state) => {
    asked.length = 0;
    await call('PUT', `/nodes/${name}/states/power`, { target });
    await until(
      PATIENCE,
      () => `${target}: ${asked.join()}`,
      async () => asked.includes(action) && (await call<Node>('GET', `/nodes/${name}`)).power_state === state,
    );
    expect(await settled()).toMatchObject({ last_error: null });
  });
  it('sends a non-maskable interrupt', async () => {
    on = true;
    asked.length = 0;
    await call('PUT', `/nodes/${name}/management/inject_nmi`, {});
    expect(asked).toEqual(['diagnostic']);
  });

  const passthru = async (method: string, body: object): Promise<string | null> => {
    await call('POST', `/nodes/${name}/vendor_passthru?method=${method}`, body);
    return (await settled()).last_error;
  };
  it('sends raw commands, and resets the BMC', async () => {
    // Set System Boot Options: CD, once, legacy.
    expect(await passthru('send_raw', { raw_bytes: '0x00 0x08 0x05 0x80 0x14 0x00 0x00 0x00' })).toBeNull();
    expect(boot).toEqual({ device: 'cdrom', persistent: false, mode: 'bios' });
    for (const warm of [true, false]) expect(await passthru('bmc_reset', { warm })).toBeNull();
    // Last, because the error stays in last_error; the real driver tries for a minute.
    expect(await passthru('send_raw', { raw_bytes: '0x30 0x99' })).toMatch(/IPMI call failed: raw 0x30 0x99/);
  });

  it('reads the same sensors as our driver, apart from the events of each sensor', async () => {
    const python = join(await programs('ironic', ['ironic==39.0.0']), 'python3');
    const asking = promisify(execFile)(python, [join(__dirname, 'ipmi-sensors.py')], { timeout: 120_000 });
    asking.child.stdin!.end(JSON.stringify(info));
    const { stdout } = await asking;
    type Sensors = Record<string, Record<string, Record<string, string>>>;
    const theirs = JSON.parse(stdout) as Sensors;
    for (const fields of Object.values(theirs).flatMap((group) => Object.values(group)))
      for (const key of Object.keys(fields)) if (/^(Event (Status|Enable)|Assertion|Deassertion)/.test(key)) delete fields[key];
    const ipmi = createIpmiPool({ log: silentLog, clock: systemClock, random: randomBytes });
    try {
      const ours = (await ipmiSensors(
        bmcTask({ node: { driver: 'ipmi', driver_info: info }, driver: {}, options: {}, connections: { ipmi } }).task,
      )) as Sensors;
      expect(Object.keys(theirs).length).toBeGreaterThan(5);
      expect(ours).toEqual(theirs);
    } finally {
      await ipmi.close();
    }
  }, 150_000);
});
