/** The whole server in this process on a database of the test, with simulated machines and a client, for tests of flows. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadOptions } from '../../config/load';
import type { LoadedOptions } from '../../config/options';
import { systemClock } from '../../model/clock';
import { silentLog, type Log } from '../../model/log';
import { startServer } from '../../server/server';
import { answerCheck } from './answers';
import { startFleet, type Fleet, type FleetMachine } from '../../simulator/fleet/fleet';
import { requestText } from './request';
import { NEVER_MS } from './until';
import { timeoutSignal } from '../../wire/timeout-signal';

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
export type Server = Awaited<ReturnType<typeof startServer>>;
export interface WholeServer {
  readonly server: Server;
  readonly fleet: Fleet;
  /** The state directory of the server. */
  readonly stateDir: string;
  readonly image: { readonly url: string; readonly sha256: string; readonly bytes: number };
  /** One request at the newest microversion. */
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Creates a node for this machine, with its ports, in enroll. @returns its UUID */
  enrol(machine: FleetMachine, more?: Readonly<Record<string, unknown>>): Promise<string>;
  /** PUT …/states/provision; throws unless it is accepted. */
  order(uuid: string, target: string, more?: Readonly<Record<string, unknown>>): Promise<void>;
  /** Waits until the node has this state; throws with the reason when it rests in another one. */
  reach(uuid: string, state: string): Promise<Readonly<Record<string, unknown>>>;
  /** Brings a node from enroll to available. */
  provide(uuid: string): Promise<void>;
  /** instance_info with the image to deploy. */
  deployable(more?: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Stops the server and starts it again on the same database and ports. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const RESTING = /failed$|^(error|enroll|manageable|available|active)$/;
/** Milliseconds between requests for the state of a node. For a transient state, every pause is the shortest one. */
const SHORTEST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 120;

/** @param connection of an empty, migrated database */
export async function startWholeServer(
  connection: string,
  setup: {
    readonly machines: number;
    /** Absent: all machines are x86_64. */
    readonly architectures?: Parameters<typeof startFleet>[0]['architectures'];
    /** The makers of the machines; absent: they deviate from no standard. */
    readonly maker?: Parameters<typeof startFleet>[0]['maker'];
    readonly options?: Partial<LoadedOptions>;
    readonly firstMachine?: number;
    readonly log?: Log;
  },
): Promise<WholeServer> {
  const stateDir = mkdtempSync(join(tmpdir(), 'bloomery-flow-'));
  const http = join(stateDir, 'httpboot');
  mkdirSync(http);
  const bytes = randomBytes(300_000);
  writeFileSync(join(http, 'image.raw'), bytes);
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(http, name), randomBytes(1000));
  let options: LoadedOptions = {
    ...loadOptions([], {}).options,
    'DEFAULT.my_ip': '127.0.0.1',
    'DEFAULT.host': 'conductor-1',
    'conductor.graceful_shutdown_timeout': 2,
    'DEFAULT.enabled_boot_interfaces': ['ipxe'],
    'DEFAULT.enabled_deploy_interfaces': ['direct'],
    'DEFAULT.enabled_inspect_interfaces': ['agent'],
    'DEFAULT.enabled_network_interfaces': ['noop'],
    'api.host_ip': '127.0.0.1',
    'api.port': 0,
    'boot.http_host': '127.0.0.1',
    'boot.http_port': 0,
    'boot.tftp': false,
    'conductor.deploy_kernel': `file://${http}/kernel`,
    'conductor.deploy_ramdisk': `file://${http}/ramdisk`,
    ...setup.options,
  };
  const start = (): Promise<Server> =>
    startServer({ options, roles: ['api', 'conductor', 'boot'], stateDir, log: setup.log ?? silentLog, databaseUrl: connection });
  let server = await start();
  const port = (url: string): number => Number(new URL(url).port);
  // A restarted server has the same ports.
  options = { ...options, 'api.port': port(server.apiUrl!), 'boot.http_port': port(server.bootUrl!) };
  const fleet = await startFleet({
    count: setup.machines,
    first: setup.firstMachine ?? 0,
    ...(setup.architectures ? { architectures: setup.architectures } : {}),
    maker: setup.maker,
    bootUrl: server.bootUrl!,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    behaviour: { firmwareMs: 10, bootMs: 20, retryMs: 50, softOffMs: 10 },
    taskMs: 1500,
  });
  const image = { url: `${server.bootUrl!}/image.raw`, sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length };

  const check = answerCheck();
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const { status, type, text } = await requestText(`${server.apiUrl!}${path}`, method, {
      headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(240_000),
    });
    const problem = check({ method, path, minor: undefined, status, type, text });
    if (problem !== undefined) throw new Error(`a response does not match openapi.yaml: ${problem}`);
    return { status, body: type === 'application/json' && text !== '' ? (JSON.parse(text) as Answer['body']) : {} };
  };
  const must = async (method: string, path: string, body?: unknown): Promise<Answer['body']> => {
    const answer = await call(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const order: WholeServer['order'] = async (uuid, target, more = {}) => {
    await must('PUT', `/v1/nodes/${uuid}/states/provision`, { target, ...more });
  };
  const reach: WholeServer['reach'] = async (uuid, state) => {
    const end = Date.now() + NEVER_MS;
    let pauseMs = SHORTEST_PAUSE_MS;
    for (;;) {
      const node = await must('GET', `/v1/nodes/${uuid}`);
      const now = node['provision_state'] as string;
      if (now === state && node['reservation'] === null) return node;
      const wrong = now !== state && RESTING.test(now) && node['reservation'] === null && node['last_error'] !== null;
      if (wrong || Date.now() > end) throw new Error(`${uuid} is ${now}, not ${state}: ${String(node['last_error'])}`);
      await delay(pauseMs);
      if (RESTING.test(state)) pauseMs = Math.min(MAX_PAUSE_MS, pauseMs + SHORTEST_PAUSE_MS);
    }
  };
  return {
    get server() {
      return server;
    },
    fleet,
    stateDir,
    image,
    call,
    enrol: async (machine, more = {}) => {
      const { address, systemId, username, password } = machine.redfish;
      const node = await must('POST', '/v1/nodes', {
        name: machine.name,
        driver: 'redfish',
        driver_info: { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password },
        ...more,
      });
      for (const mac of machine.macs) await must('POST', '/v1/ports', { node_uuid: node['uuid'], address: mac });
      return node['uuid'] as string;
    },
    order,
    reach,
    provide: async (uuid) => {
      await order(uuid, 'manage');
      await reach(uuid, 'manageable');
      await order(uuid, 'provide');
      await reach(uuid, 'available');
    },
    deployable: (more = {}) => ({
      image_source: image.url,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: image.sha256,
      image_disk_format: 'raw',
      ...more,
    }),
    restart: async () => {
      await server.stop();
      server = await start();
    },
    close: async () => {
      await fleet.close();
      await server.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
