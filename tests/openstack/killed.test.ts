/**
 * The server process is killed (SIGKILL) before and after each change that a flow makes in a real Neutron. The next process ends the flow,
 * and leaves in Neutron and on the node what a flow without a kill leaves. tests/flows has more flows, beside a stand-in for Neutron.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inParallel } from '../../conductor/runtime/parallel';
import { openClient, type Client } from '../../demo/client';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet } from '../../simulator/fleet/fleet';
import { timeoutSignal } from '../../wire/timeout-signal';
import { startMariadb, type RealMariadb } from '../lab/support/mariadb';
import { startServerProcess, type RunningServer, type Sections } from '../../demo/lab/server';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import { writeImage, writeRamdisk } from './services/boot-files';
import { makeNetworks } from './services/cloud';
import { CACHED, startKeystone, type RealKeystone } from './services/keystone';
import { startNeutron, SWITCH, type RealNeutron } from './services/neutron';

/** The life of a node: each operation begins where the one before ended. */
const OPERATIONS = [
  { name: 'clean', target: 'provide', ends: 'available' },
  { name: 'deploy', target: 'active', ends: 'active' },
  { name: 'rescue', target: 'rescue', ends: 'rescue' },
  { name: 'unrescue', target: 'unrescue', ends: 'active' },
  { name: 'rebuild', target: 'rebuild', ends: 'active' },
  { name: 'tear-down', target: 'deleted', ends: 'available' },
] as const;
type Operation = (typeof OPERATIONS)[number];
/** The operations that lead to the beginning of one; others would only take time. */
const BEFORE: Readonly<Record<Operation['name'], readonly Operation['name'][]>> = {
  clean: [],
  deploy: ['clean'],
  rescue: ['clean', 'deploy'],
  unrescue: ['clean', 'deploy', 'rescue'],
  rebuild: ['clean', 'deploy'],
  'tear-down': ['clean', 'deploy'],
};
/** Whether the server is killed before Neutron gets a change, or after Neutron has made it. In both cases, it gets no response. */
const FATES = ['before', 'after'] as const;
/** One without a kill, and one for each change and fate. */
const MACHINES = 60;

/** The change whose response is lost. */
interface Lost {
  readonly at: number;
  readonly fate: (typeof FATES)[number];
}
interface Node {
  readonly uuid: string;
  readonly mac: string;
  readonly port: string;
  readonly vif: string;
  /** The changes in Neutron of the current operation. */
  readonly changes: string[];
  lost: Lost | undefined;
  isLost: boolean;
}

const folder = mkdtempSync(join(tmpdir(), 'bloomery-killed-'));
let mariadb: RealMariadb;
let keystone: RealKeystone;
let neutron: RealNeutron;
/** Between our server and Neutron. */
let proxy: Server;
let server: RunningServer;
let sections: Sections;
let fleet: Fleet;
let api: Client;
let networks: Awaited<ReturnType<typeof makeNetworks>>;
let image: object;
let used = 0;
/** Identifiers in requests → their node: its UUID and MAC address, its VIF, and the ports that Neutron created for it. */
const owners = new Map<string, Node>();
/** For each operation: its changes, and what it leaves. */
const references = new Map<Operation['name'], { readonly changes: readonly string[]; readonly left: unknown }>();

const IDENTIFIER = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?:[\da-f]{2}:){5}[\da-f]{2}/g;
const ownerOf = (named: string): Node | undefined => {
  const known = (named.match(IDENTIFIER) ?? []).find((name) => owners.has(name));
  return known === undefined ? undefined : owners.get(known);
};
/** Forwards a request. Undefined: the client gets no response. */
async function forward(method: string, path: string, token: string, body: string): Promise<{ status: number; text: string } | undefined> {
  const node = method === 'GET' ? undefined : ownerOf(`${path} ${body}`);
  const at = (node?.changes.push(`${method} ${path.replace(IDENTIFIER, 'ID')}`) ?? 0) - 1;
  const fate = node?.lost?.at === at ? node.lost.fate : undefined;
  if (node && fate === 'before') {
    node.isLost = true;
    return undefined;
  }
  const answer = await fetch(`${neutron.url}${path}`, {
    method,
    headers: { 'x-auth-token': token, connection: 'close', ...(body === '' ? {} : { 'content-type': 'application/json' }) },
    ...(body === '' ? {} : { body }),
    signal: timeoutSignal(600_000),
  });
  const got = await answer.text();
  if (method === 'POST' && node && answer.ok)
    for (const { id } of (JSON.parse(got) as { readonly ports: readonly { readonly id: string }[] }).ports) owners.set(id, node);
  if (node && fate === 'after') {
    node.isLost = true;
    return undefined;
  }
  return { status: answer.status, text: got };
}

