/** Modes of network ports: names, refusals, changes at once and at the next start, and a conductor that died in between. */
import { redfishManagement } from '../../../../drivers/redfish/steps/management';
import type { Json, NodeRecord } from '../../../../model/records';
import { NODE_UUID } from '../../../support/task';
import { SYSTEM, redfishError, type RedfishService } from '../../../wire/redfish/service';
import { redfishBench } from '../../redfish-bench';

const { service: serviceOf, bench } = redfishBench();
let service: RedfishService;
/** Settings resource → the resource whose next start applies it. */
let pending: Record<string, string>;
const link = (path: string): object => ({ '@odata.id': path });
const CHASSIS = '/redfish/v1/Chassis/1';
const at = (adapter: string, folder: string, id: string): string => `${CHASSIS}/NetworkAdapters/${adapter}/${folder}/${id}`;

/** Adds a resource to a collection of an adapter. */
function add(adapter: string, folder: string, id: string, body: object, how: { readonly deferred?: boolean } = {}): string {
  const { resources } = service;
  const path = at(adapter, folder, id);
  const adapters = `${CHASSIS}/NetworkAdapters`;
  const whole = `${adapters}/${adapter}`;
  Object.assign(resources[SYSTEM] as { Links?: object }, { Links: { Chassis: [link(CHASSIS)] } });
  resources[CHASSIS] = { Id: '1', NetworkAdapters: link(adapters) };
  const join = (collection: string, member: string): void => {
    const { Members = [] } = (resources[collection] ?? {}) as { readonly Members?: readonly object[] };
    resources[collection] = {
      Members: [...Members.filter((known) => JSON.stringify(known) !== JSON.stringify(link(member))), link(member)],
    };
  };
  join(adapters, whole);
  resources[whole] = { Id: adapter, ...(resources[whole] as object), [folder]: link(`${whole}/${folder}`) };
  join(`${whole}/${folder}`, path);
  const settings = { '@Redfish.Settings': { SettingsObject: link(`${path}/Settings`), SupportedApplyTimes: ['OnReset', 'Immediate'] } };
  resources[path] = { Id: id, ...body, ...(how.deferred ? settings : {}) };
  if (how.deferred) {
    resources[`${path}/Settings`] = { Id: 'Settings' };
    pending[`${path}/Settings`] = path;
  }
  return path;
}
const func = (type: string | null, ...capabilities: readonly string[]): object => ({
  NetDevFuncType: type,
  NetDevFuncCapabilities: capabilities,
});
const BOTH = ['Ethernet', 'FibreChannel'] as const;

beforeEach(() => {
  service = serviceOf();
  pending = {};
  service.reply = ({ method, path, body }) => {
    if (method !== 'PATCH' || service.resources[path] === undefined) return undefined;
    Object.assign(service.resources[path] as object, body);
    return { status: 204 };
  };
});
/** Restarts the machine: the pending modes take effect. */
function restarted(): void {
  for (const [from, to] of Object.entries(pending)) {
    const { '@Redfish.SettingsApplyTime': _, Id: __, ...values } = service.resources[from] as Record<string, unknown>;
    Object.assign(service.resources[to] as object, values);
    service.resources[from] = { Id: 'Settings' };
  }
}
const step = redfishManagement.steps!.find(({ step: name }) => name === 'configure_network_adapters')!;
const started = (node: Partial<NodeRecord> = {}) => bench({ node: { provision_state: 'cleaning', ...node } });
const ask = (name: string, mode: string) => ({ ports: [{ name, mode }] });
const patches = (): readonly (readonly [string, unknown])[] =>
  service.asked.filter(({ method }) => method === 'PATCH').map(({ path, body }) => [path, body] as const);
const REBOOT = ['power: rebooting'];
const modeAt = (path: string): unknown => (service.resources[path] as Record<string, unknown>)['NetDevFuncType'];

it('needs no ramdisk, and runs on request only', () => {
  expect(step).toMatchObject({ priority: { clean: 0, deploy: 0, service: 0 }, requiresRamdisk: false, resumable: true });
});

