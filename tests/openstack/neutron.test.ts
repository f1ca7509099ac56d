/** The network interfaces flat and neutron beside a real Neutron, with simulated machines: its ports and the switch in every phase. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openClient, type Client } from '../../demo/client';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { startFleet, type Fleet } from '../../simulator/fleet/fleet';
import { startServerProcess, type RunningServer, type Sections } from '../../demo/lab/server';
import { freePort } from '../support/free-port';
import { until } from '../support/until';
import { writeImage, writeRamdisk } from './services/boot-files';
import { startKeystone, type RealKeystone } from './services/keystone';
import { startNeutron, SWITCH, type NeutronPortView, type RealNeutron } from './services/neutron';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-neutron-'));
let keystone: RealKeystone;
let neutron: RealNeutron;
let server: RunningServer;
let sections: Sections;
let fleet: Fleet;
let api: Client;
/** Name → ID. */
const networks: Record<string, string> = {};
const VLANS = { provisioning: 100, private: 101, cleaning: 102, rescuing: 103, inspection: 104, servicing: 105 } as const;
let image: Readonly<Record<string, string>>;
let used = 0;

beforeAll(async () => {
  for (const name of ['keystone', 'neutron']) mkdirSync(join(folder, name), { recursive: true });
  keystone = await startKeystone(join(folder, 'keystone'));
  neutron = await startNeutron(join(folder, 'neutron'), keystone);
  for (const [name, vlan] of Object.entries(VLANS))
    networks[name] = await neutron.network(name, vlan, { ip_version: 4, cidr: `10.60.${vlan}.0/24` });
  const http = join(folder, 'server/state/httpboot');
  const [apiPort, boot] = [await freePort(), await freePort()];
  image = writeImage(http, boot);
  sections = {
    DEFAULT: {
      my_ip: '127.0.0.1',
      auth_strategy: 'noauth',
      enabled_hardware_types: 'redfish',
      enabled_boot_interfaces: 'ipxe',
      enabled_deploy_interfaces: 'direct',
      enabled_inspect_interfaces: 'agent',
      enabled_rescue_interfaces: 'agent,no-rescue',
      enabled_network_interfaces: 'noop,flat,neutron',
    },
    api: { host_ip: '127.0.0.1', port: apiPort },
    boot: { http_host: '127.0.0.1', http_port: boot, tftp: 'false' },
    conductor: writeRamdisk(http, folder),
    dhcp: { dhcp_provider: 'neutron' },
    neutron: {
      ...neutron.credentials,
      dhcpv6_stateful_address_count: '3',
      provisioning_network: 'provisioning',
      cleaning_network: networks['cleaning']!,
      rescuing_network: 'rescuing',
      inspection_network: 'inspection',
      servicing_network: 'servicing',
    },
  };
  server = await startServerProcess(join(folder, 'server'), sections);
  await keystone.identity.service('baremetal', `http://127.0.0.1:${apiPort}`);
  api = openClient(`http://127.0.0.1:${apiPort}`);
  fleet = await startFleet({
    count: 7,
    bootUrl: `http://127.0.0.1:${boot}`,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
  });
}, 900_000);
afterAll(async () => {
  await server?.stop();
  await fleet?.close();
  await neutron?.close();
  await keystone?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

interface NodeView {
  readonly provision_state: string;
  readonly target_provision_state: string | null;
  readonly last_error: string | null;
}
interface Node {
  readonly uuid: string;
  readonly mac: string;
  /** Its port on the switch. */
  readonly name: string;
  readonly port: string;
}
/** @param link the switch; null: the port names none */
async function enroll(networkInterface: string, link: object | null = SWITCH): Promise<Node> {
  const name = `p${++used}`;
  const { macs, redfish } = fleet.machines[used - 1]!;
  const uuid = randomUUID();
  await api.request('POST', '/v1/nodes', {
    uuid,
    driver: 'redfish',
    network_interface: networkInterface,
    rescue_interface: 'agent',
    instance_info: image,
    driver_info: {
      redfish_address: redfish.address,
      redfish_system_id: redfish.systemId,
      redfish_username: redfish.username,
      redfish_password: redfish.password,
    },
  });
  const port = randomUUID();
  await api.request('POST', '/v1/ports', {
    uuid: port,
    node_uuid: uuid,
    address: macs[0],
    pxe_enabled: true,
    physical_network: 'physnet1',
    local_link_connection: link === null ? {} : { ...link, port_id: name },
  });
  return { uuid, mac: macs[0]!, name, port };
}
const show = (node: Node): Promise<NodeView> => api.request('GET', `/v1/nodes/${node.uuid}`);
const isAt =
  (node: Node, states: readonly string[]): (() => Promise<boolean>) =>
  async () => {
    const { provision_state: state, last_error: error } = await show(node);
    if (/(?:failed|error)$/.test(state) && !states.includes(state)) throw new Error(`${state}: ${error}`);
    return states.includes(state);
  };
async function provision(node: Node, target: string, ends: string, more: object = {}): Promise<void> {
  await api.request('PUT', `/v1/nodes/${node.uuid}/states/provision`, { target, ...more });
  await until(`${target} of ${node.name} ends in ${ends}`, isAt(node, [ends]), 100);
}
/** The moves of a node's switch port since the last call. */
const movesOf = (node: Node): readonly string[] =>
  neutron
    .moves()
    .filter((move) => move.startsWith(`${node.name}: `))
    .map((move) => move.slice(node.name.length + 2));
const portsOf = (node: Node): Promise<readonly NeutronPortView[]> => neutron.ports(`?mac_address=${node.mac}`);
const internalInfo = async (node: Node): Promise<unknown> =>
  (await api.request<{ internal_info: unknown }>('GET', `/v1/ports/${node.port}`)).internal_info;
const newVif = (): Promise<NeutronPortView> => neutron.port({ network_id: networks['private'], name: 'tenant' });
const attach = (node: Node, vif: string): Promise<void> => api.request('POST', `/v1/nodes/${node.uuid}/vifs`, { id: vif });

describe('the network interface neutron', () => {
  it("moves a node's switch port through the networks of all phases, and leaves no Neutron port behind", async () => {
    const node = await enroll('neutron');
    await provision(node, 'manage', 'manageable');
    await provision(node, 'inspect', 'manageable');
    expect(movesOf(node)).toEqual(['104', '-']);
    await provision(node, 'provide', 'available');
    expect(movesOf(node).slice(2)).toEqual(['102', '-']);
    expect(await portsOf(node)).toEqual([]);

    const vif = await newVif();
    await attach(node, vif.id);
    const seeded = await portsOf(node);
    expect(seeded).toMatchObject([{ id: vif.id, 'binding:host_id': node.uuid, 'binding:profile': {} }]);

    await api.request('PUT', `/v1/nodes/${node.uuid}/states/provision`, { target: 'active' });
    let temporary: NeutronPortView | undefined;
    await until('the agent has the provisioning network', async () => {
      [temporary] = await neutron.ports(`?network_id=${networks['provisioning']}&mac_address=${node.mac}`);
      return temporary !== undefined;
    });
    expect(temporary).toMatchObject({
      device_owner: 'baremetal:none',
      device_id: node.uuid,
      'binding:host_id': node.uuid,
      'binding:vnic_type': 'baremetal',
      'binding:profile': {
        local_link_information: [{ ...SWITCH, port_id: node.name }],
        physical_network: 'physnet1',
      },
      fixed_ips: [{ ip_address: expect.stringMatching(/^10\.60\.100\./) as unknown }],
    });
    await until('active', isAt(node, ['active']), 100);
    expect(movesOf(node).slice(4)).toEqual(['100', '-', '101']);
    expect(await portsOf(node)).toMatchObject([
      { id: vif.id, status: 'ACTIVE', 'binding:host_id': node.uuid, 'binding:vnic_type': 'baremetal' },
    ]);
    expect(await internalInfo(node)).toEqual({ tenant_vif_port_id: vif.id });

    await provision(node, 'rescue', 'rescue', { rescue_password: 'a password' });
    await provision(node, 'unrescue', 'active');
    expect(movesOf(node).slice(7)).toEqual(['-', '103', '-', '101', '101'].slice(0, movesOf(node).length - 7));
    await provision(node, 'deleted', 'available');
    expect(await portsOf(node)).toEqual([]);
    expect(movesOf(node).slice(-3)).toEqual(['-', '102', '-']);
    // The VIF ends with the instance.
    expect(await internalInfo(node)).toEqual({});
    const { port } = (await neutron.call('GET', `/ports/${vif.id}`)) as { port: NeutronPortView };
    expect(port).toMatchObject({ 'binding:host_id': '', 'binding:profile': {} });
    expect(port.mac_address).not.toBe(node.mac);
  }, 300_000);

  it('fails with the reason when a switch port cannot be bound, and leaves no Neutron port', async () => {
    const node = await enroll('neutron', { switch_id: '0a:1b:2c:3d:4e:99', switch_info: 'nowhere' });
    await provision(node, 'manage', 'manageable');
    await provision(node, 'provide', 'clean failed');
    const { last_error: error } = await show(node);
    expect(error).toContain(`Failed to create neutron ports for node's ${node.uuid} ports ${node.port} (Binding failed for neutron port`);
    expect(await portsOf(node)).toEqual([]);
  }, 300_000);

  it('continues a deployment after its conductor was killed in the provisioning network', async () => {
    const node = await enroll('neutron');
    await provision(node, 'manage', 'manageable');
    await provision(node, 'provide', 'available');
    const vif = await newVif();
    await attach(node, vif.id);
    await api.request('PUT', `/v1/nodes/${node.uuid}/states/provision`, { target: 'active' });
    await until('Neutron has been asked for the port', async () => (await portsOf(node)).some((candidate) => candidate.id !== vif.id), 1);
    await server.kill();
    server = await startServerProcess(join(folder, 'server'), sections);
    await until('active', isAt(node, ['active']), 100);
    expect(await portsOf(node)).toMatchObject([{ id: vif.id, status: 'ACTIVE', 'binding:host_id': node.uuid }]);
    expect(await internalInfo(node)).toEqual({ tenant_vif_port_id: vif.id });
  }, 300_000);
});

it('[dhcp]dhcp_provider = neutron sets the boot options of Neutron ports, and requests several addresses for stateful DHCPv6', async () => {
  const stateful = await neutron.network('stateful', 110, {
    ip_version: 6,
    cidr: '2001:db8:60::/64',
    enable_dhcp: true,
    ipv6_address_mode: 'dhcpv6-stateful',
    ipv6_ra_mode: 'dhcpv6-stateful',
  });
  const node = await enroll('neutron');
  await provision(node, 'manage', 'manageable');
  /** Cleans the node. @returns its port in that network, once the port had its DHCP options */
  const cleaned = async (network: string): Promise<NeutronPortView> => {
    let told: NeutronPortView | undefined;
    await api.request('PUT', `/v1/nodes/${node.uuid}/states/provision`, { target: 'provide' });
    await until('the port has its options', async () => {
      [told] = (await neutron.ports(`?network_id=${network}&mac_address=${node.mac}`)).filter((port) => port.extra_dhcp_opts.length > 0);
      return told !== undefined;
    });
    await until('available', isAt(node, ['available']), 100);
    expect(await portsOf(node)).toEqual([]);
    return told!;
  };
  const optionsOf = ({ extra_dhcp_opts: options }: NeutronPortView): readonly string[] =>
    options
      .map(({ opt_name: name, opt_value: value, ip_version: version }) => `${String(version)} ${String(name)} ${String(value)}`)
      .sort();

  const ipv4 = await cleaned(networks['cleaning']!);
  expect(ipv4.fixed_ips).toHaveLength(1);
  const script = `http://127.0.0.1:${sections['boot']!['http_port']}/boot.ipxe`;
  expect(optionsOf(ipv4)).toEqual(
    ['150 127.0.0.1', '255 127.0.0.1', '66 127.0.0.1', 'tag:!ipxe,67 snponly.efi', `tag:ipxe,67 ${script}`].map((item) => `4 ${item}`),
  );

  await provision(node, 'manage', 'manageable');
  const changes = [{ op: 'add', path: '/driver_info/cleaning_network', value: 'stateful' }];
  await api.request('PATCH', `/v1/nodes/${node.uuid}`, changes);
  const ipv6 = await cleaned(stateful);
  expect(optionsOf(ipv6)).toEqual([`6 tag:!ipxe6,59 tftp://127.0.0.1/snponly.efi`, `6 tag:ipxe6,59 ${script}`]);
  const addresses = ipv6.fixed_ips.map(({ ip_address: address }) => String(address));
  expect(new Set(addresses).size).toBe(3);
  for (const address of addresses) expect(address).toMatch(/^2001:db8:60::/);
}, 300_000);

describe('the network interface flat', () => {
  it("binds a user's VIF at the deployment, and leaves no port after cleaning, detaching and undeployment", async () => {
    const node = await enroll('flat');
    await provision(node, 'manage', 'manageable');
    await provision(node, 'provide', 'available');
    expect(await portsOf(node)).toEqual([]);
    const vif = await newVif();
    await attach(node, vif.id);
    await provision(node, 'active', 'active');
    expect(await portsOf(node)).toMatchObject([{ id: vif.id, 'binding:host_id': node.uuid, 'binding:vnic_type': 'baremetal' }]);
    expect(neutron.requests().filter((line) => line.startsWith('PUT') && line.includes(vif.id)).length).toBeGreaterThan(0);
    await api.request('DELETE', `/v1/nodes/${node.uuid}/vifs/${vif.id}`);
    expect(await portsOf(node)).toEqual([]);
    await provision(node, 'deleted', 'available');
    expect(await portsOf(node)).toEqual([]);
  }, 300_000);

  it('refuses a VIF that Neutron does not have', async () => {
    const node = await enroll('flat');
    const missing = randomUUID();
    await expect(attach(node, missing)).rejects.toThrow(`Neutron port ${missing} was not found`);
    expect(await internalInfo(node)).toEqual({});
  });
});

interface Agent {
  readonly host: string;
  readonly alive: boolean;
  readonly agent_type: string;
  readonly configurations: { readonly bridge_mappings: object };
}
describe("networking-baremetal's agent", () => {
  it('reports our nodes to Neutron, which then assigns addresses by segment, and removes a deleted node', async () => {
    const node = await enroll('flat', null);
    const agentOf = async (): Promise<Agent | undefined> =>
      ((await neutron.call('GET', `/agents?host=${node.uuid}`)) as { agents: readonly Agent[] }).agents[0];
    expect(await agentOf()).toBeUndefined();
    neutron.startAgent();
    await until('Neutron knows the node', async () => (await agentOf())?.alive === true, 500);
    expect(await agentOf()).toMatchObject({ agent_type: 'Baremetal Node', configurations: { bridge_mappings: { physnet1: 'yes' } } });

    // The subnet of a segment: a port has no address before its host is known.
    const provider = { 'provider:network_type': 'vlan', 'provider:physical_network': 'physnet1', 'provider:segmentation_id': 120 };
    const { network } = (await neutron.call('POST', '/networks', { network: { name: 'routed', ...provider } })) as {
      network: { id: string };
    };
    const { segments } = (await neutron.call('GET', `/segments?network_id=${network.id}`)) as { segments: readonly { id: string }[] };
    await neutron.call('POST', '/subnets', {
      subnet: { network_id: network.id, segment_id: segments[0]!.id, ip_version: 4, cidr: '10.60.120.0/24', enable_dhcp: false },
    });
    const vif = await neutron.port({ network_id: network.id, name: 'routed' });
    expect(vif.fixed_ips).toEqual([]);
    await provision(node, 'manage', 'manageable');
    await provision(node, 'provide', 'available');
    await attach(node, vif.id);
    await provision(node, 'active', 'active');
    expect(await portsOf(node)).toMatchObject([
      { id: vif.id, 'binding:host_id': node.uuid, fixed_ips: [{ ip_address: expect.stringMatching(/^10\.60\.120\./) as unknown }] },
    ]);

    await provision(node, 'deleted', 'available');
    await provision(node, 'manage', 'manageable');
    await api.request('DELETE', `/v1/nodes/${node.uuid}`);
    await until('Neutron has forgotten the node', async () => (await agentOf()) === undefined, 500);
  }, 900_000);
});
