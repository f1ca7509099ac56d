/**
 * The conductor's process is killed (SIGKILL) while lists of steps wait for an operator, pause before an attempt, wait before the ramdisk
 * boots, run, and boot the ramdisk. It starts again, and each list goes on. What is out of service stays so. The API and the boot service
 * are a process of their own, since a machine that finds no boot service does not boot.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../../simulator/fleet/fleet';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { openProcesses } from '../../support/processes';
import { requestText } from '../../support/request';
import { until } from '../../support/until';
import { timeoutSignal } from '../../../wire/timeout-signal';

const database = useDatabase();
const processes = openProcesses(() => database.connection());
const folder = mkdtempSync(join(tmpdir(), 'bloomery-killed-'));
let fleet: Fleet;
let url = '';
let settings = '';
const startHost = async (host: string, roles: string): Promise<void> => {
  const said = await processes.start(host, roles, `[DEFAULT]\nhost = ${host}\n${settings}`);
  if (typeof said !== 'string') throw new Error(said.errors);
};
const start = (): Promise<void> => startHost('conductor-1', 'conductor');
const kill = async (): Promise<void> => {
  await processes.end('conductor-1', 'SIGKILL');
};

beforeAll(async () => {
  const [port, boot] = [await freePort(), await freePort()];
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(1000));
  url = `http://127.0.0.1:${port}`;
  settings = `
my_ip = 127.0.0.1
enabled_boot_interfaces = ipxe
enabled_deploy_interfaces = direct
enabled_inspect_interfaces = agent
enabled_network_interfaces = noop
[api]
host_ip = 127.0.0.1
port = ${port}
[boot]
http_host = 127.0.0.1
http_port = ${boot}
tftp = false
[conductor]
heartbeat_interval = 1
heartbeat_timeout = 5
check_provision_state_interval = 1
deploy_kernel = file://${folder}/kernel
deploy_ramdisk = file://${folder}/ramdisk
[deploy]
http_url = http://127.0.0.1:${boot}
[service_catalog]
endpoint_override = ${url}
[redfish]
connection_attempts = 1
connection_retry_interval = 0
`;
  await startHost('front', 'api,boot');
  await start();
  fleet = await startFleet({
    count: 5,
    bootUrl: `http://127.0.0.1:${boot}`,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    behaviour: { firmwareMs: 10, bootMs: 20, retryMs: 50, softOffMs: 10 },
  });
}, 240_000);
afterAll(async () => {
  await fleet?.close();
  await processes.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

type Body = Readonly<Record<string, unknown>>;
async function call(method: string, path: string, body?: unknown): Promise<Body> {
  const { status, text } = await requestText(`${url}${path}`, method, {
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}
const node = (uuid: string): Promise<Body> => call('GET', `/v1/nodes/${uuid}`);
const order = (uuid: string, target: string, more: object = {}) => call('PUT', `/v1/nodes/${uuid}/states/provision`, { target, ...more });
async function reach(uuid: string, state: string, more: (found: Body) => boolean = () => true): Promise<void> {
  let found: Body = {};
  const isThere = async (): Promise<boolean> => {
    found = await node(uuid);
    const { provision_state: now, last_error: error } = found;
    if (typeof error === 'string' && (now as string).endsWith('failed')) throw new Error(`${uuid} is ${now as string}: ${error}`);
    return now === state && found['reservation'] === null && more(found);
  };
  await until(`${uuid} in ${state}`, isThere).catch((error: unknown) => {
    const { provision_state: now, reservation, clean_step: at, power_state: power, driver_internal_info: info } = found;
    throw new Error(`it stays so: ${JSON.stringify({ now, reservation, at, power, info })}`, { cause: error });
  });
}
async function manageable(machine: FleetMachine): Promise<string> {
  const { address, systemId, username, password } = machine.redfish;
  const { uuid } = await call('POST', '/v1/nodes', {
    name: machine.name,
    driver: 'redfish',
    automated_clean: false,
    driver_info: { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password },
  });
  for (const mac of machine.macs) await call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
  await order(uuid as string, 'manage');
  await reach(uuid as string, 'manageable');
  return uuid as string;
}
const step = (name: string, more: object = {}) => ({ interface: 'power', step: name, ...more });
const METADATA = { interface: 'deploy', step: 'erase_devices_metadata' };
async function stepsOf(uuid: string): Promise<readonly string[]> {
  await database.eventsReadable();
  const { events } = (await call('GET', `/v1/events?node=${uuid}&kind=step&limit=500`)) as {
    readonly events: readonly { readonly payload: { readonly step: string } }[];
  };
  return [...new Set(events.map(({ payload }) => payload.step))];
}
const internal = ({ driver_internal_info: info }: Body): Body => info as Body;

it('lists of steps go on after kill -9, wherever it comes', async () => {
  const [confirms, retries, waits, runs, rests] = await Promise.all(fleet.machines.map(manageable));
  const [, broken, , slow] = fleet.machines;
  const clean = (uuid: string | undefined, ...steps: readonly object[]) => order(uuid!, 'clean', { clean_steps: steps });

  broken!.faults.now = { redfish_error: ['*'] };
  await clean(confirms, step('power_off'), step('power_on', { confirm: 'Is the cable in port 2?' }), METADATA);
  await clean(retries, step('power_off', { on_failure: 'retry(20, 2)' }), METADATA);
  await clean(waits, step('power_off'), step('wait', { args: { seconds: 6 } }), METADATA);
  const until6 = { reason: 'a fan is replaced', until: new Date(Date.now() + 3_600_000).toISOString() };
  await call('PUT', `/v1/nodes/${rests!}/out_of_service`, until6);
  await reach(confirms!, 'clean hold');
  await reach(retries!, 'clean wait', ({ clean_step: at }) => (at as Body)['waits_for'] === 'retry');
  await reach(waits!, 'clean wait', ({ clean_step: at }) => (at as Body)['step'] === 'wait');
  slow!.faults.now = { latency: 3000 };
  await clean(runs, step('power_on'), METADATA);
  await until('the step runs', async () => ((await node(runs!))['clean_step'] as Body)['step'] === 'power_on');
  await kill();

  broken!.faults.now = {};
  slow!.faults.now = {};
  await start();
  expect(await node(rests!)).toMatchObject({
    maintenance: true,
    maintenance_reason: expect.stringContaining('a fan is replaced') as unknown,
  });
  expect(await node(confirms!)).toMatchObject({ provision_state: 'clean hold', clean_step: { confirm: 'Is the cable in port 2?' } });
  await order(confirms!, 'unhold');
  // The ramdisk boots: killed again.
  await reach(waits!, 'clean wait', (found) => internal(found)['ramdisk_boot'] !== 'later');
  await kill();
  await start();
  for (const uuid of [confirms, retries, waits, runs]) {
    await reach(uuid!, 'manageable');
    expect(await node(uuid!)).toMatchObject({ last_error: null, clean_step: {}, maintenance: false });
  }
  expect(await stepsOf(confirms!)).toEqual(['power.power_off', 'power.power_on', 'deploy.erase_devices_metadata']);
  expect(await stepsOf(retries!)).toEqual(['power.power_off', 'deploy.erase_devices_metadata']);
  expect(await stepsOf(waits!)).toEqual(['power.power_off', 'power.wait', 'deploy.erase_devices_metadata']);
  expect(await stepsOf(runs!)).toEqual(['power.power_on', 'deploy.erase_devices_metadata']);
  // The agent may erase while no conductor runs: there is one certificate for each time.
  await clean(waits, METADATA);
  await reach(waits!, 'clean wait');
  await kill();
  await start();
  await reach(waits!, 'manageable');
  const certified = async (uuid: string | undefined) => (await call('GET', `/v1/erasures?node=${uuid!}`))['erasures'];
  for (const [uuid, count] of [[confirms, 1] as const, [retries, 1] as const, [runs, 1] as const, [waits, 2] as const])
    expect(await certified(uuid)).toHaveLength(count);
  await call('DELETE', `/v1/nodes/${rests!}/out_of_service`);
  expect(await node(rests!)).toMatchObject({ maintenance: false, maintenance_reason: null, provision_state: 'manageable' });
}, 600_000);
