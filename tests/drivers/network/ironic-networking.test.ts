import { ironicNetworking } from '../../../drivers/network/ironic-networking';
import type { NetworkInterface } from '../../../drivers/interfaces';
import type { Options } from '../../../config/options';
import type { JsonObject, NodeRecord, PortRecord } from '../../../model/records';
import { SwitchError, type Switches } from '../../../wire/switches/switches';
import { portgroupRecord, portRecord, testTask } from '../../support/task';

const LINK = { switch_id: 'sw', port_id: 'p1' };
const TENANT = { switchport: { mode: 'access', native_vlan: 14 } };
const NETWORKS: Partial<Options> = {
  'ironic_networking.cleaning_network': 'access/native_vlan=12',
  'ironic_networking.provisioning_network': 'access/native_vlan=13',
  'ironic_networking.idle_network': 'access/native_vlan=10',
};
interface Given {
  readonly options?: Partial<Options>;
  readonly info?: JsonObject;
  readonly ports?: readonly Partial<PortRecord>[];
  readonly state?: NodeRecord['provision_state'];
  /** The attribute `extra.lag` of the portgroup `group`. */
  readonly lag?: unknown;
  /** The port whose changes fail. */
  readonly bad?: string;
}
function bench({
  options = NETWORKS,
  info = {},
  ports = [{ local_link_connection: LINK, extra: TENANT }],
  state = 'available',
  lag,
  bad,
}: Given = {}) {
  const done: string[] = [];
  const make =
    (what: string): Switches['update'] =>
    async (switchId, port, { mode, nativeVlan, allowedVlans, defaultVlan }) => {
      if (switchId === '') throw new SwitchError('Switch  could not be found');
      if (port === bad) throw new SwitchError('Failed to configure network port: refused');
      done.push([what, switchId, port, mode, nativeVlan, ...allowedVlans, `(${defaultVlan})`].join(' '));
    };
  const switches: Switches = { update: make('update'), reset: make('reset'), close: async () => {} };
  const { task, complaints } = testTask({
    node: { driver_info: info, provision_state: state },
    options,
    ports: ports.map((port, index) => portRecord({ uuid: `port-${index + 1}`, ...port })),
    portgroups: [portgroupRecord({ uuid: 'group', extra: lag === undefined ? {} : { lag } })],
    connections: { switches },
  });
  return { task, done, complaints };
}

type Operation = keyof NetworkInterface & `${'add' | 'remove' | 'configure' | 'unconfigure'}${string}`;
it.each<readonly [Operation, Given, readonly string[]]>([
  ['addCleaningNetwork', {}, ['update sw p1 access 12 (10)']],
  ['removeCleaningNetwork', {}, ['reset sw p1 access 12 (10)']],
  ['addProvisioningNetwork', {}, ['update sw p1 access 13 (10)']],
  ['configureTenantNetworks', {}, ['update sw p1 access 14 (10)']],
  ['unconfigureTenantNetworks', {}, ['reset sw p1 access 14 (10)']],
  // Without a network for the phase, the port gets its tenant's network.
  ['addInspectionNetwork', {}, ['update sw p1 access 14 (10)']],
  [
    'addRescuingNetwork',
    { info: { rescuing_network: 'trunk/native_vlan=1/allowed_vlans=2-3', idle_network: '' } },
    ['update sw p1 trunk 1 2 3 (10)'],
  ],
  ['addServicingNetwork', { options: {} }, ['update sw p1 access 14 (null)']],
  ['addCleaningNetwork', { ports: [{ extra: TENANT }] }, []],
  ['addCleaningNetwork', { ports: [{ local_link_connection: LINK }] }, ['update sw p1 access 12 (10)']],
  ['configureTenantNetworks', { ports: [{ local_link_connection: LINK }] }, []],
  ['addInspectionNetwork', { ports: [{ local_link_connection: LINK }] }, []],
])('%s with %j sends the expected changes of switch ports', async (operation, given, expected) => {
  const { task, done } = bench(given);
  await ironicNetworking[operation](task);
  expect(done).toEqual(expected);
});

