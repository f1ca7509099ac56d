/** The saved output of a serial console: serial-over-LAN of a simulated machine, while nobody looks, and a server that is killed meanwhile. */
import { randomBytes } from 'node:crypto';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { root } from '../../../demo/lab/root';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet } from '../../../simulator/fleet/fleet';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { freePort } from '../../support/free-port';
import { until } from '../../support/until';

const folder = mkdtempSync(join(tmpdir(), 'console-log-'));
let fleet: Awaited<ReturnType<typeof startFleet>>;
let server: RunningServer | undefined;
let url = '';
afterAll(async () => {
  await server?.stop();
  await fleet?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function call(method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${url}/v1/${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>);
}

it('what a machine says is saved while nobody looks, survives kill -9, and ends with the node', async () => {
  const [port, consolePort] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${port}`;
  const start = async (): Promise<void> => {
    server = await startServerProcess(folder, {
      DEFAULT: { enabled_hardware_types: 'ipmi', enabled_console_interfaces: 'ipmitool-socat,no-console' },
      api: { host_ip: '127.0.0.1', port },
      boot: { http_host: '127.0.0.1', http_port: 0, tftp: 'false' },
      dhcp: { dhcp_provider: 'none' },
      console: { port_range: `${consolePort}:${consolePort + 1}`, saved_log_size: 4 },
    });
  };
  await start();
  fleet = await startFleet({ count: 1, host: '127.0.0.1', log: silentLog, clock: systemClock, random: randomBytes });
  const { address, port: bmcPort, username, password } = fleet.machines[0]!.ipmi;
  const info = { ipmi_address: address, ipmi_port: bmcPort, ipmi_username: username, ipmi_password: password };
  const { uuid } = (await call('POST', 'nodes', {
    name: 'n1',
    driver: 'ipmi',
    console_interface: 'ipmitool-socat',
    driver_info: info,
  })) as {
    uuid: string;
  };
  const log = (query = ''): Promise<Readonly<Record<string, unknown>>> => call('GET', `nodes/n1/console_log${query}`);
  expect(await log()).toEqual({ start: 0, end: 0, offset: 0, next_offset: 0, text: '' });
  await call('PUT', 'nodes/n1/states/console', { enabled: true });
  // The simulated machine says on its serial line that its power changes.
  const power = async (target: string): Promise<void> => {
    await call('PUT', 'nodes/n1/states/power', { target });
    await until(target, async () => (await call('GET', 'nodes/n1'))['power_state'] === target);
  };
  const hasGrown = async (than: number): Promise<number> => {
    let end = 0;
    await until('more output', async () => {
      await power('power on');
      await power('power off');
      end = Number((await log())['end']);
      return end > than;
    });
    return end;
  };
  const before = await hasGrown(0);
  await server!.kill();
  await start();
  expect(Number((await log())['end'])).toBeGreaterThanOrEqual(before);
  await hasGrown(before);
  expect(String((await log(`?offset=0&limit=${before}`))['text']).length).toBeGreaterThan(0);
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'bin/bloomery'), 'console', 'log', 'n1', '--url', url]);
  expect(stdout.length).toBeGreaterThan(10);
  expect(stdout).not.toContain('\u001b');

  const files = join(folder, 'state', 'console-logs', uuid);
  expect(existsSync(files)).toBe(true);
  await call('PATCH', 'nodes/n1', [{ op: 'replace', path: '/owner', value: 'another' }]);
  expect(existsSync(files)).toBe(false);
  await hasGrown(0);
  expect(existsSync(files)).toBe(true);
  await call('DELETE', 'nodes/n1');
  expect(existsSync(files)).toBe(false);
}, 240_000);
