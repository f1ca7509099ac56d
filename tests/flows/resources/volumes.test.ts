/** Volume connectors and targets: which changes the power state and the provision state of their node permit. */
import { randomUUID } from 'node:crypto';
import type { NodeChanges } from '../../../model/records';
import { type Started } from '../../support/conductor';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();
let one: Started;
beforeEach(async () => {
  one = await start();
});

async function connectorOn(changes: NodeChanges): Promise<{ readonly node: string; readonly uuid: string }> {
  const { uuid: node } = await one.store.nodes.create({ uuid: randomUUID(), driver: 'test-hardware', ...changes });
  const uuid = randomUUID();
  await one.store.volumeConnectors.create({ uuid, node_uuid: node, type: 'ip', connector_id: uuid });
  return { node, uuid };
}
const refusal = (action: string, node: string, state: string): object => ({
  name: 'InvalidStateRequested',
  message: `The requested action "volume connector ${action}" can not be performed on node "${node}" while it is in state "${state}".`,
});

it.each<[NodeChanges, string]>([
  [{ power_state: 'power on', provision_state: 'manageable' }, 'power on'],
  [{ power_state: null }, 'None'],
])('volume connectors are not changed on a node that is not powered off: %j', async (changes, state) => {
  const { node, uuid } = await connectorOn(changes);
  await expect(one.conductor.updateVolume('connector', uuid, {})).rejects.toMatchObject(refusal('update', node, state));
});

it('volume connectors are changed on a node that is powered off, but not to an existing connector', async () => {
  const { uuid } = await connectorOn({ power_state: 'power off' });
  expect(await one.conductor.updateVolume('connector', uuid, {})).toMatchObject({ updated_at: null });
  expect(await one.conductor.updateVolume('connector', uuid, { type: 'mac' })).toMatchObject({ type: 'mac' });
  const other = await connectorOn({ power_state: 'power off' });
  await expect(one.conductor.updateVolume('connector', other.uuid, { type: 'mac', connector_id: uuid })).rejects.toMatchObject({
    status: 409,
    message: `A volume connector with type mac and connector ID ${uuid} already exists.`,
  });
});

it.each<[NodeChanges, boolean]>([
  [{ power_state: 'power on', provision_state: 'manageable' }, true],
  [{ power_state: 'power off', provision_state: 'active' }, true],
  [{ power_state: 'power on', provision_state: 'available' }, false],
])('volume connectors are deleted or kept as the states of their node permit: %j', async (changes, gone) => {
  const { node, uuid } = await connectorOn(changes);
  const removed = one.conductor.deleteVolume('connector', uuid);
  if (gone) await removed;
  else await expect(removed).rejects.toMatchObject(refusal('deletion', node, 'power on'));
  expect(await one.store.volumeConnectors.list({})).toHaveLength(gone ? 0 : 1);
});
