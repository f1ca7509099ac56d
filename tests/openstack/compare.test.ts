/**
 * Our server beside the real Ironic 39, in one cloud and with machines of one kind: the requests to Neutron and the time of each operation.
 * It runs when it is named (`npm run test:openstack -- compare`), and prints a table. Times are shown, and requests are compared.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openClient, type Client } from '../../demo/client';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet } from '../../simulator/fleet/fleet';
import { startRealIronic, type RealIronic } from '../lab/inspection/real-ironic';
import { startMariadb, type RealMariadb } from '../lab/support/mariadb';
import { startServerProcess, type RunningServer } from '../../demo/lab/server';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import { imageAt, newImageBytes, writeRamdisk } from './services/boot-files';
import { makeNetworks } from './services/cloud';
import { CACHED, startKeystone, type RealKeystone } from './services/keystone';
import { startNeutron, SWITCH, type RealNeutron } from './services/neutron';

const INTERFACES = ['neutron', 'flat'];
const SERVERS = ['bloomery', 'ironic'] as const;
type ServerName = (typeof SERVERS)[number];
/** Operation → the state in which it ends. `attach` is that of a VIF. */
const OPERATIONS: readonly (readonly [name: string, target: string, ends: string])[] = [
  ['clean', 'provide', 'available'],
  ['attach', '', ''],
  ['deploy', 'active', 'active'],
  ['rescue', 'rescue', 'rescue'],
  ['unrescue', 'unrescue', 'active'],
  ['rebuild', 'rebuild', 'active'],
  ['undeploy', 'deleted', 'available'],
];

/** Milliseconds. Six services and two servers share the machine, so an operation can take long. */
const PATIENCE_MS = 1_800_000;

const folder = mkdtempSync(join(tmpdir(), 'bloomery-compare-'));
let mariadb: RealMariadb;
let keystone: RealKeystone;
let neutron: RealNeutron;
let server: RunningServer;
let ironic: RealIronic;
/** Serves the image, and Ironic's files for iPXE at the paths that the firmware of simulated machines requests. */
let files: Server;
let privateNetwork: string;
const fleets: Partial<Record<ServerName, Fleet>> = {};
const apis: Partial<Record<ServerName, Client>> = {};
const image = newImageBytes();
let imageInfo: object;

