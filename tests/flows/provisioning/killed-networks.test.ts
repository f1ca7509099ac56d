/**
 * A conductor that is killed at each request to Neutron, before and after the request has its effect, in each flow. The next conductor
 * ends the flow, and leaves in Neutron and on the ports exactly what a flow without a kill leaves. tests/openstack kills real processes.
 */
import { randomUUID } from 'node:crypto';
import { customAgentDeploy } from '../../../drivers/agent/deploy';
import { agentInspect } from '../../../drivers/agent/inspect';
import { agentRescue } from '../../../drivers/agent/rescue';
import { done, wait, type PlannedStep, type Task } from '../../../drivers/interfaces';
import { flatNetwork, neutronNetwork } from '../../../drivers/network/neutron';
import type { Clock } from '../../../model/clock';
import type { NodeRecord, PortgroupRecord, PortRecord } from '../../../model/records';
import type { Store } from '../../../store/store';
import { agentToken } from '../../support/agent-token';
import { testClock } from '../../support/clock';
import { HARDWARE, started, type Started } from '../../support/conductor';
import { interfacesOf, newMachine } from '../../support/machine';
import { useDatabase } from '../../support/database';
import { result, startFakeAgent, type FakeAgent } from '../../support/fakes/fake-agent';
import { startNeutronStandIn, type Fate, type NeutronRequest } from '../../support/fakes/neutron-stand-in';
import { until } from '../../support/until';

const clock = testClock();
const database = useDatabase({ clock });
const neutron = startNeutronStandIn();
let agent: FakeAgent;

/** The one step of the agent. */
const STEP: PlannedStep = { interface: 'deploy', step: 'check', priority: 10 };
const powers = new Map<string, string>();
const power = {
  rebootsByReset: true,
  get: async ({ node }: Task) => powers.get(node.uuid) ?? 'power off',
  on: async ({ node }: Task) => void powers.set(node.uuid, 'power on'),
  off: async ({ node }: Task) => void powers.set(node.uuid, 'power off'),
  reset: async ({ node }: Task) => void powers.set(node.uuid, 'power on'),
};
const nothing = async (): Promise<void> => {};
const test = interfacesOf(newMachine());
const interfaces = {
  ...test,
  power: { test: power },
  // All ports get networks, since an inspection may switch off pxe_enabled.
  boot: { test: { ...test.boot['test'], bootsFromNetwork: undefined, validateInspection: nothing, validateRescue: nothing } },
  deploy: {
    test: {
      ...customAgentDeploy,
      agentSteps: async (_: Task, kind: string) => (kind === 'deploy' ? [] : [STEP]),
      runAgentStep: async () => wait,
      onHeartbeat: async () => done,
    },
  },
  rescue: { test: agentRescue },
  inspect: { test: agentInspect },
  network: { neutron: neutronNetwork, flat: flatNetwork },
} as unknown as typeof test;

/** A conductor whose process can be killed: from then on, nothing that it waits for arrives. */
interface Mortal extends Started {
  readonly kill: () => void;
}
const never = new Promise<never>(() => {});
async function start(): Promise<Mortal> {
  let isKilled = false;
  const alive = <T>(value: T): T => {
    if (isKilled) return never as T;
    return value instanceof Promise ? (value.then((item: unknown) => (isKilled ? never : item)) as T) : value;
  };
  const mortal = <T extends object>(object: T): T =>
    new Proxy(object, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member === 'object' && member !== null) return mortal(member);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]): unknown => alive(isKilled ? undefined : Reflect.apply(member, target, args));
      },
    });
  const mortalClock: Clock = { now: () => clock.now(), sleep: async (...args) => alive(clock.sleep(...args)) };
  const nowhere = { request: async () => Promise.reject(new Error('no BMC here')), close: nothing };
  const one = await started(mortal(database.store() as Store), mortalClock, {
    options: {
      'DEFAULT.host': 'killed',
      'DEFAULT.enabled_hardware_types': ['test-hardware'],
      'DEFAULT.enabled_network_interfaces': ['neutron', 'flat'],
      'neutron.endpoint_override': 'http://neutron',
      'conductor.workers_pool_size': 1000,
      'conductor.max_concurrent_deploy': 1000,
      'conductor.max_concurrent_clean': 1000,
    },
    rooms: {
      interfaces,
      hardwareTypes: { 'test-hardware': { ...HARDWARE['test-hardware']!, network: ['neutron', 'flat'] } },
      connections: { ipmi: nowhere, redfish: nowhere, services: neutron.services },
    },
  });
  return Object.assign(one, { kill: () => (isKilled = true) });
}