it.each<readonly [Operation, string]>([
  ['addCleaningNetwork', 'Failed to configure cleaning network for port port-2: Failed to configure network port: refused'],
  ['configureTenantNetworks', 'Failed to configure tenant network for port port-2: Failed to configure network port: refused'],
  [
    'removeCleaningNetwork',
    'Failed to reset cleaning network, errors: ["Failed to reset cleaning network for port port-2: Failed to configure network port: refused"]',
  ],
  [
    'unconfigureTenantNetworks',
    'Failed to reset ports for tenant network, errors: ["Failed to reset tenant network for port port-2: Failed to configure network port: refused"]',
  ],
])('%s fails with the error of the switch after it tried every port', async (operation, reason) => {
  const ports = ['p1', 'p2', 'p3'].map((port) => ({ local_link_connection: { ...LINK, port_id: port }, extra: TENANT }));
  const { task, done } = bench({ ports, bad: 'p2' });
  await expect(ironicNetworking[operation](task)).rejects.toMatchObject({ name: 'NetworkError', message: reason });
  expect(done).toHaveLength(2);
});
it.each(['addCleaningNetwork', 'removeCleaningNetwork', 'configureTenantNetworks'] as const)(
  '%s fails for a port with an incomplete local_link_connection, and skips a port without one',
  async (operation) => {
    const port = { extra: TENANT };
    const { task, done } = bench({
      ports: [
        { ...port, local_link_connection: {} },
        { ...port, local_link_connection: LINK },
      ],
    });
    await ironicNetworking[operation](task);
    expect(done).toHaveLength(1);
    const half = bench({ ports: [{ ...port, local_link_connection: { port_id: 'p1', switch_info: 'x' } }] });
    await expect(ironicNetworking[operation](half.task)).rejects.toThrow(/for port port-1: Switch {2}could not be found/);
  },
);

it('addCleaningNetwork without switch drivers fails', async () => {
  const { task } = testTask({ options: NETWORKS, ports: [portRecord({ local_link_connection: LINK })] });
  await expect(ironicNetworking.addCleaningNetwork(task)).rejects.toThrow(/^No switch drivers are available/);
});
it('addCleaningNetwork rejects an invalid cleaning_network', async () => {
  const { task } = bench({ info: { cleaning_network: '12' } });
  await expect(ironicNetworking.addCleaningNetwork(task)).rejects.toThrow("Invalid cleaning network value '12'.");
});

describe('validate', () => {
  it.each<readonly [Partial<PortRecord>, NodeRecord['provision_state'], string | undefined]>([
    [{ local_link_connection: LINK, extra: TENANT }, 'available', undefined],
    [{ extra: {} }, 'available', undefined],
    [{ extra: TENANT }, 'inspecting', undefined],
    [{ extra: TENANT }, 'available', 'Port port-1 has switchport configuration but is missing local_link_connection in state: available.'],
    [
      { extra: TENANT, local_link_connection: { switch_info: 'a' } },
      'available',
      "Port port-1 local_link_connection missing required field(s): 'switch_id', 'port_id'",
    ],
    [
      { extra: { switchport: { mode: 'trunk', native_vlan: 5, allowed_vlans: [6] } }, local_link_connection: LINK, pxe_enabled: true },
      'available',
      "Port port-1 is PXE-enabled but has switchport mode 'trunk'. PXE-enabled ports must use 'access' mode when switchport configuration is present.",
    ],
    [{ extra: { switchport: [] } }, 'available', undefined],
    [{ extra: { switchport: 'access' } }, 'available', "for port port-1: 'access' is not of type 'object'"],
    [{ extra: { switchport: { mode: 'x' } } }, 'available', 'Invalid switchport configuration for port port-1: '],
  ])('checks the port %j in state %s', async (port, state, problem) => {
    const { task } = bench({ ports: [port], state });
    const attempt = ironicNetworking.validate!(task);
    if (problem === undefined) await attempt;
    else await expect(attempt).rejects.toThrow(problem);
  });
});

