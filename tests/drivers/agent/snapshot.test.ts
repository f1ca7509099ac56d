import { findSnapshot, factsOf } from '../../../drivers/common/snapshot-images';
import { snapshotStep } from '../../../drivers/agent/snapshot';
import type { SnapshotRecord } from '../../../model/records';
import { NODE_UUID, testTask } from '../../support/task';

const UUID = '7415a720-dcc4-4f1f-a675-337554abdb31';
const DIGEST = 'a'.repeat(64);
const record = (changes: Partial<SnapshotRecord> = {}): SnapshotRecord =>
  ({ uuid: UUID, node_uuid: NODE_UUID, state: 'queued', root_device: {}, sha256: null, ...changes }) as SnapshotRecord;
const args = { snapshot: UUID };

it('says that the agent of ironic-python-agent does not have the step', async () => {
  const steps = [{ interface: 'deploy', step: 'write_image', priority: 0 }];
  const { task } = testTask({
    node: { driver_internal_info: { agent_cached_service_steps: { deploy: steps } } },
    snapshots: [record()],
  });
  expect(await snapshotStep.run(task, args)).toEqual({
    kind: 'failed',
    reason: `The agent of node ${NODE_UUID} does not have the step deploy.snapshot. Bloomery's ramdisk has it; ironic-python-agent does not.`,
  });
});

it.each([
  ['of another node', { node_uuid: 'other' }],
  ['that has failed', { state: 'failed' }],
  ['that is available', { state: 'available' }],
] as const)('refuses a snapshot %s', async (_, changes) => {
  const { task } = testTask({ snapshots: [record(changes)] });
  expect(await snapshotStep.run(task, args)).toMatchObject({ kind: 'failed', reason: expect.stringContaining(UUID) as unknown });
});

const REPORT = { size: 900, front: 100, digest: DIGEST, disk: '/dev/sda', disk_size: 5000 };
it.each([
  ['is complete', REPORT, { state: 'storing', size: 900, disk: '/dev/sda', disk_size: 5000, parts: { front: 100, digest: DIGEST } }],
  [
    'says what was left out',
    { ...REPORT, compression: 'zstd', left_out: 700, partitions: [{ number: 1, blocks: 'used' }] },
    { state: 'storing', compression: 'zstd', left_out: 700, partitions: [{ number: 1, blocks: 'used' }] },
  ],
  [
    'says nonsense of what was left out',
    { ...REPORT, compression: 'lz4', left_out: -1, partitions: ['x'.repeat(70_000)] },
    { state: 'storing', compression: null, left_out: null, partitions: [] },
  ],
  ['has too long a list of partitions', { ...REPORT, partitions: [{ reason: 'x'.repeat(70_000) }] }, { state: 'storing', partitions: [] }],
  ['has no digest', { ...REPORT, digest: 'x' }, { state: 'failed' }],
  ['has a front that is too long', { ...REPORT, front: 1000 }, { state: 'failed' }],
  ['is nothing', null, { state: 'failed' }],
])('takes a report that %s', async (_, report, state) => {
  const { task } = testTask({ node: { service_step: { args } }, snapshots: [record({ state: 'saving' })] });
  await snapshotStep.finish!(task, report);
  expect(await task.snapshots.find(UUID)).toMatchObject(state);
});

it('deploys an available snapshot only', async () => {
  const { task } = testTask({ snapshots: [record({ state: 'storing' })] });
  await expect(findSnapshot(task, UUID)).rejects.toThrow('The snapshot is in the state storing.');
  await expect(findSnapshot(task, NODE_UUID)).rejects.toThrow('There is no such snapshot.');
  expect(factsOf(record({ sha256: DIGEST }))).toMatchObject({ image_os_hash_algo: 'sha256', image_os_hash_value: DIGEST });
});

it('begins again after a restart of the agent, a few times', async () => {
  const { task } = testTask({ node: { service_step: { args } }, snapshots: [record({ state: 'saving', parts: {} })] });
  const answers: boolean[] = [];
  for (let restart = 0; restart < 5; restart++) answers.push(await snapshotStep.mayBeginAgain!(task));
  expect(answers).toEqual([true, true, true, false, false]);
});

it('does not begin a snapshot again that has failed', async () => {
  const { task } = testTask({ node: { service_step: { args } }, snapshots: [record({ state: 'failed', parts: {} })] });
  expect(await snapshotStep.mayBeginAgain!(task)).toBe(false);
});
