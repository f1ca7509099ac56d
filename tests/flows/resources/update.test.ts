/** Creation, changes and deletion of nodes and ports: what is refused, with Ironic's messages, and the effects. */
import { randomUUID } from 'node:crypto';
import type { NodeChanges, PortChanges } from '../../../model/records';
import { type Started } from '../../support/conductor';
import { like } from '../../support/expect';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();
let one: Started;
beforeEach(async () => {
  one = await start({
    options: { 'DEFAULT.default_resource_class': 'rc', 'DEFAULT.default_conductor_group': '' },
  });
});
const create = (changes: object) => one.conductor.createNode({ uuid: randomUUID(), driver: 'test-hardware', ...changes });
const nobody = (driver: string, group: string): string =>
  `No valid host was found. Reason: No conductor service registered which supports driver ${driver} for conductor group "${group}". Ensure the driver is valid and enabled.`;

it('a new node gets default interfaces and the default resource class', async () => {
  expect(await create({ power_interface: 'other' })).toMatchObject({
    provision_state: 'enroll',
    resource_class: 'rc',
    conductor_group: '',
    power_interface: 'other',
    deploy_interface: 'test',
  });
});

it.each<[object, string]>([
  [{ driver: 'nope' }, nobody('nope', '')],
  [{ conductor_group: 'G1' }, nobody('test-hardware', 'g1')],
  [
    { boot_interface: 'zzz' },
    "Could not find the following interface in the 'ironic.hardware.interfaces.boot' entrypoint: zzz. Valid interfaces are ['other', 'test'].",
  ],
  [
    { driver: 'rigid-hardware', boot_interface: 'other' },
    "boot interface implementation 'other' is not supported by hardware type rigid-hardware.",
  ],
])('refuses to create %j', async (given, message) => {
  await expect(create(given)).rejects.toMatchObject({ status: 400, message });
  expect(await one.store.nodes.list({})).toEqual([]);
});

const OPEN = 'enroll, inspecting, inspect wait, manageable, available';
it.each<[NodeChanges, NodeChanges, number, string]>([
  [
    { provision_state: 'cleaning', target_provision_state: 'available' },
    { description: 'x' },
    409,
    'Node U can not be updated while a state transition is in progress.',
  ],
  [
    {},
    { protected: true },
    409,
    "Node U can only be made protected in provision states 'active' or 'rescue', the current state is 'enroll'",
  ],
  [{}, { protected_reason: 'x' }, 400, 'The protected_reason field can only be set when protected is True'],
  [
    { provision_state: 'available' },
    { retired: true },
    409,
    "Node U can not have 'retired' set in provision state 'available', the current state is 'available'",
  ],
  [{}, { retired_reason: 'x' }, 400, 'The retired_reason field can only be set when retired is True'],
  [
    { provision_state: 'active' },
    { boot_interface: 'other' },
    409,
    `Node U can not have boot_interface updated unless it is in one of allowed (${OPEN}) states or in maintenance mode. Current state is 'active'.`,
  ],
  [
    { provision_state: 'active', resource_class: 'a' },
    { resource_class: 'b' },
    409,
    `Node U can not have resource_class updated unless it is in one of allowed (${OPEN}) states. Current state is 'active'.`,
  ],
  [
    { instance_uuid: '6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1' },
    { instance_uuid: '6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a2' },
    409,
    'Node U is associated with instance 6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1.',
  ],
  ...['-1', 'x', -2].map((size): [NodeChanges, NodeChanges, number, string] => [
    {},
    { properties: { memory_mb: size, local_gb: 10 } },
    400,
    `The following properties for node U should be non-negative integers, but provided values are: memory_mb=${size}`,
  ]),
  [{}, { driver: 'nope' }, 400, nobody('nope', '')],
  [{}, { conductor_group: 'zz' }, 400, nobody('test-hardware', 'zz')],
  [
    { boot_interface: 'other' },
    { driver: 'rigid-hardware' },
    400,
    "boot interface implementation 'other' is not supported by hardware type rigid-hardware.",
  ],
])('a node with %j refuses %j', async (from, changes, status, message) => {
  const { uuid } = await one.enrol(from);
  await expect(one.conductor.updateNode(uuid, changes, false)).rejects.toMatchObject({ status, message: message.replace('U', uuid) });
  expect(await one.node(uuid)).toMatchObject({ ...from, reservation: null });
});