describe('validate of a portgroup with LAG', () => {
  const LAG = { mode: 'access', native_vlan: 14, aggregation_mode: 'lacp' };
  const member = { portgroup_uuid: 'group', local_link_connection: LINK, extra: TENANT, pxe_enabled: false };
  it.each<readonly [unknown, readonly Partial<PortRecord>[], string | undefined]>([
    [LAG, [member, member], undefined],
    [undefined, [], undefined],
    [{}, [], undefined],
    ['lacp', [member], "Invalid LAG configuration for portgroup group: 'lacp' is not of type 'object'"],
    [{ mode: 'access' }, [member], "Invalid LAG configuration for portgroup group: 'aggregation_mode' is a required property"],
    [LAG, [{ ...member, portgroup_uuid: 'other' }], 'Portgroup group has LAG configuration but no member ports'],
    [
      LAG,
      [{ ...member, extra: {} }, { ...member, local_link_connection: { switch_id: 'sw' }, extra: TENANT }, member],
      'Port port-2 local_link_connection missing required field',
    ],
    [
      LAG,
      [{ ...member, extra: {} }, member],
      'Portgroup group has LAG configuration but: member ports port-1 lack switchport configuration',
    ],
    [
      LAG,
      [{ ...member, local_link_connection: {} }],
      'Portgroup group has LAG configuration but: member ports port-1 lack proper local_link_connection with switch_id and port_id fields',
    ],
  ])('checks extra.lag %j with the ports %j: %s', async (lag, ports, problem) => {
    const { task } = bench({ ports, lag, state: 'inspecting' });
    const attempt = ironicNetworking.validate!(task);
    if (problem === undefined) await attempt;
    else await expect(attempt).rejects.toThrow(problem);
  });
});

it.each([
  ['inspection', 'validateInspection'],
  ['rescuing', 'validateRescue'],
] as const)('the network for %s is validated by %s', async (network, check) => {
  const options = (value: string): Partial<Options> => ({ [`ironic_networking.${network}_network`]: value });
  await expect(ironicNetworking[check]!(bench({ options: options('access') }).task)).rejects.toThrow(
    `Invalid ${network} network value 'access'`,
  );
  await ironicNetworking[check]!(bench({ options: options('access/native_vlan=5') }).task);
  const without = bench({ ports: [] });
  await ironicNetworking[check]!(without.task);
  expect(without.complaints).toEqual([`no port of the node has a switch port in a network {"network":"${network}"}`]);
});

describe('portChanged', () => {
  const moved = { ...LINK, port_id: 'p2' };
  const other = { switchport: { mode: 'access', native_vlan: 15 } };
  it.each<readonly [string, NodeRecord['provision_state'], Partial<PortRecord>, Partial<PortRecord>, readonly string[]]>([
    ['no change', 'active', { extra: TENANT }, { extra: TENANT }, []],
    ['another VLAN', 'active', { extra: TENANT }, { extra: other }, ['update sw p1 access 15 (10)']],
    ['a first VLAN', 'active', { extra: {} }, { extra: other }, ['update sw p1 access 15 (10)']],
    ['the VLAN is removed', 'active', { extra: TENANT }, { extra: {} }, ['reset sw p1 access 14 (10)']],
    ['the link is removed', 'active', { extra: TENANT }, { extra: TENANT, local_link_connection: {} }, ['reset sw p1 access 14 (10)']],
    [
      'another link',
      'active',
      { extra: TENANT },
      { extra: TENANT, local_link_connection: moved },
      ['reset sw p1 access 14 (10)', 'update sw p2 access 14 (10)'],
    ],
    ['another VLAN', 'cleaning', { extra: TENANT }, { extra: other }, ['update sw p1 access 12 (10)']],
    ['another VLAN of an idle node', 'available', { extra: TENANT }, { extra: other }, ['update sw p1 access 10 (10)']],
  ])('applies a port change to the switch: %s, in state %s', async (_name, state, before, after, expected) => {
    const { task, done } = bench({ state });
    const port = (changes: Partial<PortRecord>): PortRecord => portRecord({ local_link_connection: LINK, pxe_enabled: false, ...changes });
    await ironicNetworking.portChanged!(task, { before: port(before), after: port(after) });
    expect(done).toEqual(expected);
  });
});
