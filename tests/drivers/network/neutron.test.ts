/** The requests of the network interfaces flat and neutron to Neutron. tests/openstack has a real Neutron. */
import { flatNetwork, neutronNetwork } from '../../../drivers/network/neutron';
import { parseTraits } from '../../../drivers/network/network-traits';
import { neutron as neutronDhcp } from '../../../drivers/dhcp-providers/neutron';
import type { Task } from '../../../drivers/interfaces';
import type { NodeRecord, PortgroupRecord, PortRecord } from '../../../model/records';
import { ServiceError, type ServiceCall, type Services } from '../../../wire/keystone/services';
import { NODE_UUID, portgroupRecord, portRecord, testTask } from '../../support/task';

const NETWORK = '11111111-1111-4111-8111-111111111111';
const LINK = { switch_id: '0a:1b:2c:3d:4e:5f', switch_info: 'sw1', port_id: 'p1' };

interface Given {
  /** Responses by `METHOD path`; a number is the status of an error, a function gives one response after the other. */
  readonly replies?: Readonly<Record<string, object | number | (() => object)>>;
  readonly ports?: readonly PortRecord[];
  readonly node?: Partial<NodeRecord>;
  readonly options?: object;
  readonly onlyProject?: string;
  readonly portgroups?: readonly PortgroupRecord[];
  /** The file of network traits. */
  readonly traits?: string;
}
const USUAL: Required<Given>['replies'] = {
  [`GET /networks/${NETWORK}`]: { network: { id: NETWORK, 'provider:physical_network': 'physnet1' } },
  'GET /ports?': { ports: [] },
  'POST /ports': { ports: [{ id: 'new', status: 'ACTIVE', mac_address: '52:54:00:00:00:01', fixed_ips: [] }] },
  'GET /ports/vif': {
    port: { id: 'vif', network_id: NETWORK, 'binding:host_id': '', fixed_ips: [{ subnet_id: 's', ip_address: '10.0.0.9' }] },
  },
  'PUT /ports/vif': { port: { id: 'vif', status: 'ACTIVE' } },
};
function started({ replies = {}, ports, node, options, portgroups, onlyProject, traits }: Given = {}) {
  const sent: [string, unknown?][] = [];
  const request = async (path: string, { method = 'GET', body, accept = [] }: ServiceCall = {}) => {
    sent.push(body === undefined ? [`${method} ${path}`] : [`${method} ${path}`, body]);
    const all = { ...USUAL, ...replies };
    const given = all[`${method} ${path}`] ?? all[`${method} ${path.replace(/\?.*/, '?')}`] ?? {};
    const reply = typeof given === 'function' ? (given as () => object)() : given;
    const status = typeof reply === 'number' ? reply : 200;
    if (status >= 400 && !accept.includes(status)) throw new ServiceError('neutron', 'failing', `HTTP status ${status}`, status);
    return { status, headers: {}, body: status >= 400 ? {} : reply };
  };
  const made = testTask({
    ports: ports ?? [portRecord({ local_link_connection: LINK, physical_network: 'physnet1' })],
    node: { network_interface: 'neutron', ...node },
    options: { 'neutron.provisioning_network': NETWORK, 'neutron.cleaning_network': NETWORK, ...options },
    connections: {
      services: { neutron: { request } } as unknown as Services,
      ...(traits === undefined ? {} : { networkTraits: { current: () => parseTraits(traits) } }),
    },
    ...(portgroups ? { portgroups } : {}),
  });
  const caller = onlyProject === undefined ? {} : { caller: { value: { admin: false, project: onlyProject } } };
  return { ...made, task: Object.create(made.task, caller) as Task, sent, lines: () => sent.map(([line]) => line) };
}

it.each([
  ['is unbound', {}, []],
  ['is still bound', { 'binding:host_id': NODE_UUID }, ['PUT /ports/vif', 'PUT /ports/vif']],
  ['has a binding profile', { 'binding:profile': { local_link_information: [LINK] } }, ['PUT /ports/vif', 'PUT /ports/vif']],
  ["has the machine's address", { mac_address: '52:54:00:00:00:01' }, ['PUT /ports/vif', 'PUT /ports/vif']],
  ['Neutron cannot show', 500, ['PUT /ports/vif', 'PUT /ports/vif']],
])('vifDetach clears the binding and MAC address in Neutron unless the VIF is unbound: a VIF that %s', async (_, view, changes) => {
  const port = portRecord({ local_link_connection: LINK, internal_info: { tenant_vif_port_id: 'vif' } });
  const free = { id: 'vif', mac_address: 'fa:16:3e:00:00:01', 'binding:host_id': '', 'binding:profile': {} };
  const replies = { 'GET /ports/vif': typeof view === 'number' ? view : { port: { ...free, ...view } } };
  const { task, lines } = started({ ports: [port], node: { provision_state: 'deleting' }, replies });
  await neutronNetwork.vifDetach(task, 'vif');
  expect(lines()).toEqual(['GET /ports/vif', ...changes]);
  expect(task.ports[0]!.internal_info).toEqual({});
});

