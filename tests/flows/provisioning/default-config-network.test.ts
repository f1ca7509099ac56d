/** Modes of network ports by rack, through the whole server: FibreChannel in one rack and Ethernet in the next. */
import { NETWORK_MODES, modeOf } from '../../../simulator/hardware/network-modes';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 3,
    options: { 'redfish.firmware_update_status_interval': 1, 'agent.command_wait_interval': 1 },
  });
});
afterAll(() => whole?.close());

type Shown = Readonly<Record<string, unknown>>;
const NIC = { interface: 'management', step: 'configure_network_adapters' };
const BIOS = { interface: 'bios', step: 'apply_configuration' };
const ports = (modes: Readonly<Record<string, string>>): object => ({
  ports: Object.entries(modes).map(([name, mode]) => ({ name, mode })),
});
const create = (body: object) => whole.call('POST', '/v1/default_configs', body);
const set = async (body: object): Promise<Shown> => {
  const answer = await create(body);
  expect(answer).toMatchObject({ status: 201 });
  return answer.body;
};
const faultOf = (answer: Shown): string => (JSON.parse(String(answer['error_message'])) as { faultstring: string }).faultstring;
const shown = async (uuid: string) =>
  (await whole.call('GET', `/v1/nodes/${uuid}/default_config`)).body as {
    readonly arguments: readonly Shown[];
    readonly differences: readonly string[];
    readonly read_now: boolean;
  };