describe('names', () => {
  const names = async () => (await redfishManagement.networkPorts!(started().task)).map((port) => [port.names[0], port.mode, port.modes]);
  it('are Ids where these are unique, and else have the adapter, the collection and the chassis before', async () => {
    add('NIC.1', 'NetworkDeviceFunctions', 'NIC.1-1-1', func('Ethernet', ...BOTH));
    add('NIC.1', 'NetworkPorts', 'NIC.1-1', { ActiveLinkTechnology: 'Ethernet' });
    add('A', 'NetworkDeviceFunctions', '0', func('InfiniBand', 'InfiniBand', 'Ethernet'));
    add('B', 'NetworkDeviceFunctions', '0', func('InfiniBand', 'InfiniBand', 'Ethernet'));
    add('B', 'NetworkPorts', '0', {
      ActiveLinkTechnology: 'InfiniBand',
      SupportedLinkCapabilities: [{ LinkNetworkTechnology: 'InfiniBand' }, { LinkNetworkTechnology: 'Ethernet' }, 5],
    });
    add('C', 'Ports', '7', { LinkNetworkTechnology: 'Ethernet', 'LinkNetworkTechnology@Redfish.AllowableValues': ['Ethernet', 'Unknown'] });
    expect(await names()).toEqual([
      ['NIC.1-1-1', 'Ethernet', ['Ethernet', 'FibreChannel']],
      ['A/0', 'InfiniBand', ['Ethernet', 'InfiniBand']],
      ['B/0', 'InfiniBand', ['Ethernet', 'InfiniBand']],
      ['NIC.1-1', 'Ethernet', ['Ethernet', 'FibreChannel', 'InfiniBand']],
      ['B/NetworkPorts/0', 'InfiniBand', ['Ethernet', 'InfiniBand']],
      ['7', 'Ethernet', ['Ethernet']],
    ]);
  });
  it('of a function without a type are those of its port', async () => {
    add('IB.7', 'NetworkDeviceFunctions', 'IB.7-1', func(null));
    add('IB.7', 'NetworkPorts', 'IB.7-1', { ActiveLinkTechnology: 'InfiniBand' });
    expect(await names()).toEqual([['IB.7-1', 'InfiniBand', ['Ethernet', 'FibreChannel', 'InfiniBand']]]);
  });
  it('has the modes that both the hardware and the service take, and the present one', async () => {
    const allowable = { 'NetDevFuncType@Redfish.AllowableValues': ['Disabled', 'Ethernet', 'iSCSI'] };
    add('N', 'NetworkDeviceFunctions', 'x', { ...func('InfiniBand', 'Ethernet', 'InfiniBand', 'iSCSI'), ...allowable });
    expect(await names()).toEqual([['x', 'InfiniBand', ['Ethernet', 'iSCSI', 'InfiniBand']]]);
  });
  it('come from the network interfaces where the chassis has no adapters', async () => {
    add('NIC.1', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH));
    const { resources } = service;
    delete (resources[CHASSIS] as Record<string, unknown>)['NetworkAdapters'];
    Object.assign(resources[SYSTEM] as object, { NetworkInterfaces: link(`${SYSTEM}/NetworkInterfaces`) });
    resources[`${SYSTEM}/NetworkInterfaces`] = { Members: [link(`${SYSTEM}/NetworkInterfaces/1`)] };
    resources[`${SYSTEM}/NetworkInterfaces/1`] = { Links: { NetworkAdapter: link(`${CHASSIS}/NetworkAdapters/NIC.1`) } };
    expect(await names()).toEqual([['f', 'Ethernet', [...BOTH]]]);
  });
  it('are bounded, whatever the service links to', async () => {
    add('NIC.1', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH));
    service.resources[`${CHASSIS}/NetworkAdapters/NIC.1/NetworkDeviceFunctions`] = {
      Members: Array.from({ length: 600 }, (_, index) => ({ '@odata.id': `/f/${index}`, Id: `f${index}`, NetDevFuncType: 'Ethernet' })),
    };
    await expect(names()).rejects.toThrow('the network adapters have more than 512 ports');
  });
});