it('addProvisioningNetwork deletes leftover ports, then creates and binds a port with one request', async () => {
  const { task, sent } = started({ replies: { 'GET /ports?': { ports: [{ id: 'old' }] } } });
  await neutronNetwork.addProvisioningNetwork(task);
  expect(sent).toEqual([
    [`GET /networks/${NETWORK}`],
    [`GET /ports?network_id=${NETWORK}&mac_address=52%3A54%3A00%3A00%3A00%3A01`],
    ['DELETE /ports/old'],
    [
      'POST /ports',
      {
        ports: [
          {
            network_id: NETWORK,
            admin_state_up: true,
            device_id: NODE_UUID,
            device_owner: 'baremetal:none',
            'binding:vnic_type': 'baremetal',
            'binding:host_id': NODE_UUID,
            mac_address: '52:54:00:00:00:01',
            'binding:profile': { local_link_information: [LINK], physical_network: 'physnet1' },
          },
        ],
      },
    ],
  ]);
  expect(task.ports[0]!.internal_info).toEqual({ provisioning_vif_port_id: 'new' });
});

it('removeProvisioningNetwork deletes the Neutron ports of the network and those in internal_info', async () => {
  const port = portRecord({ local_link_connection: LINK, internal_info: { provisioning_vif_port_id: 'named', tenant_vif_port_id: 'vif' } });
  const { task, lines } = started({ ports: [port], replies: { 'GET /ports?': { ports: [{ id: 'found' }] } } });
  await neutronNetwork.removeProvisioningNetwork(task);
  expect(lines().slice(2)).toEqual(['DELETE /ports/found', 'DELETE /ports/named']);
  expect(task.ports[0]!.internal_info).toEqual({ tenant_vif_port_id: 'vif' });
});
it('removeRescuingNetwork without a configured network deletes the Neutron ports in internal_info', async () => {
  const port = portRecord({ internal_info: { rescuing_vif_port_id: 'named' } });
  const { task, lines } = started({ ports: [port] });
  await neutronNetwork.removeRescuingNetwork(task);
  expect(lines()).toEqual(['DELETE /ports/named']);
});

it.each<[string, Given, string]>([
  ['no network is configured', { options: { 'neutron.provisioning_network': null } }, 'UUID or name of provisioning_network is not set'],
  [
    'Neutron does not have the network',
    { replies: { [`GET /networks/${NETWORK}`]: 404 } },
    `provisioning_network with name or UUID ${NETWORK} was not found`,
  ],
  ['Neutron fails', { replies: { [`GET /networks/${NETWORK}`]: 500 } }, 'Could not retrieve network: HTTP status 500'],
  ['no port has pxe_enabled', { ports: [portRecord({ pxe_enabled: false })] }, `No available PXE-enabled ports on node ${NODE_UUID}.`],
  [
    'the port has no local_link_connection',
    { ports: [portRecord()] },
    "The local_link_connection is required for 'neutron' network interface",
  ],
  ['Neutron refuses the port', { replies: { 'POST /ports': 409 } }, '(HTTP status 409)'],
  [
    'the binding fails',
    {
      replies: {
        'POST /ports': { ports: [{ id: 'new', status: 'DOWN', mac_address: '52:54:00:00:00:01', 'binding:vif_type': 'binding_failed' }] },
      },
    },
    'Binding failed for neutron port new',
  ],
  [
    'a security group is missing',
    { options: { 'neutron.provisioning_network_security_groups': ['g'] } },
    'Could not find these security groups',
  ],
])('addProvisioningNetwork fails when %s', async (_, given, message) => {
  const { task, lines } = started(given);
  await expect(neutronNetwork.addProvisioningNetwork(task)).rejects.toThrow(message);
  if (message.startsWith('Binding')) expect(lines().at(-1)).toBe('DELETE /ports/new');
});

