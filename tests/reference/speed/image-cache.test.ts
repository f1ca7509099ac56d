/**
 * What the deployment of a machine costs our server, and the real Ironic: processor time, bytes and requests at the source of the image.
 * Equal simulated machines download the whole image: from the server's cache (`local`), or from its source (`http`). Prints a table.
 * The real Ironic serves no files: nginx does, with sendfile and without a log, and its processor time is a column of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { until } from '../../../demo/lab/machines';
import { startServerProcess } from '../../../demo/lab/server';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { type FleetMachine, startFleet } from '../../../simulator/fleet/fleet';
import { endReference, startRealIronic } from '../../lab/inspection/real-ironic';
import { childrenOf, cpuSecondsOfTree } from '../../support/cpu-time';
import { freePort } from '../../support/free-port';

const MIB = 2 ** 20;
/** Machines of each row of the table. */
const NODES = Number(process.env['SPEED_NODES'] ?? 8);
const SIZE = Number(process.env['SPEED_MIB'] ?? 256) * MIB;
/** Seconds. */
const PATIENCE = 1800;
const HOST = '127.0.0.1';
const SOURCES = ['local', 'http'] as const;
type ImageSource = (typeof SOURCES)[number];

/** The image repeats the second piece. The first one has a partition table. */
const PIECES = [Buffer.alloc(MIB), randomBytes(MIB)] as const;
PIECES[0][450] = 0x83;
PIECES[0].writeUInt32LE(2048, 454);
PIECES[0].writeUInt32LE(2048, 458);
PIECES[0].writeUInt16LE(0xaa55, 510);

function* content(from: number, to: number): Generator<Buffer> {
  for (let at = from; at <= to;) {
    const start = at % MIB;
    const piece = PIECES[at < MIB ? 0 : 1].subarray(start, Math.min(MIB, start + to + 1 - at));
    yield piece;
    at += piece.length;
  }
}

let folder: string;
let source: Server;
let sent: { bytes: number; requests: Record<string, number> };
let sha256: string;
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'image-cache-'));
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), name);
  const hash = createHash('sha256');
  for (const piece of content(0, SIZE - 1)) hash.update(piece);
  sha256 = hash.digest('hex');
  const modified = new Date(Date.now() - 86_400_000).toUTCString();
  source = createServer((request, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [from, to] = range ? [Number(range[1]), Math.min(Number(range[2]), SIZE - 1)] : [0, SIZE - 1];
    const isSame = request.headers['if-none-match'] === '"image"';
    const kind = isSame ? 'unchanged' : request.method === 'HEAD' ? 'HEAD' : range ? 'part' : 'whole';
    sent.requests[kind] = (sent.requests[kind] ?? 0) + 1;
    const head = { etag: '"image"', 'last-modified': modified, 'accept-ranges': 'bytes' };
    if (isSame) {
      response.writeHead(304, head).end();
      return;
    }
    const more = range ? { 'content-range': `bytes ${from}-${to}/${SIZE}` } : {};
    response.writeHead(range ? 206 : 200, { ...head, ...more, 'content-length': to + 1 - from });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    const counted = function* (): Generator<Buffer> {
      for (const piece of content(from, to)) {
        sent.bytes += piece.length;
        yield piece;
      }
    };
    // A client may have seen enough.
    pipeline(Readable.from(counted(), { objectMode: false }), response).catch(() => {});
  });
  source.listen(0, HOST);
  await once(source, 'listening');
}, 600_000);
const close = async (): Promise<void> => {
  for (const step of undo.splice(0).reverse()) await step();
};
afterAll(async () => {
  await close();
  source.closeAllConnections();
  await new Promise((closed) => source.close(closed));
  rmSync(folder, { recursive: true });
}, 120_000);

