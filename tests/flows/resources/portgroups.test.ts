/** Portgroups and their members: one physical network, one node, and what their node's state and its VIFs allow. */
import { randomUUID } from 'node:crypto';
import type { NodeRecord, PortgroupRecord, PortRecord } from '../../../model/records';
import { type Started } from '../../support/conductor';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();
let one: Started;
let node: NodeRecord;
let other: NodeRecord;
beforeEach(async () => {
  one = await start();
  [node, other] = await Promise.all([one.enrol({ provision_state: 'manageable' }), one.enrol({ provision_state: 'available' })]);
});
const group = (changes: Partial<PortgroupRecord> = {}) =>
  one.store.portgroups.create({ uuid: randomUUID(), node_uuid: node.uuid, ...changes });
let last = 0;
const port = (changes: Partial<PortRecord> = {}) =>
  one.conductor.createPort({
    uuid: randomUUID(),
    node_uuid: node.uuid,
    address: `52:54:00:00:01:${(16 + last++).toString(16)}`,
    ...changes,
  });

it('a portgroup takes the physical network of its first port, and refuses ports of other networks', async () => {
  const { uuid } = await group();
  const first = await port({ portgroup_uuid: uuid, physical_network: 'left' });
  expect(await one.store.portgroups.find(uuid)).toMatchObject({ physical_network: 'left' });
  await expect(port({ portgroup_uuid: uuid })).rejects.toMatchObject({
    status: 409,
    message: `Port with physical network None cannot become a member of port group ${uuid} which has ports in physical network left.`,
  });
  const alone = await port({ physical_network: 'right' });
  await expect(one.conductor.updatePort(alone.uuid, { portgroup_uuid: uuid })).rejects.toMatchObject({ status: 409 });
  await one.conductor.updatePort(alone.uuid, { portgroup_uuid: uuid, physical_network: 'left' });
  expect(await one.store.ports.list({})).toHaveLength(2);
  await one.conductor.updatePortgroup(uuid, { physical_network: 'middle' });
  const members = await one.store.ports.list({ where: { portgroup_uuid: uuid } });
  expect(members.map(({ physical_network: network }) => network)).toEqual(['middle', 'middle']);
  expect(members[0]!.revision).toBeGreaterThan(first.revision);
});

it('a portgroup moves to another node only if it is empty and the node is not in use', async () => {
  const { uuid, id } = await group();
  const { uuid: member } = await port({ portgroup_uuid: uuid });
  const move = () => one.conductor.updatePortgroup(uuid, { node_uuid: other.uuid });
  await expect(move()).rejects.toMatchObject({
    status: 409,
    message:
      `Portgroup ${uuid} can not be associated to node ${other.uuid} unless the node is in a enroll, inspecting, inspect wait, manageable ` +
      `state or in maintenance mode. Current state is 'available'.`,
  });
  await one.conductor.setMaintenance(other.uuid, true);
  await expect(move()).rejects.toMatchObject({
    status: 400,
    message: `Portgroup ${uuid} can not be associated with node ${other.uuid} because there are ports associated with this portgroup.`,
  });
  await expect(one.conductor.deletePortgroup(uuid)).rejects.toMatchObject({
    status: 400,
    message: `Cannot complete the requested action because portgroup ${id} contains ports.`,
  });
  await one.conductor.deletePort(member);
  expect(await move()).toMatchObject({ node_uuid: other.uuid });
  await one.conductor.deletePortgroup(uuid);
  await expect(one.store.portgroups.find(uuid)).rejects.toMatchObject({ status: 404 });
});

it('standalone_ports_supported decides whether the ports of a portgroup may have pxe_enabled', async () => {
  const { uuid } = await group({ standalone_ports_supported: false });
  const { uuid: own } = await port({});
  await expect(one.conductor.updatePort(own, { portgroup_uuid: uuid })).rejects.toMatchObject({ status: 409 });
  await one.conductor.updatePort(own, { portgroup_uuid: uuid, pxe_enabled: false });
  await one.conductor.updatePortgroup(uuid, { standalone_ports_supported: true });
  await one.conductor.updatePort(own, { pxe_enabled: true });
  await expect(one.conductor.updatePortgroup(uuid, { standalone_ports_supported: false })).rejects.toMatchObject({ status: 409 });
});

it('attaches VIFs through the network interface, and refuses to delete a port with a VIF', async () => {
  await one.conductor.attachVif(node.uuid, { id: 'v' });
  await one.conductor.detachVif(node.uuid, 'v');
  expect(one.machine.orders.filter((what) => /vif/i.test(what))).toEqual(['vifAttach', 'vifDetach']);
  const { uuid } = await port({ internal_info: { tenant_vif_port_id: 'v' } });
  expect(await one.conductor.listVifs(node.uuid)).toEqual([{ id: 'v' }]);
  await expect(one.conductor.deletePort(uuid)).rejects.toMatchObject({
    status: 409,
    message: `Cannot delete the port ${uuid} as it is bound to VIF v for use.`,
  });
  await one.conductor.setMaintenance(node.uuid, true);
  await one.conductor.deletePort(uuid);
});
