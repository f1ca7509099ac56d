/** The management interface of Dell machines: Redfish's, and steps that bring the iDRAC into a state in which it accepts work. */
import { waitUntil } from '../../model/clock';
import { Fault } from '../../model/errors';
import { RedfishError, rootPath, type RedfishResource, type RedfishTarget, type SendRedfishRequest } from '../../wire/redfish';
import { done, type ManagementInterface, type Step, type Task } from '../interfaces';
import { redfishManagement } from '../redfish/steps/management';
import { onSystem, redfishFault, redfishSystem } from '../redfish/target';
import { setBootDevice } from './http-boot';
import { lockable } from './lockdown';
import { callService, isReady, onManager } from './manager';

/** The number of all jobs, in place of a single job's. */
const ALL_JOBS = 'JID_CLEARALL';

const clearJobQueue = (task: Task): Promise<void> =>
  onManager(task, 'clear job queue', async (manager, { ask }) => {
    await callService(ask, manager, '#DellJobService.DeleteJobQueue', { JobID: ALL_JOBS });
  });

/** Milliseconds for one answer of an iDRAC that may be restarting. */
const PROBE_MS = 10_000;
const PAUSE_MS = 10_000;
/** Milliseconds after an iDRAC answers again during which it tells old states. */
const SETTLE_MS = 60_000;
/** Attempts to see the iDRAC go, come back, and be ready; and how often in a row it must be seen gone or back. */
const WATCHES = { gone: { tries: 24, inARow: 2 }, back: { tries: 24, inARow: 3 } } as const;
const READY_TRIES = 96;

/** Any answer shows that the iDRAC runs. */
async function answers({ connections, signal }: Task, target: RedfishTarget): Promise<boolean> {
  try {
    await connections.redfish.request(target, 'GET', rootPath(target), { timeoutMs: PROBE_MS, signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RedfishError) || error.kind === 'closed') throw error;
    return error.kind === 'status' || error.kind === 'protocol';
  }
}
/** Whether the iDRAC is seen so within the time. */
function isSeen(task: Task, target: RedfishTarget, which: keyof typeof WATCHES): Promise<boolean> {
  const { tries, inARow } = WATCHES[which];
  let seen = 0;
  const look = async (): Promise<boolean> => {
    seen = (await answers(task, target)) === (which === 'back') ? seen + 1 : 0;
    return seen >= inARow;
  };
  return waitUntil(task, look, (checks) => (checks < tries ? PAUSE_MS : undefined));
}
async function settle(task: Task, target: RedfishTarget): Promise<void> {
  if (!(await isSeen(task, target, 'back'))) throw new RedfishError('task', 'the iDRAC did not become reachable after its reset');
  await task.clock.sleep(SETTLE_MS, task.signal);
}
/** A service that has just started may answer with errors. */
const passes = (error: unknown): boolean => error instanceof RedfishError && error.kind !== 'closed' && error.kind !== 'protocol';
async function untilReady(task: Task, ask: SendRedfishRequest, manager: RedfishResource): Promise<void> {
  const isBack = (): Promise<boolean> =>
    isReady(ask, manager, 'LCStatus').catch((error: unknown) => {
      task.signal.throwIfAborted();
      if (!passes(error)) throw error;
      return false;
    });
  if (!(await waitUntil(task, isBack, (checks) => (checks < READY_TRIES ? PAUSE_MS : undefined))))
    throw new RedfishError('task', 'the iDRAC is not ready after its reset');
}

const RESETTING = 'reset iDRAC';
const reset = (task: Task): Promise<void> =>
  onManager(task, RESETTING, async (manager, { ask, target }) => {
    await callService(ask, manager, '#DelliDRACCardService.iDRACReset', { Force: 'Graceful' });
    await task.saveInternal({ idrac_reset: true });
    if (!(await isSeen(task, target, 'gone'))) throw new RedfishError('task', 'the iDRAC did not become not reachable after its reset');
    await settle(task, target);
    await untilReady(task, ask, manager);
  });
/** Waits for the end of a reset that a conductor asked for and did not see the end of. The iDRAC may be away, or back already. */
async function awaitReset(task: Task): Promise<void> {
  const { target } = await redfishSystem(task);
  try {
    if (await answers(task, target)) await isSeen(task, target, 'gone');
    await settle(task, target);
  } catch (error) {
    throw redfishFault(task, error, RESETTING);
  }
  await onManager(task, RESETTING, (manager, { ask }) => untilReady(task, ask, manager));
}
async function resetIdrac(task: Task): Promise<void> {
  try {
    await (task.node.driver_internal_info['idrac_reset'] === true ? awaitReset(task) : reset(task));
  } finally {
    // An interrupted conductor's successor needs it.
    if (!task.signal.aborted) await task.saveInternal({ idrac_reset: undefined });
  }
  task.log.info('the iDRAC was reset');
  await onSystem(task, 'Redfish read system', async () => {});
}

/** As in Ironic, a node that becomes manageable does so in spite of a failure. */
async function unlessVerifying(task: Task, work: (task: Task) => Promise<void>): Promise<void> {
  try {
    await work(task);
  } catch (error) {
    if (!(error instanceof Fault) || task.node.provision_state !== 'verifying') throw error;
    task.log.warn('the iDRAC was not brought into a known state', { reason: error.message });
  }
}
const step = (name: string, ...works: readonly ((task: Task) => Promise<void>)[]): Step => ({
  step: name,
  priority: { verify: 0, clean: 0 },
  requiresRamdisk: false,
  resumable: true,
  run: async (task) => {
    for (const work of works) await unlessVerifying(task, work);
    return done;
  },
});

export const idracManagement: ManagementInterface = {
  ...redfishManagement,
  setBootDevice,
  steps: lockable([
    ...(redfishManagement.steps ?? []),
    step('clear_job_queue', clearJobQueue),
    step('reset_idrac', resetIdrac),
    step('known_good_state', resetIdrac, clearJobQueue),
  ]),
};
