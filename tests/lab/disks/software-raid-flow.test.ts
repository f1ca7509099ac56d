/**
 * Software RAID as an operator uses it: a machine in QEMU behind IPMI, the whole server and its ramdisk. A mirror is made at cleaning, after the
 * agent and then the conductor were killed in the middle of it; a system starts from it; the mirror stays, is made anew at a deployment by a
 * deploy template, and is deleted. A machine boots no more often than this needs.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '../../../model/records';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { root } from '../../../demo/lab/root';
import { bootingSections, startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { call } from '../inspection/inspect-machine';
import { buildRamdisk } from '../support/ramdisk';
import { overlaid } from './disk-machine';

/** Seconds. */
const PATIENCE = 900;
jest.setTimeout(4 * PATIENCE * 1000);
const NAME = 'mirrored';
const REPORT_PORT = 8099;

let lab: Lab;
let server: RunningServer;
let machine: LabMachine;
let sha256: string;
const undo: (() => Promise<unknown>)[] = [];
const reportFile = (): string => join(lab.folder, 'report');

/** As a file of the HTTP server says: when an array is to be made, the agent is killed in place of it, or mdadm waits, and says so. */
const MDADM = `#!/bin/sh
[ "$1" = --create ] && how=$(wget -q -O - http://10.77.0.1:8080/mdadm)
echo "mdadm: $how" > /dev/console
case $how in
  kill) kill -9 $PPID; exit 1 ;;
  wait) sleep 20 ;;
esac
exec /bin/mdadm-itself "$@"
`;
const setMdadm = (how: 'kill' | 'wait' | 'run'): void => writeFileSync(join(images(), 'mdadm'), how);
const images = (): string => join(lab.folder, 'server/state/httpboot');
const serve = (conductor: Readonly<Record<string, string>> = {}): Promise<RunningServer> => {
  const sections = bootingSections(lab);
  const own = {
    deploy_ramdisk: `file://${join(lab.folder, 'initrd')}`,
    file_url_allowed_paths: `${root}/.cache,${lab.folder}`,
    ...conductor,
  };
  return startServerProcess(
    join(lab.folder, 'server'),
    { ...sections, conductor: { ...sections['conductor'], ...own }, deploy: { erase_devices_priority: 0 } },
    lab.namespace,
  );
};

beforeAll(async () => {
  await buildRamdisk();
  lab = await openLab('bloomery-raid');
  undo.push(() => lab.close());
  const mdadm = join(root, '.cache/mdadm/sbin/mdadm');
  overlaid(join(lab.folder, 'initrd'), { 'bin/mdadm': MDADM, 'bin/mdadm-itself': readFileSync(mdadm) });
  mkdirSync(images(), { recursive: true });
  const image = join(images(), 'mirrored.raw');
  const words = [join(root, 'demo/lab/image.sh'), image, `http://${lab.address}:${REPORT_PORT}/`, 'mirrored'];
  execFileSync('bash', words, { env: { ...process.env, MDADM: mdadm } });
  sha256 = readFileSync(`${image}.sha256`, 'utf8').trim();
  lab.start(process.execPath, join(root, 'demo/lab/report-server.mjs'), lab.address, String(REPORT_PORT), reportFile());
  server = await serve();
  undo.push(() => server.stop());
  machine = await lab.machine({ name: NAME, firmware: 'bios', memoryMiB: 1024, cpus: 2, diskGiB: 5, disks: 2 });
  const sim = await startIpmiSim(machine, {
    namespace: lab.namespace,
    address: lab.address,
    port: 6230,
    folder: lab.folder,
  });
  undo.push(() => sim.stop());
  const { uuid } = await call(lab, 'POST', '/nodes', {
    name: NAME,
    driver: 'ipmi',
    boot_interface: 'ipxe',
    raid_interface: 'agent',
    driver_info: {
      ipmi_address: sim.address,
      ipmi_port: sim.port,
      ipmi_username: sim.username,
      ipmi_password: sim.password,
      fast_track: true,
    },
    properties: { capabilities: 'boot_mode:bios' },
  });
  await call(lab, 'POST', '/ports', { node_uuid: uuid, address: machine.mac });
  await order('manage');
  await reach('manageable');
}, 1_200_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

const show = () => call(lab, 'GET', `/nodes/${NAME}`);
const set = (path: string, value: unknown) => call(lab, 'PATCH', `/nodes/${NAME}`, [{ op: 'add', path, value }]);
const order = (target: string, more: JsonObject = {}) => call(lab, 'PUT', `/nodes/${NAME}/states/provision`, { target, ...more });
async function reach(state: string): Promise<JsonObject> {
  let node: JsonObject = {};
  const describe = (): string => `${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machine)}\n--- server\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await show();
    if (node['provision_state'] === state && node['reservation'] === null) return true;
    if (node['provision_state'] !== state && /failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
    await delay(500);
    return false;
  });
  process.stderr.write(`${new Date().toISOString()} ${NAME}: ${state}\n`);
  return node;
}
const said = (): string => readFileSync(machine.consoleFile, 'latin1');
/** The report of the deployed system. */
async function report(): Promise<string> {
  await until(
    PATIENCE,
    () => `a report\n${consoleEnd(machine)}`,
    () => existsSync(reportFile()),
  );
  return readFileSync(reportFile(), 'utf8');
}
async function deploy(instance: JsonObject): Promise<string> {
  rmSync(reportFile(), { force: true });
  await set('/instance_info', {
    image_source: `http://${lab.address}:8080/mirrored.raw`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: sha256,
    image_disk_format: 'raw',
    ...instance,
  });
  await order('active', { configdrive: { meta_data: { name: NAME } } });
  await reach('active');
  return report();
}
/** What blkid finds on each disk. */
const typesOf = (): readonly string[] =>
  machine.diskFiles.map((disk, index) => {
    const raw = join(lab.folder, `disk-${index}.raw`);
    execFileSync('qemu-img', ['convert', '-U', '-O', 'raw', disk, raw]);
    const types = ['0', String(2 ** 20)].map((offset) =>
      execFileSync('sh', ['-c', `blkid -p -o export -O ${offset} ${raw} | grep -E '^(PT)?TYPE=' || true`])
        .toString()
        .trim(),
    );
    rmSync(raw);
    return types.join(' ');
  });

