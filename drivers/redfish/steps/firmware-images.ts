/**
 * The step `update_firmware` of the management interface, older than the firmware interface: installs images one after the other, each with
 * a restart. Unfinished images are stored on the node (`firmware_updates`); the first one is being installed.
 */
import { bareTimestamp, instantOf } from '../../../model/clock';
import { listOf } from '../../../wire/redfish';
import { done, failed, type Outcome, type Step, type Task } from '../../interfaces';
import { isAgentBack, rebootForStep } from '../../common/reboot-step';
import { firmwareUrl, forgetFirmwareFiles } from './firmware-files';
import { firmwareImages, type FirmwareImage } from './firmware-settings';
import { redfishFault } from '../target';
import {
  FORGOTTEN,
  discardFailedUpdates,
  resultByVersions,
  simpleUpdate,
  updateFailure,
  updateState,
  versionsDigest,
  type UpdateState,
} from './update';

interface Update extends FirmwareImage {
  /** Where the service reports progress; absent: it installed the image at once. */
  readonly task_monitor?: string | undefined;
  /** The update goes on, and no task shows it. */
  readonly unseen?: boolean | undefined;
  /** `versionsDigest` before the update. */
  readonly versions_before?: string | undefined;
  /** Since when the task is gone. */
  readonly gone?: string;
  /** When the wait after the update began. Absent: the service has not finished yet. */
  readonly wait_start_time?: string;
}
const UPDATES = 'firmware_updates';
const updatesOf = ({ node }: Task): readonly Update[] => listOf(node.driver_internal_info[UPDATES]) as readonly Update[];
const pollLater = ({ options }: Task): Outcome => ({
  kind: 'wait',
  pollEvery: Math.max(1, options['redfish.firmware_update_status_interval']),
});

async function forget(task: Task): Promise<void> {
  await forgetFirmwareFiles(task);
  await task.saveInternal({ [UPDATES]: undefined });
}
async function start(task: Task, images: readonly Update[]): Promise<Outcome> {
  const [{ url, checksum, source, wait }, ...rest] = images as readonly [Update, ...Update[]];
  const place = await firmwareUrl(task, url, { checksum, source });
  const versions = await versionsDigest(task);
  const { monitor, unseen } = await simpleUpdate(task, place);
  const current: Update = {
    url,
    checksum,
    source,
    wait,
    task_monitor: monitor,
    unseen,
    versions_before: versions,
  };
  // Saved before the restart: a machine that installs firmware must not be restarted twice.
  await task.saveInternal({ [UPDATES]: [current, ...rest] });
  await rebootForStep(task);
  return pollLater(task);
}
async function next(task: Task): Promise<Outcome> {
  const rest = updatesOf(task).slice(1);
  if (rest.length > 0) return start(task, rest);
  if (!isAgentBack(task)) return pollLater(task);
  await forget(task);
  return done;
}

async function poll(task: Task): Promise<Outcome> {
  const [current, ...rest] = updatesOf(task);
  if (!current) return failed(`Node ${task.node.uuid} has no firmware update that is waited for`);
  const { wait, wait_start_time: since, url } = current;
  if (since !== undefined) {
    const left = (wait ?? 0) - (task.clock.now() - instantOf(since)) / 1000;
    return left > 0 ? { kind: 'wait', pollEvery: Math.max(1, left) } : next(task);
  }
  const state: UpdateState = current.unseen ? { kind: 'gone' } : await updateState(task, current.task_monitor);
  if (state.kind === 'running' || state.kind === 'unreachable') return pollLater(task);
  if (state.kind === 'failed') {
    await forget(task);
    return failed(updateFailure(task, url, state.messages));
  }
  if (state.kind === 'gone') {
    const gone = current.gone ?? bareTimestamp(task.clock.now());
    const seconds = (task.clock.now() - instantOf(gone)) / 1000;
    const result = await resultByVersions(task, url, current.versions_before, seconds);
    if (result === 'failed') {
      await forget(task);
      return failed(updateFailure(task, url, [FORGOTTEN]));
    }
    if (result === 'open') {
      if (current.gone === undefined) await task.saveInternal({ [UPDATES]: [{ ...current, gone }, ...rest] });
      return pollLater(task);
    }
  }
  if (wait === undefined) return next(task);
  await task.saveInternal({ [UPDATES]: [{ ...current, wait_start_time: bareTimestamp(task.clock.now()) }, ...rest] });
  return { kind: 'wait', pollEvery: wait };
}

/** Turns an error of the service into the Fault that fails the step. */
const withFaults = async (task: Task, work: () => Promise<Outcome>): Promise<Outcome> => {
  try {
    return await work();
  } catch (error) {
    throw redfishFault(task, error);
  }
};
export const updateFirmware: Step = {
  step: 'update_firmware',
  priority: { clean: 0, service: 0 },
  args: { firmware_images: { description: 'A list of firmware images to apply.', required: true, type: 'list' } },
  abortable: false,
  run: (task, { firmware_images: list }) =>
    withFaults(task, async () => {
      const images = firmwareImages(list);
      if (images.length === 0) return done;
      await task.saveInternal({ [UPDATES]: undefined });
      return start(task, images).catch(async (error: unknown) => {
        await forget(task);
        throw error;
      });
    }),
  poll: (task) => withFaults(task, () => poll(task)),
};
export const forgetFailedUpdates = discardFailedUpdates(
  'checking if async firmware update failed',
  UPDATES,
  ['clean failed', 'service failed'],
  forget,
);