it.each<[NodeChanges, NodeChanges, boolean, NodeChanges]>([
  [{}, { description: 'x', extra: { a: 1 } }, false, { description: 'x', extra: { a: 1 } }],
  [
    { provision_state: 'clean failed', target_provision_state: 'available' },
    { driver_info: { bmc: 'x' } },
    false,
    { driver_info: { bmc: 'x' } },
  ],
  [
    { maintenance: true, maintenance_reason: 'r', fault: 'power failure' },
    { maintenance: false },
    false,
    { maintenance: false, maintenance_reason: null, fault: null },
  ],
  [{ provision_state: 'active', protected: true, protected_reason: 'r' }, { protected: false }, false, { protected_reason: null }],
  [{ retired: true, retired_reason: 'r' }, { retired: false }, false, { retired_reason: null }],
  [{ provision_state: 'active', maintenance: true }, { boot_interface: 'other' }, false, { boot_interface: 'other' }],
  [{ provision_state: 'active' }, { boot_interface: 'test' }, false, { boot_interface: 'test' }],
  [{ boot_interface: 'other' }, { boot_interface: null }, false, { boot_interface: 'test' }],
  [{ boot_interface: 'other' }, { driver: 'rigid-hardware' }, true, { driver: 'rigid-hardware', boot_interface: 'test' }],
  [{ boot_interface: 'test' }, { driver: 'any-hardware' }, true, { boot_interface: 'other' }],
  [
    {
      provision_state: 'deploying',
      target_provision_state: 'active',
      maintenance: true,
      instance_uuid: '6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1',
    },
    { instance_uuid: null },
    false,
    { instance_uuid: null },
  ],
])('a node with %j accepts %j (reset: %s)', async (from, changes, reset, after) => {
  const { uuid } = await one.enrol(from);
  if (from.provision_state === 'deploying') await one.store.nodes.update(uuid, { provision_state: 'deploy hold' });
  expect(await one.conductor.updateNode(uuid, changes, reset)).toMatchObject({ ...after, reservation: null });
  expect(await one.node(uuid)).toMatchObject({ ...after, reservation: null });
});

it.each<[NodeChanges, string | undefined]>([
  [{}, undefined],
  [{ provision_state: 'available' }, undefined],
  [{ provision_state: 'active', maintenance: true, instance_uuid: '6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1' }, undefined],
  [{ instance_uuid: '6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1' }, 'Node U is associated with instance 6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1.'],
  [{ protected: true, maintenance: true }, 'Node U is protected and cannot be undeployed, rebuilt or deleted'],
  [
    { provision_state: 'active' },
    `Can not delete node "U" while it is in provision state "active". Valid provision states to perform deletion are: "('manageable', 'enroll', 'adopt failed', 'available')", or set the node into maintenance mode`,
  ],
])('deletes a node with %j, unless refused with: %s', async (from, message) => {
  const { uuid } = await one.enrol(from);
  if (message === undefined) {
    await one.conductor.deleteNode(uuid);
    await expect(one.node(uuid)).rejects.toThrow('could not be found');
  } else await expect(one.conductor.deleteNode(uuid)).rejects.toThrow(message.replace('U', uuid));
});

it('replaces, adds and removes traits', async () => {
  const { uuid } = await one.enrol();
  const { conductor } = one;
  await conductor.setTraits(uuid, { replace: ['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_A'] });
  await conductor.setTraits(uuid, { add: 'CUSTOM_C' });
  await conductor.setTraits(uuid, { remove: 'CUSTOM_A' });
  expect((await one.node(uuid)).traits).toEqual(['CUSTOM_B', 'CUSTOM_C']);
  await expect(conductor.setTraits(uuid, { remove: 'CUSTOM_A' })).rejects.toThrow(`Node ${uuid} doesn't have a trait 'CUSTOM_A'`);
  const many = Array.from({ length: 51 }, (_, at) => `CUSTOM_${at}`);
  await expect(conductor.setTraits(uuid, { replace: many })).rejects.toThrow('(51 vs. 50)');
});

it('validates each interface but vendor', async () => {
  const { uuid } = await one.enrol({ driver_info: {} });
  one.machine.broken.set('validate deploy', new Error('no image'));
  const answers = await one.conductor.validate(uuid);
  expect(Object.keys(answers).sort()).toEqual(
    'bios boot console deploy firmware inspect management network power raid rescue storage'.split(' '),
  );
  expect(answers).toMatchObject({
    bios: { result: true },
    deploy: { result: false, reason: 'no image' },
    power: { result: false, reason: like(/bmc$/) },
  });
});

it('returns the properties of a hardware type', async () => {
  expect(await one.conductor.driverProperties('test-hardware')).toMatchObject({ bmc: 'Address of the BMC. Required.' });
  await expect(one.conductor.driverProperties('nope')).rejects.toMatchObject({ status: 404 });
});

