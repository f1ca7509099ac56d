/**
 * Partition images as an operator deploys them: machines in QEMU behind IPMI, the whole server and its ramdisk. Each firmware gets a system,
 * and then another by a rebuild, which keeps the ephemeral partition. The sizes that do not fit, and the image that does not, are refused
 * while the machine is off.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { root } from '../../../demo/lab/root';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { buildRamdisk } from '../support/ramdisk';

/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(3 * PATIENCE * 1000);
const [MiB, GiB] = [2 ** 20, 2 ** 30];
/** Firmware → what the first image and that of the rebuild have of boot loaders (demo/lab/image.sh), and where the ephemeral partition is. */
const FLOWS = {
  bios: { first: 'bls', second: 'bare', ephemeral: 2 * MiB, port: 8098 },
  uefi: { first: 'packaged', second: 'folder', ephemeral: 551 * MiB, port: 8099 },
} as const;
type Firmware = keyof typeof FLOWS;
const firmwares = Object.keys(FLOWS) as Firmware[];
/** `bios` alone is a path of the API. */
const nameOf = (firmware: Firmware): string => `with-${firmware}`;
const SIZES = { root_gb: 1, ephemeral_gb: 1, swap_mb: 32 };

let lab: Lab;
let server: RunningServer;
const machines = new Map<Firmware, LabMachine>();
const undo: (() => Promise<unknown>)[] = [];
const reportFile = (firmware: Firmware): string => join(lab.folder, `report-${firmware}`);

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('bloomery-parts');
  undo.push(() => lab.close());
  const images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  for (const firmware of firmwares) {
    const { first, second, port } = FLOWS[firmware];
    for (const kind of [first, second]) {
      const words = [join(root, 'demo/lab/image.sh'), join(images, `${kind}.raw`), `http://${lab.address}:${port}/`, kind];
      await promisify(execFile)('bash', words, { env: { ...process.env, PARTITION: kind } });
    }
    lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(port), reportFile(firmware));
  }
  server = await startServerProcess(join(lab.folder, 'server'), bootingSections(lab), lab.namespace);
  undo.push(() => server.stop());
  for (const [index, firmware] of firmwares.entries()) machines.set(firmware, await enrol(firmware, 6230 + index));
}, 1_200_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

async function enrol(firmware: Firmware, port: number): Promise<LabMachine> {
  const machine = await lab.machine({ name: nameOf(firmware), firmware, memoryMiB: 1024, cpus: 1, diskGiB: 4 });
  const sim = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port, folder: lab.folder });
  undo.push(() => sim.stop());
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name: nameOf(firmware),
    driver: 'ipmi',
    boot_interface: 'ipxe',
    automated_clean: false,
    driver_info: { ipmi_address: sim.address, ipmi_port: sim.port, ipmi_username: sim.username, ipmi_password: sim.password },
    properties: { capabilities: `boot_mode:${firmware}`, local_gb: 3 },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await order(firmware, 'manage');
  await reach(firmware, 'manageable');
  await order(firmware, 'provide');
  await reach(firmware, 'available');
  return machine;
}
const order = (firmware: Firmware, target: string, more: JsonObject = {}) =>
  call(lab, 'PUT', `/nodes/${nameOf(firmware)}/states/provision`, { target, ...more });
