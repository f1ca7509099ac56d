/**
 * Machines in QEMU that are deployed from an iSCSI volume (Debian's tgt) by the storage interface external: iPXE boots the volume at the
 * deployment and at each later start, with CHAP and without, and the local disk stays as it is.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { startIscsiTarget, type Chap, type IscsiTarget } from '../support/iscsi-target';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';

const run = promisify(execFile);
const API = 'http://10.77.0.1:6385';
const REPORT_PORT = 8099;
const PATIENCE = 900;
const PASSWORD = 'a-secret;${mac}|| #1';
const WRONG_PASSWORD = 'another-secret-1';
jest.setTimeout(3 * PATIENCE * 1000);

let lab: Lab;
let server: RunningServer;
let target: IscsiTarget;
let image: string;
let bmcPort = 6230;
const undo: (() => Promise<unknown>)[] = [];
const report = (): string => join(lab.folder, 'report');

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', 'grub-mkimage': 'grub-common', mcopy: 'mtools' });
  needs({ tgtd: 'tgt', tgtadm: 'tgt', ipmi_sim: 'openipmi', curl: 'curl' });
  lab = await openLab('bloomery-volume');
  undo.push(() => lab.close());
  image = join(lab.folder, 'volume.raw');
  const script = join(__dirname, '../../../demo/lab/image.sh');
  await run('bash', [script, image, `http://${lab.address}:${REPORT_PORT}/`, 'on-volume'], { timeout: 300_000 });
  lab.start(process.execPath, join(__dirname, '../../../demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), report());
  target = await startIscsiTarget(lab);
  undo.push(() => target.stop());
  const { DEFAULT, conductor, ...sections } = bootingSections(lab);
  server = await startServerProcess(
    join(lab.folder, 'server'),
    {
      ...sections,
      DEFAULT: { ...DEFAULT, enabled_storage_interfaces: 'noop,external' },
      // Nothing boots a ramdisk here: there is no image to write, and the local disk is compared at the end.
      conductor: { ...conductor, automated_clean: 'false' },
    },
    lab.namespace,
  );
  undo.push(() => server.stop());
}, 600_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
}, 120_000);

async function ask(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly text: string }> {
  const headers = ['-H', 'X-OpenStack-Ironic-API-Version: 1.109', '-H', 'content-type: application/json'];
  const data = body ? ['-d', JSON.stringify(body)] : [];
  const answer = await lab.exec('curl', '-s', '-w', '\n%{http_code}', '-X', method, ...headers, ...data, `${API}/v1${path}`);
  const at = answer.lastIndexOf('\n');
  return { status: Number(answer.slice(at)), text: answer.slice(0, at) };
}
async function must(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const { status, text } = await ask(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
async function reach(name: string, key: string, value: string, machine: LabMachine): Promise<void> {
  let node: Record<string, unknown> = {};
  const describe = (): string => `${name} to have ${key} ${value}: ${JSON.stringify(node)}\n${consoleEnd(machine)}\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await must('GET', `/nodes/${name}`);
    if (node[key] === value) return true;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
    await delay(400);
    return false;
  });
}
const power = async (machine: LabMachine, state: 'power on' | 'power off'): Promise<void> => {
  await must('PUT', `/nodes/${machine.name}/states/power`, { target: state });
  await reach(machine.name, 'power_state', state, machine);
};
/** The next report of a system that started after the last one was taken. */
async function nextReport(machine: LabMachine): Promise<string> {
  await until(
    PATIENCE,
    () => `a report\n${consoleEnd(machine)}\n${target.log()}\n${server.logEnd()}`,
    () => existsSync(report()) && readFileSync(report(), 'utf8').includes(machine.mac),
  );
  const text = readFileSync(report(), 'utf8');
  rmSync(report());
  return text;
}
const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
const script = async (machine: LabMachine): Promise<string> =>
  lab.exec('curl', '-s', `http://${lab.address}:8080/ipxe/${machine.mac.replaceAll(':', '-')}`);

