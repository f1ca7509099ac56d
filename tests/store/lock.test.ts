import { randomUUID } from 'node:crypto';
import type { NodeRecord } from '../../model/records';
import { useDatabase } from '../support/database';

const database = useDatabase({ poolSize: 20 });
const nodes = () => database.store().nodes;
const make = () => nodes().create({ uuid: randomUUID(), driver: 'fake-hardware' });

it('reserve raises lock_fence, and fails with the holder while the node is reserved', async () => {
  const node = await nodes().create({ uuid: randomUUID(), driver: 'fake-hardware', name: 'by-name' });
  const held = await nodes().reserve('by-name', 'alpha');
  expect(held).toMatchObject({ uuid: node.uuid, reservation: 'alpha', lock_fence: 1, revision: 2 });
  expect(held.updated_at).not.toBeNull();
  const refused = {
    name: 'NodeLocked',
    message: `Node ${node.uuid} is locked by host alpha, please retry after the current operation is completed.`,
  };
  await expect(nodes().reserve(node.uuid, 'beta')).rejects.toMatchObject(refused);
  await expect(nodes().reserve(node.uuid, 'alpha')).rejects.toMatchObject(refused);
  await nodes().release(node.uuid, 1);
  expect(await nodes().find(node.uuid)).toMatchObject({ reservation: null, lock_fence: 1 });
  expect(await nodes().reserve(node.uuid, 'beta')).toMatchObject({ reservation: 'beta', lock_fence: 2 });
  await expect(nodes().reserve('nobody', 'beta')).rejects.toMatchObject({ name: 'NodeNotFound', details: { node: 'nobody' } });
});

it('reserve succeeds once among fifty simultaneous attempts', async () => {
  const node = await make();
  const tries = await Promise.allSettled(Array.from({ length: 50 }, (_, index) => nodes().reserve(node.uuid, `host${index}`)));
  const won = tries.filter((candidate): candidate is PromiseFulfilledResult<NodeRecord> => candidate.status === 'fulfilled');
  const lost = tries.filter((candidate): candidate is PromiseRejectedResult => candidate.status === 'rejected');
  expect(won).toHaveLength(1);
  const holder = won[0]!.value.reservation;
  expect(lost.map(({ reason }) => reason as unknown)).toEqual(
    Array.from(
      { length: 49 },
      () => expect.objectContaining({ name: 'NodeLocked', details: { node: node.uuid, host: holder } }) as unknown,
    ),
  );
  expect(await nodes().find(node.uuid)).toMatchObject({ reservation: holder, lock_fence: 1 });
});

it('there are never two holders while many reserve and release', async () => {
  const node = await make();
  let holders = 0;
  let turns = 0;
  const worker = async (host: string): Promise<void> => {
    for (let tries = 0; tries < 200; tries++) {
      const held = await nodes()
        .reserve(node.uuid, host)
        .catch(() => undefined);
      if (!held) continue;
      expect(++holders).toBe(1);
      await nodes().update(node.uuid, { last_error: host }, held.lock_fence);
      holders--;
      turns++;
      await nodes().release(node.uuid, held.lock_fence);
      return;
    }
  };
  await Promise.all(Array.from({ length: 10 }, (_, index) => worker(`host${index}`)));
  expect(await nodes().find(node.uuid)).toMatchObject({ reservation: null, lock_fence: turns });
  expect(turns).toBeGreaterThan(1);
});

/** The node as stored: a reservation returns more than that. */
const reserved = async (uuid: string, host: string) => {
  await nodes().reserve(uuid, host);
  return nodes().find(uuid);
};
describe('a holder whose reservation was taken over', () => {
  const takenOver = async () => {
    const node = await make();
    const old = await nodes().reserve(node.uuid, 'slow');
    await nodes().releaseAll('slow');
    const successor = await reserved(node.uuid, 'quick');
    return { uuid: node.uuid, old: old.lock_fence, successor };
  };
  it.each<[string, (uuid: string, fence: number) => Promise<unknown>]>([
    ['update', (uuid, fence) => nodes().update(uuid, { last_error: 'late' }, fence)],
    ['mergeInternal', (uuid, fence) => nodes().mergeInternal(uuid, { agent_url: 'late' }, fence)],
    ['remove', (uuid, fence) => nodes().remove(uuid, fence)],
  ])('cannot %s the node', async (_what, write) => {
    const { uuid, old, successor } = await takenOver();
    await expect(write(uuid, old)).rejects.toMatchObject({ name: 'NodeLocked', details: { node: uuid, host: 'quick' } });
    expect(await nodes().find(uuid)).toEqual(successor);
    await write(uuid, successor.lock_fence);
  });
  it('cannot release the reservation of its successor', async () => {
    const { uuid, old, successor } = await takenOver();
    await nodes().release(uuid, old);
    expect(await nodes().find(uuid)).toEqual(successor);
  });
  it('cannot write while nobody holds a reservation', async () => {
    const node = await make();
    const held = await nodes().reserve(node.uuid, 'slow');
    await nodes().releaseAll('slow');
    await expect(nodes().update(node.uuid, { last_error: 'late' }, held.lock_fence)).rejects.toMatchObject({ name: 'NodeLocked' });
  });
  it('gets NodeNotFound after the node was removed', async () => {
    const node = await make();
    const held = await nodes().reserve(node.uuid, 'h');
    await nodes().remove(node.uuid);
    await expect(nodes().update(node.uuid, {}, held.lock_fence)).rejects.toMatchObject({ name: 'NodeNotFound' });
    await expect(nodes().release(node.uuid, held.lock_fence)).resolves.toBeUndefined();
  });
});

it('releaseAll ends the reservations of one host and returns the nodes as they were', async () => {
  await database.clear();
  const [first, second, other] = [await make(), await make(), await make()];
  await make();
  const before = [await reserved(first.uuid, 'mine'), await reserved(second.uuid, 'mine')];
  const theirs = await reserved(other.uuid, 'theirs');
  expect([...(await nodes().releaseAll('mine'))].sort((a, b) => a.id - b.id)).toEqual(before);
  expect(await nodes().releaseAll('mine')).toEqual([]);
  expect(await nodes().find(first.uuid)).toMatchObject({ reservation: null, lock_fence: 1, revision: 3 });
  expect(await nodes().list({ reserved: true })).toEqual([theirs]);
});