const attached = { internal_info: { tenant_vif_port_id: 'vif' }, local_link_connection: LINK };
it('configureTenantNetworks binds a portgroup with the links of its members and its bond properties', async () => {
  const group = portgroupRecord({
    address: '52:54:00:00:00:99',
    internal_info: { tenant_vif_port_id: 'vif' },
    properties: { miimon: '100' },
  });
  const member = portRecord({ portgroup_uuid: group.uuid, local_link_connection: LINK });
  const { task, sent } = started({ ports: [member], portgroups: [group] });
  await neutronNetwork.configureTenantNetworks(task);
  expect(sent).toMatchObject([
    [
      'PUT /ports/vif',
      {
        port: {
          mac_address: '52:54:00:00:00:99',
          'binding:profile': {
            local_link_information: [LINK],
            local_group_information: { id: group.uuid, bond_mode: 'active-backup', bond_properties: { bond_miimon: '100' } },
          },
        },
      },
    ],
  ]);
});
it('unconfigureTenantNetworks clears the binding, then the MAC address, and tolerates a deleted Neutron port', async () => {
  const { task, sent } = started({ ports: [portRecord(attached)] });
  await neutronNetwork.unconfigureTenantNetworks(task);
  expect(sent).toEqual([
    ['PUT /ports/vif', { port: { 'binding:host_id': '', 'binding:profile': {} } }],
    ['PUT /ports/vif', { port: { mac_address: null } }],
  ]);
  await neutronNetwork.unconfigureTenantNetworks(started({ ports: [portRecord(attached)], replies: { 'PUT /ports/vif': 404 } }).task);
});
it('flat: addProvisioningNetwork binds host and MAC address only, and fails without a VIF', async () => {
  const { task, sent } = started({ ports: [portRecord(attached)] });
  await flatNetwork.addProvisioningNetwork(task);
  expect(sent).toEqual([
    ['PUT /ports/vif', { port: { 'binding:host_id': NODE_UUID, 'binding:vnic_type': 'baremetal', mac_address: '52:54:00:00:00:01' } }],
  ]);
  await expect(flatNetwork.addProvisioningNetwork(started().task)).rejects.toThrow('Failed to bind any flat network ports');
});

it('vifAttach leaves the port without the VIF when Neutron refuses the change', async () => {
  const { task } = started({ replies: { 'PUT /ports/vif': 409 } });
  await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('can not update Neutron port vif MAC address');
  expect(task.ports[0]!.internal_info).toEqual({});
});
it('vifAttach rejects a VIF when no port is in its physical network', async () => {
  const other = portRecord({ local_link_connection: LINK, physical_network: 'physnet2' });
  await expect(neutronNetwork.vifAttach(started({ ports: [other] }).task, { id: 'vif' })).rejects.toThrow('not enough free physical ports');
});
it('vifAttach lets a client with a project attach only VIFs of this project', async () => {
  const replies = { 'GET /ports/vif': { port: { id: 'vif', network_id: NETWORK, project_id: 'mine' } } };
  await neutronNetwork.vifAttach(started({ replies, onlyProject: 'mine' }).task, { id: 'vif' });
  const { task } = started({ replies, onlyProject: 'other' });
  await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('Neutron port vif was not found');
  expect(task.ports[0]!.internal_info).toEqual({});
});
it('portChanged sets the new MAC address in Neutron and restores the binding', async () => {
  const bound = { id: 'vif', network_id: NETWORK, 'binding:host_id': 'h', 'binding:profile': { a: 1 } };
  const { task, sent } = started({ replies: { 'GET /ports/vif': { port: bound } } });
  const before = portRecord(attached);
  await neutronNetwork.portChanged!(task, { before, after: { ...before, address: '52:54:00:00:00:02' } });
  expect(sent.slice(3)).toEqual([
    ['PUT /ports/vif', { port: { mac_address: '52:54:00:00:00:02' } }],
    ['PUT /ports/vif', { port: { 'binding:host_id': 'h', 'binding:profile': { a: 1 } } }],
  ]);
});

it('neutronDhcp.update sends only the options for the IP versions of the Neutron port', async () => {
  const { task, sent } = started({ ports: [portRecord(attached)] });
  const option = (version: 4 | 6) => ({ opt_name: '67', opt_value: `v${version}`, ip_version: version });
  await neutronDhcp.update(task, [option(4), option(6)]);
  expect(sent.at(-1)).toEqual(['PUT /ports/vif', { port: { extra_dhcp_opts: [option(4)] } }]);
  await expect(neutronDhcp.update(started().task, [option(4)])).rejects.toThrow('No VIFs found for node');
});

