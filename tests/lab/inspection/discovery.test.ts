/**
 * An unknown machine in QEMU, from its first DHCP packet: it boots the discovery ramdisk, is enrolled, and does not boot discovery any
 * more. Then the CLI manages and inspects it like any other.
 */
import { join } from 'node:path';
import type { JsonObject } from '../../../model/records';
import { openCli, type Cli } from '../support/cli';
import { API, call, expectInspected, type Inspected } from './inspect-machine';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';

const PATIENCE = 900;
let lab: Lab;
let cli: Cli;
let server: RunningServer;
let machine: LabMachine;
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('lab-discovery');
  cli = await openCli(API, lab.namespace);
  undo.push(() => lab.close());
  const discovery = { auto_discovery: { enabled: 'True', driver: 'ipmi' }, inspector: { add_ports: 'all' } };
  server = await startServerProcess(join(lab.folder, 'server'), { ...bootingSections(lab), ...discovery }, lab.namespace);
  undo.push(() => server.stop());
  machine = await lab.machine({ name: 'unknown', firmware: 'bios', memoryMiB: 768, cpus: 2, diskGiB: 5 });
}, 1_600_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

const nodes = async (): Promise<readonly JsonObject[]> => (await call(lab, 'GET', '/nodes/detail'))['nodes'] as readonly JsonObject[];
const reported = async (node: JsonObject): Promise<Inspected['data']> =>
  (await call(lab, 'GET', `/nodes/${String(node['uuid'])}/inventory`)) as unknown as Inspected['data'];
/** The status with which our server answers a request for the machine's iPXE script. */
const scriptStatus = (): Promise<string> =>
  lab.exec('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', `http://10.77.0.1:8080/ipxe/${machine.mac.replaceAll(':', '-')}`);
const waitFor = (what: string, condition: () => Promise<boolean>): Promise<void> =>
  until(PATIENCE, () => `${what}\n${consoleEnd(machine)}\n${server.logEnd()}`, condition);
/** The number of DISCOVER packets without an answer. */
const unanswered = async (): Promise<number> => {
  const metrics = await lab.exec('curl', '-s', `${API}/metrics`);
  const lines = metrics.split('\n').filter((line) => /^bloomery_dhcp_packets_total\{.*type="discover"/.test(line));
  return Number(lines.find((line) => line.includes('answer="none"'))?.split(' ')[1] ?? 0);
};

it(
  'an unknown machine boots the discovery ramdisk and reports its inventory, and the server enrols it',
  async () => {
    expect(await scriptStatus()).toBe('200');
    machine.setBoot({ device: 'pxe', persistent: true, mode: null });
    const started = Date.now();
    await machine.act('on');
    await waitFor('the machine to be enrolled, and its inventory to be saved', async () => {
      const [node] = await nodes();
      return node?.['reservation'] === null && (await reported(node).catch(() => undefined)) !== undefined;
    });
    process.stderr.write(`discovered ${((Date.now() - started) / 1000).toFixed(1)} s after power on\n`);
    const [node, ...others] = await nodes();
    expect(others).toEqual([]);
    expect(node).toMatchObject({ driver: 'ipmi', provision_state: 'enroll', last_error: null, properties: { cpu_arch: 'x86_64' } });
    const { inventory, plugin_data: plugin } = await reported(node!);
    expect(inventory.interfaces).toMatchObject([{ mac_address: machine.mac }]);
    expect(inventory.memory).toMatchObject({ physical_mb: machine.memoryMiB });
    expect(plugin).toMatchObject({ auto_discovered: true });
    expect(await cli.json('port', 'list', '--node', String(node!['uuid']))).toMatchObject([{ address: machine.mac }]);
  },
  (PATIENCE + 60) * 1000,
);

it(
  'the boot services no longer boot the machine after its enrolment',
  async () => {
    expect(await scriptStatus()).toBe('404');
    const before = await unanswered();
    await machine.act('reset');
    await waitFor('its firmware to ask for an address', async () => (await unanswered()) > before);
    expect(await nodes()).toMatchObject([{ provision_state: 'enroll', driver: 'ipmi' }]);
    await machine.act('off');
  },
  (PATIENCE + 60) * 1000,
);

it(
  'the CLI manages and inspects the discovered node after its BMC is set',
  async () => {
    const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port: 6230, folder: lab.folder });
    undo.push(() => bmc.stop());
    const uuid = String((await nodes())[0]!['uuid']);
    const info = { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password };
    await cli.run('node', 'set', uuid, ...Object.entries(info).flatMap(([key, value]) => ['--driver-info', `${key}=${value}`]));
    for (const verb of ['manage', 'inspect']) {
      const done = await cli.attempt('node', verb, uuid, '--wait', String(PATIENCE));
      if (done.code !== 0) throw new Error(`${verb}: ${done.errors}\n${consoleEnd(machine)}\n${server.logEnd()}`);
    }
    const [node, ...others] = await nodes();
    expect(others).toEqual([]);
    const { ports } = (await call(lab, 'GET', `/ports?node=${uuid}&detail=true`)) as { ports: readonly JsonObject[] };
    const data = await reported(node!);
    expectInspected({ machine, node: node!, ports, data, took: { boot: 0, inspection: 0 } });
    expect(data.plugin_data).not.toHaveProperty('auto_discovered');
  },
  (2 * PATIENCE + 60) * 1000,
);

it(
  'an unknown machine with UEFI firmware boots the discovery ramdisk and reports its inventory, and the server enrols it',
  async () => {
    const before = await nodes();
    const other = await lab.machine({ name: 'unknown-uefi', firmware: 'uefi', memoryMiB: 1024, cpus: 2, diskGiB: 5 });
    other.setBoot({ device: 'pxe', persistent: true, mode: null });
    const started = Date.now();
    await other.act('on');
    let found: Inspected['data'] | undefined;
    await until(
      PATIENCE,
      () => `the machine to be enrolled\n${consoleEnd(other)}\n${server.logEnd()}`,
      async () => {
        const made = (await nodes()).find(({ uuid }) => !before.some((candidate) => candidate['uuid'] === uuid));
        found = made?.['reservation'] === null ? await reported(made).catch(() => undefined) : undefined;
        return found !== undefined;
      },
    );
    process.stderr.write(`with UEFI discovered ${((Date.now() - started) / 1000).toFixed(1)} s after power on\n`);
    expect(found!.inventory).toMatchObject({ interfaces: [{ mac_address: other.mac }], boot: { current_boot_mode: 'uefi' } });
    expect(await nodes()).toHaveLength(before.length + 1);
    await other.act('off');
  },
  (PATIENCE + 60) * 1000,
);
