import { createAgentAddresses } from '../../../api/resource/agent-addresses';
import { createAgentSources } from '../../../api/resource/agent-sources';
import type { Options } from '../../../config/options';
import { silentMetrics, type Metrics } from '../../../model/metrics';
import { testClock } from '../../support/clock';
import { optionsOf } from '../../support/options';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const clock = testClock();
interface Machine {
  /** Address → MAC address. */
  readonly leases?: Readonly<Record<string, string>>;
  readonly inspected?: readonly object[];
  readonly node?: object;
}
type Store = Parameters<typeof createAgentSources>[0]['store'];
const storeOf = ({ leases = {}, inspected, node }: Machine): Store =>
  ({
    leases: {
      ofNode: async () => Object.entries(leases).map(([address, mac]) => ({ address, mac, expires_at: clock.now() + 1000 })),
    },
    inventories: { interfaces: async () => inspected ?? [] },
    nodes: { listColumns: async () => [{ driver_info: {}, network_data: {}, conductor_group: '', ...node }] },
  }) as unknown as Store;
const objection = (mode: Options['api.agent_source_check'], networks: readonly string[], machine: Machine, address?: string) =>
  createAgentSources({
    store: storeOf(machine),
    options: optionsOf({ 'api.agent_source_check': mode, 'api.agent_allowed_networks': networks }),
    clock,
  }).objection(NODE, address);

const LEASED: Machine = { leases: { '10.0.0.2': '52:54:00:00:00:01' } };
const INSPECTED: Machine = {
  inspected: [
    { mac_address: '52:54:00:00:00:02', ipv4_address: '10.0.1.2', ipv6_address: '2001:DB8:0::2' },
    { mac_address: null, ipv4_address: null, ipv6_address: 7 },
  ],
};
const CONFIGURED: Machine = {
  node: {
    network_data: {
      links: [{ ethernet_mac_address: '52:54:00:00:00:03' }, null, 'x'],
      networks: [{ ip_address: '10.0.2.2/24' }, { ip_address: '2001:db8:2::2' }, { ip_address: 7 }, {}],
    },
  },
};
const RACK: Machine = { ...LEASED, node: { driver_info: { provisioning_network: 'rack-1' }, conductor_group: 'north' } };

it.each<[Options['api.agent_source_check'], readonly string[], Machine, readonly string[], readonly string[]]>([
  // Leases of our DHCP service, if there are any.
  ['lease', [], {}, ['10.0.0.9', '2001:db8::9'], []],
  ['lease', [], LEASED, ['10.0.0.2'], ['10.0.0.3', '2001:db8::2', '::1']],
  ['lease', [], INSPECTED, ['10.0.0.9'], []],
  // RFC 4291 Appendix A.
  ['lease', [], LEASED, ['2001:db8::5054:ff:fe00:1', 'fe80::5054:ff:fe00:1', '2001:db8:1:2:5054:ff:fe00:1'], ['2001:db8::5054:ff:fe00:2']],
  // The agent's requests come from an interface without a lease of our DHCP service.
  ['lease', ['10.9.0.0/16', '2001:db8:9::/48'], LEASED, ['10.0.0.2', '10.9.3.4', '2001:db8:9::1'], ['10.8.0.1', '2001:db8:8::1']],
  ['lease', ['10.9.0.0/16'], {}, ['10.9.0.1'], ['10.0.0.2']],
  ['known', [], {}, ['10.0.0.9'], []],
  // Anybody may post an inventory. Its addresses narrow the sources of a node of which nothing else is known, and permit nothing else.
  ['known', [], INSPECTED, ['10.0.1.2', '2001:db8::2', '2001:db8::5054:ff:fe00:2'], ['10.0.1.3', '2001:db8::3']],
  ['known', [], { ...LEASED, ...INSPECTED }, ['10.0.0.2'], ['10.0.1.2', '2001:db8::2', '2001:db8::5054:ff:fe00:2']],
  ['known', [], { ...CONFIGURED, ...INSPECTED }, ['10.0.2.2'], ['10.0.1.2', '2001:db8::2', '2001:db8::5054:ff:fe00:2']],
  ['known', [], CONFIGURED, ['10.0.2.2', '2001:db8:2::2', '2001:db8::5054:ff:fe00:3'], ['10.0.2.3', '10.0.2.0']],
  ['known', ['10.9.0.0/16'], INSPECTED, ['10.9.0.1'], ['10.0.0.2', '10.0.1.2', '2001:db8::5054:ff:fe00:2']],
  ['known', ['rack-1=10.1.0.0/24'], { ...INSPECTED, node: RACK.node! }, ['10.1.0.5'], ['10.0.1.2']],
  ['networks', ['10.9.0.0/16'], { ...LEASED, ...INSPECTED }, ['10.9.255.255'], ['10.0.0.2', '10.0.1.2', '10.10.0.0', '2001:db8::1']],
  // Of one provisioning network, or of one conductor group.
  ['networks', ['rack-1=10.1.0.0/24', 'rack-2=10.2.0.0/24', '10.9.0.1'], RACK, ['10.1.0.5', '10.9.0.1'], ['10.2.0.5', '10.9.0.2']],
  ['networks', ['north=10.3.0.0/24', 'south=2001:db8::/64'], RACK, ['10.3.0.5'], ['2001:db8::5']],
  ['networks', ['rack-1=2001:db8:1::/64'], RACK, ['2001:db8:1::5'], ['2001:db8:2::5', '10.0.0.2']],
  ['networks', ['rack-1=10.1.0.0/24'], {}, [], ['10.1.0.5']],
  ['lease', ['rack-1=10.1.0.0/24'], { node: RACK.node! }, ['10.1.0.5'], ['10.2.0.5']],
  ['lease', ['rack-2=10.1.0.0/24'], { node: RACK.node! }, ['10.1.0.5', '10.2.0.5'], []],
  ['off', [], LEASED, ['10.0.0.3'], []],
])(
  'with agent_source_check = %s and networks %j, accepts and refuses addresses for %j',
  async (mode, networks, machine, accepted, refused) => {
    for (const address of accepted) expect([address, await objection(mode, networks, machine, address)]).toEqual([address, undefined]);
    for (const address of refused)
      expect(await objection(mode, networks, machine, address)).toContain(`the request came from ${address}, `);
  },
);

