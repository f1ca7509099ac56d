/**
 * A machine that nobody knows, in QEMU, from its first DHCP packet: it boots the discovery ramdisk, is enrolled, boots discovery no more,
 * and is then managed and inspected with the CLI like any other.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openCli, type Cli } from './cli';
import { startIpmiSim } from './ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from './machines';
import { bootingSections, startServerProcess, type RunningServer } from './server';
import { root } from './venv';

const run = promisify(execFile);
const API = 'http://10.77.0.1:6385';
const PATIENCE = 300;
let lab: Lab;
let cli: Cli;
let server: RunningServer;
let machine: LabMachine;
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  await run('bash', [join(root, 'ramdisk-agent/build/ramdisk.sh')], { cwd: root, maxBuffer: 16 << 20, timeout: 600_000 });
  lab = await openLab('bdiscoveq');
  undo.push(() => lab.close());
  const sections = bootingSections(lab);
  server = await startServerProcess(
    join(lab.folder, 'server'),
    { ...sections, auto_discovery: { enabled: 'True', driver: 'ipmi' }, inspector: { add_ports: 'all' } },
    lab.namespace,
  );
  undo.push(() => server.stop());
  cli = await openCli(API, lab.namespace);
  machine = await lab.machine({ name: 'bdiscove1', firmware: 'bios', memoryMiB: 640, cpus: 1, diskGiB: 5 });
}, 1_200_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
}, 120_000);

interface Node {
  readonly uuid: string;
  readonly driver: string;
  readonly provision_state: string;
  readonly last_error: string | null;
  readonly reservation: string | null;
}
const nodes = async (): Promise<readonly Node[]> =>
  (
    JSON.parse(await lab.exec('curl', '-s', '-H', 'X-OpenStack-Ironic-API-Version: 1.95', `${API}/v1/nodes/detail`)) as {
      nodes: readonly Node[];
    }
  ).nodes;
const script = (): Promise<string> =>
  lab.exec('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', `http://10.77.0.1:8080/ipxe/${machine.mac.replaceAll(':', '-')}`);
const reach = async (state: string): Promise<Node> => {
  let all: readonly Node[] = [];
  const describe = (): string =>
    `to be ${state}: ${JSON.stringify(all)}\n--- console\n${consoleEnd(machine)}\n--- server\n${readFileSync(server.log, 'utf8').slice(-3000)}`;
  await until(PATIENCE, describe, async () => {
    all = await nodes();
    if (all[0]?.last_error) throw new Error(describe());
    return all[0]?.provision_state === state && all[0].reservation === null;
  });
  return all[0]!;
};

it(
  'boots, reports itself, is enrolled once, and goes on as any node',
  async () => {
    expect(await script()).toBe('200');
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    const started = Date.now();
    await machine.act('on');
    const { uuid } = await reach('enroll');
    process.stderr.write(`discovered ${((Date.now() - started) / 1000).toFixed(1)} s after power on\n`);
    await until(
      60,
      () => 'its inventory',
      async () => (await cli.attempt('node', 'inventory', 'save', uuid)).code === 0,
    );
    const { inventory, plugin_data: data } = JSON.parse(await cli.run('node', 'inventory', 'save', uuid)) as {
      inventory: { interfaces: { mac_address: string }[]; memory: { physical_mb: number } };
      plugin_data: { auto_discovered: boolean };
    };
    expect(inventory.interfaces.map(({ mac_address: mac }) => mac)).toEqual([machine.mac]);
    expect(inventory.memory.physical_mb).toBe(machine.memoryMiB);
    expect(data.auto_discovered).toBe(true);
    expect(await cli.json('port', 'list', '--node', uuid)).toMatchObject([{ Address: machine.mac }]);
    // Started anew, the network has nothing for it: iPXE gets no address.
    expect(await script()).toBe('404');
    await machine.act('reset');
    await until(
      PATIENCE,
      () => `it is not let in\n${consoleEnd(machine)}`,
      async () =>
        (await lab.exec('curl', '-s', `${API}/metrics`)).match(
          /bloomery_dhcp_packets_total\{[^}]*type="discover"[^}]*answer="none"[^}]*\} [1-9]/,
        ) !== null,
    );
    expect(await nodes()).toMatchObject([{ uuid, provision_state: 'enroll', driver: 'ipmi' }]);
    await machine.act('off');

    const where = { namespace: lab.namespace, address: lab.address, port: 6230, folder: lab.folder };
    const bmc = await startIpmiSim(machine, where);
    undo.push(() => bmc.stop());
    const info = { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password };
    await cli.run('node', 'set', uuid, ...Object.entries(info).flatMap(([key, value]) => ['--driver-info', `${key}=${value}`]));
    await cli.run('node', 'manage', uuid);
    await reach('manageable');
    await cli.run('node', 'inspect', uuid);
    await reach('manageable');
    expect((await nodes()).length).toBe(1);
  },
  3 * PATIENCE * 1000,
);
