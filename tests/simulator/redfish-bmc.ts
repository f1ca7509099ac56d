/** A simulated machine's Redfish service for tests, with a clock that the test sets and a file server. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../model/clock';
import { silentLog } from '../../model/log';
import type { BootSetting, PowerAction } from '../../simulator/hardware/control';
import { describeMachine, type MachineDescription } from '../../simulator/hardware/description';
import { startFirmware } from '../../simulator/hardware/firmware-start';
import { newHardware } from '../../simulator/hardware/hardware';
import { makerOf, type MakerChoice } from '../../simulator/redfish/makers/personalities';
import { serveRedfish, type System } from '../../simulator/redfish';

export const BASIC = { authorization: `Basic ${Buffer.from('admin:password').toString('base64')}` };
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown> & { readonly error?: { readonly code: string } };
}
export interface TestBmc {
  /** The state of the machine behind it, which the test sets. */
  on: boolean;
  boot: BootSetting;
  readonly acted: PowerAction[];
  /** Milliseconds since the epoch. */
  now: number;
  readonly system: System;
  /** Path → content on the file server. */
  readonly files: Map<string, string>;
  readonly filesUrl: string;
  /** The URL of the service. */
  readonly url: string;
  /** Called at each POST to the file server. */
  onPost: (headers: IncomingHttpHeaders, body: string) => void;
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  /** @param path below /redfish/v1 */
  get(path: string): Promise<Answered['body']>;
  /** Starts the machine's firmware, as at a power on. */
  start(): void;
  /** Waits until the task at this path is in this state. */
  idle(path: string, phase: string): Promise<Answered['body']>;
  close(): Promise<void>;
}

/** From now on the machine behind the BMC does what the service asks of its power. */
export const obeyPower = (bmc: TestBmc): void =>
  void Object.assign(bmc.system, {
    act: async (action: PowerAction) => {
      bmc.acted.push(action);
      if (action === 'off' || action === 'soft') bmc.on = false;
      else if (action !== 'diagnostic') {
        bmc.on = true;
        bmc.start();
      }
    },
  });

/** @param maker the habits of the service; absent: none */
export async function testBmc(description: MachineDescription = describeMachine(0, '127.0.0.1'), maker?: MakerChoice): Promise<TestBmc> {
  const files = new Map<string, string>();
  const server: Server = createServer((request, response) => {
    if (request.method === 'POST') {
      void text(request).then((body) => bmc.onPost(request.headers, body));
      response.writeHead(204).end();
      return;
    }
    const found = files.get(request.url!);
    if (found === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-length': Buffer.byteLength(found) }).end(request.method === 'HEAD' ? undefined : found);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const clock: Clock = { now: () => bmc.now, sleep: () => Promise.reject(new Error('no waiting here')) };
  const system: System = {
    name: description.name,
    macs: description.macs,
    description,
    hardware: newHardware(),
    isOn: () => bmc.on,
    act: async (action) => void bmc.acted.push(action),
    boot: () => bmc.boot,
    setBoot: (setting) => (bmc.boot = setting),
  };
  const endpoint = await serveRedfish({
    host: '127.0.0.1',
    port: 0,
    username: 'admin',
    password: 'password',
    machines: [system],
    log: silentLog,
    clock,
    random: randomBytes,
    taskMs: 10_000,
    maker: maker && makerOf(maker),
  });
  const ask: TestBmc['ask'] = async (method, path, body, headers = BASIC) => {
    const answer = await fetch(`http://127.0.0.1:${endpoint.port}${path}`, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const content = await answer.text();
    return { status: answer.status, headers: answer.headers, body: content === '' ? {} : (JSON.parse(content) as Answered['body']) };
  };
  const get: TestBmc['get'] = async (path) => (await ask('GET', `/redfish/v1${path}`)).body;
  const bmc: TestBmc = {
    on: false,
    boot: { device: 'none', persistent: false, mode: 'uefi' },
    acted: [],
    now: 1_000_000,
    system,
    files,
    ask,
    get,
    filesUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    url: `http://127.0.0.1:${endpoint.port}`,
    onPost: () => {},
    start: () => startFirmware(system.hardware, bmc.now),
    idle: async (path, phase) => {
      for (let tries = 0; tries < 1000; tries++) {
        const { body } = await ask('GET', path);
        if (body['TaskState'] === phase) return body;
        await new Promise((done) => setTimeout(done, 5));
      }
      throw new Error(`${path} does not become ${phase}: ${JSON.stringify(await ask('GET', path))}`);
    },
    close: async () => {
      await endpoint.close();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return bmc;
}
