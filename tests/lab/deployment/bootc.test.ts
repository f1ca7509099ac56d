/**
 * Bootable containers, from the registry to the report of the system that boots: the whole server, the variant of the ramdisk with podman,
 * Debian's docker-registry with TLS and a password, machines with BIOS and with UEFI. The container's installer stands for the real bootc
 * (demo/lab/bootable-container-bootc).
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { root } from '../../../demo/lab/root';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { startRegistry, type LabRegistry } from '../support/registry';

/** Seconds. */
const PATIENCE = 1200;
jest.setTimeout(8 * PATIENCE * 1000);
const REPORT_PORT = 8099;
const KEY = 'ssh-ed25519 AAAA of the lab\n';

let lab: Lab;
let server: RunningServer;
let registry: LabRegistry;
const undo: (() => Promise<unknown>)[] = [];
const reportFile = (): string => join(lab.folder, 'report');

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', skopeo: 'skopeo', 'docker-registry': 'docker-registry' });
  await buildRamdisk();
  await buildRamdisk({ variant: 'podman' });
  lab = await openLab('bloomery-bootc');
  undo.push(() => lab.close());
  const { folder, address } = lab;
  registry = await startRegistry({
    folder: join(folder, 'registry'),
    address,
    ports: [5443, 5444],
    auth: 'basic',
    start: (...words) => lab.start(...words),
  });
  const make = async (name: string, env: NodeJS.ProcessEnv = {}): Promise<void> => {
    const tar = join(folder, `${name}.tar`);
    const words = [join(root, 'demo/lab/bootable-container.sh'), tar, `http://${address}:${REPORT_PORT}/`, name];
    await promisify(execFile)('bash', words, { env: { ...process.env, ...env }, timeout: 300_000 });
    await registry.pushContainer(tar, name);
  };
  await make('bootable');
  await make('bare', { BOOTC: 'none' });
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), address, String(REPORT_PORT), reportFile());
  const sections = bootingSections(lab);
  const more = {
    DEFAULT: { ...sections['DEFAULT'], enabled_deploy_interfaces: 'direct,bootc' },
    agent: { api_ca_file: registry.caFile },
  };
  server = await startServerProcess(join(folder, 'server'), { ...sections, ...more }, lab.namespace);
  undo.push(() => server.stop());
}, 2_400_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

const VARIANT = {
  deploy_kernel: `file://${root}/.cache/ramdisk-podman/vmlinuz`,
  deploy_ramdisk: `file://${root}/.cache/ramdisk-podman/initrd`,
};
async function enrol(firmware: 'bios' | 'uefi', port: number, info: JsonObject): Promise<LabMachine> {
  const name = `bootc-${firmware}`;
  const machine = await lab.machine({ name, firmware, memoryMiB: 1536, cpus: 2, diskGiB: 4 });
  const sim = await startIpmiSim(machine, { namespace: lab.namespace, address: lab.address, port, folder: lab.folder });
  undo.push(() => sim.stop());
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name,
    driver: 'ipmi',
    boot_interface: 'ipxe',
    deploy_interface: 'bootc',
    automated_clean: false,
    driver_info: { ipmi_address: sim.address, ipmi_port: sim.port, ipmi_username: sim.username, ipmi_password: sim.password, ...info },
    properties: { capabilities: `boot_mode:${firmware}` },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await order(machine, 'manage', 'manageable');
  await order(machine, 'provide', 'available');
  return machine;
}