const volume = { controller: 'software', raid_level: '1', size_gb: 1 };
const target = { logical_disks: [{ ...volume, volume_name: 'root' }] };
const RAID_STEPS = ['delete_configuration', 'create_configuration'].map((step) => ({ interface: 'raid', step }));

it('a kill -9 of the agent before mdadm makes the array fails the cleaning, which says so', async () => {
  setMdadm('kill');
  await call(lab, 'PUT', `/nodes/${NAME}/states/raid`, target);
  await order('clean', { clean_steps: RAID_STEPS });
  const failed = await reach('clean failed');
  expect(said()).toContain('mdadm: kill');
  expect(failed).toMatchObject({ raid_config: {} });
  expect(failed['last_error']).toMatch(
    /Clean step raid\.create_configuration failed on node .*\. The agent was restarted while the step ran/,
  );
});

it('the same cleaning makes the array afterwards, although the conductor is killed meanwhile', async () => {
  if ((await show())['maintenance'] === true) await call(lab, 'DELETE', `/nodes/${NAME}/maintenance`);
  setMdadm('wait');
  await order('manage');
  await reach('manageable');
  await order('clean', { clean_steps: RAID_STEPS });
  await until(
    PATIENCE,
    () => `mdadm\n${JSON.stringify(server.logEnd())}\n${consoleEnd(machine)}`,
    () => said().includes('mdadm: wait'),
  );
  await server.kill();
  setMdadm('run');
  server = await serve();
  const node = await reach('manageable');
  expect(node).toMatchObject({
    last_error: null,
    raid_config: { ...target, last_updated: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/) as string },
  });
  await order('provide');
  await reach('available');
});

it('an image is deployed to the array that the hint volume_name selects, and starts from it', async () => {
  await set('/properties/root_device', { volume_name: 'root' });
  const text = await deploy({});
  expect(text).toContain('image=mirrored');
  expect(text).toContain('firmware=bios');
  expect(text).toMatch(/^arrays=.*active raid1 vd\w1\[\d\] vd\w1\[\d\]/m);
  expect(text).toMatch(/^configdrive=\/dev\/md\d+p2$/m);
});

it('the cleaning after it keeps the array', async () => {
  await order('deleted');
  const node = await reach('available');
  expect(node).toMatchObject({ raid_config: target, properties: { root_device: { volume_name: 'root' } } });
  expect(said()).toMatch(/Skipping erasure of RAID member device \/dev\/vda/);
  for (const types of typesOf()) expect(types).toMatch(/PTTYPE=dos\s+TYPE=linux_raid_member/);
});

it('a deploy template makes another array, which gets the image', async () => {
  const wanted = { logical_disks: [{ ...volume, volume_name: 'other', is_root_volume: true }] };
  await call(lab, 'POST', '/deploy_templates', {
    name: 'CUSTOM_RAID',
    steps: [{ interface: 'raid', step: 'apply_configuration', args: { raid_config: wanted }, priority: 90 }],
  });
  await call(lab, 'PUT', `/nodes/${NAME}/traits/CUSTOM_RAID`);
  const text = await deploy({ traits: ['CUSTOM_RAID'] });
  expect(text).toMatch(/^arrays=.*active raid1/m);
  expect(text).toMatch(/^configdrive=\/dev\/md\d+p2$/m);
  expect(await show()).toMatchObject({
    raid_config: wanted,
    target_raid_config: target,
    properties: { capabilities: 'boot_mode:bios,raid_level:1' },
  });
});

it('the cleaning deletes the array if raid.delete_configuration has a priority', async () => {
  expect(await server.stop()).toBe(0);
  server = await serve({ clean_step_priority_override: 'raid.delete_configuration:95' });
  await order('deleted');
  const node = await reach('available');
  expect(node).toMatchObject({ raid_config: {} });
  expect(node['properties']).not.toHaveProperty('root_device');
  expect(typesOf()).toEqual([' ', ' ']);
});