const KINDS = ['cleaning', 'provisioning', 'rescuing', 'inspection', 'servicing'] as const;
/** How the ports of a node are: two ports of one bond, one port, or a port of the interface flat. */
type Wiring = 'port' | 'bond' | 'flat';
interface Tested {
  readonly uuid: string;
  /** What identifies the node in requests → its name in comparisons. */
  readonly names: ReadonlyMap<string, string>;
  readonly macs: readonly string[];
  readonly vif: string;
  readonly carrier: { readonly kind: 'ports' | 'portgroups'; readonly uuid: string };
  token?: string;
}
let count = 0;
const TENANT = randomUUID();

async function enrol({ conductor, store }: Started, wiring: Wiring, from: Start): Promise<Tested> {
  const uuid = randomUUID();
  const networks = Object.fromEntries(KINDS.map((kind) => [`${kind}_network`, randomUUID()]));
  await conductor.createNode({
    uuid,
    driver: 'test-hardware',
    network_interface: wiring === 'flat' ? 'flat' : 'neutron',
    driver_info: { bmc: '192.0.2.9', deploy_forces_oob_reboot: true, ...networks },
  });
  const group = randomUUID();
  const mac = (number: number): string =>
    `52:54:00:${[count >> 8, count & 255, number].map((n) => n.toString(16).padStart(2, '0')).join(':')}`;
  count++;
  const macs = (wiring === 'bond' ? [1, 2] : [1]).map(mac);
  if (wiring === 'bond') await store.portgroups.create({ uuid: group, node_uuid: uuid, address: macs[0]!, mode: '802.3ad' });
  const ports = macs.map((address) => ({ uuid: randomUUID(), address }));
  for (const [index, port] of ports.entries())
    await store.ports.create({
      ...port,
      node_uuid: uuid,
      physical_network: 'physnet1',
      pxe_enabled: true,
      ...(wiring === 'bond' ? { portgroup_uuid: group } : {}),
      local_link_connection: { switch_id: '0a:1b:2c:3d:4e:5f', switch_info: 'sw1', port_id: `p${index}` },
    });
  const { id: vif } = neutron.userPort(TENANT);
  const carrier = wiring === 'bond' ? ({ kind: 'portgroups', uuid: group } as const) : ({ kind: 'ports', uuid: ports[0]!.uuid } as const);
  const names = new Map([
    [uuid, 'NODE'],
    [vif, 'VIF'],
    [group, 'GROUP'],
    ...ports.flatMap((port, index) => [[port.uuid, `PORT ${index}`] as const, [port.address, `MAC ${index}`] as const]),
    ...Object.entries(networks).map(([name, id]) => [id, name] as const),
  ]);
  const one: Tested = { uuid, names, macs, vif, carrier };
  if (from.vif !== 'none') await conductor.attachVif(uuid, { id: vif });
  if (from.vif === 'bound') await bind(store, one);
  powers.set(uuid, from.state === 'active' || from.state === 'rescue' ? 'power on' : 'power off');
  await store.nodes.update(uuid, {
    provision_state: from.state,
    power_state: powers.get(uuid)!,
    instance_info: { image_source: 'http://192.0.2.1/image' },
  } as Partial<NodeRecord>);
  return one;
}
/** Binds the VIF, as the end of a deployment does. */
async function bind(store: Store, { uuid, vif, carrier }: Tested): Promise<void> {
  const links = (await store.ports.ofNode(uuid)).map((port) => port.local_link_connection);
  const { network_interface: network } = await store.nodes.find(uuid);
  const profile = network === 'flat' ? {} : { local_link_information: links, physical_network: 'physnet1' };
  const group = carrier.kind === 'portgroups' ? { local_group_information: { id: carrier.uuid } } : {};
  neutron.ports.set(vif, {
    ...neutron.ports.get(vif)!,
    'binding:host_id': uuid,
    'binding:profile': { ...profile, ...group },
    status: 'ACTIVE',
  });
}

