/** Parents of nodes: whatever writes at the same time, no node is its own ancestor, and no child loses its parent. */
import { randomUUID } from 'node:crypto';
import type { NewNode } from '../../../model/records';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const nodes = () => database.store().nodes;
const make = async (more: Partial<NewNode> = {}): Promise<string> =>
  (await nodes().create({ uuid: randomUUID(), driver: 'fake-hardware', ...more })).uuid;
beforeEach(() => database.clear());

it('a node is not its own parent, nor the parent of its ancestor', async () => {
  const one = await make();
  const two = await make({ parent_node: one });
  const three = await make({ parent_node: two });
  const message = `Node ${one} cannot have the parent_node ${three}: the node would be its own ancestor.`;
  await expect(nodes().update(one, { parent_node: three })).rejects.toMatchObject({ name: 'ParentNodeCycle', status: 400, message });
  await expect(nodes().update(one, { parent_node: one })).rejects.toMatchObject({ name: 'ParentNodeCycle' });
  const { revision } = await nodes().find(one);
  await expect(nodes().updateUnlocked(one, { parent_node: two }, revision)).rejects.toMatchObject({ name: 'ParentNodeCycle' });
  const uuid = randomUUID();
  await expect(make({ uuid, parent_node: uuid })).rejects.toMatchObject({ name: 'ParentNodeCycle' });
  await nodes().update(three, { parent_node: one });
  expect((await nodes().find(three)).parent_node).toBe(one);
});

it('a new parent exists', async () => {
  const [one, nobody] = [await make(), randomUUID()];
  await expect(nodes().update(one, { parent_node: nobody })).rejects.toMatchObject({ name: 'ParentNodeUnknown', status: 400 });
  await nodes().update(one, { parent_node: null });
});

it('of two nodes that become the parent of each other at once, one is refused', async () => {
  const [one, two] = [await make(), await make()];
  const written = await Promise.allSettled([nodes().update(one, { parent_node: two }), nodes().update(two, { parent_node: one })]);
  expect(written.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

it('a node with children is not deleted', async () => {
  const parent = await make();
  const child = await make({ parent_node: parent });
  await expect(nodes().remove(parent)).rejects.toMatchObject({
    name: 'NodeHasChildren',
    status: 409,
    message: `Node ${parent} cannot be deleted while it is the parent_node of other nodes. Change or delete these first.`,
  });
  await nodes().remove(child);
  await nodes().remove(parent);
});

it('a parent that is deleted while it gets a child keeps the child or refuses it', async () => {
  for (let round = 0; round < 5; round++) {
    const [parent, child] = [await make(), await make()];
    const [deleted, changed] = await Promise.allSettled([nodes().remove(parent), nodes().update(child, { parent_node: parent })]);
    expect([deleted.status, changed.status].sort()).toEqual(['fulfilled', 'rejected']);
  }
});
