/**
 * From enrolment to deletion by the real `openstack baremetal` command: simulated machines behind our simulator's two BMCs and behind
 * sushy-tools' fake driver, which reports each change of power. Machines that QEMU runs are in end-to-end.ts.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import { freePort } from '../../support/free-port';
import { openCli, type Cli } from '../support/cli';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { startSushyTools } from '../redfish/sushy-tools';

const PATIENCE = 900;
jest.setTimeout(2_700_000);

let folder: string;
let server: RunningServer;
let fleet: Fleet;
let cli: Cli;
let image: readonly string[];
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-lifecycle-'));
  const http = join(folder, 'state/httpboot');
  mkdirSync(http, { recursive: true });
  const bytes = randomBytes(300_000);
  writeFileSync(join(http, 'image.raw'), bytes);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(http, name), randomBytes(1000));
  const [api, boot] = [await freePort(), await freePort()];
  const sections = {
    DEFAULT: {
      my_ip: '127.0.0.1',
      enabled_hardware_types: 'ipmi,redfish',
      enabled_boot_interfaces: 'ipxe',
      enabled_deploy_interfaces: 'direct',
      enabled_inspect_interfaces: 'agent,redfish',
      enabled_network_interfaces: 'noop',
    },
    api: { host_ip: '127.0.0.1', port: api },
    boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
    conductor: { deploy_kernel: `file://${http}/kernel`, deploy_ramdisk: `file://${http}/ramdisk`, file_url_allowed_paths: folder },
  };
  server = await startServerProcess(folder, sections);
  undo.push(() => server.stop());
  fleet = await startFleet({
    count: ROWS.length,
    bootUrl: `http://127.0.0.1:${boot}`,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
  undo.push(() => fleet.close());
  cli = await openCli(`http://127.0.0.1:${api}`);
  const info = {
    image_source: `http://127.0.0.1:${boot}/image.raw`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: createHash('sha256').update(bytes).digest('hex'),
    image_disk_format: 'raw',
  };
  image = Object.entries(info).flatMap(([name, value]) => ['--instance-info', `${name}=${value}`]);
});
afterAll(async () => {
  for (const step of undo.reverse()) await step();
  rmSync(folder, { recursive: true, force: true });
});

/** driver_info for a machine's BMC; starts the BMC where it is not there yet. */
type Bmc = (machine: FleetMachine) => Promise<Readonly<Record<string, string | number>>>;

const simulatedIpmi: Bmc = async ({ ipmi: { address, port, username, password } }) => ({
  ipmi_address: address,
  ipmi_port: port,
  ipmi_username: username,
  ipmi_password: password,
});
const simulatedRedfish: Bmc = async ({ redfish: { address, systemId, username, password } }) => ({
  redfish_address: address,
  redfish_system_id: systemId,
  redfish_username: username,
  redfish_password: password,
});
/** sushy-tools keeps power and boot device; its fake driver reports each change of power to this server, which changes the machine. */
const fakeDriver: Bmc = async ({ control }) => {
  const notified: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { power_state, boot_device } = JSON.parse(Buffer.concat(parts).toString()) as Record<string, string>;
      control.setBoot({ device: boot_device === 'Pxe' ? 'pxe' : 'disk', persistent: true, mode: null });
      const changed = control.isOn() === (power_state === 'On') ? Promise.resolve() : control.act(power_state === 'On' ? 'on' : 'off');
      changed.then(
        () => response.end(),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  });
  await new Promise<void>((listening) => notified.listen(0, '127.0.0.1', listening));
  undo.push(() => new Promise((closed) => notified.close(closed)));
  const url = `http://127.0.0.1:${(notified.address() as AddressInfo).port}/`;
  const { uuid } = control.description;
  const system = `{'uuid': '${uuid}', 'name': 'fake', 'power_state': 'Off', 'external_notifier': True, 'nics': []}`;
  const emulator = await startSushyTools(
    join(folder, 'sushy-tools'),
    { FAKE_DRIVER: 'True', FAKE_SYSTEMS: `[${system}]`, EXTERNAL_NOTIFICATION_URL: `"${url}"` },
    ['--fake'],
  );
  undo.push(() => emulator.stop());
  return { redfish_address: emulator.url, redfish_system_id: `/redfish/v1/Systems/${uuid}`, redfish_auth_type: 'basic' };
};

interface BmcCase {
  readonly name: string;
  readonly driver: 'ipmi' | 'redfish';
  readonly inspect: 'agent' | 'redfish';
  readonly bmc: Bmc;
}
const ROWS: readonly BmcCase[] = [
  { name: 'simulator-ipmi', driver: 'ipmi', inspect: 'agent', bmc: simulatedIpmi },
  { name: 'simulator-redfish', driver: 'redfish', inspect: 'redfish', bmc: simulatedRedfish },
  { name: 'sushy-tools-fake', driver: 'redfish', inspect: 'agent', bmc: fakeDriver },
];

async function walk({ name, driver, inspect, bmc }: BmcCase, machine: FleetMachine): Promise<void> {
  const info = Object.entries(await bmc(machine)).flatMap(([key, value]) => ['--driver-info', `${key}=${value}`]);
  const node = (): Promise<Record<string, unknown>> => cli.json('node', 'show', name);
  const go = async (verb: string, state: string): Promise<void> => {
    await cli.run('node', verb, name, '--wait', String(PATIENCE)).catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${JSON.stringify(await node())}\n${server.logEnd()}`);
    });
    expect(await node()).toMatchObject({ provision_state: state, last_error: null });
  };
  await cli.run('node', 'create', '--name', name, '--driver', driver, '--inspect-interface', inspect, ...info);
  await go('manage', 'manageable');
  // Out-of-band inspection finds the ports; an agent's lookup needs one.
  if (inspect === 'agent') await cli.run('port', 'create', '--node', String((await node())['uuid']), machine.macs[0]!);
  await go('inspect', 'manageable');
  expect(await cli.run('port', 'list', '--node', name, '-f', 'value')).toContain(machine.macs[0]);
  const saved = join(folder, `${name}.json`);
  await cli.run('node', 'inventory', 'save', name, '--file', saved);
  const { inventory } = JSON.parse(readFileSync(saved, 'utf8')) as { inventory: { cpu: object } };
  expect(inventory.cpu).toMatchObject({ architecture: 'x86_64', count: machine.control.description.cpus });
  await go('provide', 'available');
  await cli.run('node', 'set', name, ...image);
  await go('deploy', 'active');
  expect(await node()).toMatchObject({ power_state: 'power on' });
  expect(machine.control.phase()).not.toBe('off');
  await go('undeploy', 'available');
  expect(await node()).toMatchObject({ power_state: 'power off' });
  expect(machine.control.isOn()).toBe(false);
  await cli.run('node', 'delete', name);
  expect((await cli.attempt('node', 'show', name)).errors).toMatch(/could not be found/);
}

// The cases wait more than they work: all run at once, and each test awaits its own.
const walks = new Map<string, Promise<unknown>>();
beforeAll(() => {
  for (const [index, row] of ROWS.entries())
    walks.set(
      row.name,
      walk(row, fleet.machines[index]!).then(
        () => 'deleted',
        (error: unknown) => error,
      ),
    );
});
it.each(ROWS)('$name: the openstack command takes a machine from enrolment to deletion', async ({ name }) => {
  const ended = await walks.get(name);
  if (ended instanceof Error) throw ended;
  expect(ended).toBe('deleted');
});
