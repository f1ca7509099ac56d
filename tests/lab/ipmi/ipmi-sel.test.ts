/**
 * The event log of an IPMI BMC that we did not write, in front of a whole server: what ipmitool adds to it is an alert within an interval,
 * ends with its deassertion or with the log, and nobody asks for it.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../model/records';
import type { MachineControl } from '../../../simulator/hardware/control';
import { startIpmiSim, type IpmiSim } from '../../../demo/lab/ipmi-sim';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { until } from '../../../demo/lab/machines';
import { freePort } from '../../support/free-port';
import { needs } from '../support/needs';

const run = promisify(execFile);
/** Seconds. */
const INTERVAL = 5;
const PATIENCE = 120;
jest.setTimeout(4 * PATIENCE * 1000);
let folder: string;
let bmc: IpmiSim;
let server: RunningServer;
let url: string;
let node: string;
const machine: MachineControl = {
  name: 'logged',
  macs: [],
  boot: () => ({ device: 'none', persistent: false, mode: null }),
  setBoot: () => {},
  isOn: () => true,
  act: async () => {},
};
async function call(method: string, path: string, body?: unknown): Promise<JsonObject> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'X-OpenStack-Ironic-API-Version': 'latest', 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as JsonObject);
}
const ipmitool = async (...args: readonly string[]): Promise<string> => {
  const { stdout } = await run(
    'ipmitool',
    ['-I', 'lanplus', '-C', '3', '-H', bmc.address, '-p', String(bmc.port), '-U', bmc.username, '-P', bmc.password, ...args],
    { timeout: 60_000 },
  );
  return stdout;
};
/** The fan 30h, beyond its lower critical threshold or not. @param direction bit 7: deassertion */
async function log(direction: number, sensor = 0x30): Promise<void> {
  const file = join(folder, 'event');
  writeFileSync(file, `0x04 0x04 0x${sensor.toString(16)} 0x${(direction | 0x01).toString(16)} 0x52 0x00 0x00\n`);
  await ipmitool('sel', 'add', file);
}
const alerts = async (): Promise<readonly JsonObject[]> =>
  (await call('GET', `/v1/nodes/${node}/health`))['alerts'] as readonly JsonObject[];
/** Seconds until the open alerts are about these parts. */
async function seen(...subjects: readonly string[]): Promise<number> {
  const began = Date.now();
  const found = async (): Promise<string> =>
    (await alerts())
      .map(({ subject }) => String(subject))
      .sort()
      .join();
  await until(
    PATIENCE,
    () => `alerts of ${subjects.join()}: ${server.logEnd()}`,
    async () => (await found()) === [...subjects].sort().join(),
  );
  return (Date.now() - began) / 1000;
}

beforeAll(async () => {
  needs({ ipmitool: 'ipmitool', ipmi_sim: 'openipmi' });
  folder = mkdtempSync(join(tmpdir(), 'bloomery-ipmi-sel-'));
  bmc = await startIpmiSim(machine, {
    address: '127.0.0.1',
    port: await freePort(),
    folder,
    emulation: ['sel_enable 0x20 100 0x0a', 'sel_add 0x20 0x02 0 0x10 0x5e 0x5f 0x20 0 4 4 0x31 1 0x52 0 0'],
  });
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  server = await startServerProcess(join(folder, 'server'), {
    DEFAULT: { enabled_hardware_types: 'ipmi' },
    api: { host_ip: '127.0.0.1', port },
    boot: { http_port: 0, tftp: 'false' },
    health: { log_interval: INTERVAL },
  });
  const created = await call('POST', '/v1/nodes', {
    driver: 'ipmi',
    driver_info: { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password },
  });
  node = String(created['uuid']);
  await call('PUT', `/v1/nodes/${node}/states/provision`, { target: 'manage' });
  await until(
    PATIENCE,
    () => `manageable: ${server.logEnd()}`,
    async () => (await call('GET', `/v1/nodes/${node}`))['provision_state'] === 'manageable',
  );
});
afterAll(async () => {
  await server?.stop();
  await bmc?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('an entry that ipmitool adds is an alert within an interval, and its deassertion ends it', async () => {
  // What was in the log before the first reading raises nothing, and neither does what is added before it.
  await until(
    PATIENCE,
    () => `the first readings: ${server.logEnd()}`,
    async () => {
      await log(0, 0x33);
      return (await alerts()).length > 0;
    },
  );
  await seen('Fan 0x33');
  await log(0x80, 0x33);
  await seen();
  await log(0);
  const raised = await seen('Fan 0x30');
  expect(await alerts()).toMatchObject([{ source: 'log', rule: 'fan_failed', severity: 'critical' }]);
  await log(0, 0x32);
  await seen('Fan 0x30', 'Fan 0x32');
  await log(0x80);
  const cleared = await seen('Fan 0x32');
  await ipmitool('sel', 'clear');
  const emptied = await seen();
  await log(0);
  await seen('Fan 0x30');
  console.log(`raised after ${raised} s, ended after ${cleared} s, ended with the log after ${emptied} s; the interval is ${INTERVAL} s`);
});