interface Started {
  readonly url: string;
  /** Where the firmware of the machines boots from. */
  readonly bootUrl: string;
  readonly log: string;
  /** What is measured: name → PID of a process and its descendants. */
  readonly pids: () => Readonly<Record<string, number>>;
}
const settings = () => ({
  conductor: {
    deploy_kernel: `file://${folder}/kernel`,
    deploy_ramdisk: `file://${folder}/ramdisk`,
    file_url_allowed_paths: folder,
    automated_clean: 'false',
    // What is periodic depends on the time, not on the deployments.
    sync_power_state_interval: '86400',
  },
});
const SERVERS: Readonly<Record<string, () => Promise<Started>>> = {
  ours: async () => {
    const [port, bootPort] = [await freePort(), await freePort()];
    const server = await startServerProcess(
      join(folder, 'ours'),
      {
        ...settings(),
        DEFAULT: {
          my_ip: HOST,
          auth_strategy: 'noauth',
          enabled_hardware_types: 'ipmi,redfish',
          enabled_boot_interfaces: 'ipxe',
          enabled_deploy_interfaces: 'direct',
          enabled_network_interfaces: 'noop',
        },
        api: { host_ip: HOST, port },
        boot: { http_host: HOST, http_port: bootPort, tftp: 'false' },
        ipmi: { min_command_interval: 1 },
      },
      undefined,
      ['--roles', 'api,conductor,boot'],
    );
    undo.push(() => server.stop());
    const [database] = childrenOf(server.pid);
    return {
      url: `http://${HOST}:${port}`,
      bootUrl: `http://${HOST}:${bootPort}`,
      log: server.log,
      pids: () => ({ server: server.pid, database: database! }),
    };
  },
  real: async () => {
    const webPort = await freePort();
    const at = join(folder, 'real');
    const web = await startNginx(join(folder, 'nginx'), join(at, 'http'), webPort);
    const bootUrl = `http://${HOST}:${webPort}`;
    const ironic = await startRealIronic(at, HOST, await freePort(), {
      ...settings(),
      deploy: { http_root: join(at, 'http'), http_url: bootUrl },
      ipmi: { min_command_interval: '1' },
      inspector: { require_managed_boot: 'true' },
    });
    undo.push(() => ironic.stop());
    return { url: ironic.url, bootUrl, log: ironic.log, pids: () => ({ server: ironic.pid, web: web.pid! }) };
  },
};

/** Firmware of simulated machines requests its script at `/ipxe/MAC`, and Ironic writes it to pxelinux.cfg. */
async function startNginx(at: string, root: string, port: number): Promise<ChildProcess> {
  mkdirSync(at);
  const file = join(at, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; user root; worker_processes 1; pid ${at}/pid; error_log ${at}/log;
events {}
http {
  access_log off; sendfile on; client_body_temp_path ${at}; proxy_temp_path ${at};
  server { listen ${HOST}:${port}; root ${root}; rewrite ^/ipxe/(.*)$ /pxelinux.cfg/$1; }
}
`,
  );
  const child = spawn('/usr/sbin/nginx', ['-p', at, '-c', file], { stdio: ['ignore', 'ignore', 'inherit'] });
  undo.push(() => endReference(child));
  await until(
    60,
    () => `nginx\n${readFileSync(join(at, 'log'), 'utf8')}`,
    () =>
      fetch(`http://${HOST}:${port}/`).then(
        () => true,
        () => false,
      ),
  );
  return child;
}

async function call<T>(url: string, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${url}/v1${path}`, {
    method,
    headers: { 'x-openstack-ironic-api-version': '1.95', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
/** The driver of half of the machines is ipmi. */
const hardwareOf = ({ ipmi, redfish }: FleetMachine, index: number): object =>
  index % 2 === 0
    ? {
        driver: 'ipmi',
        driver_info: {
          ipmi_address: ipmi.address,
          ipmi_port: ipmi.port,
          ipmi_username: ipmi.username,
          ipmi_password: ipmi.password,
          ipmi_cipher_suite: 17,
        },
      }
    : {
        driver: 'redfish',
        driver_info: {
          redfish_address: redfish.address,
          redfish_system_id: redfish.systemId,
          redfish_username: redfish.username,
          redfish_password: redfish.password,
        },
      };
async function enrol({ url }: Started, machine: FleetMachine, index: number, from: ImageSource): Promise<void> {
  const { uuid } = await call<{ uuid: string }>(url, 'POST', '/nodes', {
    name: machine.name,
    ...hardwareOf(machine, index),
    boot_interface: 'ipxe',
    deploy_interface: 'direct',
    network_interface: 'noop',
    properties: { capabilities: 'boot_mode:uefi' },
    instance_info: {
      image_source: `http://${HOST}:${(source.address() as AddressInfo).port}/image.raw`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: sha256,
      image_disk_format: 'raw',
      image_download_source: from,
    },
  });
  await call(url, 'POST', '/ports', { node_uuid: uuid, address: machine.macs[0] });
}
/** Milliseconds. An answer costs processor time. */
const ASK_EVERY = 10_000;
/** @param isSoon whether the server may be asked more often than seldom */
async function reach(
  { url, log }: Started,
  names: readonly string[],
  [target, state]: readonly [target: string, state: string],
  isSoon: () => boolean = () => true,
): Promise<void> {
  for (const name of names) await call(url, 'PUT', `/nodes/${name}/states/provision`, { target });
  let [seen, asked] = ['', Date.now()];
  await until(
    PATIENCE,
    () => `all nodes to be ${state}: ${seen}\n${readFileSync(log, 'utf8').slice(-3000)}`,
    async () => {
      if (!isSoon() && Date.now() - asked < ASK_EVERY) return false;
      asked = Date.now();
      const { nodes } = await call<{ nodes: { name: string; provision_state: string; last_error: string | null }[] }>(
        url,
        'GET',
        '/nodes?fields=name,provision_state,last_error',
      );
      const own = nodes.filter(({ name }) => names.includes(name));
      seen = own.map((node) => `${node.name} ${node.provision_state} ${node.last_error ?? ''}`).join('\n');
      if (own.some(({ provision_state: now }) => /fail|error/.test(now))) throw new Error(seen);
      return own.every(({ provision_state: now }) => now === state);
    },
  );
}