describe('refusals, before anything is written', () => {
  it.each<[object, string]>([
    [ask('NIC.2-1-1', 'Ethernet'), 'ports[0].name: no network adapter has a port NIC.2-1-1 of its own. The ports: NIC.1-1-1, NIC.1-2-1'],
    [
      {
        ports: [
          { name: 'NIC.1-2-1', mode: 'FibreChannel' },
          { name: 'NIC.1-1-1', mode: 'InfiniBand' },
        ],
      },
      'ports[1].mode: the port NIC.1-1-1 cannot be InfiniBand. Its modes: Ethernet, FibreChannel',
    ],
    [
      {
        ports: ['NIC.1-1-1', 'NIC.1/NIC.1-1-1'].map((name) => ({ name, mode: 'Ethernet' })),
      },
      'ports[1].name: NIC.1/NIC.1-1-1 and NIC.1-1-1 are the same port',
    ],
  ])('of %j', async (args, message) => {
    add('NIC.1', 'NetworkDeviceFunctions', 'NIC.1-1-1', func('Ethernet', ...BOTH));
    add('NIC.1', 'NetworkDeviceFunctions', 'NIC.1-2-1', func('Ethernet', ...BOTH));
    await expect(step.run(started().task, args as never)).rejects.toMatchObject({
      status: 400,
      message: `Redfish configure_network_adapters failed for node ${NODE_UUID}: ${message}`,
    });
    expect(patches()).toEqual([]);
  });
  it.each<[Json, string | RegExp]>([
    [undefined, 'ports must be a list of 1 to 256 objects, each with a name and a mode'],
    [[], 'ports must be a list of 1 to 256 objects, each with a name and a mode'],
    [['x'], 'ports[0] must be an object with a name and a mode'],
    [[{ name: 'a', mode: 'Ethernet' }, { mode: 'Ethernet' }], 'ports[1].name must be a text of 1 to 255 characters'],
    [[{ name: 'x'.repeat(256), mode: 'Ethernet' }], 'ports[0].name must be a text of 1 to 255 characters'],
    [[{ name: 'a' }], /^ports\[0\]\.mode must be one of Disabled, Ethernet, FibreChannel, iSCSI, FibreChannelOverEthernet, InfiniBand$/],
    [[{ name: 'a', mode: 'ethernet' }], /^ports\[0\]\.mode must be one of/],
    [[{ name: 'a', mode: 'Ethernet', speed: 1 }], 'ports[0].speed is not known: a port has a name and a mode'],
    [
      [
        { name: 'a', mode: 'Ethernet' },
        { name: 'a', mode: 'iSCSI' },
      ],
      'ports[1].name: a is in the list twice',
    ],
  ])('of the argument %j', (ports, message) => {
    expect(() => step.checkArguments!({ ports })).toThrow(message);
  });
  it('says why the adapters cannot be read, rather than that there is no such port', async () => {
    add('NIC.1', 'NetworkDeviceFunctions', 'NIC.1-1-1', func('Ethernet', ...BOTH));
    const { reply } = service;
    service.reply = (asked, response) =>
      asked.path.endsWith('/NetworkAdapters') ? { status: 400, body: redfishError('the machine is off') } : reply(asked, response);
    await expect(step.run(started().task, ask('NIC.1-1-1', 'Ethernet'))).rejects.toThrow('the machine is off');
  });
});