const manageable = async (machine: number, properties: Shown): Promise<string> => {
  const uuid = await whole.enrol(whole.fleet.machines[machine]!, { name: `machine-${machine}`, properties });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  return uuid;
};
const provided = async (uuid: string): Promise<Shown> => {
  await whole.order(uuid, 'provide');
  return whole.reach(uuid, 'available');
};
const again = async (uuid: string): Promise<string> => {
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await provided(uuid);
  const { history } = (await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`)).body as { readonly history: readonly Shown[] };
  return String(history.filter(({ event_type: type }) => type === 'automated_cleaning_start').at(-1)?.['event']);
};
const hardwareOf = (machine: number) => whole.fleet.machines[machine]!.control.hardware;
const modeNow = (machine: number): string => modeOf(hardwareOf(machine).get(NETWORK_MODES).current, '1');

it('gives each rack its mode, shows what differs, and brings it back in cleaning: after the BIOS', async () => {
  await set({ property: 'rack', value: '12', steps: [{ ...NIC, args: ports({ 'NIC1/1': 'FibreChannel' }) }] });
  await set({ property: 'rack', value: '13', steps: [{ ...NIC, args: ports({ 'NIC1/1': 'Ethernet' }) }] });
  const [fibre, ethernet] = [await manageable(0, { rack: 12 }), await manageable(1, { rack: 13 })];
  const differs = 'NIC ports differ from the default of property rack=12 in 1 port: NIC1/1 is Ethernet, not FibreChannel';
  expect((await shown(fibre)).differences).toEqual([differs]);
  await provided(fibre);
  await provided(ethernet);
  expect([modeNow(0), modeNow(1)]).toEqual(['FibreChannel', 'Ethernet']);
  expect(await shown(fibre)).toMatchObject({
    arguments: [{ argument: 'ports[NIC1/1]', origin: 'property rack=12', now: 'FibreChannel', state: 'equal' }],
    differences: [],
    read_now: true,
  });
  // By hand, in the other rack.
  hardwareOf(1).set(NETWORK_MODES, { current: { 1: 'iSCSI' } });
  const drift = 'NIC ports differ from the default of property rack=13 in 1 port: NIC1/1 is iSCSI, not Ethernet';
  expect((await shown(ethernet)).differences).toEqual([drift]);
  const { output } = await runCommand(['why', 'machine-1', '--url', whole.server.apiUrl!]);
  expect(output).toContain(`! default-config: ${drift}\n`);
  expect(output).toContain(
    '! management.configure_network_adapters ports[NIC1/1] = {"name":"NIC1/1","mode":"Ethernet"} (property rack=13; the machine has "iSCSI")\n',
  );
  await set({ node_uuid: ethernet, steps: [{ ...BIOS, args: { settings: [{ name: 'QuietBoot', value: true }] } }] });
  expect(await again(ethernet)).toMatch(/steps=\[.*'apply_configuration'.*'configure_network_adapters'/);
  expect(modeNow(1)).toBe('Ethernet');
  expect((await shown(ethernet)).differences).toEqual([]);
  // Nothing differs: no step is added, and the machine is not restarted for it.
  expect(await again(ethernet)).toMatch(/steps=\[(?!.*configure_network)/);
});

it('is a step of manual cleaning, which fails with the names of the ports', async () => {
  const uuid = await manageable(2, {});
  await whole.order(uuid, 'clean', { clean_steps: [{ ...NIC, args: ports({ 1: 'iSCSI' }) }], disable_ramdisk: true });
  await whole.reach(uuid, 'manageable');
  expect(modeNow(2)).toBe('iSCSI');
  hardwareOf(2).set(NETWORK_MODES, { current: {}, immediate: true });
  await whole.order(uuid, 'clean', { clean_steps: [{ ...NIC, args: ports({ 1: 'FibreChannel' }) }], disable_ramdisk: true });
  await whole.reach(uuid, 'manageable');
  expect(modeNow(2)).toBe('FibreChannel');
  await whole.order(uuid, 'clean', { clean_steps: [{ ...NIC, args: ports({ 9: 'Ethernet' }) }], disable_ramdisk: true });
  expect((await whole.reach(uuid, 'clean failed'))['last_error']).toContain(
    'ports[0].name: no network adapter has a port 9 of its own. The ports: 1',
  );
});

it.each([
  [ports({ 'NIC1/9': 'Ethernet' }), /^steps\[0\]\.args\.ports\[0\]\.name: no network adapter has a port NIC1\/9 of its own\. The ports: 1/],
  [
    ports({ 'NIC1/1': 'InfiniBand' }),
    /^steps\[0\]\.args\.ports\[0\]\.mode: the port NIC1\/1 cannot be InfiniBand\. Its modes: Ethernet, FibreChannel, iSCSI, FibreChannelOverEthernet$/,
  ],
  [ports({ 'NIC1/1': 'Token Ring' }), /^steps\[0\]\.args: ports\[0\]\.mode must be one of Disabled, Ethernet/],
  [{ ports: 'all' }, /^steps\[0\]\.args\.ports: it must be of the type list$/],
  [{ port: [] }, /^steps\[0\]\.args\.port: the step management\.configure_network_adapters has no such argument\. Its arguments: ports$/],
])('refuses %j when it is set for machines that were read', async (args, message) => {
  // The nodes of the first test.
  const { body: known } = await whole.call('GET', '/v1/default_configs?property=rack&value=12');
  const [config] = known['default_configs'] as readonly Shown[];
  const answer = await whole.call('PATCH', `/v1/default_configs/${String(config!['uuid'])}`, [
    { op: 'replace', path: '/steps/0/args', value: args },
  ]);
  expect(answer.status).toBe(400);
  expect(faultOf(answer.body)).toMatch(message);
});

it('takes a name that this machine does not have if another of the scope may, and shows it as unknown', async () => {
  await set({ resource_class: 'mixed', steps: [{ ...NIC, args: ports({ 'NIC.Slot.1-1-1': 'FibreChannel' }) }] });
  const uuid = String((await whole.call('GET', '/v1/nodes/machine-0')).body['uuid']);
  const patch = [{ op: 'add', path: '/resource_class', value: 'mixed' }];
  expect((await whole.call('PATCH', `/v1/nodes/${uuid}`, patch)).status).toBe(200);
  const { arguments: rows, differences } = await shown(uuid);
  expect(rows).toContainEqual(expect.objectContaining({ argument: 'ports[NIC.Slot.1-1-1]', state: 'unknown', now: null }));
  expect(differences).toEqual([]);
});