describe('ports', () => {
  const mac = '52:54:00:00:00:01';
  const port = async (from: NodeChanges, changes: PortChanges = {}): Promise<string> => {
    const { uuid } = await one.enrol(from);
    return (await one.conductor.createPort({ uuid: randomUUID(), node_uuid: uuid, address: mac, ...changes })).uuid;
  };
  const active: NodeChanges = { provision_state: 'active' };

  it.each<[NodeChanges, PortChanges, RegExp | undefined]>([
    [{}, { address: '52:54:00:00:00:02', pxe_enabled: false }, undefined],
    [
      active,
      { address: '52:54:00:00:00:02' },
      /^Cannot update hardware address for port \S+ as node \S+ is active or has instance UUID assigned$/,
    ],
    [{ ...active, maintenance: true }, { address: '52:54:00:00:00:02' }, undefined],
    [
      active,
      { pxe_enabled: false },
      /^Port \S+ can not have any connectivity attributes \(.*\) updated unless node \S+ is in a enroll, inspecting, inspect wait, manageable state or in maintenance mode\. The current state is active\.$/,
    ],
    [active, { pxe_enabled: true, extra: { a: 1 } }, undefined],
  ])('of a node with %j accept or refuse %j', async (from, changes, text) => {
    const uuid = await port(from);
    const answer = one.conductor.updatePort(uuid, changes);
    if (text) await expect(answer).rejects.toMatchObject({ status: 409, message: like(text) });
    else expect(await answer).toMatchObject(changes);
  });

  it('have unique MAC addresses, and are deleted', async () => {
    const uuid = await port({});
    await expect(port({})).rejects.toMatchObject({ status: 409, name: 'MACAlreadyExists' });
    await expect(one.conductor.createPort({ uuid: randomUUID(), node_uuid: randomUUID(), address: mac })).rejects.toMatchObject({
      status: 404,
    });
    await one.conductor.deletePort(uuid);
    await expect(one.conductor.deletePort(uuid)).rejects.toMatchObject({ status: 404 });
  });
});

describe('the node of an inventory', () => {
  const other = '52:54:00:00:00:09';
  const inventory = { interfaces: [{ name: 'eth0', mac_address: '52:54:00:00:00:01' }], cpu: { architecture: 'x86_64' } };
  const inspected = async (mac?: string, bmc?: readonly string[]): Promise<string> => {
    const { uuid } = await one.enrol({ provision_state: 'inspect wait', driver_internal_info: bmc ? { lookup_bmc_addresses: bmc } : {} });
    if (mac) await one.conductor.createPort({ uuid: randomUUID(), node_uuid: uuid, address: mac });
    return uuid;
  };
  const ask = (lookup: Parameters<Started['conductor']['continueInspection']>[0]) =>
    one.conductor.continueInspection(lookup, inventory, {});
  const nothing = { status: 404, message: 'Resource could not be found.' };

  it.each([
    ['its port', { macs: ['52-54-00-00-00-01'.replaceAll('-', ':')] }],
    ['its BMC', { macs: [], bmcAddresses: ['192.0.2.7'] }],
    ['its port and an unknown BMC', { macs: ['52:54:00:00:00:01'], bmcAddresses: ['192.0.2.99'] }],
  ])('is found by %s', async (_what, lookup) => {
    const uuid = await inspected('52:54:00:00:00:01', ['192.0.2.7']);
    expect((await ask(lookup)).uuid).toBe(uuid);
    await one.conductor.idle();
  });

  it('is not found by contradictory or unknown data, or if the node does not wait for an inspection', async () => {
    const a = await inspected('52:54:00:00:00:01', ['192.0.2.7']);
    const b = await inspected(other, ['192.0.2.8']);
    await inspected(undefined, ['192.0.2.8']);
    const { uuid: idle } = await one.enrol({ provision_state: 'manageable' });
    await expect(ask({ macs: ['52:54:00:00:00:01', other] })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: [other], nodeUuid: a })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: ['52:54:00:00:00:01'], bmcAddresses: ['192.0.2.8'] })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: [], bmcAddresses: ['192.0.2.8'] })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: [], nodeUuid: idle })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: [], nodeUuid: randomUUID() })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: ['52:54:00:00:00:77'] })).rejects.toMatchObject(nothing);
    await expect(ask({ macs: ['nonsense'] })).rejects.toMatchObject({ status: 400, message: 'No lookup information provided' });
    expect((await ask({ macs: [other], bmcAddresses: ['192.0.2.8'] })).uuid).toBe(b);
    await one.conductor.idle();
  });
});