/** Waits for the state, or for what happens meanwhile. */
async function wait(machine: LabMachine, what: string, isSo: (node: JsonObject) => boolean): Promise<JsonObject> {
  let node: JsonObject = {};
  const describe = (): string => `${machine.name} to be ${what}: ${JSON.stringify(node)}\n${consoleEnd(machine)}\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await call(lab, 'GET', `/nodes/${machine.name}`);
    if (isSo(node)) return true;
    if (!what.endsWith('failed') && /failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
    await delay(900);
    return false;
  });
  return node;
}
async function order(machine: LabMachine, target: string, state: string, more: object = {}): Promise<JsonObject> {
  await call(lab, 'PUT', `/nodes/${machine.name}/states/provision`, { target, ...more });
  return wait(machine, state, (node) => node['provision_state'] === state && node['target_provision_state'] !== state);
}
const setInfo = (machine: LabMachine, field: string, value: object) =>
  call(lab, 'PATCH', `/nodes/${machine.name}`, [{ op: 'add', path: `/${field}`, value }]);
const instance = (image: string, more: JsonObject = {}): JsonObject => ({ image_source: `oci://${registry.host}/lab/${image}:1`, ...more });
const drive = { configdrive: { meta_data: { uuid: 'of the instance' } } };

/** The report of the deployed system as key → value. */
async function report(machine: LabMachine): Promise<Readonly<Record<string, string>>> {
  await until(
    PATIENCE,
    () => `a report\n${consoleEnd(machine)}`,
    () => existsSync(reportFile()),
  );
  const lines = readFileSync(reportFile(), 'utf8').trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s, 2).map((part) => part.trim()) as [string, string]));
}
async function deployAndBoot(machine: LabMachine): Promise<void> {
  rmSync(reportFile(), { force: true });
  await setInfo(machine, 'instance_info', instance('bootable', { image_pull_secret: registry.secret, bootc_authorized_keys: KEY }));
  await order(machine, 'active', 'active', drive);
  const seen = await report(machine);
  expect(seen).toMatchObject({ image: 'bootable', firmware: machine.firmware === 'bios' ? 'bios' : 'uefi', root: '/dev/vda3' });
  expect(seen['configdrive']).toBe('/dev/vda4');
  expect(Buffer.from(seen['keys']!, 'base64').toString()).toBe(KEY);
  expect(registry.log()).toContain('GET /v2/lab/bootable/manifests/1');
  for (const text of [server.logEnd(), consoleEnd(machine), JSON.stringify(await call(lab, 'GET', `/nodes/${machine.name}`))]) {
    expect(text).not.toContain(registry.secret);
    expect(text).not.toContain(registry.password);
  }
}

it('BIOS: the standard ramdisk refuses, and the variant with podman deploys the container, which boots', async () => {
  const machine = await enrol('bios', 6230, {});
  await setInfo(machine, 'instance_info', instance('bootable', { image_pull_secret: registry.secret }));
  expect(await order(machine, 'active', 'deploy failed')).toMatchObject({
    last_error: expect.stringContaining('This ramdisk has no podman, which the deploy interface bootc needs') as string,
  });
  for (const [name, value] of Object.entries(VARIANT))
    await call(lab, 'PATCH', `/nodes/${machine.name}`, [{ op: 'add', path: `/driver_info/${name}`, value }]);
  await deployAndBoot(machine);
});

it('UEFI: a wrong password, a container without an installer and a reset never count as deployed', async () => {
  const machine = await enrol('uefi', 6231, { ...VARIANT, fast_track: true });
  const failing = async (info: JsonObject): Promise<unknown> => {
    await setInfo(machine, 'instance_info', info);
    return (await order(machine, 'active', 'deploy failed'))['last_error'];
  };
  const wrong = Buffer.from(`${registry.username}:wrong`).toString('base64');
  const refused = await failing(instance('bootable', { image_pull_secret: wrong }));
  expect(refused).toMatch(/Failed to pull container image .*(unauthorized|authentication required|invalid username\/password)/s);
  expect(refused).not.toContain(wrong);
  expect(await failing(instance('bare', { image_pull_secret: registry.secret }))).toContain(
    'Container does not contain the required bootc binary and thus cannot be deployed.',
  );
  await setInfo(machine, 'instance_info', instance('bootable', { image_pull_secret: registry.secret }));
  await call(lab, 'PUT', `/nodes/${machine.name}/states/provision`, { target: 'active' });
  const fetched = `The image ${registry.host}/lab/bootable:1 of`;
  await until(
    PATIENCE,
    () => `the installer to run\n${consoleEnd(machine)}\n${server.logEnd()}`,
    () => consoleEnd(machine).includes(fetched),
  );
  await machine.act('reset');
  const reset = await wait(machine, 'deploy failed', (node) => node['provision_state'] === 'deploy failed');
  expect(reset['last_error']).toMatch(
    /The agent was restarted while the step ran|The machine booted again while the step ran|Failed to connect to the agent/,
  );
  await deployAndBoot(machine);
});