beforeAll(async () => {
  for (const name of ['keystone', 'neutron']) mkdirSync(join(folder, name), { recursive: true });
  mariadb = await startMariadb(join(folder, 'mariadb'));
  keystone = await startKeystone(join(folder, 'keystone'), CACHED);
  neutron = await startNeutron(join(folder, 'neutron'), keystone, await mariadb.create('neutron'));
  networks = await makeNetworks(neutron);
  proxy = createServer((request, response) => {
    const handle = async (): Promise<void> => {
      const token = request.headers['x-auth-token'];
      const got = await forward(request.method!, request.url!, typeof token === 'string' ? token : '', await text(request));
      if (got) response.writeHead(got.status, { 'content-type': 'application/json' }).end(got.text);
    };
    handle().catch(() => response.destroy());
  });
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
  const http = join(folder, 'server/state/httpboot');
  const [port, boot] = [await freePort(), await freePort()];
  image = writeImage(http, boot);
  sections = {
    DEFAULT: {
      my_ip: '127.0.0.1',
      auth_strategy: 'noauth',
      enabled_hardware_types: 'redfish',
      enabled_boot_interfaces: 'ipxe',
      enabled_deploy_interfaces: 'direct',
      enabled_inspect_interfaces: 'no-inspect',
      enabled_rescue_interfaces: 'agent,no-rescue',
      enabled_network_interfaces: 'noop,neutron',
    },
    api: { host_ip: '127.0.0.1', port },
    boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
    conductor: writeRamdisk(http, folder),
    neutron: {
      ...neutron.credentials,
      endpoint_override: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      provisioning_network: networks.provisioning,
      cleaning_network: networks.cleaning,
      rescuing_network: networks.rescuing,
    },
  };
  server = await startServerProcess(join(folder, 'server'), sections);
  api = openClient(`http://127.0.0.1:${port}`);
  fleet = await startFleet({
    count: MACHINES,
    bootUrl: `http://127.0.0.1:${boot}`,
    host: '127.0.0.1',

    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
  const node = await enroll();
  for (const operation of OPERATIONS) {
    await run(node, operation);
    references.set(operation.name, { changes: [...node.changes], left: await left(node) });
  }
}, 900_000);
afterAll(async () => {
  await server?.stop();
  await fleet?.close();
  proxy?.closeAllConnections();
  proxy?.close();
  await neutron?.close();
  await keystone?.close();
  await mariadb?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

async function enroll(): Promise<Node> {
  const { macs, redfish } = fleet.machines[used++]!;
  const [uuid, port] = [randomUUID(), randomUUID()];
  const { id: vif } = await neutron.port({ network_id: networks.private, name: 'tenant' });
  const node: Node = { uuid, mac: macs[0]!, port, vif, changes: [], lost: undefined, isLost: false };
  for (const name of [uuid, node.mac, vif]) owners.set(name, node);
  await api.request('POST', '/v1/nodes', {
    uuid,
    driver: 'redfish',
    network_interface: 'neutron',
    rescue_interface: 'agent',
    instance_info: image,
    driver_info: {
      redfish_address: redfish.address,
      redfish_system_id: redfish.systemId,
      redfish_username: redfish.username,
      redfish_password: redfish.password,
    },
  });
  await api.request('POST', '/v1/ports', {
    uuid: port,
    node_uuid: uuid,
    address: node.mac,
    pxe_enabled: true,
    physical_network: 'physnet1',
    local_link_connection: { ...SWITCH, port_id: uuid.slice(0, 8) },
  });
  await api.request('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'manage' });
  await reaches(node, 'manageable');
  return node;
}
interface NodeView {
  readonly provision_state: string;
  readonly reservation: string | null;
  readonly last_error: string | null;
}
const show = (node: Node): Promise<NodeView> => api.request('GET', `/v1/nodes/${node.uuid}`);
async function reaches(node: Node, ends: string): Promise<void> {
  const isThere = async (): Promise<boolean> => {
    const { provision_state: state, last_error: error, reservation } = await show(node);
    if (/(?:failed|error)$/.test(state)) throw new Error(`${node.uuid}: ${state}: ${error}`);
    return state === ends && reservation === null;
  };
  await until(`${node.uuid} is ${ends}`, isThere, 200, 900_000);
}
async function begin(node: Node, { name, target }: Operation, lost?: Lost): Promise<void> {
  if (name === 'deploy') await api.request('POST', `/v1/nodes/${node.uuid}/vifs`, { id: node.vif });
  node.changes.length = 0;
  node.lost = lost;
  const more = name === 'rescue' ? { rescue_password: 'a password' } : {};
  await api.request('PUT', `/v1/nodes/${node.uuid}/states/provision`, { target, ...more });
}
async function run(node: Node, operation: Operation): Promise<void> {
  await begin(node, operation);
  await reaches(node, operation.ends);
}
/** What an operation leaves: the node's state, its ports in Neutron, and the Neutron data of its own port. */
async function left(node: Node): Promise<unknown> {
  const { provision_state: state, last_error: error } = await show(node);
  const { internal_info: info } = await api.request<{ internal_info: object }>('GET', `/v1/ports/${node.port}`);
  const found = [`?mac_address=${node.mac}`, `?device_id=${node.uuid}`, `?id=${node.vif}`].map((query) => neutron.ports(query));
  const ports = new Map((await Promise.all(found)).flat().map((port) => [port.id, port]));
  const views = [...ports.values()].map((port) => ({
    id: port.id,
    network: port.network_id,
    host: port['binding:host_id'],
    profile: port['binding:profile'],
    status: port.status,
    mac: port.mac_address === node.mac ? 'of the machine' : 'of Neutron',
  }));
  const names = [node.uuid, 'NODE', node.vif, 'VIF', node.uuid.slice(0, 8), 'LINK'];
  let written = JSON.stringify({ state, error, info, ports: views });
  for (let at = 0; at < names.length; at += 2) written = written.replaceAll(names[at]!, names[at + 1]!);
  return JSON.parse(written) as unknown;
}

it.each(FATES)(
  'a server that is killed %s a change in Neutron ends each flow with the same node and ports as without a kill',
  async (fate) => {
    const moments = OPERATIONS.flatMap((operation) =>
      references.get(operation.name)!.changes.map((change, at) => ({ operation, change, at })),
    );
    expect(moments.length).toBeGreaterThan(OPERATIONS.length);
    expect(1 + FATES.length * moments.length).toBeLessThanOrEqual(MACHINES);
    const nodes: { readonly node: Node; readonly operation: Operation; readonly change: string; readonly at: number }[] = [];
    const errors: unknown[] = [];
    await inParallel(moments, 8, new AbortController().signal, async ({ operation, change, at }) => {
      try {
        const node = await enroll();
        for (const name of BEFORE[operation.name])
          await run(
            node,
            OPERATIONS.find((candidate) => candidate.name === name)!,
          );
        nodes.push({ node, operation, change, at });
      } catch (error) {
        errors.push(error);
      }
    });
    expect(errors).toEqual([]);
    for (const { node, operation, at } of nodes) await begin(node, operation, { at, fate });
    for (const { node, operation, change } of nodes)
      await until(`${operation.name} of ${node.uuid} sends ${change}`, () => node.isLost, 100, 900_000);
    // A flow that has given up meanwhile would not be killed in its middle.
    const reservations = await Promise.all(nodes.map(async ({ node }) => (await show(node)).reservation));
    expect(nodes.filter((_, index) => reservations[index] === null).map(({ operation, change }) => [operation.name, change])).toEqual([]);
    await server.kill();
    for (const { node } of nodes) node.lost = undefined;
    server = await startServerProcess(join(folder, 'server'), sections);
    const outcomes: object[] = [];
    for (const { node, operation, change } of nodes) {
      await reaches(node, operation.ends);
      outcomes.push({ operation: operation.name, change, left: await left(node) });
    }
    expect(outcomes).toEqual(
      nodes.map(({ operation, change }) => ({ operation: operation.name, change, left: references.get(operation.name)!.left })),
    );
    for (const { node } of nodes) await neutron.call('DELETE', `/ports/${node.vif}`);
  },
  3_600_000,
);
