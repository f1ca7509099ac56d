/**
 * Two conductors and one machine, which must get no order from the conductor that lost its node. Each test stops a conductor between two
 * orders of one power change. The other conductor takes the node over and switches the machine off. Then the first one resumes, and the
 * machine must stay off.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet, type FleetMachine } from '../../simulator/fleet/fleet';
import { nodeOf } from '../../simulator/fleet/describe-node';
import { startEmbedded } from '../../store/embedded/embedded';
import type { Sections } from '../../demo/lab/server';
import { freePort } from '../support/free-port';
import { until as untilTrue } from '../support/until';
import type { Body } from './client';
import { startDatabaseProxy, type DatabaseProxy } from './cut';
import { startProcess, type Process } from './process';
import { timeoutSignal } from '../../wire/timeout-signal';

type Embedded = Awaited<ReturnType<typeof startEmbedded>>;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-fencing-'));
let postgres: Embedded;
let fleet: Fleet;
const processes = new Map<string, Process>();
const proxies = new Map<string, DatabaseProxy>();

const sections = (host: string, port: number, connection: string): Sections => ({
  DEFAULT: {
    my_ip: '127.0.0.1',
    host,
    enabled_hardware_types: 'ipmi',
    enabled_boot_interfaces: 'ipxe',
    enabled_deploy_interfaces: 'direct',
    enabled_inspect_interfaces: 'no-inspect',
    enabled_network_interfaces: 'noop',
  },
  api: { host_ip: '127.0.0.1', port },
  database: { connection },
  conductor: { heartbeat_interval: 1, heartbeat_timeout: 4, sync_power_state_interval: 0 },
});

beforeAll(async () => {
  mkdirSync(join(folder, 'database'));
  postgres = await startEmbedded({ stateDir: join(folder, 'database'), log: silentLog, clock: systemClock, durable: false });
  fleet = await startFleet({
    count: 2,
    bootUrl: 'http://127.0.0.1:1',
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    // Longer than the time after which a conductor counts as dead.
    behaviour: { softOffMs: 12_000 },
  });
  for (const host of ['anna', 'bert']) {
    const port = await freePort();
    const proxy = await startDatabaseProxy(postgres.connection);
    proxies.set(host, proxy);
    processes.set(host, await startProcess(join(folder, host), port, sections(host, port, proxy.connection)));
  }
});
afterAll(async () => {
  for (const process of processes.values()) await process.kill();
  for (const proxy of proxies.values()) await proxy.close();
  await fleet.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(host: string, method: string, path: string, body?: unknown): Promise<Body> {
  const response = await fetch(`${processes.get(host)!.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}
async function until(host: string, uuid: string, condition: (node: Body) => boolean): Promise<Body> {
  for (const end = Date.now() + 240_000; ;) {
    await delay(100);
    const node = await ask(host, 'GET', `/v1/nodes/${uuid}`);
    if (condition(node)) return node;
    if (Date.now() > end) throw new Error(`the node did not reach the expected state: ${JSON.stringify(node)}`);
  }
}
const isFree = (node: Body): boolean => node['reservation'] === null && node['target_power_state'] === null;
const power = (host: string, uuid: string, target: string): Promise<Body> => ask(host, 'PUT', `/v1/nodes/${uuid}/states/power`, { target });

/** By IPMI, which has no soft reboot: it takes two orders. */
async function enrol(machine: FleetMachine): Promise<string> {
  const { uuid } = await ask('anna', 'POST', '/v1/nodes', nodeOf(machine, 'ipmi').node);
  await power('anna', uuid as string, 'power on');
  await until('anna', uuid as string, (node) => node['power_state'] === 'power on' && isFree(node));
  return uuid as string;
}

it.each<[reason: string, interrupt: (host: string) => void, restore: (host: string) => void]>([
  ['was suspended', (host) => processes.get(host)!.signal('SIGSTOP'), (host) => processes.get(host)!.signal('SIGCONT')],
  ['lost the database', (host) => proxies.get(host)!.cut(), (host) => proxies.get(host)!.restore()],
])(
  'a conductor that %s sends no requests to the machine after another conductor has taken over the node',
  async (reason, interrupt, restore) => {
    const machine = fleet.machines[reason === 'was suspended' ? 0 : 1]!;
    const uuid = await enrol(machine);
    const act = jest.spyOn(machine.control, 'act');
    await power('anna', uuid, 'soft rebooting');
    const { reservation: first } = await until('anna', uuid, (node) => node['reservation'] !== null);
    const holder = first as string;
    const successor = holder === 'anna' ? 'bert' : 'anna';
    // The soft power off takes the machine a while; afterwards the conductor would switch the machine on.
    await untilTrue('the conductor orders the soft power off', () => act.mock.calls.some(([action]) => action === 'soft'));
    interrupt(holder);
    try {
      const left = await until(successor, uuid, isFree);
      expect(left['last_error']).toMatch(/aborted/);
      await power(successor, uuid, 'power off');
      await until(successor, uuid, (node) => isFree(node) && node['power_state'] === 'power off');
      expect(machine.control.phase()).toBe('off');
    } finally {
      restore(holder);
    }
    // Long enough for the rest of the first conductor's power change, and for its return among the conductors.
    await delay(6000);
    expect(machine.control.phase()).toBe('off');
    expect(await until(successor, uuid, isFree)).toMatchObject({ power_state: 'power off' });
    const { conductors } = await ask(successor, 'GET', '/v1/conductors');
    expect(conductors as readonly Body[]).toEqual([
      expect.objectContaining({ hostname: 'anna', alive: true }),
      expect.objectContaining({ hostname: 'bert', alive: true }),
    ]);
  },
  900_000,
);
