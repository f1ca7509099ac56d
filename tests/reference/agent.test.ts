/**
 * Our ramdisk under the real Ironic: it inspects, cleans and deploys machines that boot in QEMU, powered by a BMC that we did not write.
 * dnsmasq and Python's HTTP server serve Ironic's boot files.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startIpmiSim } from '../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../demo/lab/machines';
import type { RealIronic } from '../lab/inspection/real-ironic';
import { buildRamdisk } from '../lab/support/ramdisk';
import { root } from '../lab/support/venv';
import { HTTP, startBootingIronic } from './booting-ironic';

const run = promisify(execFile);
const REPORT_PORT = 8099;
const PATIENCE = 400;

let lab: Lab;
let ironic: RealIronic;
const undo: (() => Promise<unknown>)[] = [];
const reportFile = (): string => join(lab.folder, 'report');

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('ref-agent');
  undo.push(() => lab.close());
  const ramdisk = { kernel: `${root}/.cache/ramdisk/vmlinuz`, initrd: `${root}/.cache/ramdisk/initrd` };
  ironic = await startBootingIronic(lab, ramdisk, { pxe: { kernel_append_params: 'console=ttyS0' }, conductor: {} });
  undo.push(() => ironic.stop());
  for (const format of ['raw', 'qcow2']) {
    const image = join(ironic.httpRoot, `lab.${format}`);
    await run('bash', [join(__dirname, '../../demo/lab/image.sh'), image, `http://10.77.0.1:${REPORT_PORT}/`, format]);
  }
  lab.start(process.execPath, join(__dirname, '../../demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), reportFile());
}, 1_200_000);

afterAll(async () => {
  for (const step of undo.reverse()) await step();
}, 120_000);

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.109', '-H', 'content-type: application/json'];
  const data = body === undefined ? [] : ['--data', JSON.stringify(body)];
  const said = await lab.exec('curl', '-sS', '-w', '\n%{http_code}', '-X', method, ...headers, ...data, `${ironic.url}/v1${path}`);
  const [text, status] = [said.slice(0, said.lastIndexOf('\n')), Number(said.slice(said.lastIndexOf('\n') + 1))];
  if (status >= 400) throw new Error(`${method} ${path}: ${status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
interface Node {
  readonly provision_state: string;
  readonly last_error: string | null;
  readonly power_state: string | null;
}
async function reach(name: string, state: string, machine: LabMachine, failure = /failed$|^error$/): Promise<Node> {
  let node: Node | undefined;
  const describe = (): string =>
    `${name} to be ${state}: ${node?.provision_state}: ${node?.last_error}\n--- console\n${consoleEnd(machine)}\n--- ironic\n${readFileSync(ironic.log, 'utf8').slice(-4000)}`;
  await until(PATIENCE, describe, async () => {
    node = (await call('GET', `/nodes/${name}`)) as Node;
    if (node.provision_state !== state && failure.test(node.provision_state)) throw new Error(describe());
    return node.provision_state === state;
  });
  return node!;
}
const provision = (name: string, target: string, more: object = {}): Promise<unknown> =>
  call('PUT', `/nodes/${name}/states/provision`, { target, ...more });

async function enrol(name: string, firmware: 'bios' | 'uefi', port: number): Promise<LabMachine> {
  const machine = await lab.machine({ name, firmware, memoryMiB: firmware === 'bios' ? 512 : 768, cpus: 2, diskGiB: 5 });
  const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port, folder: lab.folder });
  undo.push(() => bmc.stop());
  const driverInfo = {
    ipmi_address: bmc.address,
    ipmi_port: bmc.port,
    ipmi_username: bmc.username,
    ipmi_password: bmc.password,
    ipmi_cipher_suite: 3,
  };
  const interfaces = { boot_interface: 'ipxe', deploy_interface: 'direct', inspect_interface: 'agent', network_interface: 'noop' };
  const properties = { capabilities: `boot_mode:${firmware}` };
  const { uuid } = (await call('POST', '/nodes', { name, driver: 'ipmi', driver_info: driverInfo, properties, ...interfaces })) as {
    uuid: string;
  };
  await call('POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await provision(name, 'manage');
  await reach(name, 'manageable', machine);
  return machine;
}

async function setImage(name: string, format: 'raw' | 'qcow2', checksum?: string): Promise<void> {
  const sha256 = checksum ?? readFileSync(join(ironic.httpRoot, `lab.${format}.sha256`), 'utf8').trim();
  const values = {
    image_source: `${HTTP}/lab.${format}`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: sha256,
    image_disk_format: format,
  };
  await call(
    'PATCH',
    `/nodes/${name}`,
    Object.entries(values).map(([key, value]) => ({ op: 'add', path: `/instance_info/${key}`, value })),
  );
}
const CONFIG_DRIVE = { meta_data: { uuid: 'aaaa', nested: { a: [1] } }, user_data: '#!/bin/sh\necho hello\n' };

/** Waits for the deployed system's report of that image. */
async function reported(machine: LabMachine, format: string): Promise<{ values: Record<string, string>; files: Record<string, string> }> {
  const text = (): string => (existsSync(reportFile()) ? readFileSync(reportFile(), 'utf8') : '');
  await until(
    PATIENCE,
    () => `a report of ${format}\n${consoleEnd(machine)}`,
    () => text().includes(`image=${format}\n`),
  );
  const values: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const line of text().split('\n')) {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key === 'file') files[value!.split(' ')[0]!.toLowerCase()] = Buffer.from(value!.split(' ')[1] ?? '', 'base64').toString();
    else if (key !== undefined) values[key] = value!.trim();
  }
  return { values, files };
}