it('gives the reason of a refusal', async () => {
  expect(await objection('lease', [], LEASED, '10.0.0.3')).toBe('the request came from 10.0.0.3, but DHCP gave the node 10.0.0.2');
  expect(await objection('known', [], INSPECTED, '10.0.0.3')).toBe(
    'the request came from 10.0.0.3, but the known addresses of the node are 10.0.1.2, 2001:db8::2',
  );
  expect(await objection('networks', ['10.9.0.0/16'], {}, '10.0.0.3')).toBe(
    'the request came from 10.0.0.3, which [api]agent_allowed_networks does not contain',
  );
});

it('accepts a request from an unknown address, unless networks are required', async () => {
  expect(await objection('lease', [], LEASED)).toBeUndefined();
  expect(await objection('known', [], LEASED)).toBeUndefined();
  expect(await objection('networks', ['0.0.0.0/0'], LEASED)).toBe('nobody knows where the request came from');
});

it.each([
  ['lease', ['10.0.0.0/33'], '"10.0.0.0/33" is neither a network nor name=network'],
  ['lease', ['rack'], '"rack" is neither a network nor name=network'],
  ['lease', ['=10.0.0.0/8'], '"=10.0.0.0/8" is neither'],
  ['lease', ['rack=10.0.0'], '"rack=10.0.0" is neither'],
  ['networks', [], '[api]agent_source_check = networks needs [api]agent_allowed_networks'],
] as const)('does not start with agent_source_check = %s and networks %j', (mode, networks, message) =>
  expect(() =>
    createAgentSources({
      store: storeOf({}),
      options: optionsOf({ 'api.agent_source_check': mode, 'api.agent_allowed_networks': networks }),
      clock,
    }),
  ).toThrow(message),
);

it('records one refusal in five minutes in the history of a node, and counts the others', async () => {
  const entries: (string | null)[] = [];
  const counted: unknown[] = [];
  const metrics: Metrics = { ...silentMetrics, count: (name, labels) => void counted.push([name, labels]) };
  const addresses = createAgentAddresses({
    store: { ...storeOf({}), history: { create: async ({ event }: { event: string | null }) => void entries.push(event) } } as never,
    options: optionsOf(),
    clock,
    metrics,
    random: (bytes) => Buffer.alloc(bytes),
  });
  const node = { uuid: NODE, provision_state: 'wait call-back' } as const;
  for (let count = 0; count < 500; count++) await addresses.report(node, 'source', `refused ${count}`);
  await addresses.report({ ...node, uuid: 'another' }, 'callback', 'of another node');
  expect(entries).toEqual(['refused 0', 'of another node']);
  await clock.advance(300);
  await addresses.report(node, 'source', 'later');
  expect(entries.slice(2)).toEqual(['later (499 more were refused since the entry before)']);
  expect(counted).toHaveLength(502);
  expect(counted[0]).toEqual(['bloomery_agent_requests_refused_total', { reason: 'source' }]);
});