interface Start {
  readonly state: NodeRecord['provision_state'];
  readonly vif: 'none' | 'attached' | 'bound';
}
interface Flow {
  readonly from: Start;
  readonly begin: (conductor: Started['conductor'], node: Tested) => Promise<unknown>;
  readonly ends: NodeRecord['provision_state'];
  /** Default: `port`. */
  readonly wirings?: readonly Wiring[];
}
const verb =
  (target: string, args: object = {}): Flow['begin'] =>
  (conductor, { uuid }) =>
    conductor.provision(uuid, target, args);
const attach: Flow['begin'] = async (conductor, { uuid, vif }) => {
  // A client detaches a VIF that is half attached, before it attaches it again.
  if ((await conductor.listVifs(uuid)).length > 0) await conductor.detachVif(uuid, vif);
  await conductor.attachVif(uuid, { id: vif });
};
const detach: Flow['begin'] = async (conductor, { uuid, vif }) => {
  if ((await conductor.listVifs(uuid)).length > 0) await conductor.detachVif(uuid, vif);
};
const [available, active] = [
  { state: 'available', vif: 'attached' },
  { state: 'active', vif: 'bound' },
] as const;
const ALL = ['port', 'bond', 'flat'] as const;
const FLOWS: Readonly<Record<string, Flow>> = {
  inspect: { from: { state: 'manageable', vif: 'none' }, begin: verb('inspect'), ends: 'manageable' },
  clean: { from: { state: 'manageable', vif: 'none' }, begin: verb('provide'), ends: 'available' },
  deploy: { from: available, begin: verb('active'), ends: 'active', wirings: ALL },
  rebuild: { from: active, begin: verb('rebuild'), ends: 'active' },
  rescue: { from: active, begin: verb('rescue', { rescue_password: 'a password' }), ends: 'rescue' },
  unrescue: { from: { state: 'rescue', vif: 'bound' }, begin: verb('unrescue'), ends: 'active' },
  service: { from: active, begin: verb('service', { service_steps: [STEP] }), ends: 'active' },
  'tear-down': { from: active, begin: verb('deleted'), ends: 'available', wirings: ALL },
  'attach to an available node': { from: { ...available, vif: 'none' }, begin: attach, ends: 'available' },
  'attach to an active node': { from: { ...active, vif: 'none' }, begin: attach, ends: 'active', wirings: ALL },
  'detach from an available node': { from: available, begin: detach, ends: 'available' },
  'detach from an active node': { from: active, begin: detach, ends: 'active', wirings: ALL },
};

/** Acts as the machine: its ramdisk reports, its agent sends a heartbeat. Does nothing in other states. */
async function act({ conductor, store }: Started, node: Tested, { provision_state: state, reservation }: NodeRecord): Promise<void> {
  if (reservation !== null) return;
  if (state === 'inspect wait') {
    const interfaces = node.macs.map((mac, index) => ({ name: `eth${index}`, mac_address: mac, has_carrier: true }));
    const inventory = { interfaces, cpu: { architecture: 'x86_64', count: 1 }, memory: { physical_mb: 1024 }, disks: [], boot: {} };
    await conductor.continueInspection({ macs: node.macs }, inventory, {});
  } else if (/ wait$|wait call-back$/.test(state)) {
    const given = await agentToken(store, node.uuid);
    if (given !== '******') node.token = given;
    await conductor.heartbeat(node.uuid, { callbackUrl: agent.url, agentVersion: '11.0', agentToken: node.token! });
  }
}

