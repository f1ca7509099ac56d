/** The requests of the network interfaces flat and neutron to Neutron. tests/openstack has a real Neutron. */
import { flatNetwork, neutronNetwork } from '../../../drivers/network/neutron';
import { parseTraits } from '../../../drivers/network/network-traits';
import { neutron as neutronDhcp } from '../../../drivers/dhcp/neutron';
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
  ['is bound to nobody', {}, []],
  ['is still bound', { 'binding:host_id': NODE_UUID }, ['PUT /ports/vif', 'PUT /ports/vif']],
  ['has a binding profile', { 'binding:profile': { local_link_information: [LINK] } }, ['PUT /ports/vif', 'PUT /ports/vif']],
  ["has the machine's address", { mac_address: '52:54:00:00:00:01' }, ['PUT /ports/vif', 'PUT /ports/vif']],
  ['cannot be read', 500, ['PUT /ports/vif', 'PUT /ports/vif']],
])('a VIF that %s when its instance ends is detached', async (_, view, changes) => {
  const port = portRecord({ local_link_connection: LINK, internal_info: { tenant_vif_port_id: 'vif' } });
  const free = { id: 'vif', mac_address: 'fa:16:3e:00:00:01', 'binding:host_id': '', 'binding:profile': {} };
  const replies = { 'GET /ports/vif': typeof view === 'number' ? view : { port: { ...free, ...view } } };
  const { task, lines } = started({ ports: [port], node: { provision_state: 'deleting' }, replies });
  await neutronNetwork.vifDetach(task, 'vif');
  expect(lines()).toEqual(['GET /ports/vif', ...changes]);
  expect(task.ports[0]!.internal_info).toEqual({});
});

it('a port of a temporary network is made and bound by one request, after leftovers are gone', async () => {
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
            ...{ network_id: NETWORK, admin_state_up: true, device_id: NODE_UUID, device_owner: 'baremetal:none' },
            ...{ 'binding:vnic_type': 'baremetal', 'binding:host_id': NODE_UUID, mac_address: '52:54:00:00:00:01' },
            'binding:profile': { local_link_information: [LINK], physical_network: 'physnet1' },
          },
        ],
      },
    ],
  ]);
  expect(task.ports[0]!.internal_info).toEqual({ provisioning_vif_port_id: 'new' });
});

it('removal deletes the ports of the network and those that the node names', async () => {
  const port = portRecord({ local_link_connection: LINK, internal_info: { provisioning_vif_port_id: 'named', tenant_vif_port_id: 'vif' } });
  const { task, lines } = started({ ports: [port], replies: { 'GET /ports?': { ports: [{ id: 'found' }] } } });
  await neutronNetwork.removeProvisioningNetwork(task);
  expect(lines().slice(2)).toEqual(['DELETE /ports/found', 'DELETE /ports/named']);
  expect(task.ports[0]!.internal_info).toEqual({ tenant_vif_port_id: 'vif' });
});
it('removal from a network that is not configured any more deletes what the node names', async () => {
  const port = portRecord({ internal_info: { rescuing_vif_port_id: 'named' } });
  const { task, lines } = started({ ports: [port] });
  await neutronNetwork.removeRescuingNetwork(task);
  expect(lines()).toEqual(['DELETE /ports/named']);
});

it.each<[string, Given, string]>([
  ['a network is missing', { options: { 'neutron.provisioning_network': null } }, 'UUID or name of provisioning_network is not set'],
  [
    'Neutron has no such network',
    { replies: { [`GET /networks/${NETWORK}`]: 404 } },
    `provisioning_network with name or UUID ${NETWORK} was not found`,
  ],
  ['Neutron fails', { replies: { [`GET /networks/${NETWORK}`]: 500 } }, 'Could not retrieve network: HTTP status 500'],
  ['no port boots', { ports: [portRecord({ pxe_enabled: false })] }, `No available PXE-enabled ports on node ${NODE_UUID}.`],
  ['the port has no link', { ports: [portRecord()] }, "The local_link_connection is required for 'neutron' network interface"],
  ['the port is refused', { replies: { 'POST /ports': 409 } }, '(HTTP status 409)'],
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
])('adding a network fails when %s', async (_, given, message) => {
  const { task, lines } = started(given);
  await expect(neutronNetwork.addProvisioningNetwork(task)).rejects.toThrow(message);
  if (message.startsWith('Binding')) expect(lines().at(-1)).toBe('DELETE /ports/new');
});