beforeAll(async () => {
  for (const name of ['keystone', 'neutron', 'ironic/http', 'server']) mkdirSync(join(folder, name), { recursive: true });
  mariadb = await startMariadb(join(folder, 'mariadb'));
  keystone = await startKeystone(join(folder, 'keystone'), CACHED);
  neutron = await startNeutron(join(folder, 'neutron'), keystone, await mariadb.create('neutron'));
  const networks = await makeNetworks(neutron);
  privateNetwork = networks.private;
  files = createServer((request, response) => {
    const file = join(folder, 'ironic/http', request.url!.replace(/^\/ipxe\//, '/pxelinux.cfg/'));
    if (request.url === '/image') response.writeHead(200, { 'content-length': image.length }).end(request.method === 'HEAD' ? '' : image);
    else if (existsSync(file)) response.end(readFileSync(file));
    else response.writeHead(404).end();
  });
  await new Promise<void>((listening) => files.listen(0, '127.0.0.1', listening));
  const filesUrl = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  imageInfo = imageAt(`${filesUrl}/image`, image);
  const shared = {
    neutron: {
      ...neutron.credentials,
      ...Object.fromEntries(
        ['provisioning', 'cleaning', 'rescuing', 'inspection', 'servicing'].map((name) => [
          `${name}_network`,
          networks[name as keyof typeof networks],
        ]),
      ),
    },
    conductor: writeRamdisk(folder, folder),
  };
  const enabled = {
    enabled_hardware_types: 'redfish',
    enabled_boot_interfaces: 'ipxe',
    enabled_deploy_interfaces: 'direct',
    enabled_inspect_interfaces: 'agent,no-inspect',
    enabled_rescue_interfaces: 'agent,no-rescue',
    enabled_network_interfaces: 'noop,flat,neutron',
  };
  const [port, ironicPort, boot] = [await freePort(), await freePort(), await freePort()];
  server = await startServerProcess(join(folder, 'server'), {
    ...shared,
    DEFAULT: { ...enabled, my_ip: '127.0.0.1', auth_strategy: 'noauth' },
    api: { host_ip: '127.0.0.1', port },
    boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
    dhcp: { dhcp_provider: 'neutron' },
  });
  ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', ironicPort, {
    ...shared,
    DEFAULT: enabled,
    deploy: { http_root: join(folder, 'ironic/http'), http_url: filesUrl },
    dhcp: { dhcp_provider: 'neutron' },
    agent: { require_tls: 'false' },
  });
  const urls: Record<ServerName, string> = { bloomery: `http://127.0.0.1:${port}`, ironic: ironic.url };
  const bootUrls: Record<ServerName, string> = { bloomery: `http://127.0.0.1:${boot}`, ironic: filesUrl };
  for (const [index, name] of SERVERS.entries()) {
    apis[name] = openClient(urls[name]);
    fleets[name] = await startFleet({
      count: INTERFACES.length,
      first: 1 + index * INTERFACES.length,
      bootUrl: bootUrls[name],
      host: '127.0.0.1',
      // Ironic drops the heartbeat of a step that ends before it has released the node; the next one is minutes away.
      behaviour: { stepMs: 3000 },
      log: silentLog,
      clock: systemClock,
      random: randomBytes,
    });
  }
}, 1_800_000);
afterAll(async () => {
  await server?.stop();
  await ironic?.stop();
  for (const fleet of Object.values(fleets)) await fleet.close();
  files?.closeAllConnections();
  files?.close();
  await neutron?.close();
  await keystone?.close();
  await mariadb?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

interface Cost {
  readonly requests: readonly string[];
  readonly seconds: number;
}
async function measure(work: () => Promise<unknown>): Promise<Cost> {
  const before = neutron.requests().length;
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1000;
  return { requests: neutron.requests().slice(before), seconds };
}

/** Runs all operations on a new node. @returns the cost of each */
async function measureOperations(name: ServerName, networkInterface: string): Promise<ReadonlyMap<string, Cost>> {
  const api = apis[name]!;
  const { macs, redfish } = fleets[name]!.machines[INTERFACES.indexOf(networkInterface)]!;
  const uuid = randomUUID();
  await api.request('POST', '/v1/nodes', {
    uuid,
    driver: 'redfish',
    network_interface: networkInterface,
    rescue_interface: 'agent',
    instance_info: imageInfo,
    boot_interface: 'ipxe',
    deploy_interface: 'direct',
    inspect_interface: 'no-inspect',
    driver_info: {
      redfish_address: redfish.address,
      redfish_system_id: redfish.systemId,
      redfish_username: redfish.username,
      redfish_password: redfish.password,
    },
  });
  await api.request('POST', '/v1/ports', {
    node_uuid: uuid,
    address: macs[0],
    pxe_enabled: true,
    physical_network: 'physnet1',
    local_link_connection: { ...SWITCH, port_id: `${name}-${networkInterface}` },
  });
  const provision = async (target: string, ends: string): Promise<void> => {
    const more = target === 'rescue' ? { rescue_password: 'a password' } : {};
    await api.request('PUT', `/v1/nodes/${uuid}/states/provision`, { target, ...more });
    await until(
      `${target} of ${name} (${networkInterface}) ends in ${ends}`,
      async () => {
        const node = await api.request<{ provision_state: string; last_error: string | null }>('GET', `/v1/nodes/${uuid}`);
        const { provision_state: state, last_error: error } = node;
        if (/(?:failed|error)$/.test(state)) throw new Error(`${name}: ${state}: ${error}`);
        return state === ends;
      },
      50,
      PATIENCE_MS,
    );
  };
  await provision('manage', 'manageable');
  const others = (await neutron.ports()).map(({ id }) => id);
  const vif = await neutron.port({ network_id: privateNetwork, name: 'tenant' });
  const costs = new Map<string, Cost>();
  for (const [operation, target, ends] of OPERATIONS)
    costs.set(
      operation,
      await measure(() => (target === '' ? api.request('POST', `/v1/nodes/${uuid}/vifs`, { id: vif.id }) : provision(target, ends))),
    );
  const left = (await neutron.ports()).filter(({ id }) => !others.includes(id));
  expect(left).toMatchObject([{ id: vif.id, 'binding:host_id': '' }]);
  await neutron.call('DELETE', `/ports/${vif.id}`);
  return costs;
}

it.each(INTERFACES)(
  'with the network interface %s, no operation sends more requests to Neutron than with Ironic',
  async (networkInterface) => {
    const costs: Partial<Record<ServerName, ReadonlyMap<string, Cost>>> = {};
    for (const name of SERVERS) costs[name] = await measureOperations(name, networkInterface);
    const rows = OPERATIONS.map(([operation]) => {
      const [ours, theirs] = SERVERS.map((name) => costs[name]!.get(operation)!) as [Cost, Cost];
      const cells = [`${ours.requests.length} / ${theirs.requests.length}`, `${ours.seconds.toFixed(1)} / ${theirs.seconds.toFixed(1)}`];
      return { operation, ours, theirs, line: [operation.padEnd(10), ...cells.map((cell) => cell.padStart(14))].join('') };
    });
    const header = `${networkInterface}: requests to Neutron and seconds, ours / Ironic's`;
    process.stderr.write(`\n${[header, ...rows.map(({ line }) => line)].join('\n')}\n`);
    const details = rows.map(({ operation, ours, theirs }) => ({ operation, ours: ours.requests, theirs: theirs.requests }));
    const cache = join(__dirname, '../../.cache/test');
    mkdirSync(cache, { recursive: true });
    writeFileSync(join(cache, `compare-${networkInterface}.json`), JSON.stringify(details, null, 1));
    expect(rows.filter(({ ours, theirs }) => ours.requests.length > theirs.requests.length).map(({ line }) => line)).toEqual([]);
  },
  3_600_000,
);
