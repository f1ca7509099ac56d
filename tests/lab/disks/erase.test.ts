/**
 * Release with a choice for the disks, on a machine in QEMU whose kernel and programs speak with disks that erase themselves: what is erased
 * by which means, what stays, what a killed agent and a reset machine leave, and the certificate, which openssl checks.
 */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../demo/lab/machines';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import type { JsonObject } from '../../../model/records';
import { runCommand } from '../../support/command';
import { freePort } from '../../support/free-port';
import { buildRamdisk } from '../support/ramdisk';
import { createErasingMachine, type ErasingMachine } from './erasing-machine';
import { HOST, MAC } from '../agent/faulty-machine';

/** Seconds. */
const PATIENCE = 600;
jest.setTimeout(2 * PATIENCE * 1000);
const MiB = 2 ** 20;
const KEPT = { serial: 'DATA1' };
let folder: string;
let server: RunningServer;
let disks: ErasingMachine;
let api: string;
let node: string;

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}
async function ask(method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await fetch(`${api}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) };
}
async function call(method: string, path: string, body?: unknown): Promise<Answer['body']> {
  const { status, text, body: read } = await ask(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  return read;
}
const show = () => call('GET', `/v1/nodes/${node}`);
const provision = (target: string, more: object = {}) => ask('PUT', `/v1/nodes/${node}/states/provision`, { target, ...more });
const describeAll = (): string => `${disks.machine?.console() ?? ''}\n${server.logEnd()}`;
/** A failed state that nobody waits for ends the wait. */
async function reach(...states: readonly string[]): Promise<Answer['body']> {
  let seen: Answer['body'] = {};
  const describe = (): string =>
    `${states.join(' or ')}, not ${String(seen['provision_state'])}: ${String(seen['last_error'])}\n${describeAll()}`;
  await until(PATIENCE, describe, async () => {
    seen = await show();
    const state = String(seen['provision_state']);
    if (!states.includes(state) && state.endsWith(' failed')) throw new Error(describe());
    return states.includes(state) && seen['reservation'] === null;
  });
  return seen;
}
async function order(target: string, state: string, more: object = {}): Promise<void> {
  const answer = await provision(target, more);
  if (answer.status >= 300) throw new Error(`${target}: ${answer.text}`);
  await reach(state);
}
const guest = (command: string): Promise<string> => disks.machine!.guest(command);
/** The agent of the work before would take the token of this one. */
const sendAway = () => guest('[ ! -e /bin/agent ] || mv /bin/agent /bin/agent-away; kill -9 $(pidof agent agent-away); sleep 1');
const bringBack = () => guest('rm -f /run/agent-identity.json /run/agent.log; mv /bin/agent-away /bin/agent');
async function released(choice: object): Promise<void> {
  await sendAway();
  const answer = await provision('deleted', choice);
  expect([answer.status, answer.text]).toEqual([202, '']);
  await reach('clean wait');
  await bringBack();
}
/** After a cleaning that has failed. */
async function again(choice: object = {}): Promise<void> {
  await sendAway();
  await ask('DELETE', `/v1/nodes/${node}/maintenance`);
  await order('manage', 'manageable');
  const answer = await provision('provide', choice);
  expect([answer.status, answer.text]).toEqual([202, '']);
  await reach('clean wait');
  await bringBack();
}
const certificates = async () => (await call('GET', `/v1/erasures?node=${node}`))['erasures'] as readonly JsonObject[];
interface Certified {
  readonly serial: string;
  readonly erased: boolean;
  readonly method?: string;
  readonly reason?: string;
  readonly seconds?: number;
  readonly seconds_of_an_overwriting_pass?: number;
  readonly sample?: { readonly places: number; readonly same: number };
}
/** Serial number → what a certificate says of the disk. */
async function certified(uuid: unknown): Promise<ReadonlyMap<string, Certified>> {
  const { document } = await call('GET', `/v1/erasures/${String(uuid)}`);
  const { disks: listed } = JSON.parse(String(document)) as { readonly disks: readonly Certified[] };
  return new Map(listed.map((disk) => [disk.serial, disk]));
}
const sumOf = (serial: string): string =>
  createHash('sha256')
    .update(readFileSync(disks.fileOf(serial)))
    .digest('hex');
const isZero = (serial: string): boolean => readFileSync(disks.fileOf(serial)).every((byte) => byte === 0);
/** @param edge bytes at both ends that are not looked at */
const isOneByte = (serial: string, edge = 0): boolean => {
  const all = disks.data.get(serial)!;
  const bytes = all.subarray(edge, all.length - edge);
  return bytes.every((byte) => byte === bytes[0]);
};
/** A VMware volume, which other hosts may use. */
function share(serial: string): void {
  const file = openSync(disks.fileOf(serial), 'r+');
  writeSync(file, Buffer.from('0dd001c0', 'hex'), 0, 4, MiB);
  closeSync(file);
}
/** Serial number → the means, or why it stays. */
const MEANS: Readonly<Record<string, string>> = {
  SAS1: 'SCSI sanitize, cryptographic erase',
  SAS2: 'SCSI sanitize, block erase',
  THIN1: 'discard',
  SATA1: 'ATA sanitize, crypto scramble',
  SATA2: 'ATA sanitize, block erase',
  // QEMU's controller does not pass on the registers that tell how a sanitize operation goes.
  SATA3: 'ATA secure erase, enhanced',
  SATA4: 'ATA secure erase',
  NVME1: 'NVMe sanitize, crypto erase',
  NVME2: 'NVMe format, cryptographic erase',
  FORMAT1: 'NVMe format, user data erase',
  ROOT1: 'write zeroes',
  DATA1: 'The request names it among the disks to keep.',
  SHARED1: 'The request names it among the disks to keep.',
  LOCKED1: 'It is write-protected.',
};
const EXPRESS: readonly string[] = ['SAS1', 'SATA1', 'NVME1', 'NVME2', 'FORMAT1'];
const HELD = ['SAS1', 'SATA1', 'NVME1', 'SATA4'];
const work = (serial: string) => disks.works.get(serial)!;
const untilHeld = () => until(PATIENCE, describeAll, () => HELD.every((serial) => work(serial).state() === 'working'));

/** Switches it on; if it is on, its power is lost first. */
async function startMachine(): Promise<void> {
  const agentPort = await freePort();
  const url = api.replace('127.0.0.1', HOST);
  await disks.start(
    [
      `ipa-api-url=${url} ipa-inspection-callback-url=${url}/v1/continue_inspection ipa-inspection-collectors=default`,
      `ipa-advertise-host=127.0.0.1 ipa-advertise-port=${agentPort} ipa-disk-wait-attempts=1 ipa-lookup-timeout=3600`,
    ],
    agentPort,
  );
}
beforeAll(async () => {
  await buildRamdisk();
  folder = mkdtempSync(join(tmpdir(), 'erase-'));
  disks = await createErasingMachine(folder);
  disks.fill();
  share('SHARED1');
  const port = await freePort();
  api = `http://127.0.0.1:${port}`;
  for (const name of ['kernel', 'ramdisk', 'image.raw']) writeFileSync(join(folder, name), randomBytes(1000));
  server = await startServerProcess(join(folder, 'server'), {
    DEFAULT: {
      my_ip: '127.0.0.1',
      auth_strategy: 'noauth',
      enabled_hardware_types: 'fake-hardware',
      enabled_boot_interfaces: 'ipxe',
      enabled_power_interfaces: 'fake',
      enabled_management_interfaces: 'fake',
      enabled_deploy_interfaces: 'direct',
      enabled_inspect_interfaces: 'agent',
      enabled_network_interfaces: 'noop',
    },
    api: { host_ip: '127.0.0.1', port, ramdisk_heartbeat_timeout: 5 },
    boot: { http_host: '127.0.0.1', http_port: await freePort(), tftp: 'false' },
    deploy: { erase_skip_read_only: 'true' },
    conductor: {
      deploy_kernel: `file://${folder}/kernel`,
      deploy_ramdisk: `file://${folder}/ramdisk`,
      file_url_allowed_paths: folder,
      check_provision_state_interval: 1,
      // Seconds, after which a machine that lost its power is missed.
      clean_callback_timeout: 90,
    },
    agent: { command_timeout: 30, deploy_logs_local_path: join(folder, 'logs') },
  });
  node = (
    await call('POST', '/v1/nodes', { driver: 'fake-hardware', name: 'released', inspect_interface: 'agent', automated_clean: false })
  )['uuid'] as string;
  await call('POST', '/v1/ports', { node_uuid: node, address: MAC });
  await order('manage', 'manageable');
  await order('inspect', 'inspect wait');
  await startMachine();
  await reach('manageable');
  const instance = {
    image_source: `file://${folder}/image.raw`,
    image_os_hash_algo: 'sha256',
    image_os_hash_value: createHash('sha256')
      .update(readFileSync(join(folder, 'image.raw')))
      .digest('hex'),
    image_disk_format: 'raw',
  };
  await call('PATCH', `/v1/nodes/${node}`, [
    { op: 'add', path: '/instance_info', value: instance },
    { op: 'add', path: '/instance_uuid', value: '11111111-2222-4333-8444-555555555555' },
  ]);
  await order('adopt', 'active');
});
afterAll(async () => {
  await server?.stop();
  await disks?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

it('refuses hints that match nothing, or everything, before the machine is touched', async () => {
  for (const [choice, reason] of [
    [{ erase: 'full', keep: [{ serial: 'GONE1' }] }, 'keep: no disk in the inventory'],
    [{ erase: 'full', keep: [{ serial: 's!= GONE1' }] }, 'keep: all disks in the inventory'],
    [{ erase: 'full', keep: [{ serial: 'DATA1', colour: 'red' }] }, 'keep[0]'],
    [{ erase: 'shred' }, 'erase must be one of'],
  ] as const) {
    const answer = await provision('deleted', choice);
    expect([choice, answer.status, answer.text]).toEqual([choice, 400, expect.stringContaining(reason) as string]);
  }
  expect(await show()).toMatchObject({ provision_state: 'active', last_error: null });
});

it('erases nothing, and certifies nothing, while a disk holds a volume that other hosts may use', async () => {
  const before = [...disks.data.values()].map((bytes) => createHash('sha256').update(bytes).digest('hex'));
  await released({ erase: 'full', keep: [KEPT] });
  const { last_error: error } = await reach('clean failed');
  expect(error).toContain('Protected VMware VMFS volume located on device');
  expect([...disks.data.values()].map((bytes) => createHash('sha256').update(bytes).digest('hex'))).toEqual(before);
  expect([...disks.works.values()].flatMap(({ taken }) => taken)).toEqual([]);
  expect(await certificates()).toEqual([]);
});

const saysOnConsole = (text: string) => until(PATIENCE, describeAll, () => disks.machine!.console().includes(text));
const CHOICE = { erase: 'full', keep: [KEPT, { serial: 'SHARED1' }] };

it('certifies nothing when the agent is killed in the middle of an erasure, or the machine loses its power', async () => {
  for (const serial of HELD) work(serial).hold();
  await again(CHOICE);
  await untilHeld();
  await guest('kill -9 $(pidof agent)');
  // The server asks the agent while it is away, or after it is back.
  expect((await reach('clean failed'))['last_error']).toMatch(/agent was restarted while the step ran|Failed to connect to the agent/);
  expect(await certificates()).toEqual([]);

  // What the disks do goes on, and the next agent waits for it.
  await again();
  await saysOnConsole('waiting for the end of a sanitize operation');
  expect(HELD.map((serial) => [serial, work(serial).state()])).toEqual(HELD.map((serial) => [serial, 'working']));
  await startMachine();
  const { last_error: error } = await reach('clean failed');
  expect(error).toMatch(/agent was restarted while the step ran|Failed to connect to the agent/);
  expect(await certificates()).toEqual([]);
});

it('erases each disk by the best means that it has after what goes on, but not the disks to keep', async () => {
  const kept = ['DATA1', 'SHARED1', 'LOCKED1'].map(sumOf);
  await again();
  await saysOnConsole('waiting for the end of a sanitize operation');
  for (const serial of HELD) work(serial).release();
  await reach('available');
  const [certificate, ...others] = await certificates();
  expect(others).toEqual([]);
  const found = await certified(certificate!['uuid']);
  const means = Object.fromEntries([...found.values()].map(({ serial, method, reason }) => [serial, method ?? reason]));
  expect(means).toEqual(MEANS);
  expect(['DATA1', 'SHARED1', 'LOCKED1'].map(sumOf)).toEqual(kept);
  expect([...disks.data.keys()].filter((serial) => !isOneByte(serial))).toEqual([]);
  for (const serial of ['ROOT1', 'FORMAT1']) expect([serial, isZero(serial)]).toEqual([serial, true]);
  for (const { serial, erased, seconds, seconds_of_an_overwriting_pass: pass, sample } of found.values()) {
    if (erased) expect([serial, sample?.same]).toEqual([serial, 0]);
    if (pass !== undefined) process.stderr.write(`${serial}: ${String(means[serial])}, ${seconds} s beside ${pass} s of overwriting\n`);
  }
});

it('erases in seconds what disks can erase so, and the metadata of the others', async () => {
  await sendAway();
  await order('manage', 'manageable');
  disks.fill();
  const kept = ['DATA1', 'SHARED1', 'LOCKED1'].map(sumOf);
  await order('adopt', 'active');
  await released({ ...CHOICE, erase: 'express' });
  await reach('available');
  const [, certificate] = await certificates();
  const found = await certified(certificate!['uuid']);
  expect([...found.values()].flatMap(({ serial, erased }) => (erased ? serial : [])).sort()).toEqual([...EXPRESS].sort());
  expect(['DATA1', 'SHARED1', 'LOCKED1'].map(sumOf)).toEqual(kept);
  for (const serial of disks.data.keys()) expect([serial, isOneByte(serial, MiB)]).toEqual([serial, EXPRESS.includes(serial)]);
  const root = readFileSync(disks.fileOf('ROOT1'));
  expect([root.subarray(0, MiB), root.subarray(-MiB)].map((edge) => edge.every((byte) => byte === 0))).toEqual([true, true]);
  expect(root.subarray(MiB, -MiB).every((byte) => byte === 0)).toBe(false);
});

it('keeps the certificate when the node is gone, and the command and openssl verify it', async () => {
  const [certificate] = await certificates();
  await sendAway();
  await order('manage', 'manageable');
  await call('DELETE', `/v1/nodes/${node}`);
  const id = String(certificate!['uuid']);
  const file = (ending: string): string => join(folder, `${id}.${ending}`);
  expect(await runCommand(['erasures', 'save', id, '--to', folder, '--url', api])).toMatchObject({ code: 0 });
  const site = join(folder, 'site.pem');
  execFileSync('openssl', ['pkey', '-in', join(folder, 'server/state/erasure-key.pem'), '-pubout', '-out', site]);
  expect(await runCommand(['erasures', 'verify', file('json'), '--key', site])).toMatchObject({ code: 0 });
  const check = ['dgst', '-sha256', '-verify', site, '-signature', file('sig'), file('json')];
  expect(execFileSync('openssl', check, { encoding: 'utf8' })).toBe('Verified OK\n');
});