/** A UUID or a MAC address. */
const IDENTIFIER = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?:[\da-f]{2}:){5}[\da-f]{2}/g;
/** Finds the owner of a request by the identifiers in it. */
function ownersOf<T>(nodes: readonly (readonly [Tested, T])[]): (request: NeutronRequest) => T | undefined {
  const owners = new Map(nodes.flatMap(([{ names }, owner]) => [...names.keys()].map((name) => [name, owner] as const)));
  return (request) => {
    const known = (textOf(request).match(IDENTIFIER) ?? []).find((name) => owners.has(name));
    return known === undefined ? undefined : owners.get(known);
  };
}
const textOf = ({ line, body }: NeutronRequest): string => {
  const [, id] = /^\w+ \/ports\/([\w-]+)$/.exec(line) ?? [];
  return `${line} ${JSON.stringify(body)} ${(id !== undefined && neutron.ports.get(id)?.mac_address) || ''}`;
};

/** What a flow leaves: the node, its Neutron ports, and the Neutron data of its own ports, with names in place of identifiers. */
async function left(store: Store, { uuid, names, macs, vif, carrier }: Tested): Promise<unknown> {
  const { provision_state: state, last_error: error, reservation, instance_info: instance } = await store.nodes.find(uuid);
  const information = ({ internal_info: info }: PortRecord | PortgroupRecord): object => info;
  const ports = [...neutron.ports.values()]
    .filter((port) => port.id === vif || macs.includes(port.mac_address) || port['device_id'] === uuid)
    .map((port) => ({ ...port, mac_address: macs.includes(port.mac_address) ? port.mac_address : 'of Neutron' }));
  const groups = carrier.kind === 'portgroups' ? [await store.portgroups.find(carrier.uuid)] : [];
  const view = {
    state,
    error,
    reservation,
    instance: Object.keys(instance),
    ports,
    info: [...(await store.ports.ofNode(uuid)), ...groups].map(information),
  };
  const texts = [...names].reduce((text, [id, name]) => text.replaceAll(id, name), JSON.stringify(view));
  return JSON.parse(texts) as unknown;
}

/** Acts for the machines until all nodes are where they are to be. */
async function untilOver(
  value: Started,
  nodes: readonly { readonly node: Tested; readonly isOver: (record: NodeRecord) => boolean }[],
): Promise<void> {
  let view: readonly string[] = [];
  const isDone = async (): Promise<boolean> => {
    // One statement: many statements would delay those of the flows.
    const list = await value.store.nodes.list({ where: { uuid: nodes.map(({ node }) => node.uuid) }, children: 'all' });
    const found = new Map(list.map((record) => [record.uuid, record]));
    const records = nodes.map((each) => ({ ...each, record: found.get(each.node.uuid)! }));
    const open = records.filter(({ isOver, record }) => !isOver(record));
    view = open.map(({ record }) => `${record.provision_state}, reserved by ${record.reservation}, ${record.last_error}`);
    if (open.some(({ record }) => record.provision_state.endsWith('failed') && record.reservation === null))
      throw new Error(view.join('; '));
    await Promise.all(open.map(({ node, record }) => act(value, node, record)));
    return open.length === 0;
  };
  await until('the nodes to be done', isDone, 20).catch((error: unknown) => {
    throw new Error(view.join('; '), { cause: error });
  });
}

/** A flow of nodes that are wired in one way: what it leaves without a kill, and the nodes whose conductor is killed in it. */
interface Case {
  readonly name: string;
  readonly flow: Flow;
  readonly wiring: Wiring;
  expected: unknown;
  /** The requests of the flow. */
  readonly lines: string[];
  readonly killed: { readonly at: number; readonly fate: Fate; readonly node: Tested }[];
}
const CASES: readonly Case[] = Object.entries(FLOWS).flatMap(([name, flow]) =>
  (flow.wirings ?? ['port']).map((wiring) => ({ name, flow, wiring, expected: undefined, lines: [], killed: [] })),
);
/** The number of nodes whose flows begin at the same time. */
const TOGETHER = 16;
let second: Mortal | undefined;