async function reach(firmware: Firmware, state: string): Promise<JsonObject> {
  let node: JsonObject = {};
  const describe = (): string =>
    `${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machines.get(firmware)!)}\n--- server\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await call(lab, 'GET', `/nodes/${nameOf(firmware)}`);
    if (node['provision_state'] === state && node['reservation'] === null) return true;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
    await delay(500);
    return false;
  });
  return node;
}
/** Sets the image and the sizes. */
async function want(firmware: Firmware, kind: string, more: JsonObject = {}): Promise<void> {
  const value = {
    image_source: `http://${lab.address}:8080/${kind}.raw`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: readFileSync(join(lab.folder, 'server/state/httpboot', `${kind}.raw.sha256`), 'utf8').trim(),
    image_type: 'partition',
    capabilities: { disk_label: 'gpt' },
    ...SIZES,
    ...more,
  };
  await call(lab, 'PATCH', `/nodes/${nameOf(firmware)}`, [{ op: 'add', path: '/instance_info', value }]);
}
/** Orders it, and returns what the new system reports. */
async function deployed(firmware: Firmware, target: string): Promise<string> {
  rmSync(reportFile(firmware), { force: true });
  await order(firmware, target, { configdrive: { meta_data: { name: nameOf(firmware) } } });
  await reach(firmware, 'active');
  await until(
    PATIENCE,
    () => `a report\n${consoleEnd(machines.get(firmware)!)}`,
    () => existsSync(reportFile(firmware)),
  );
  return readFileSync(reportFile(firmware), 'utf8');
}
/** Bytes of the disk. */
function bytesAt(firmware: Firmware, start: number, size: number): Buffer {
  const out = join(lab.folder, `bytes-${firmware}`);
  const [from] = machines.get(firmware)!.diskFiles;
  const words = ['dd', '-U', '-O', 'raw', 'bs=1M', `skip=${start / MiB}`, `count=${(start + size) / MiB}`, `if=${from}`, `of=${out}`];
  execFileSync('qemu-img', words);
  const bytes = readFileSync(out);
  rmSync(out);
  return bytes.subarray(0, size);
}
const hashOf = (firmware: Firmware): string =>
  createHash('sha256')
    .update(bytesAt(firmware, FLOWS[firmware].ephemeral, GiB))
    .digest('hex');

it.each<[string, JsonObject, RegExp]>([
  [
    'partitions that do not fit',
    { root_gb: 3 },
    /The partitions of node \S+ do not fit: root_gb 3, ephemeral_gb 1 and swap_mb 32 need 4128 MiB/,
  ],
  ['sizes that are no numbers', { root_gb: 'x' }, /Invalid parameter root_gb: x is not an integer value/],
])('%s are refused while the machine is off', async (_, more, message) => {
  await want('bios', 'bare', more);
  await expect(order('bios', 'active')).rejects.toThrow(message);
  expect(await call(lab, 'GET', `/nodes/${nameOf('bios')}`)).toMatchObject({ provision_state: 'available', power_state: 'power off' });
});

it.each(firmwares)('%s: a partition image is deployed, and its system starts', async (firmware) => {
  const { first } = FLOWS[firmware];
  await want(firmware, first);
  const text = await deployed(firmware, 'active');
  expect(text).toContain(`image=${first}\n`);
  expect(text).toContain(`firmware=${firmware}\n`);
  expect(text).toMatch(/^root=\/dev\/[vs]da5$/m);
  expect(text).toMatch(/^configdrive=\/dev\/[vs]da4$/m);
  expect(text).toContain('file=./openstack/latest/meta_data.json');
});

it.each(firmwares)('%s: a rebuild keeps the ephemeral partition, and its system starts', async (firmware) => {
  const machine = machines.get(firmware)!;
  const { second, ephemeral } = FLOWS[firmware];
  await call(lab, 'PUT', `/nodes/${nameOf(firmware)}/states/power`, { target: 'power off' });
  await until(
    PATIENCE,
    () => 'power off',
    async () => (await call(lab, 'GET', `/nodes/${nameOf(firmware)}`))['power_state'] === 'power off',
  );
  // Data of the tenant, beside the file system's own.
  execFileSync('qemu-io', ['-c', `write -P 0xa5 ${ephemeral + 600 * MiB} 64k`, machine.diskFiles[0]!]);
  const before = hashOf(firmware);
  await want(firmware, second, { preserve_ephemeral: true });
  const text = await deployed(firmware, 'rebuild');
  expect(text).toContain(`image=${second}\n`);
  expect(text).toMatch(/^root=\/dev\/[vs]da5$/m);
  expect(hashOf(firmware)).toBe(before);
});
