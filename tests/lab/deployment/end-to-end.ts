/**
 * What an operator does, with real counterparts on every side: the openstack CLI, machines that boot in QEMU, BMCs that we did not write.
 * Enrol, inspect, clean, deploy with a config drive, boot from disk, undeploy, clean, delete. A machine boots no more often than its case
 * needs.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, readSync, closeSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openCli, type Cli } from '../support/cli';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { startLibvirt, type Libvirt } from '../support/libvirt';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { startVirtualBmc } from '../ipmi/virtualbmc';
import { cliOperator, requestOperator } from './operator';

const run = promisify(execFile);
const API = 'http://10.77.0.1:6385';
const REPORT_PORT = 8099;
/** Seconds. A boot takes a minute alone, and longer beside other work. */
const PATIENCE = 900;

let lab: Lab;
let cli: Cli;
let server: RunningServer;
let images: string;
let bmcPort = 6230;
let libvirt: Libvirt | undefined;
const undo: (() => Promise<unknown>)[] = [];
const reportFile = (): string => join(lab.folder, 'report');

async function open(network: string): Promise<void> {
  await buildRamdisk();
  lab = await openLab(network);
  undo.push(() => lab.close());
  images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  for (const format of ['raw', 'qcow2'])
    await run('bash', [
      join(__dirname, '../../../demo/lab/image.sh'),
      join(images, `lab.${format}`),
      `http://10.77.0.1:${REPORT_PORT}/`,
      format,
    ]);
  lab.start(process.execPath, join(__dirname, '../../../demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), reportFile());
  server = await startServerProcess(join(lab.folder, 'server'), bootingSections(lab), lab.namespace);
  undo.push(() => server.stop());
  cli = await openCli(API, lab.namespace);
}

async function close(): Promise<void> {
  await libvirt?.stop();
  for (const step of undo.reverse()) await step();
}

interface Shown {
  readonly provision_state: string;
  readonly last_error: string | null;
  readonly power_state: string | null;
}
const show = async (name: string): Promise<Shown> =>
  JSON.parse(await lab.exec('curl', '-s', '-H', 'X-OpenStack-Ironic-API-Version: 1.109', `${API}/v1/nodes/${name}`)) as Shown;

/** Waits until the node has the state. A failed state ends the wait at once, with the reason and the machine's console. */
async function reach(name: string, state: string, machine: { readonly consoleFile: string }): Promise<void> {
  let node: Shown | undefined;
  const describe = (): string =>
    `${name} to be ${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machine)}\n--- server\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await show(name);
    if (node.provision_state !== state && /failed$|^error$|^enroll$/.test(node.provision_state)) throw new Error(describe());
    if (node.provision_state === state) return true;
    // Each query starts a process.
    await delay(900);
    return false;
  });
}

/** The report of the deployed system as key → value; `file` entries decoded. */
async function report(machine: {
  readonly consoleFile: string;
}): Promise<{ values: Record<string, string>; files: Record<string, string> }> {
  await until(
    PATIENCE,
    () => `a report\n${consoleEnd(machine)}`,
    () => existsSync(reportFile()),
  );
  const values: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const line of readFileSync(reportFile(), 'utf8').split('\n')) {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key === 'file') {
      const [path, content] = value!.split(' ');
      files[path!.toLowerCase()] = Buffer.from(content ?? '', 'base64').toString();
    } else if (key !== undefined) values[key] = value!.trim();
  }
  return { values, files };
}

interface NodeEvent {
  readonly at: string;
  readonly payload: Readonly<Record<string, unknown>>;
}
/** The events of the node, the oldest first. */
const events = async (name: string, kinds: string): Promise<readonly NodeEvent[]> =>
  (
    JSON.parse(await lab.exec('curl', '-s', `${API}/v1/events?node=${name}&kind=${kinds}&limit=1000`)) as {
      readonly events: readonly NodeEvent[];
    }
  ).events;

/** How often the machine was powered on. */
const powerOns = async (name: string): Promise<number> =>
  (await events(name, 'power')).filter(
    ({ payload }) => payload['power_state'] === 'power on' && payload['previous_power_state'] === 'power off',
  ).length;

/** Whether the first megabyte of a qcow2 disk is empty. */
async function startIsErased(disk: string): Promise<boolean> {
  const raw = `${disk}.raw`;
  await run('qemu-img', ['convert', '-O', 'raw', disk, raw]);
  const head = Buffer.alloc(1 << 20);
  const file = openSync(raw, 'r');
  readSync(file, head, 0, head.length, 0);
  closeSync(file);
  rmSync(raw);
  return head.every((byte) => byte === 0);
}

/** A domain of the machine, in a libvirtd that is started when it is first needed. */
async function domainOf(machine: LabMachine): Promise<Libvirt> {
  libvirt ??= await startLibvirt({ ...lab, port: 8000 });
  await libvirt.define({ ...machine, disk: machine.diskFile, console: machine.consoleFile });
  return libvirt;
}
/** driver_info for a machine, behind a BMC that is started for it. */
const BMCS = {
  ipmi_sim: async (machine: LabMachine) => {
    const where = { namespace: lab.namespace, address: lab.address, port: bmcPort++, folder: lab.folder };
    const sim = await startIpmiSim(machine, where);
    undo.push(() => sim.stop());
    const { address, port, username, password } = sim;
    return { ipmi_address: address, ipmi_port: port, ipmi_username: username, ipmi_password: password };
  },
  virtualbmc: async (machine: LabMachine) => {
    const { uri } = await domainOf(machine);
    const bmcs = await startVirtualBmc(lab, uri);
    undo.push(() => bmcs.stop());
    const port = bmcPort++;
    const { username, password } = await bmcs.add(machine.name, port);
    return { ipmi_address: lab.address, ipmi_port: port, ipmi_username: username, ipmi_password: password };
  },
  'sushy-tools': async (machine: LabMachine) => {
    const { redfish } = await domainOf(machine);
    return {
      redfish_address: redfish,
      redfish_system_id: `/redfish/v1/Systems/${machine.uuid}`,
      redfish_username: 'admin',
      redfish_password: 'password',
    };
  },
} satisfies Record<string, (machine: LabMachine) => Promise<Readonly<Record<string, string | number>>>>;

interface Case {
  readonly name: string;
  readonly bmc: keyof typeof BMCS;
  readonly firmware: 'bios' | 'uefi';
  readonly format: 'raw' | 'qcow2';
  /** How the ramdisk is booted. */
  readonly boot: 'ipxe' | 'redfish-virtual-media';
  /** Whether the ramdisk of the inspection also cleans and deploys. */
  readonly fastTrack: boolean;
  /** Whether the image is started by kexec, without a reboot. */
  readonly kexec?: boolean;
  /**
   * Whether the node is cleaned before its deployment, or after its undeployment. Each boot takes a minute. Without fast track, the ramdisk
   * boots for the inspection, the deployment and the cleaning after it; with fast track, for the inspection, and for the cleaning after the
   * deployment.
   */
  readonly cleans: 'before' | 'after' | 'both';
  readonly client: 'cli' | 'requests';
}

/** From power off to a deployed system, and back. */
async function runLifecycle({ name, bmc, firmware, format, boot, fastTrack, kexec = false, cleans, client }: Case): Promise<void> {
  const specification = { name, firmware, memoryMiB: 768, cpus: 2, diskGiB: 5 };
  const machine = await lab.machine(specification);
  const driverInfo = await BMCS[bmc](machine);
  const operator = client === 'cli' ? cliOperator(cli, lab.folder) : requestOperator(lab);
  rmSync(reportFile(), { force: true });
  const marks: [string, number][] = [['enrol', Date.now()]];
  const mark = (what: string): number => marks.push([what, Date.now()]);

  await operator.create(
    {
      name,
      driver: bmc === 'sushy-tools' ? 'redfish' : 'ipmi',
      boot_interface: boot,
      driver_info: { ...driverInfo, fast_track: fastTrack, ...(kexec ? { deploy_kexec: true } : {}) },
      properties: { capabilities: `boot_mode:${firmware}` },
    },
    machine.mac,
  );
  if (cleans === 'after') await operator.setAutomatedClean(name, false);
  await operator.provision(name, 'manage');
  await reach(name, 'manageable', machine);
  mark('managed');

  await operator.provision(name, 'inspect');
  await reach(name, 'manageable', machine);
  mark('inspected');
  const inventory = await operator.inventory(name);
  expect(inventory.cpu).toMatchObject({ count: specification.cpus, architecture: 'x86_64' });
  expect(inventory.disks).toMatchObject([{ name: '/dev/vda', size: specification.diskGiB * 2 ** 30, serial: machine.diskSerial }]);
  expect(inventory.interfaces.map(({ mac_address }) => mac_address)).toEqual([machine.mac]);
  expect(inventory).toMatchObject({ memory: { physical_mb: specification.memoryMiB }, boot: { current_boot_mode: firmware } });

  await operator.provision(name, 'provide');
  await reach(name, 'available', machine);
  mark('available');

  const sha256 = readFileSync(join(images, `lab.${format}.sha256`), 'utf8').trim();
  const source = `http://10.77.0.1:8080/lab.${format}`;
  await operator.setInstance(name, {
    image_source: source,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: sha256,
    image_disk_format: format,
  });
  const configdrive = { meta_data: { name, 'nested-key': { a: [1] } }, user_data: '#!/bin/sh\necho hello\n' };
  await operator.deploy(name, configdrive);
  await reach(name, 'active', machine);
  mark('active');
  const { values, files } = await report(machine);
  mark('reported');
  const steps = await events(name, 'step,progress');
  const written = steps.findLast(({ payload }) => payload['step'] === 'deploy.tear_down_agent')!;
  const booting = (statSync(reportFile()).mtimeMs - Date.parse(written.at)) / 1000;
  process.stderr.write(`${name}: written to booted ${booting.toFixed(1)} s by ${kexec ? 'kexec' : 'reboot'}\n`);
  const results = steps.flatMap(({ payload }) => (payload['result'] === undefined ? [] : [payload['result']]));
  expect(results).toEqual(kexec ? ['booted by kexec'] : []);
  // With fast track, the inspection's ramdisk also cleans and deploys. With a kexec, the image needs no power on of its own.
  const ramdisks = fastTrack ? 1 : cleans === 'after' ? 2 : 3;
  if (boot === 'ipxe') expect(await powerOns(name)).toBe(ramdisks + (kexec ? 0 : 1));
  expect(values).toMatchObject({ image: format, macs: machine.mac, firmware });
  expect(values['configdrive']).toMatch(/^\/dev\/vda\d$/);
  expect(JSON.parse(files['./openstack/latest/meta_data.json']!)).toMatchObject(configdrive.meta_data);
  expect(files['./openstack/latest/user_data']).toBe(configdrive.user_data);
  expect(await show(name)).toMatchObject({ provision_state: 'active', power_state: 'power on', last_error: null });

  if (cleans !== 'both') await operator.setAutomatedClean(name, cleans === 'after');
  await operator.provision(name, 'undeploy');
  await reach(name, 'available', machine);
  mark('undeployed');
  // With fast track the agent that cleaned waits for the next flow.
  expect(await show(name)).toMatchObject({ power_state: fastTrack && cleans !== 'before' ? 'power on' : 'power off' });
  await operator.powerOff(name);
  const isOff = async (): Promise<boolean> => (await show(name)).power_state === 'power off';
  await until(PATIENCE, () => `${name} to be off`, isOff);
  expect(await startIsErased(machine.diskFile)).toBe(cleans !== 'before');
  await operator.delete(name);
  expect(await operator.showError(name)).toMatch(/could not be found/);

  const seconds = marks.slice(1).map(([what, at], index) => `${what} +${((at - marks[index]![1]) / 1000).toFixed(1)} s`);
  const total = (marks.find(([what]) => what === 'reported')![1] - marks[0]![1]) / 1000;
  process.stderr.write(`${name}: ${seconds.join(', ')}; enrol to report ${total.toFixed(1)} s\n`);
}

/**
 * Defines the tests of a file. Each file has a network, a server and BMCs of its own, so that files run side by side.
 * @param network its name
 */
export function testMachines(network: string, cases: readonly Case[]): void {
  beforeAll(() => open(network), 1_200_000);
  afterAll(close);
  describe.each(cases)('$name', (row) => {
    it(
      'our server enrols, inspects, cleans, deploys, undeploys and deletes a machine that boots in QEMU',
      () => runLifecycle(row),
      4 * PATIENCE * 1000,
    );
  });
  it('the server exits with status 0 on SIGTERM', async () => {
    expect(await server.stop()).toBe(0);
    expect(statSync(server.log).size).toBeGreaterThan(0);
  });
}