interface Measured {
  readonly seconds: number;
  /** Processor seconds. */
  readonly used: Readonly<Record<string, number>>;
  readonly sent: typeof sent;
}
async function deploy(server: Started, machines: readonly FleetMachine[]): Promise<Measured> {
  sent = { bytes: 0, requests: {} };
  const now = (): Readonly<Record<string, number>> =>
    Object.fromEntries(Object.entries(server.pids()).map(([name, pid]) => [name, cpuSecondsOfTree(pid)]));
  const [before, begun] = [now(), Date.now()];
  await reach(
    server,
    machines.map(({ name }) => name),
    ['active', 'active'],
    () => machines.every(({ control }) => control.phase() === 'system'),
  );
  const [after, seconds] = [now(), (Date.now() - begun) / 1000];
  for (const { control } of machines) expect(control.content('/dev/sda')).toMatchObject({ sha256, size: SIZE });
  return { seconds, used: Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - before[name]!])), sent };
}

it('deploys machines by both servers, and ours needs less processor time', async () => {
  const totals: Record<string, number> = {};
  const rows: string[] = [];
  for (const [name, start] of Object.entries(SERVERS)) {
    const server = await start();
    const fleet = await startFleet({
      count: SOURCES.length * NODES,
      bootUrl: server.bootUrl,
      host: HOST,
      // Ironic drops the heartbeat of a step that is over before it has let the node go; the next one is minutes away.
      behaviour: { bootMs: 2000, stepMs: 3000 },
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
    });
    undo.push(() => fleet.close());
    const names = fleet.machines.map((machine) => machine.name);
    for (const [index, machine] of fleet.machines.entries()) await enrol(server, machine, index, SOURCES[Math.floor(index / NODES)]!);
    await reach(server, names, ['manage', 'manageable']);
    await reach(server, names, ['provide', 'available']);
    for (const [at, from] of SOURCES.entries()) {
      const { seconds, used, sent: bySource } = await deploy(server, fleet.machines.slice(at * NODES, (at + 1) * NODES));
      const { database = 0, web = 0 } = used;
      totals[`${name} ${from}`] = used['server']! + web;
      const columns = [used['server']! - database, database, web, used['server']! + web].map((value) =>
        ((value / NODES) * 1000).toFixed(0),
      );
      const requests = Object.entries(bySource.requests).map(([kind, count]) => `${count} ${kind}`);
      rows.push(
        `| ${[from, name, seconds.toFixed(0), ...columns, (bySource.bytes / SIZE).toFixed(3), requests.toSorted().join(', ')].join(' | ')} |`,
      );
      process.stderr.write(`${rows.at(-1)}\n`);
      if (name === 'ours' && from === 'local') expect(bySource.requests['whole']).toBe(1);
    }
    await close();
  }
  process.stderr.write(
    [
      `${NODES} machines, ${SIZE / MIB} MiB; processor time in ms for each machine; bytes as a multiple of the image`,
      '| image from | server | s | server, ms | database, ms | web server, ms | together, ms | bytes of the source | requests to it |',
      ...rows.toSorted(),
      '',
    ].join('\n'),
  );
  for (const from of SOURCES) expect(totals[`ours ${from}`]).toBeLessThan(totals[`real ${from}`]!);
}, 20_000_000);