/** Runs the flow of each case once, and notes its requests and what it leaves. */
async function runReferences(value: Started): Promise<void> {
  const references = await Promise.all(CASES.map(({ wiring, flow }) => enrol(value, wiring, flow.from)));
  const ownerOf = ownersOf(references.map((node, index) => [node, CASES[index]!] as const));
  neutron.fate = (request) => {
    ownerOf(request)?.lines.push(request.line);
    return 'answered';
  };
  await runFlows(
    value,
    CASES.map((given, index) => [given, references[index]!] as const),
  );
  for (const [index, given] of CASES.entries()) given.expected = await left(value.store, references[index]!);
}
const rests = (given: Case, { provision_state: state, reservation }: NodeRecord): boolean =>
  state === given.flow.ends && reservation === null;
async function runFlows(value: Started, nodes: readonly (readonly [Case, Tested])[]): Promise<void> {
  await Promise.all(nodes.map(([{ flow }, node]) => flow.begin(value.conductor, node)));
  await value.conductor.idle();
  await untilOver(
    value,
    nodes.map(([given, node]) => ({ node, isOver: (record) => rests(given, record) })),
  );
  await value.conductor.idle();
}

beforeAll(async () => {
  agent = await startFakeAgent(() => ({ body: result('command', 'SUCCEEDED') }));
  const first = await start();
  await runReferences(first);

  neutron.fate = () => 'answered';
  for (const { lines, killed, wiring, flow } of CASES)
    for (const [at, line] of lines.entries())
      // A request that only reads leaves the same state as the change before it.
      for (const fate of line.startsWith('GET') ? [] : (['lost before', 'lost after'] as const))
        killed.push({ at, fate, node: await enrol(first, wiring, flow.from) });
  const all = CASES.flatMap((given) => given.killed.map((moment) => ({ given, ...moment, requests: 0, isHeld: false })));
  const nodes = all.map(({ node }) => node);
  const ownerOf = ownersOf(all.map((item) => [item.node, item] as const));
  neutron.fate = (request) => {
    const one = ownerOf(request);
    if (!one || one.requests++ !== one.at) return 'answered';
    one.isHeld = true;
    return one.fate;
  };
  for (let at = 0; at < all.length; at += TOGETHER) {
    const some = all.slice(at, at + TOGETHER);
    // A client whose conductor is killed before the answer never gets one.
    for (const { given, node } of some) void given.flow.begin(first.conductor, node).catch(() => {});
    await untilOver(
      first,
      some.map((item) => ({ node: item.node, isOver: () => item.isHeld })),
    );
  }
  first.kill();

  neutron.fate = () => 'answered';
  second = await start();
  await second.conductor.idle();
  // Clients repeat requests that were not accepted; the other flows continue by themselves.
  const records = new Map(await Promise.all(nodes.map(async ({ uuid }) => [uuid, await second!.store.nodes.find(uuid)] as const)));
  const isNew = ({ given, node }: (typeof all)[number]): boolean =>
    records.get(node.uuid)!.provision_state === given.flow.from.state && records.get(node.uuid)!.target_provision_state === null;
  await untilOver(
    second,
    all.filter((candidate) => !isNew(candidate)).map(({ given, node }) => ({ node, isOver: (record) => rests(given, record) })),
  );
  await runFlows(
    second,
    all.filter(isNew).map(({ given, node }) => [given, node]),
  );
});
afterAll(async () => {
  await second?.conductor.stop();
  await agent.close();
});

it.each(CASES)('$name ($wiring) leaves the same state after a kill at any request to Neutron', async ({ killed, expected }) => {
  expect(killed.length).toBeGreaterThan(0);
  for (const { at, fate, node } of killed)
    expect({ at, fate, left: await left(second!.store, node) }).toEqual({ at, fate, left: expected });
});
