/** From an instance into the ramdisk without a reboot, through the whole server with simulated machines, whose systems have our agent. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { kernelBytes, startResident, type ResidentHost } from '../../support/resident-host';
import { nodeEvents } from '../../support/node-events';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import type { SimulatedMachine } from '../../../simulator/machine/machine';
import type { Resident } from '../../../ramdisk-agent/resident';

const database = useDatabase();
let whole: WholeServer;
let folder: string;
const kernel = kernelBytes();
const hosts: ResidentHost[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'resident-flow-'));
  writeFileSync(join(folder, 'kernel'), kernel);
  whole = await startWholeServer(database.connection(), {
    machines: 7,
    options: {
      'conductor.check_provision_state_interval': 1,
      'conductor.deploy_kernel': `file://${folder}/kernel`,
      'conductor.rescue_kernel': `file://${folder}/kernel`,
      'conductor.rescue_ramdisk': `file://${folder}/kernel`,
      'DEFAULT.enabled_rescue_interfaces': ['agent'],
      'deploy.resident_kexec_timeout': 10,
      'agent.max_command_attempts': 1,
    },
  });
});
afterAll(async () => {
  for (const host of hosts) await host.stop();
  await whole.close();
  rmSync(folder, { recursive: true, force: true });
}, 30_000);

const { eventsOf, powerOns, entriesOf } = nodeEvents(database, () => whole);
const boots = (uuid: string): Promise<readonly string[]> => entriesOf(uuid, 'ramdisk_boot');
const machineOf = (at: number): SimulatedMachine => whole.fleet.machines[at]!.control;
const set = (uuid: string, path: string, value: unknown) => whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path, value }]);

/** A node with an instance. */
async function active(at: number, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const { driver_info: info = {}, ...rest } = more;
  const uuid = await whole.enrol(whole.fleet.machines[at]!, { automated_clean: false, ...rest });
  for (const [key, value] of Object.entries(info as object)) await set(uuid, `/driver_info/${key}`, value);
  await whole.provide(uuid);
  await set(uuid, '/instance_info', whole.deployable());
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  await until('the system to run', () => machineOf(at).phase() === 'system');
  return uuid;
}
async function install(uuid: string, at: number, changes: Partial<Resident> = {}): Promise<ResidentHost> {
  const { body } = await whole.call('POST', `/v1/nodes/${uuid}/resident_agent/token`);
  const host = startResident(whole.server.apiUrl!, uuid, body['token'] as string, machineOf(at), changes);
  hosts.push(host);
  await until('the agent to be registered', async () => {
    const shown = await whole.call('GET', `/v1/nodes/${uuid}/resident_agent`);
    return shown.body['seen_at'] !== null;
  });
  return host;
}
const warnings = async (uuid: string): Promise<readonly string[]> => {
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/readiness`);
  return (body['checks'] as readonly { readonly message: string | null }[]).map(({ message }) => message ?? '');
};
const WANTED = { driver_info: { resident_kexec: true } };
const STEPS = [{ interface: 'deploy', step: 'erase_devices_metadata', args: {} }];

it('a service boots the ramdisk by kexec, and the firmware runs only for the way back', async () => {
  const uuid = await active(0, WANTED);
  const host = await install(uuid, 0);
  const before = await powerOns(uuid);
  await whole.order(uuid, 'service', { service_steps: STEPS });
  await whole.reach(uuid, 'active');
  expect(host.loaded).toEqual([expect.stringMatching(/^selinux=0 .*ipa-api-url=http/)]);
  expect(host.files()[0]!.equals(kernel)).toBe(true);
  expect(await powerOns(uuid)).toBe(before + 1);
  expect(await boots(uuid)).toEqual(['The agent in the instance started the ramdisk by kexec: kernel']);
  expect((await eventsOf(uuid, 'progress')).filter(({ result }) => result !== undefined)).toContainEqual({
    flow: 'service',
    done: 0,
    of: 0,
    step: 'ramdisk',
    result: 'booted by kexec',
  });
  const node = await whole.call('GET', `/v1/nodes/${uuid}`);
  expect(node.body['driver_internal_info']).not.toHaveProperty('resident_kexec');
});

it('a rescue does too', async () => {
  const uuid = await active(1, WANTED);
  const host = await install(uuid, 1);
  const before = await powerOns(uuid);
  await whole.order(uuid, 'rescue', { rescue_password: 'secret' });
  await whole.reach(uuid, 'rescue');
  expect(host.loaded).toHaveLength(1);
  expect(await powerOns(uuid)).toBe(before);
});

it.each<[string, number, Partial<Resident> | undefined, RegExp]>([
  ['no agent is there', 2, undefined, /the instance has no token for a resident agent$/],
  [
    'the system cannot be left',
    3,
    { leave: { check: async () => Promise.reject(new Error('no kexec here')), go: async () => {} } },
    /no kexec here$/,
  ],
  ['the machine has another architecture', 4, { machine: 'aarch64' }, /kernel is not a kernel for aarch64$/],
  [
    'the ramdisk stays silent',
    5,
    { leave: { check: async () => {}, go: async () => {} } },
    /no agent looked the node up within 10 s after the kexec$/,
  ],
])(
  'when %s, the machine reboots into the ramdisk, and the history says why',
  async (_, at, changes, reason) => {
    const uuid = await active(at, WANTED);
    if (changes) await install(uuid, at, changes);
    else expect(await warnings(uuid)).toContainEqual(expect.stringMatching(reason) as unknown);
    // The service ends only if the ramdisk runs, which nothing but the firmware has started.
    await whole.order(uuid, 'service', { service_steps: STEPS });
    await whole.reach(uuid, 'active');
    const said = await boots(uuid);
    expect(said.at(-1)).toMatch(/^The machine reboots into the ramdisk, without kexec: /);
    expect(said.at(-1)).toMatch(reason);
  },
  60_000,
);

it('a server that stops after it has told the agent goes on when it is back, and the token ends with the instance', async () => {
  const uuid = await active(6, WANTED);
  await install(uuid, 6);
  const before = await powerOns(uuid);
  await whole.order(uuid, 'service', { service_steps: STEPS });
  await until('the agent to be told', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
    return 'resident_kexec' in (body['driver_internal_info'] as object) || body['provision_state'] === 'active';
  });
  await whole.restart();
  await whole.reach(uuid, 'active');
  expect(await powerOns(uuid)).toBe(before + 1);
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect((await whole.call('GET', `/v1/nodes/${uuid}/resident_agent`)).status).toBe(404);
});

it('another value than a boolean is refused when it is set, with the name of its field', async () => {
  const made = { driver: 'redfish', driver_info: { resident_kexec: 'soon' } };
  expect(await whole.call('POST', '/v1/nodes', made)).toMatchObject({
    status: 400,
    body: { error_message: expect.stringContaining("Invalid value of driver_info/resident_kexec: Unrecognized value 'soon'") as unknown },
  });
});

it('bloomery resident installs, shows and revokes', async () => {
  const { body } = await whole.call('POST', '/v1/nodes', { driver: 'redfish', name: 'commanded' });
  const uuid = body['uuid'] as string;
  const run = (verb: string, ...more: readonly string[]) =>
    runCommand(['resident', verb, 'commanded', '--url', whole.server.apiUrl!, ...more]);
  expect(await run('install')).toMatchObject({ code: 2, errors: expect.stringContaining('use --service') as unknown });
  const installed = await run('install', '--service', 'https://ironic.example:6385');
  expect(installed.code).toBe(0);
  expect(installed.output).toContain(`resident --url https://ironic.example:6385 --node ${uuid} --token-file /etc/bloomery/resident-token`);
  const token = /'([\w-]{43})' > \/etc\/bloomery\/resident-token/.exec(installed.output)?.[1];
  expect((await database.store().residentAgents.find(uuid))?.token).toBe(token);
  expect(await run('show')).toMatchObject({ code: 0, output: 'has a token, and has never registered\n' });
  expect(await run('revoke')).toMatchObject({ code: 0 });
  expect(await run('show')).toMatchObject({ code: 2, errors: expect.stringContaining('has no token') as unknown });
});
