/**
 * Adopt, snapshot, deploy elsewhere: two machines in QEMU behind IPMI, the whole server and its own ramdisk. qemu-img compares the disks.
 * The server is killed in the middle of the snapshot.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { buildRamdisk } from '../support/ramdisk';

const MiB = 2 ** 20;
/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(4 * PATIENCE * 1000);

let lab: Lab;
let server: RunningServer;
let bmcPort = 6230;
const undo: (() => Promise<unknown>)[] = [];
const serve = () =>
  startServerProcess(join(lab.folder, 'server'), { ...bootingSections(lab), snapshot: { check_interval: 1 } }, lab.namespace);

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('bloomery-snap');
  undo.push(() => lab.close());
  server = await serve();
  undo.push(() => server.stop());
});
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

async function enrol(name: string): Promise<LabMachine> {
  const machine = await lab.machine({ name, firmware: 'bios', memoryMiB: 768, cpus: 2, diskGiB: 5 });
  const where = { namespace: lab.namespace, address: lab.address, port: bmcPort++, folder: lab.folder };
  const sim = await startIpmiSim(machine, where);
  undo.push(() => sim.stop());
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name,
    driver: 'ipmi',
    boot_interface: 'ipxe',
    automated_clean: false,
    resource_class: 'small',
    driver_info: { ipmi_address: sim.address, ipmi_port: sim.port, ipmi_username: sim.username, ipmi_password: sim.password },
    properties: { capabilities: 'boot_mode:bios' },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await order(name, 'manage');
  await reach(machine, 'manageable');
  return machine;
}
const order = (name: string, target: string) => call(lab, 'PUT', `/nodes/${name}/states/provision`, { target });
const set = (name: string, path: string, value: unknown) => call(lab, 'PATCH', `/nodes/${name}`, [{ op: 'add', path, value }]);
async function reach(machine: LabMachine, state: string): Promise<void> {
  let node: Readonly<Record<string, unknown>> = {};
  const described = (): string => `${machine.name} to be ${state}: ${JSON.stringify(node)}\n${consoleEnd(machine)}\n${server.logEnd()}`;
  await until(PATIENCE, described, async () => {
    node = await call(lab, 'GET', `/nodes/${machine.name}`);
    if (node['provision_state'] === state) return true;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(described());
    await delay(500);
    return false;
  });
}
const show = (uuid: unknown) => call(lab, 'GET', `/snapshots/${String(uuid)}`);
async function reached(uuid: unknown, isSo: (snapshot: Readonly<Record<string, unknown>>) => boolean) {
  let snapshot: Readonly<Record<string, unknown>> = {};
  await until(
    PATIENCE,
    () => `${JSON.stringify(snapshot)}\n${server.logEnd()}`,
    async () => {
      snapshot = await show(uuid);
      if (isSo(snapshot)) return true;
      await delay(200);
      return false;
    },
  );
  return snapshot;
}
const isOver = ({ state }: Readonly<Record<string, unknown>>): boolean => state === 'available' || state === 'failed';
const isSaving = ({ state }: Readonly<Record<string, unknown>>): boolean => state === 'saving' || state === 'failed';

/** A disk that does not boot, so that nothing but the ramdisk writes to it: a partition with 40 MiB of noise. Returns its copy. */
function prepareDisk(machine: LabMachine): string {
  const raw = join(lab.folder, `${machine.name}.raw`);
  writeFileSync(raw, '');
  truncateSync(raw, 5 * 1024 * MiB);
  execFileSync('mkfs.ext4', ['-q', '-F', '-E', `offset=${MiB}`, raw, '4G']);
  const mbr = Buffer.alloc(512);
  mbr[450] = 0x83;
  mbr.writeUInt32LE(MiB / 512, 454);
  mbr.writeUInt32LE(2 ** 32 / 512, 458);
  mbr.writeUInt16LE(0xaa55, 510);
  const file = openSync(raw, 'r+');
  writeSync(file, mbr, 0, mbr.length, 0);
  closeSync(file);
  const noise = join(lab.folder, 'noise');
  writeFileSync(noise, randomBytes(40 * MiB));
  execFileSync('debugfs', ['-w', '-R', `write ${noise} noise`, `${raw}?offset=${MiB}`], { stdio: 'ignore' });
  rmSync(noise);
  execFileSync('qemu-img', ['convert', '-O', 'qcow2', raw, machine.diskFile]);
  return raw;
}
const differences = (left: string, right: string): string => {
  const run = () => execFileSync('qemu-img', ['compare', '-U', '-f', left.endsWith('.raw') ? 'raw' : 'qcow2', '-F', 'qcow2', left, right]);
  return run().toString();
};

it('adopts a machine, saves its disk while the server dies, and deploys it elsewhere without a difference', async () => {
  const source = await enrol('snap-a');
  const before = prepareDisk(source);
  await set(source.name, '/instance_info', { image_source: 'http://192.0.2.1/unknown' });
  await order(source.name, 'adopt');
  await reach(source, 'active');
  const folder = join(lab.folder, 'server/state/snapshots');

  // The server dies, and another one follows the step.
  const started = Date.now();
  const made = await call(lab, 'POST', `/nodes/${source.name}/snapshots`, { description: 'kept' });
  await reached(made['uuid'], isSaving);
  const begun = Date.now();
  await server.kill();
  server = await serve();
  const saved = await reached(made['uuid'], isOver);
  expect(saved).toMatchObject({ state: 'available', disk: '/dev/vda', disk_size: 5 * 1024 * MiB, last_error: null });
  process.stderr.write(
    `snapshot: ${((begun - started) / 1000).toFixed(1)} s to the first part, ${((Date.now() - begun) / 1000).toFixed(1)} s to available, ${String(saved['size'])} bytes\n`,
  );
  const file = join(folder, `${String(made['uuid'])}.qcow2`);
  expect(execFileSync('qemu-img', ['check', file]).toString()).toContain('No errors');
  expect(differences(before, file)).toContain('identical');
  await reach(source, 'active');

  const target = await enrol('snap-b');
  await order(target.name, 'provide');
  await reach(target, 'available');
  await set(target.name, '/instance_info', { image_source: `snapshot://${String(made['uuid'])}` });
  await order(target.name, 'active');
  await reach(target, 'active');
  expect(differences(before, target.diskFile)).toContain('identical');
});