interface Deployed {
  readonly machine: LabMachine;
  readonly iqn: string;
  readonly volume: string;
  readonly disk: string;
}
/** A node with a volume of its own; its deployment has been requested. */
async function deploy(name: string, firmware: 'bios' | 'uefi', chap?: Chap, password = chap?.password): Promise<Deployed> {
  const machine = await lab.machine({ name, firmware, memoryMiB: 768, cpus: 1, diskGiB: 1 });
  const disk = digest(machine.diskFile);
  const file = join(lab.folder, `${name}.raw`);
  await run('cp', ['--sparse=always', image, file]);
  const iqn = await target.add(name, file, chap);
  // A BMC that keeps the boot device.
  const bmc = {
    ...machine,
    setBoot: ({ device }: { device: 'pxe' | 'disk' }) => machine.setBoot({ device, persistent: true, mode: null }),
  };
  const where = { namespace: lab.namespace, address: lab.address, port: bmcPort++, folder: lab.folder };
  const sim = await startIpmiSim(bmc as LabMachine, where);
  undo.push(() => sim.stop());
  const info = { ipmi_address: sim.address, ipmi_port: sim.port, ipmi_username: sim.username, ipmi_password: sim.password };
  const { uuid } = await must('POST', '/nodes', {
    name,
    driver: 'ipmi',
    driver_info: info,
    boot_interface: 'ipxe',
    storage_interface: 'external',
    properties: { capabilities: `iscsi_boot:true,boot_mode:${firmware}` },
  });
  await must('POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await must('POST', '/volume/connectors', { node_uuid: uuid, type: 'iqn', connector_id: `iqn.2026-01.org.example.node:${name}` });
  const secrets = chap ? { auth_method: 'CHAP', auth_username: chap.username, auth_password: password } : {};
  const volume = await must('POST', '/volume/targets', {
    node_uuid: uuid,
    volume_type: 'iscsi',
    volume_id: name,
    boot_index: 0,
    properties: { target_iqn: iqn, target_portal: target.portal, target_lun: target.lun, ...secrets },
  });
  await must('PUT', `/nodes/${name}/states/provision`, { target: 'manage' });
  await reach(name, 'provision_state', 'manageable', machine);
  await must('PUT', `/nodes/${name}/states/provision`, { target: 'provide' });
  await reach(name, 'provision_state', 'available', machine);
  await must('PUT', `/nodes/${name}/states/provision`, { target: 'active' });
  await reach(name, 'provision_state', 'active', machine);
  return { machine, iqn, volume: volume['uuid'] as string, disk };
}
async function undeploy({ machine, volume, disk }: Deployed): Promise<void> {
  await must('PUT', `/nodes/${machine.name}/states/provision`, { target: 'deleted' });
  await reach(machine.name, 'provision_state', 'available', machine);
  expect((await ask('GET', `/volume/targets/${volume}`)).status).toBe(404);
  expect(await script(machine)).not.toContain('iscsi:');
  expect(digest(machine.diskFile)).toBe(disk);
}

it('a BIOS machine with CHAP boots the volume at each power-on, and does not write to its local disk', async () => {
  const deployed = await deploy('chap', 'bios', { username: 'initiator', password: PASSWORD });
  const { machine, iqn } = deployed;
  // While it boots: the system that reports has no iSCSI, and its kernel resets iPXE's connection at the first packet.
  let initiators: readonly string[] = [];
  await until(
    PATIENCE,
    () => `an initiator\n${consoleEnd(machine)}\n${target.log()}`,
    async () => {
      initiators = await target.initiators(iqn);
      return initiators.length > 0;
    },
  );
  expect(initiators).toEqual(['iqn.2026-01.org.example.node:chap']);
  expect(await nextReport(machine)).toMatch(/^image=on-volume$[^]*^firmware=bios$/m);
  await power(machine, 'power off');
  expect(digest(machine.diskFile)).toBe(deployed.disk);
  await power(machine, 'power on');
  expect(await nextReport(machine)).toContain('image=on-volume');
  await undeploy(deployed);
});

it('a UEFI machine without CHAP boots the volume, and does not write to its local disk', async () => {
  const deployed = await deploy('open', 'uefi');
  expect(await nextReport(deployed.machine)).toMatch(/^image=on-volume$[^]*^firmware=uefi$/m);
  await undeploy(deployed);
});

it('with a wrong CHAP secret, a machine retries and boots nothing; after the secret is corrected, it boots the volume', async () => {
  const chap = { username: 'other', password: PASSWORD };
  const deployed = await deploy('wrong', 'bios', chap, WRONG_PASSWORD);
  const { machine, iqn, volume } = deployed;
  const asked = (): number => readFileSync(server.log, 'utf8').split(`/ipxe/${machine.mac.replaceAll(':', '-')}`).length - 1;
  // iPXE requests the script again after ten failed attempts.
  await until(
    PATIENCE,
    () => `the machine to give up and start over\n${consoleEnd(machine)}\n${target.log()}`,
    () => asked() >= 2,
  );
  expect(existsSync(report())).toBe(false);
  expect(await target.initiators(iqn)).toEqual([]);
  await power(machine, 'power off');
  expect(digest(machine.diskFile)).toBe(deployed.disk);
  const properties = {
    target_iqn: iqn,
    target_portal: target.portal,
    target_lun: target.lun,
    auth_username: 'other',
    auth_password: PASSWORD,
  };
  const patch = [{ op: 'replace', path: '/properties', value: properties }];
  await must('PATCH', `/volume/targets/${volume}`, patch);
  await power(machine, 'power on');
  expect(await nextReport(machine)).toContain('image=on-volume');
  await undeploy(deployed);
});

it('the API and the server log show no CHAP secret', async () => {
  const log = readFileSync(server.log, 'utf8');
  const { text } = await ask('GET', '/volume/targets?detail=true');
  const { text: nodes } = await ask('GET', '/nodes?detail=true');
  for (const secret of ['a-secret', WRONG_PASSWORD, Buffer.from(PASSWORD).toString('hex'), Buffer.from(WRONG_PASSWORD).toString('hex')])
    for (const where of [log, text, nodes]) expect(where).not.toContain(secret);
});