const attached = { internal_info: { tenant_vif_port_id: 'vif' }, local_link_connection: LINK };
it('a portgroup is bound with the links of its members and its bond', async () => {
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
it('unplugging clears the binding first, then the address; a port that is gone is no failure', async () => {
  const { task, sent } = started({ ports: [portRecord(attached)] });
  await neutronNetwork.unconfigureTenantNetworks(task);
  expect(sent).toEqual([
    ['PUT /ports/vif', { port: { 'binding:host_id': '', 'binding:profile': {} } }],
    ['PUT /ports/vif', { port: { mac_address: null } }],
  ]);
  await neutronNetwork.unconfigureTenantNetworks(started({ ports: [portRecord(attached)], replies: { 'PUT /ports/vif': 404 } }).task);
});
it('flat binds host and address only, and fails without a VIF', async () => {
  const { task, sent } = started({ ports: [portRecord(attached)] });
  await flatNetwork.addProvisioningNetwork(task);
  expect(sent).toEqual([
    ['PUT /ports/vif', { port: { 'binding:host_id': NODE_UUID, 'binding:vnic_type': 'baremetal', mac_address: '52:54:00:00:00:01' } }],
  ]);
  await expect(flatNetwork.addProvisioningNetwork(started().task)).rejects.toThrow('Failed to bind any flat network ports');
});

it('a VIF that cannot be connected is not attached', async () => {
  const { task } = started({ replies: { 'PUT /ports/vif': 409 } });
  await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('can not update Neutron port vif MAC address');
  expect(task.ports[0]!.internal_info).toEqual({});
});
it('a VIF is placed on a port of its physical network', async () => {
  const other = portRecord({ local_link_connection: LINK, physical_network: 'physnet2' });
  await expect(neutronNetwork.vifAttach(started({ ports: [other] }).task, { id: 'vif' })).rejects.toThrow('not enough free physical ports');
});
it('a client may attach the VIFs of its own project only, where it is bound to one', async () => {
  const replies = { 'GET /ports/vif': { port: { id: 'vif', network_id: NETWORK, project_id: 'mine' } } };
  await neutronNetwork.vifAttach(started({ replies, onlyProject: 'mine' }).task, { id: 'vif' });
  const { task } = started({ replies, onlyProject: 'other' });
  await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('Neutron port vif was not found');
  expect(task.ports[0]!.internal_info).toEqual({});
});
it('a changed address is changed in Neutron, and the binding restored', async () => {
  const bound = { id: 'vif', network_id: NETWORK, 'binding:host_id': 'h', 'binding:profile': { a: 1 } };
  const { task, sent } = started({ replies: { 'GET /ports/vif': { port: bound } } });
  const before = portRecord(attached);
  await neutronNetwork.portChanged!(task, { before, after: { ...before, address: '52:54:00:00:00:02' } });
  expect(sent.slice(3)).toEqual([
    ['PUT /ports/vif', { port: { mac_address: '52:54:00:00:00:02' } }],
    ['PUT /ports/vif', { port: { 'binding:host_id': 'h', 'binding:profile': { a: 1 } } }],
  ]);
});

it('DHCP options are those of the IP versions of the port', async () => {
  const { task, sent } = started({ ports: [portRecord(attached)] });
  const option = (version: 4 | 6) => ({ opt_name: '67', opt_value: `v${version}`, ip_version: version });
  await neutronDhcp.update(task, [option(4), option(6)]);
  expect(sent.at(-1)).toEqual(['PUT /ports/vif', { port: { extra_dhcp_opts: [option(4)] } }]);
  await expect(neutronDhcp.update(started().task, [option(4)])).rejects.toThrow('No VIFs found for node');
});

it('a VIF gets no port that the network interface cannot use', async () => {
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
  it('makes a portgroup for a VIF, and removes it with the VIF', async () => {
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
  it('leaves no portgroup when Neutron refuses', async () => {
    const { task } = started({ ...given, replies: { 'PUT /ports/vif': 409 } });
    await expect(neutronNetwork.vifAttach(task, { id: 'vif' })).rejects.toThrow('Could not seed network configuration');
    expect(await task.portgroups()).toEqual([]);
  });
  it('attaches a VIF to one port by default', async () => {
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
        ...{ id: 'vif', network_id: NETWORK, mac_address: 'fa:16:3e:00:00:01' },
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
      ...{ id: 's4', network_id: NETWORK, type: 'ipv4', link, ip_address: '10.0.0.9', netmask: '255.255.240.0' },
      routes: [
        { network: '0.0.0.0', netmask: '0.0.0.0', gateway: '10.0.0.1' },
        { network: '10.9.0.0', netmask: '255.255.0.0', gateway: '10.0.0.2' },
      ],
    },
    { id: 's6', network_id: NETWORK, type: 'ipv6', link, ip_address: '2001:db8::9', netmask: 'ffff:ffff:ffff:ffff::', routes: [] },
  ];
  const services = [{ type: 'dns', address: '10.0.0.53' }];
  it('of a ramdisk is that of the VIFs in use, unless the node has its own', async () => {
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
    ['has none', undefined, {}, made],
    ['has an empty one', { links: [], networks: [] }, {}, made],
    ['names no MTU', noMtu, {}, made],
    ['names no MTU, which is not checked', noMtu, { 'conductor.disable_metadata_mtu_check': true }, noMtu],
    ['has one', whole, {}, whole],
    ['is not checked', undefined, { 'conductor.disable_configdrive_check': true }, undefined],
  ])('of an instance whose config drive %s', async (_name, network_data, options, expected) => {
    const { task } = started({ ...bonded, options });
    expect(await neutronNetwork.completeConfigdrive!(task, { user_data: 'x', network_data })).toEqual({
      user_data: 'x',
      network_data: expected,
    });
  });
  it('of an instance without VIFs stays as it is', async () => {
    expect(await neutronNetwork.completeConfigdrive!(started().task, { user_data: 'x' })).toEqual({ user_data: 'x' });
  });
});

describe('a Smart NIC', () => {
  const smart = portRecord({ is_smartnic: true, local_link_connection: { port_id: 'rep0-0', hostname: 'dpu1' } });
  const agents = (...alive: readonly boolean[]): (() => object) => {
    const left = [...alive];
    return () => ({ agents: [{ alive: left.shift() ?? true }] });
  };
  it('is bound to its own host, when its agent is alive', async () => {
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
  it('is powered on while its ports change', async () => {
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
  ])('has a link of its own kind: %j', async (changes, reason) => {
    const { task } = started({ ports: [portRecord(changes)] });
    Object.assign(task.driver, { power: { ...task.driver.power, get: async () => 'power on' as const } });
    await expect(neutronNetwork.addProvisioningNetwork(task)).rejects.toThrow(reason);
  });
});
