/**
 * The built server in a process of its own, with clients that attack it, and a watchdog that calls `GET /` meanwhile.
 * HOSTILE_COSTS=FILE appends what each attack cost, for comparisons. HOSTILE_URL attacks a server that runs and has other work
 * (scripts/hostile.mjs): it is neither watched nor bounded then.
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { useDatabase } from '../support/database';
import { openProcesses } from '../support/processes';
import { until } from '../support/until';

/** What an attack cost. CPU time, unlike the wall clock, does not depend on what else the machine does. */
interface Cost {
  readonly cpuSeconds: number;
  readonly grownMiB: number;
  /** CPU time of the longest turn of the event loop (longest-turn.ts). */
  readonly longestTurnMs: number;
  /** The slowest answer to `GET /`, by the wall clock: a figure to look at, without a bound. */
  readonly worstMs: number;
}
interface Gauges {
  readonly cpu: number;
  readonly memory: number;
  /** Open files and connections. */
  readonly files: number;
}
interface Reply {
  readonly status: number;
  readonly text: string;
}
interface Send {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}
export interface AttackedServer {
  /** The path is sent as it is written. */
  call(method: string, path: string, send?: Send): Promise<Reply>;
  /** A connection without HTTP; it is closed after the test. */
  connect(localAddress?: string): Socket;
  gauges(): Promise<Gauges>;
  /** Closes the connections of `connect` when the work is done. */
  attack(work: () => Promise<unknown>): Promise<Cost>;
}

/**
 * Bounds that a machine twice as slow, and full of other work whose processes share its caches, still meets. Nothing here is bounded by
 * the wall clock. The largest figures of a machine with twelve processes for two processors: 1.6 s, 62 MiB and 270 ms.
 * Without limits pipelined requests took 83 s of CPU time.
 */
const MAX_CPU_SECONDS = 8;
const MAX_GROWN_MIB = 150;
const MAX_TURN_MS = 1000;
/** Files and connections that come and go without an attack, such as connections to the database. */
const USUAL_FILES = 20;
const OTHER_SERVER = process.env['HOSTILE_URL'];
/** The other clients of that server have another address, so that the limits of a source are for the attacks. */
const LOCAL_ADDRESS = OTHER_SERVER === undefined ? '127.0.0.1' : '127.0.0.9';
/** @param most bounds of this attack, in place of those of all attacks */
export function expectBounded(
  { cpuSeconds, grownMiB, longestTurnMs }: Cost,
  { turnMs = MAX_TURN_MS, grown = MAX_GROWN_MIB }: { readonly turnMs?: number; readonly grown?: number } = {},
): void {
  if (OTHER_SERVER !== undefined) return;
  expect(cpuSeconds).toBeLessThan(MAX_CPU_SECONDS);
  expect(grownMiB).toBeLessThan(grown);
  expect(longestTurnMs).toBeLessThan(turnMs);
}

const MIB = 2 ** 20;
const WATCH_EVERY_MS = 50;

/**
 * To be called once at the top of a test file.
 * @param authentication its options in [DEFAULT]
 * @param limits options in [api]
 * @param boot options of the boot services, at the end of [boot]
 */
export function useAttackedServer(authentication = 'auth_strategy = noauth', limits = '', boot?: string): AttackedServer {
  const database = useDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-hostile-'));
  const turnsFile = join(folder, 'turns');
  const probe = join(__dirname, '../../dist/tests/hostile/longest-turn.js');
  const processes = openProcesses(() => database.connection(), {
    NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --require "${probe}"`,
    TURNS_FILE: turnsFile,
  });
  const agent = new Agent({ maxSockets: 256 });
  // A connection for each call: the server may close an idle one while the next request is on its way.
  const watchdog = new Agent();
  const sockets = new Set<Socket>();
  let port: number;
  beforeAll(async () => {
    if (OTHER_SERVER !== undefined) {
      port = Number(new URL(OTHER_SERVER).port);
      return;
    }
    const text = `[DEFAULT]\n${authentication}\nenabled_hardware_types = fake-hardware\nrpc_transport = none
[api]\nhost_ip = 127.0.0.1\nport = 0\n${limits}\n[dhcp]\ndhcp_provider = none\n[boot]\nhttp_port = 0\nhttp_host = 127.0.0.1\n${boot ?? 'tftp = false'}\n`;
    const started = await processes.start('attacked', boot === undefined ? 'api,conductor' : 'api,conductor,boot', text);
    if (typeof started !== 'string') throw new Error(started.errors);
    port = Number(new URL(started).port);
  });
  afterEach(() => sockets.forEach((socket) => socket.destroy()));
  afterAll(async () => {
    agent.destroy();
    watchdog.destroy();
    await processes.close();
    rmSync(folder, { recursive: true });
  });

  const callBy = (by: Agent, method: string, path: string, { headers = {}, body }: Send = {}): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, agent: by, headers, localAddress: LOCAL_ADDRESS }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString() }));
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const gauges = async (): Promise<Gauges> => {
    const { text } = await callBy(watchdog, 'GET', '/metrics');
    const valueOf = (name: string): number => Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
    return {
      cpu: valueOf('process_cpu_seconds_total'),
      memory: valueOf('process_resident_memory_bytes'),
      files: valueOf('process_open_fds'),
    };
  };

  return {
    call: (...words) => callBy(agent, ...words),
    gauges,
    connect: (localAddress = LOCAL_ADDRESS) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
      sockets.add(socket);
      return socket;
    },
    async attack(work) {
      if (OTHER_SERVER !== undefined) {
        await work();
        sockets.forEach((socket) => socket.destroy());
        return { cpuSeconds: NaN, grownMiB: NaN, longestTurnMs: NaN, worstMs: NaN };
      }
      const before = await gauges();
      writeFileSync(turnsFile, '');
      let worstMs = 0;
      let peak = 0;
      let over = false;
      const watch = async (): Promise<void> => {
        while (!over) {
          const began = performance.now();
          await callBy(watchdog, 'GET', '/');
          worstMs = Math.max(worstMs, performance.now() - began);
          peak = Math.max(peak, (await gauges()).memory);
          await delay(WATCH_EVERY_MS);
        }
      };
      const watching = watch();
      await work().finally(() => (over = true));
      await watching;
      sockets.forEach((socket) => socket.destroy());
      await until('the connections of the attack are closed', async () => (await gauges()).files <= before.files + USUAL_FILES);
      const after = await gauges();
      const longestTurnMs = Math.max(0, ...readFileSync(turnsFile, 'utf8').split('\n').map(Number));
      const cost = {
        cpuSeconds: after.cpu - before.cpu,
        grownMiB: (Math.max(peak, after.memory) - before.memory) / MIB,
        longestTurnMs,
        worstMs,
      };
      if (process.env['HOSTILE_COSTS'])
        appendFileSync(process.env['HOSTILE_COSTS'], `${expect.getState().currentTestName} ${JSON.stringify(cost)}\n`);
      return cost;
    },
  };
}