it('vifAttach does not use a port without local_link_connection', async () => {
  const { task } = started({ ports: [portRecord({ physical_network: 'physnet1' })] });
  await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('not enough free physical ports');
});

describe('trait-based networking', () => {
  const traits = 'CUSTOM_BOND: { actions: [{ action: group_and_attach_ports, filter: port.is_port, min_count: 2 }] }';
  const given: Given = {
    traits,
    options: { 'conductor.enable_trait_based_networking': true },
    node: { instance_info: { traits: ['CUSTOM_BOND'] } },
    ports: [1, 2].map((id) => portRecord({ id, uuid: `p${id}`, local_link_connection: LINK })),
  };
  it('vifAttach creates a dynamic portgroup, and vifDetach deletes it', async () => {
    const { task, lines } = started(given);
    await neutronNetwork.vifAttach(task, { id: 'vif' });
    const [group] = await task.portgroups();
    expect(group).toMatchObject({ dynamic_portgroup: true, mode: 'active-backup', internal_info: { tenant_vif_port_id: 'vif' } });
    expect(task.ports.map((port) => port.portgroup_uuid)).toEqual([group!.uuid, group!.uuid]);
    // The portgroup has no MAC address: the request sets only the host.
    expect(lines()).toEqual(['GET /ports/vif', 'PUT /ports/vif']);
    await neutronNetwork.vifDetach(task, 'vif');
    expect(await task.portgroups()).toEqual([]);
    expect(task.ports.map((port) => port.portgroup_uuid)).toEqual([null, null]);
  });
  it('vifAttach leaves no portgroup when Neutron refuses the change', async () => {
    const { task } = started({ ...given, replies: { 'PUT /ports/vif': 409 } });
    await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('Could not seed network configuration');
    expect(await task.portgroups()).toEqual([]);
  });
  it('vifAttach uses a single port for an instance without traits', async () => {
    const { task } = started({ ...given, node: { instance_info: {} } });
    await neutronNetwork.vifAttach(task, { id: 'vif' });
    expect(task.ports.map((port) => port.internal_info)).toEqual([{}, { tenant_vif_port_id: 'vif' }]);
  });
});

describe('network data', () => {
  const route = { destination: '10.9.0.0/16', nexthop: '10.0.0.2' };
  const replies = {
    [`GET /networks/${NETWORK}`]: { network: { id: NETWORK, mtu: 1450 } },
    'GET /ports/vif': {
      port: {
        id: 'vif',
        network_id: NETWORK,
        mac_address: 'fa:16:3e:00:00:01',
        fixed_ips: [
          { subnet_id: 's4', ip_address: '10.0.0.9' },
          { subnet_id: 's6', ip_address: '2001:db8::9' },
        ],
      },
    },
    'GET /subnets/s4': {
      subnet: { ip_version: 4, cidr: '10.0.0.0/20', gateway_ip: '10.0.0.1', host_routes: [route], dns_nameservers: ['10.0.0.53'] },
    },
    'GET /subnets/s6': { subnet: { ip_version: 6, cidr: '2001:db8::/64', gateway_ip: null, host_routes: [], dns_nameservers: [] } },
  };
  const networks = (link: string): readonly object[] => [
    {
      id: 's4',
      network_id: NETWORK,
      type: 'ipv4',
      link,
      ip_address: '10.0.0.9',
      netmask: '255.255.240.0',
      routes: [
        { network: '0.0.0.0', netmask: '0.0.0.0', gateway: '10.0.0.1' },
        { network: '10.9.0.0', netmask: '255.255.0.0', gateway: '10.0.0.2' },
      ],
    },
    { id: 's6', network_id: NETWORK, type: 'ipv6', link, ip_address: '2001:db8::9', netmask: 'ffff:ffff:ffff:ffff::', routes: [] },
  ];
  const services = [{ type: 'dns', address: '10.0.0.53' }];
  it('of a ramdisk describes the VIFs in use, unless the node has its own network_data', async () => {
    const ports = [portRecord({ internal_info: { cleaning_vif_port_id: 'vif', tenant_vif_port_id: 'other' } })];
    const [{ uuid }] = ports as [PortRecord];
    expect(await neutronNetwork.networkData!(started({ ports, replies }).task)).toEqual({
      links: [{ id: uuid, type: 'vif', ethernet_mac_address: 'fa:16:3e:00:00:01', vif_id: 'vif', mtu: 1450 }],
      networks: networks(uuid),
      services,
    });
    const own = started({ ports, replies, node: { network_data: { links: [] } } });
    expect(await neutronNetwork.networkData!(own.task)).toEqual({ links: [] });
    expect(own.lines()).toEqual([]);
    expect(await neutronNetwork.networkData!(started().task)).toEqual({});
  });
  const group = portgroupRecord({ address: '52:54:00:00:00:99', internal_info: { tenant_vif_port_id: 'vif' } });
  const bonded: Given = { replies, portgroups: [group], ports: [portRecord({ portgroup_uuid: group.uuid })] };
  const made = {
    links: [
      { id: 'iface0', type: 'bond', ethernet_mac_address: '52:54:00:00:00:99', vif_id: 'vif', mtu: 1450, bond_links: ['iface1'] },
      { id: 'iface1', type: 'phy', ethernet_mac_address: '52:54:00:00:00:01' },
    ],
    networks: networks('iface0'),
    services,
  };
  const whole = { links: [{ id: 'a', mtu: 1500 }], networks: [], services: [] };
  const noMtu = { links: [{ id: 'a', mtu: null }] };
  it.each<readonly [string, unknown, object, unknown]>([
    ['has no network_data', undefined, {}, made],
    ['has empty network_data', { links: [], networks: [] }, {}, made],
    ['names no MTU', noMtu, {}, made],
    ['names no MTU, with disable_metadata_mtu_check', noMtu, { 'conductor.disable_metadata_mtu_check': true }, noMtu],
    ['has complete network_data', whole, {}, whole],
    ['is excluded by disable_configdrive_check', undefined, { 'conductor.disable_configdrive_check': true }, undefined],
  ])(
    'of an instance whose config drive %s: completeConfigdrive sets the expected network_data',
    async (_name, network_data, options, expected) => {
      const { task } = started({ ...bonded, options });
      expect(await neutronNetwork.completeConfigdrive!(task, { user_data: 'x', network_data })).toEqual({
        user_data: 'x',
        network_data: expected,
      });
    },
  );
  it('of an instance without VIFs: completeConfigdrive changes nothing', async () => {
    expect(await neutronNetwork.completeConfigdrive!(started().task, { user_data: 'x' })).toEqual({ user_data: 'x' });
  });
});

