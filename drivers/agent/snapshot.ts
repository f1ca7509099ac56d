/** The step that saves a disk as a snapshot (docs/snapshots.md): the agent sends the disk to the API in parts, and reports them. */
import { isObject } from '../../model/json';
import { ifFound } from '../../model/errors';
import { UNFINISHED_SNAPSHOTS } from '../../model/states';
import type { JsonObject, SnapshotRecord } from '../../model/records';
import { snapshotProblem } from '../../model/agent/save-arguments';
import { shortened } from '../../model/text';
import { failed, type Outcome, type Step, type Task } from '../interfaces';
import { runAgentStep } from './steps';

const STEP = 'snapshot';
const MAX_DISK_NAME = 255;

/** Whether the steps that the agent reported have this step; true if they are unknown. */
function isOffered({ node }: Task): boolean {
  const cached = node.driver_internal_info['agent_cached_service_steps'] as JsonObject | undefined;
  const own = cached?.['deploy'];
  return !cached || (Array.isArray(own) && own.some((row) => (row as JsonObject | null)?.['step'] === STEP));
}
/** The snapshot of the running step, if it waits for this node; otherwise undefined. */
async function snapshotOf({ node, snapshots }: Task, uuid: unknown): Promise<SnapshotRecord | undefined> {
  const found = await ifFound(snapshots.find(String(uuid)));
  return found?.node_uuid === node.uuid && UNFINISHED_SNAPSHOTS.includes(found.state) ? found : undefined;
}

async function run(task: Task, args: JsonObject): Promise<Outcome> {
  const record = await snapshotOf(task, args['snapshot']);
  if (!record) return failed(`Node ${task.node.uuid} has no snapshot ${String(args['snapshot'])} that is to be saved`);
  if (!isOffered(task))
    return failed(
      `The agent of node ${task.node.uuid} does not have the step deploy.${STEP}. Bloomery's ramdisk has it; ironic-python-agent does not.`,
    );
  const hints = Object.keys(record.root_device).length > 0 ? { root_device: record.root_device } : {};
  return runAgentStep(task, 'service', {
    interface: 'deploy',
    step: STEP,
    priority: 0,
    args: { snapshot: record.uuid, blocks: record.blocks, ...hints },
  });
}

const isBytes = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
/** The most characters of the list of partitions: a GPT has 128 of them at most. */
const MAX_PARTITIONS = 64 * 1024;
/** What the agent says of the content. An agent of an earlier version says nothing: then all blocks are there. */
function contentIn({ compression, left_out: leftOut, partitions }: JsonObject): Partial<SnapshotRecord> {
  const isList = Array.isArray(partitions) && partitions.every(isObject) && JSON.stringify(partitions).length <= MAX_PARTITIONS;
  return {
    compression: compression === 'zlib' || compression === 'zstd' ? compression : null,
    left_out: leftOut === 0 || isBytes(leftOut) ? leftOut : null,
    partitions: isList ? partitions : [],
  };
}
/** The file has arrived. It counts only after its check (conductor/requests/snapshots.ts). */
async function finish(task: Task, result: unknown): Promise<void> {
  const report = (result ?? {}) as JsonObject;
  const { size, front, digest, disk, disk_size: diskSize } = report;
  const uuid = task.node.service_step['args'] as JsonObject | undefined;
  const record = await snapshotOf(task, uuid?.['snapshot']);
  if (!record) return;
  const isReport = isBytes(size) && isBytes(front) && isBytes(diskSize) && front <= size && /^[0-9a-f]{64}$/.test(String(digest));
  await task.snapshots.update(
    record.uuid,
    isReport
      ? {
          state: 'storing',
          progress: 100,
          size,
          disk: shortened(String(disk), MAX_DISK_NAME),
          disk_size: diskSize,
          parts: { front, digest: String(digest) },
          ...contentIn(report),
        }
      : { state: 'failed', last_error: 'The report of the agent is incomplete.' },
    { state: UNFINISHED_SNAPSHOTS },
  );
}

/** An agent that ends each time, because its memory is too small for instance, does not go on forever. */
const MAX_RESTARTS = 3;
/** The agent reads the disk again; it does not send again what is stored. */
async function mayBeginAgain(task: Task): Promise<boolean> {
  const args = task.node.service_step['args'] as JsonObject | undefined;
  const record = await snapshotOf(task, args?.['snapshot']);
  const restarts = Number(record?.parts['restarts'] ?? 0);
  if (!record || restarts >= MAX_RESTARTS) return false;
  await task.snapshots.update(record.uuid, { parts: { restarts: restarts + 1 } }, { state: UNFINISHED_SNAPSHOTS });
  return true;
}

export const snapshotStep: Step = {
  step: STEP,
  priority: { service: 0 },
  args: {
    snapshot: { description: 'UUID of the snapshot.', required: true, type: 'string', problem: snapshotProblem },
  },
  abortable: true,
  requiresRamdisk: true,
  usesAgent: true,
  // A step that runs already is not started again.
  resumable: true,
  mayBeginAgain,
  run,
  finish,
};
