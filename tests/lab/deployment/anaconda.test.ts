/**
 * The deploy interface anaconda with machines in QEMU and a stand-in of the installer (support/installer.sh), which Debian does not have. The
 * installer is reset and the server killed while it works; it fails; it boots by iPXE, by PXELINUX and by GRUB. What it installs boots from
 * the disk, and reports.
 */
import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DEFAULT_TEMPLATE } from '../../../drivers/anaconda/default-template';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { needs } from '../support/needs';
import { root } from '../support/venv';

/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(4 * PATIENCE * 1000);
const [WEB_PORT, REPORT_PORT] = [8098, 8099];

let lab: Lab;
let server: RunningServer;
let bmcPort = 6230;
let mirror: string;
const undo: (() => Promise<unknown>)[] = [];
/** The words of its error tell it from other templates. */
const OWN_TEMPLATE = DEFAULT_TEMPLATE.replace('The installation failed. The console of the machine says why.', 'no package was found');
const served = (name: string): string => join(lab.folder, 'repo', name);
const requests = (): string => readFileSync(join(lab.folder, 'requests'), 'utf8');
const report = (): string => join(lab.folder, 'report');

const serve = (): Promise<RunningServer> => {
  const sections = bootingSections(lab);
  const interfaces = { enabled_boot_interfaces: 'ipxe,pxe', enabled_deploy_interfaces: 'direct,anaconda' };
  return startServerProcess(join(lab.folder, 'server'), { ...sections, DEFAULT: { ...sections['DEFAULT'], ...interfaces } }, lab.namespace);
};

beforeAll(async () => {
  needs({
    'qemu-system-x86_64': 'qemu-system-x86',
    'grub-mkimage': 'grub-common',
    mksquashfs: 'squashfs-tools',
    mke2fs: 'e2fsprogs',
    'mkfs.vfat': 'dosfstools',
    curl: 'curl',
    ipmi_sim: 'openipmi',
  });
  lab = await openLab('bloomery-anaconda');
  undo.push(() => lab.close());
  mirror = `http://${lab.address}:${WEB_PORT}`;
  const builder = join(root, 'tests/lab/support/installer.sh');
  await promisify(execFile)('bash', [builder, lab.folder, `http://${lab.address}:${REPORT_PORT}/`], { timeout: 600_000 });
  writeFileSync(served('own.ks'), OWN_TEMPLATE);
  const web = lab.start(process.execPath, join(root, 'tests/lab/support/web-server.mjs'), lab.address, String(WEB_PORT), served(''));
  web.stdout!.on('data', (lines: Buffer) => appendFileSync(join(lab.folder, 'requests'), lines));
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), report());
  server = await serve();
  undo.push(() => server.stop());
});
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

const order = (name: string, target: string, more: object = {}) => call(lab, 'PUT', `/nodes/${name}/states/provision`, { target, ...more });
const set = (name: string, path: string, value: unknown) => call(lab, 'PATCH', `/nodes/${name}`, [{ op: 'add', path, value }]);
const show = (name: string) => call(lab, 'GET', `/nodes/${name}`);

async function reach(machine: LabMachine, state: string): Promise<Readonly<Record<string, unknown>>> {
  let node: Readonly<Record<string, unknown>> = {};
  const described = (): string => `${machine.name} to be ${state}: ${JSON.stringify(node)}\n${consoleEnd(machine)}\n${server.logEnd()}`;
  await until(PATIENCE, described, async () => {
    node = await show(machine.name);
    if (node['provision_state'] === state && node['reservation'] === null) return true;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(described());
    await delay(500);
    return false;
  });
  return node;
}
/** Waits until the machine has written this on its console since its last start. */
const says = (machine: LabMachine, words: string): Promise<void> =>
  until(
    PATIENCE,
    () => `${machine.name} to say "${words}"\n${consoleEnd(machine)}\n${server.logEnd()}`,
    () => {
      const said = consoleEnd(machine);
      if (!said.includes(words) && said.includes('installer: failed')) throw new Error(`${machine.name} failed\n${said}`);
      return said.includes(words);
    },
  );
async function reported(machine: LabMachine): Promise<string> {
  await until(
    PATIENCE,
    () => `a report of ${machine.name}\n${consoleEnd(machine)}`,
    () => existsSync(report()) && readFileSync(report(), 'latin1').includes(machine.mac),
  );
  const text = readFileSync(report(), 'latin1');
  rmSync(report());
  return text;
}