describe('at the next start', () => {
  it('restarts, waits until the mode is there, and stores the ports', async () => {
    const path = add('NIC.1', 'NetworkDeviceFunctions', 'NIC.1-1-1', func('Ethernet', ...BOTH), { deferred: true });
    const { task, node, events } = started();
    expect(await step.run(task, ask('NIC.1/NIC.1-1-1', 'FibreChannel'))).toMatchObject({ kind: 'wait' });
    const applyAt = { '@odata.type': '#Settings.v1_0_0.PreferredApplyTime', ApplyTime: 'OnReset' };
    expect(patches()).toEqual([[`${path}/Settings`, { NetDevFuncType: 'FibreChannel', '@Redfish.SettingsApplyTime': applyAt }]]);
    expect(events).toEqual(REBOOT);
    expect(node().driver_internal_info['redfish_network_state']).toMatchObject({ ports: [{ path, mode: 'FibreChannel' }] });
    expect(await step.poll!(task, {})).toEqual({ kind: 'wait', quiet: true });
    restarted();
    expect(await step.poll!(task, {})).toEqual({ kind: 'done' });
    expect(node().driver_internal_info['redfish_network_state']).toBeUndefined();
    expect(node().driver_internal_info['network_ports']).toMatchObject([{ mode: 'FibreChannel', modes: BOTH }]);
  });
  it('goes on after the death of its conductor: with the restart if the mode is not there yet, and without otherwise', async () => {
    const path = add('NIC.1', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH), { deferred: true });
    const port = { name: 'f', mode: 'FibreChannel', path, property: 'NetDevFuncType', settings_time: null };
    const died = () => started({ driver_internal_info: { redfish_network_state: { ports: [port] } } });
    const [first, second, third] = [died(), died(), started()];
    expect(await step.run(first.task, ask('f', 'FibreChannel'))).toMatchObject({ kind: 'wait' });
    expect(first.events).toEqual(REBOOT);
    Object.assign(service.resources[path] as object, { NetDevFuncType: 'FibreChannel' });
    expect(await step.run(second.task, ask('f', 'FibreChannel'))).toMatchObject({ kind: 'wait' });
    expect([patches(), second.events]).toEqual([[], []]);
    // It died between the request and the record of it: the request is repeated.
    Object.assign(service.resources[path] as object, { NetDevFuncType: 'Ethernet' });
    Object.assign(service.resources[`${path}/Settings`] as object, { NetDevFuncType: 'FibreChannel' });
    expect(await step.run(third.task, ask('f', 'FibreChannel'))).toMatchObject({ kind: 'wait' });
    expect(third.events).toEqual(REBOOT);
  });
  it('fails with the messages of the service if the mode was not applied', async () => {
    const path = add('NIC.1', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH), { deferred: true });
    const { task } = started();
    await step.run(task, ask('f', 'FibreChannel'));
    const settings = (service.resources[path] as Record<string, object>)['@Redfish.Settings']!;
    Object.assign(settings, { Time: '2030-01-01T00:00:00Z', Messages: [{ Severity: 'Critical', Message: 'No licence.' }] });
    expect(await step.poll!(task, {})).toEqual({
      kind: 'failed',
      reason:
        'Redfish configure_network_adapters step failed. Network ports are not as requested: f is Ethernet, not FibreChannel. No licence.',
    });
  });
  it('writes again over a pending change to another mode', async () => {
    const path = add('NIC.1', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH), { deferred: true });
    Object.assign(service.resources[`${path}/Settings`] as object, { NetDevFuncType: 'FibreChannel' });
    expect(await step.run(started().task, ask('f', 'Ethernet'))).toMatchObject({ kind: 'wait' });
    expect(patches()).toHaveLength(1);
  });
});

describe('at once', () => {
  it('is done without a restart, and changes nothing that is there already', async () => {
    const path = add('N', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH));
    const { task, events } = started();
    expect(await step.run(task, ask('f', 'FibreChannel'))).toEqual({ kind: 'done' });
    expect([modeAt(path), patches(), events]).toEqual(['FibreChannel', [[path, { NetDevFuncType: 'FibreChannel' }]], []]);
    expect(await step.run(started().task, ask('f', 'FibreChannel'))).toEqual({ kind: 'done' });
    expect(patches()).toHaveLength(1);
  });
  it('restarts where the service says so', async () => {
    add('N', 'NetworkDeviceFunctions', 'f', func('Ethernet', ...BOTH));
    const { reply } = service;
    service.reply = (asked, response) =>
      reply(asked, response) && { status: 200, body: { '@Message.ExtendedInfo': [{ MessageId: 'iLO.2.34.SystemResetRequired' }] } };
    const { task, events } = started();
    expect(await step.run(task, ask('f', 'FibreChannel'))).toMatchObject({ kind: 'wait' });
    expect(events).toEqual(REBOOT);
  });
  it('sets back what was taken when the service refuses a later port', async () => {
    const first = add('N', 'NetworkDeviceFunctions', 'f1', func('Ethernet', ...BOTH));
    const second = add('N', 'NetworkDeviceFunctions', 'f2', func('Ethernet', ...BOTH));
    const { reply } = service;
    service.reply = (asked, response) =>
      asked.method === 'PATCH' && asked.path === second ? { status: 400, body: redfishError('read-only') } : reply(asked, response);
    const args = { ports: ['f1', 'f2'].map((name) => ({ name, mode: 'FibreChannel' })) };
    const { task, events } = started();
    await expect(step.run(task, args)).rejects.toThrow(/the port f2 cannot be set to FibreChannel: .*read-only/);
    expect([modeAt(first), events]).toEqual(['Ethernet', []]);
  });
});
