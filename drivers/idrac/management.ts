/** The management interface of Dell machines: Redfish's, and steps that bring the iDRAC into a state in which it accepts work. */
import { waitUntil } from '../../model/clock';
import { Fault } from '../../model/errors';
import { RedfishError, rootPath } from '../../wire/redfish';
import { done, type ManagementInterface, type Step, type Task } from '../interfaces';
import { redfishManagement } from '../redfish/steps/management';
import { onSystem, type SystemView } from '../redfish/target';
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
async function answers({ connections, signal }: Task, { target }: SystemView): Promise<boolean> {
  try {
    await connections.redfish.request(target, 'GET', rootPath(target), { timeoutMs: PROBE_MS, signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RedfishError) || error.kind === 'closed') throw error;
    return error.kind === 'status' || error.kind === 'protocol';
  }
}
async function untilSeen(task: Task, system: SystemView, which: keyof typeof WATCHES): Promise<void> {
  const { tries, inARow } = WATCHES[which];
  let seen = 0;
  const isSeen = async (): Promise<boolean> => {
    seen = (await answers(task, system)) === (which === 'back') ? seen + 1 : 0;
    return seen >= inARow;
  };
  if (!(await waitUntil(task, isSeen, (checks) => (checks < tries ? PAUSE_MS : undefined))))
    throw new RedfishError('task', `the iDRAC did not become ${which === 'gone' ? 'not reachable' : 'reachable'} after its reset`);
}
/** A service that has just started may answer with errors. */
const passes = (error: unknown): boolean => error instanceof RedfishError && error.kind !== 'closed' && error.kind !== 'protocol';

const resetIdrac = (task: Task): Promise<void> =>
  onManager(task, 'reset iDRAC', async (manager, system) => {
    await callService(system.ask, manager, '#DelliDRACCardService.iDRACReset', { Force: 'Graceful' });
    await untilSeen(task, system, 'gone');
    await untilSeen(task, system, 'back');
    await task.clock.sleep(SETTLE_MS, task.signal);
    const isBack = (): Promise<boolean> =>
      isReady(system.ask, manager, 'LCStatus').catch((error: unknown) => {
        task.signal.throwIfAborted();
        if (!passes(error)) throw error;
        return false;
      });
    if (!(await waitUntil(task, isBack, (checks) => (checks < READY_TRIES ? PAUSE_MS : undefined))))
      throw new RedfishError('task', 'the iDRAC is not ready after its reset');
    task.log.info('the iDRAC was reset');
  }).then(() => onSystem(task, 'Redfish read system', async () => {}));

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
  steps: [
    ...(redfishManagement.steps ?? []),
    step('clear_job_queue', clearJobQueue),
    step('reset_idrac', resetIdrac),
    step('known_good_state', resetIdrac, clearJobQueue),
  ],
};