async function enrol(name: string, firmware: 'bios' | 'uefi', instance: object, bootInterface: string): Promise<LabMachine> {
  const machine = await lab.machine({ name, firmware, memoryMiB: 1024, cpus: 2, diskGiB: 2 });
  const where = { namespace: lab.namespace, address: lab.address, port: bmcPort++, folder: lab.folder, persistent: true };
  const sim = await startIpmiSim(machine, where);
  undo.push(() => sim.stop());
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name,
    driver: 'ipmi',
    boot_interface: bootInterface,
    deploy_interface: 'anaconda',
    automated_clean: false,
    driver_info: { ipmi_address: sim.address, ipmi_port: sim.port, ipmi_username: sim.username, ipmi_password: sim.password },
    properties: { capabilities: `boot_mode:${firmware}` },
    instance_info: instance,
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await order(name, 'manage');
  await reach(machine, 'manageable');
  await order(name, 'provide');
  await reach(machine, 'available');
  return machine;
}
const installer = () => ({ kernel: `${mirror}/images/pxeboot/vmlinuz`, ramdisk: `${mirror}/images/pxeboot/initrd.img` });
const seconds = (since: number): string => ((Date.now() - since) / 1000).toFixed(0);

it('installs an image although the installer is reset and the server is killed, and fails with the words of an installer', async () => {
  const image = { image_source: `${mirror}/Packages/system.tar.gz`, stage2: `${mirror}/images/install.img`, ...installer() };
  const machine = await enrol('anaconda-bios', 'bios', image, 'ipxe');
  writeFileSync(served('hold'), '');
  const began = Date.now();
  await order(machine.name, 'active', { configdrive: { meta_data: { hostname: 'kick' }, user_data: '#!/bin/sh\n' } });
  await says(machine, 'installer: fetches');
  const started = seconds(began);
  const begun = await reach(machine, 'wait call-back');
  expect(begun['driver_internal_info']).toMatchObject({ agent_status: 'start', stage2: image.stage2 });

  // The machine is reset in the middle: it boots the installer again.
  await machine.act('reset');
  await until(
    PATIENCE,
    () => `a second start\n${consoleEnd(machine)}`,
    () => !consoleEnd(machine).includes('installer: fetches'),
  );
  await says(machine, 'installer: fetches');
  const again = await reach(machine, 'wait call-back');
  expect(Date.parse(String(again['provision_updated_at']))).toBeGreaterThan(Date.parse(String(begun['provision_updated_at'])));

  // The server is killed, and the last heartbeat waits for the next server.
  await server.kill();
  rmSync(served('hold'));
  await says(machine, 'Will retry in');
  server = await serve();
  await reach(machine, 'active');
  const system = await reported(machine);
  process.stderr.write(
    `anaconda: ${started} s to the installer's work, ${seconds(began)} s to the system's report, with a reset and a kill\n`,
  );
  expect(system).toMatch(/^image=installed$/m);
  expect(system).toMatch(/^root=\/dev\/vda2$/m);
  expect(system).toMatch(/^firmware=bios$/m);
  const files = [...system.matchAll(/^file=(\S+) (\S*)$/gm)].map(
    ([, name, text]) => [name!, Buffer.from(text!, 'base64').toString()] as const,
  );
  const seed = new Map(files);
  expect(seed.get('./openstack/latest/user_data')).toBe('#!/bin/sh\n');
  expect(JSON.parse(seed.get('./openstack/latest/meta_data.json')!)).toMatchObject({ hostname: 'kick' });

  // PXELINUX boots it, and the repository lacks its package.
  await order(machine.name, 'deleted');
  await reach(machine, 'available');
  await set(machine.name, '/boot_interface', 'pxe');
  await set(machine.name, '/instance_info', { image_source: `${mirror}/`, ...installer(), ks_template: `${mirror}/own.ks` });
  const archive = served('Packages/system.tar.gz');
  renameSync(archive, `${archive}.away`);
  await order(machine.name, 'active');
  await until(
    PATIENCE,
    () => `a failure\n${consoleEnd(machine)}\n${server.logEnd()}`,
    async () => (await show(machine.name))['provision_state'] === 'deploy failed',
  );
  renameSync(`${archive}.away`, archive);
  expect(await show(machine.name)).toMatchObject({ last_error: 'no package was found' });
  expect(consoleEnd(machine)).toContain('installer: failed: no image');
  expect(requests()).toMatch(/^GET \/\.treeinfo 200$[^]*^GET \/repodata\/repomd\.xml 200$[^]*^GET \/Packages\/system\.tar\.gz 404$/m);
  expect(readFileSync(server.log, 'utf8')).toMatch(/"file":"\/boot\/\*\*\*\/kernel"[^\n]*TFTP: sent/);
  await order(machine.name, 'deleted');
  await reach(machine, 'available');
  expect(machine.isOn()).toBe(false);
});

it('installs a repository on a machine with UEFI, whose GRUB boots the installer', async () => {
  const machine = await enrol('anaconda-uefi', 'uefi', { image_source: `${mirror}/`, ...installer() }, 'pxe');
  const began = Date.now();
  await order(machine.name, 'active');
  await reach(machine, 'active');
  const system = await reported(machine);
  process.stderr.write(`anaconda: ${seconds(began)} s with UEFI and GRUB\n`);
  expect(system).toMatch(/^firmware=uefi$/m);
  expect(system).toMatch(/^root=\/dev\/vda2$/m);
});
