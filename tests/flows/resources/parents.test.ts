/** Parents of nodes, as clients set and delete them. */
import { randomUUID } from 'node:crypto';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();

it('refuses parents that do not exist, cycles, and the deletion of a parent', async () => {
  const { conductor, enrol, store } = await start();
  const [parent, nobody] = [await enrol(), randomUUID()];
  const { driver } = parent;
  await expect(conductor.createNode({ uuid: randomUUID(), driver, parent_node: nobody })).rejects.toMatchObject({
    status: 400,
    message: `Unable to apply the requested parent_node '${nobody}'. Requested value was invalid.`,
  });
  const child = await conductor.createNode({ uuid: randomUUID(), driver, parent_node: parent.uuid });
  await expect(conductor.updateNode(parent.uuid, { parent_node: child.uuid }, false)).rejects.toMatchObject({ status: 400 });
  await expect(conductor.deleteNode(parent.uuid)).rejects.toMatchObject({ status: 409 });
  expect(await store.nodes.find(parent.uuid)).toMatchObject({ parent_node: null, reservation: null });
  await conductor.deleteNode(child.uuid);
  await conductor.deleteNode(parent.uuid);
});