describe('port of a Smart NIC', () => {
  const smart = portRecord({ is_smartnic: true, local_link_connection: { port_id: 'rep0-0', hostname: 'dpu1' } });
  const agents = (...alive: readonly boolean[]): (() => object) => {
    const left = [...alive];
    return () => ({ agents: [{ alive: left.shift() ?? true }] });
  };
  it('is bound to the host of the Smart NIC after its Neutron agent is alive', async () => {
    const { task, sent } = started({ ports: [smart], replies: { 'GET /agents?': agents(false, false, true) } });
    Object.assign(task.driver, { power: { ...task.driver.power, get: async () => 'power on' as const } });
    await neutronNetwork.addProvisioningNetwork(task);
    const lines = sent.map(([line]) => line);
    expect(lines.filter((line) => line === 'GET /agents?host=dpu1')).toHaveLength(3);
    expect(sent.find(([line]) => line === 'POST /ports')).toMatchObject([
      'POST /ports',
      { ports: [{ 'binding:vnic_type': 'smart-nic', 'binding:host_id': 'dpu1' }] },
    ]);
  });
  it('has its machine powered on while the Neutron port is created', async () => {
    const driver = { ...started().task.driver.power, get: async () => 'power off' as const };
    const { task, events, sent } = started({ ports: [smart], replies: { 'GET /agents?': agents(true, false, true) } });
    Object.assign(task.driver, { power: driver });
    await neutronNetwork.addProvisioningNetwork(task);
    expect(events).toEqual(['boot device: bios once', 'power: power on', 'power: power off']);
    expect(sent.some(([line]) => line === 'POST /ports')).toBe(true);
  });
  it.each([
    [{ is_smartnic: true, local_link_connection: LINK }, 'Smart NIC port must have port_id and hostname'],
    [{ is_smartnic: false, local_link_connection: smart.local_link_connection }, 'Only Smart NIC ports can have port_id and hostname'],
  ])('is validated together with its local_link_connection: %j', async (changes, reason) => {
    const { task } = started({ ports: [portRecord(changes)] });
    Object.assign(task.driver, { power: { ...task.driver.power, get: async () => 'power on' as const } });
    await expect(neutronNetwork.addProvisioningNetwork(task)).rejects.toThrow(reason);
  });
});
