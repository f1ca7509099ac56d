/** [inspector]pre_create_ports: before a machine is booted for its inspection, its ports are made of what its BMC knows. */
import { Fault } from '../../../model/errors';
import type { NodeRecord } from '../../../model/records';
import { newMachine, type Machine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();

const [A, B, C] = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03'] as const;
async function inspected(macs: Machine['macs'], pre = true): Promise<{ readonly orders: readonly string[]; readonly node: NodeRecord }> {
  const now = await start({
    machine: newMachine({ ramdisk: false, ...(macs === undefined ? {} : { macs }) }),
    options: { 'inspector.pre_create_ports': pre },
  });
  const { conductor, enrol, store, machine } = now;
  const other = await enrol();
  await store.ports.create({ uuid: '00000000-0000-4000-8000-00000000000c', node_uuid: other.uuid, address: C });
  const { uuid } = await enrol({ provision_state: 'manageable' });
  await store.ports.create({ uuid: '00000000-0000-4000-8000-00000000000a', node_uuid: uuid, address: A });
  await conductor.provision(uuid, 'inspect', {});
  await conductor.idle();
  return { orders: machine.orders, node: await store.nodes.find(uuid) };
}

it.each<[string, Machine['macs'], boolean, string]>([
  ['existing ports stay, including those of other nodes', [A, B, C, 'no address'], true, `inspect ${A} ${B}`],
  ['the BMC knows no addresses', [], true, `inspect ${A}`],
  ['pre_create_ports is off', [A, B], false, `inspect ${A}`],
  ['the BMC cannot report addresses', undefined, true, 'inspect'],
])('creates ports before the inspection: %s', async (_, macs, pre, inspect) => {
  const { orders, node } = await inspected(macs, pre);
  expect(orders[0]).toBe(inspect);
  expect(node).toMatchObject({ provision_state: 'manageable', last_error: null });
});

it('a BMC that answers with an error fails the inspection', async () => {
  const { orders, node } = await inspected(new Fault('DriverOperationError', { message: 'no' }));
  expect(orders).toEqual(['abort inspection', 'removeInspectionNetwork']);
  expect(node).toMatchObject({ provision_state: 'inspect failed', last_error: 'no' });
});
