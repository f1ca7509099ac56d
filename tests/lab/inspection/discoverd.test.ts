/**
 * The inspect interface discoverd with the real ironic-inspector 12.5, which boots the machine and writes the node through our API, and
 * with our own introspection service in another process.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startEmbedded } from '../../../store/embedded/embedded';
import { freePort } from '../../support/free-port';
import { startRealInspector, type RealInspector } from './real-inspector';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { timeoutSignal } from '../../../wire/timeout-signal';

jest.setTimeout(1_800_000);

type Json = Readonly<Record<string, unknown>>;
type Service = Pick<RealInspector, 'url' | 'log' | 'stop'>;
let folder: string;
let api: string;
let port: number;
let connection: string;
let server: RunningServer;
let inspector: Service;

/** Our introspection service alone. It calls the conductor, another process on the same database, by JSON-RPC. */
async function startOwnService(): Promise<Service> {
  const own = await startServerProcess(
    join(folder, 'inspector'),
    { DEFAULT: { my_ip: '127.0.0.1', listen_address: '127.0.0.1', listen_port: port }, database: { connection } },
    undefined,
    ['--roles', 'inspector'],
  );
  return {
    url: `http://127.0.0.1:${port}`,
    log: own.log,
    stop: async () => {
      await own.stop();
    },
  };
}
const SERVICES: readonly (readonly [name: string, start: () => Promise<Service>])[] = [
  ['ironic-inspector 12.5', () => startRealInspector(join(folder, 'inspector'), '127.0.0.1', port, api)],
  ['our introspection service', startOwnService],
];
describe.each(SERVICES)('the inspect interface discoverd with %s', (_service, startService) => {
  let database: Awaited<ReturnType<typeof startEmbedded>> | undefined;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bloomery-discoverd-'));
    port = await freePort();
    mkdirSync(join(folder, 'database'));
    database = await startEmbedded({ stateDir: join(folder, 'database'), log: silentLog, clock: systemClock });
    connection = database.connection;
    const ours = await freePort();
    api = `http://127.0.0.1:${ours}`;
    server = await startServerProcess(join(folder, 'ours'), {
      DEFAULT: {
        my_ip: '127.0.0.1',
        enabled_hardware_types: 'fake-hardware',
        enabled_boot_interfaces: 'fake',
        enabled_deploy_interfaces: 'fake',
        enabled_inspect_interfaces: 'discoverd',
        enabled_management_interfaces: 'fake',
        enabled_power_interfaces: 'fake',
        enabled_network_interfaces: 'noop',
      },
      api: { host_ip: '127.0.0.1', port: ours },
      boot: { http_port: 0, tftp: 'false' },
      discoverd: { enabled: 'true', service_url: `http://127.0.0.1:${port}/v1`, status_check_period: 1, timeout: 10 },
      conductor: { inspect_wait_timeout: 300 },
      database: { connection },
    });
    inspector = await startService();
  });
  afterAll(async () => {
    await inspector?.stop();
    await server?.stop();
    await database?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function call(method: string, path: string, body?: unknown): Promise<Json> {
    const response = await fetch(path.startsWith('http') ? path : `${api}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(path.startsWith('http') ? {} : { 'x-openstack-ironic-api-version': 'latest' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(30_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? {} : JSON.parse(text)) as Json;
  }
  const node = (uuid: string): Promise<Json> => call('GET', `/v1/nodes/${uuid}`);
  const provision = (uuid: string, target: string): Promise<Json> => call('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
  async function reach(uuid: string, states: readonly string[], seconds = 240): Promise<Json> {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const now = await node(uuid);
      if (states.includes(now['provision_state'] as string) && now['reservation'] === null) return now;
      if (Date.now() > end)
        throw new Error(
          `${String(now['provision_state'])}: ${String(now['last_error'])}\n${readFileSync(inspector.log, 'utf8').slice(-4000)}`,
        );
      await delay(200);
    }
  }
  /** Waits until the introspection has one of these states. @returns it as the service shows it */
  async function reachIntrospection(uuid: string, states: readonly string[]): Promise<Json> {
    const end = Date.now() + 240_000;
    for (;;) {
      const now = await call('GET', `${inspector.url}/v1/introspection/${uuid}`).catch(() => undefined);
      if (now && states.includes(now['state'] as string)) return now;
      if (Date.now() > end) throw new Error(`${JSON.stringify(now)}\n${readFileSync(inspector.log, 'utf8').slice(-4000)}`);
      await delay(200);
    }
  }
  let made = 0;
  async function enrol(ports: number): Promise<{ readonly uuid: string; readonly mac: string }> {
    const mac = `52:54:00:d1:5c:${(++made).toString(16).padStart(2, '0')}`;
    const { uuid } = (await call('POST', '/v1/nodes', { driver: 'fake-hardware', name: `n${made}` })) as { uuid: string };
    if (ports > 0) await call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
    await provision(uuid, 'manage');
    await reach(uuid, ['manageable']);
    return { uuid, mac };
  }
  /** The report of an agent on a machine with two network interfaces. */
  const report = (mac: string): Json => ({
    inventory: {
      interfaces: [
        { name: 'eth0', mac_address: mac, ipv4_address: '192.0.2.5', has_carrier: true, lldp: [] },
        { name: 'eth1', mac_address: mac.replace('52:54', '52:55'), ipv4_address: '192.0.2.6', has_carrier: true, lldp: [] },
      ],
      cpu: { model_name: 'x', frequency: 2000, count: 4, architecture: 'x86_64', flags: [] },
      memory: { total: 4 << 30, physical_mb: 4096 },
      disks: [{ name: '/dev/sda', size: 100 * 2 ** 30, rotational: false, serial: 's1', vendor: 'v', model: 'm' }],
      bmc_address: '0.0.0.0',
      boot: { current_boot_mode: 'uefi', pxe_interface: mac },
      system_vendor: { product_name: 'p', serial_number: '1', manufacturer: 'm' },
    },
    root_disk: { name: '/dev/sda', size: 100 * 2 ** 30 },
    boot_interface: mac,
  });

  it("boots the machine, and saves properties and ports from the agent's report", async () => {
    const { uuid, mac } = await enrol(1);
    await provision(uuid, 'inspect');
    await reachIntrospection(uuid, ['waiting']);
    expect(await reach(uuid, ['inspect wait'])).toMatchObject({ power_state: 'power on' });
    expect(await call('GET', `/v1/nodes/${uuid}/management/boot_device`)).toMatchObject({ boot_device: 'pxe', persistent: false });
    expect(await call('POST', `${inspector.url}/v1/continue`, report(mac))).toMatchObject({ uuid });
    const after = await reach(uuid, ['manageable', 'inspect failed']);
    expect(after).toMatchObject({ provision_state: 'manageable', last_error: null, power_state: 'power off', inspection_started_at: null });
    const { cpus, cpu_arch: arch, memory_mb: memory, local_gb: disk } = after['properties'] as Json;
    // ironic-inspector writes numbers as text.
    expect([cpus, arch, memory, disk].map(String)).toEqual(['4', 'x86_64', '4096', '99']);
    const { ports } = (await call('GET', `/v1/ports/detail?node=${uuid}`)) as { ports: Json[] };
    expect(ports.map(({ address }) => address)).toContain(mac);
  });

  it('puts the error of the service into last_error when a rule fails the introspection', async () => {
    const { uuid, mac } = await enrol(1);
    await provision(uuid, 'inspect');
    await reachIntrospection(uuid, ['waiting']);
    await call('POST', `${inspector.url}/v1/rules`, {
      conditions: [{ op: 'eq', field: 'data://bad', value: true }],
      actions: [{ action: 'fail', message: 'no such machines here' }],
    });
    await expect(call('POST', `${inspector.url}/v1/continue`, { ...report(mac), bad: true })).rejects.toThrow('no such machines here');
    const { last_error: text } = await reach(uuid, ['inspect failed']);
    expect(text).toMatch(/^discoverd inspection failed: .*no such machines here/);
  });

  it('puts the error of the service into last_error when the introspection cannot start', async () => {
    const { uuid } = await enrol(0);
    await provision(uuid, 'inspect');
    const { last_error: text } = await reach(uuid, ['inspect failed']);
    expect(text).toMatch(/^discoverd inspection failed: .*No lookup attributes were found/);
  });

  it('aborts the introspection in the service when a client aborts the inspection', async () => {
    const { uuid } = await enrol(1);
    await provision(uuid, 'inspect');
    await reachIntrospection(uuid, ['waiting']);
    await provision(uuid, 'abort');
    await reach(uuid, ['inspect failed']);
    expect(await reachIntrospection(uuid, ['error'])).toMatchObject({ finished: true, error: 'Canceled by operator' });
    // Power orders, here those of the service, clear last_error; the history keeps the error.
    expect(await node(uuid)).toMatchObject({ provision_state: 'inspect failed', power_state: 'power off' });
    expect(JSON.stringify(await call('GET', `/v1/nodes/${uuid}/history`))).toContain('Inspection was aborted by request.');
  });

  it('keeps the node in inspect wait while the service is down, before and during the introspection', async () => {
    const { uuid, mac } = await enrol(1);
    await inspector.stop();
    await provision(uuid, 'inspect');
    await delay(3000);
    expect(await node(uuid)).toMatchObject({ provision_state: 'inspect wait', last_error: null });
    inspector = await startService();
    await reachIntrospection(uuid, ['waiting']);
    await inspector.stop();
    await delay(3000);
    expect(await node(uuid)).toMatchObject({ provision_state: 'inspect wait', last_error: null });
    inspector = await startService();
    await call('POST', `${inspector.url}/v1/continue`, report(mac));
    expect(await reach(uuid, ['manageable', 'inspect failed'])).toMatchObject({ provision_state: 'manageable' });
  });

  it('inspects ten nodes at once', async () => {
    const all = [];
    for (let count = 0; count < 10; count++) all.push(await enrol(1));
    for (const { uuid } of all) await provision(uuid, 'inspect');
    await Promise.all(
      all.map(async ({ uuid, mac }) => {
        await reachIntrospection(uuid, ['waiting']);
        await call('POST', `${inspector.url}/v1/continue`, report(mac));
        expect(await reach(uuid, ['manageable', 'inspect failed'], 180)).toMatchObject({ provision_state: 'manageable', last_error: null });
      }),
    );
  });
});