function expectReport({ values, files }: Awaited<ReturnType<typeof reported>>, machine: LabMachine): void {
  expect(values).toMatchObject({ macs: machine.mac, firmware: machine.firmware });
  expect(values['configdrive']).toMatch(/^\/dev\/vda\d$/);
  expect(JSON.parse(files['./openstack/latest/meta_data.json']!)).toMatchObject(CONFIG_DRIVE.meta_data);
  expect(files['./openstack/latest/user_data']).toBe(CONFIG_DRIVE.user_data);
}

it(
  'the real Ironic inspects, cleans and deploys a BIOS machine with our ramdisk, from raw and qcow2 images',
  async () => {
    const machine = await enrol('ref-bios', 'bios', 6231);
    const marks: string[] = [];
    let last = Date.now();
    const mark = (what: string): void => {
      marks.push(`${what} ${((Date.now() - last) / 1000).toFixed(1)} s`);
      last = Date.now();
    };
    await provision('ref-bios', 'inspect');
    await reach('ref-bios', 'manageable', machine, /failed$|^error$/);
    mark('inspected');
    const { inventory, plugin_data: data } = (await call('GET', '/nodes/ref-bios/inventory')) as {
      inventory: Record<string, Record<string, unknown>>;
      plugin_data: Record<string, unknown>;
    };
    expect(inventory['cpu']).toMatchObject({ count: 2, architecture: 'x86_64' });
    expect(inventory['memory']).toMatchObject({ physical_mb: 512 });
    expect(inventory['disks']).toMatchObject([{ name: '/dev/vda', size: 5 * 2 ** 30, serial: machine.diskSerial }]);
    expect(inventory['interfaces']).toMatchObject([{ mac_address: machine.mac, driver: 'virtio_net', has_carrier: true }]);
    expect(inventory['system_vendor']).toMatchObject({ manufacturer: 'Bloomery lab', product_name: 'bios', serial_number: 'ref-bios' });
    expect(inventory['boot']).toMatchObject({ current_boot_mode: 'bios', pxe_interface: machine.mac });
    expect(data['root_disk']).toMatchObject({ name: '/dev/vda' });

    await provision('ref-bios', 'provide');
    await reach('ref-bios', 'available', machine);
    mark('cleaned');

    await setImage('ref-bios', 'raw', '0'.repeat(64));
    await provision('ref-bios', 'active', { configdrive: CONFIG_DRIVE });
    const failed = await reach('ref-bios', 'deploy failed', machine, /^(error|active|clean failed)$/);
    expect(failed.last_error).toContain('Image failed to verify against checksum');
    mark('refused a wrong checksum');

    rmSync(reportFile(), { force: true });
    await setImage('ref-bios', 'raw');
    await provision('ref-bios', 'active', { configdrive: CONFIG_DRIVE });
    await reach('ref-bios', 'active', machine, /^(error|clean failed)$/);
    mark('deployed raw');
    expectReport(await reported(machine, 'raw'), machine);
    mark('reported');

    await setImage('ref-bios', 'qcow2');
    await provision('ref-bios', 'rebuild', { configdrive: CONFIG_DRIVE });
    await until(
      PATIENCE,
      () => 'the rebuild to start',
      async () => ((await call('GET', '/nodes/ref-bios')) as Node).provision_state !== 'active',
    );
    await reach('ref-bios', 'active', machine);
    mark('rebuilt with qcow2');
    expectReport(await reported(machine, 'qcow2'), machine);
    mark('reported');
    process.stderr.write(`bios: ${marks.join(', ')}\n`);
  },
  8 * PATIENCE * 1000,
);

it(
  'the real Ironic deploys a UEFI machine with our ramdisk, which adds a UEFI boot entry',
  async () => {
    const machine = await enrol('ref-uefi', 'uefi', 6232);
    await provision('ref-uefi', 'provide');
    await reach('ref-uefi', 'available', machine);
    await setImage('ref-uefi', 'qcow2');
    rmSync(reportFile(), { force: true });
    await provision('ref-uefi', 'active', { configdrive: CONFIG_DRIVE });
    await reach('ref-uefi', 'active', machine);
    expectReport(await reported(machine, 'qcow2'), machine);
    const variables = readFileSync(join(dirname(machine.diskFile), 'vars.fd'));
    expect(variables.includes(Buffer.from('bloomery\0', 'utf16le'))).toBe(true);
    expect(variables.includes(Buffer.from('\\EFI\\BOOT\\BOOTX64.EFI', 'utf16le'))).toBe(true);
  },
  4 * PATIENCE * 1000,
);
