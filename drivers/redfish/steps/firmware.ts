/**
 * The firmware interface `redfish`: the UpdateService updates components one after the other. Progress is stored on the node
 * (`redfish_fw_updates`, the first is the one in progress), so that any conductor can continue.
 */
import { bareTimestamp, instantOf } from '../../../model/clock';
import { reasonOf } from '../../../model/errors';
import { withoutCredentials } from '../../../model/urls';
import { RedfishError, listOf } from '../../../wire/redfish';
import { failed, done, type FirmwareInterface, type Outcome, type SavedKind, type Step, type Task } from '../../interfaces';
import { firmwareComponents } from './firmware-components';
import { firmwareUrl, forgetFirmwareFiles } from './firmware-files';
import { firmwareSettings, type FirmwareSetting } from './firmware-settings';
import { REDFISH_PROPERTIES, redfishFault, redfishSystem } from '../target';
import {
  bmcVersion,
  discardFailedUpdates,
  machineOf,
  simpleUpdate,
  updateFailure,
  updateState,
  FORGOTTEN,
  resultByVersions,
  versionsDigest,
  type UpdateState,
} from './update';

/** `task`: the service runs the update; `wait`: a fixed delay afterwards; `settle`: until reading succeeds several times in a row. */
type Phase = 'task' | 'wait' | 'settle';
interface Update extends FirmwareSetting {
  /** Where the service reports progress; absent: it did the update at once. */
  readonly task_monitor?: string | undefined;
  readonly phase?: Phase;
  /** When the phase began. */
  readonly since?: string;
  /** The machine was restarted for it. */
  readonly rebooted?: boolean;
  /** The machine must be restarted after it. */
  readonly reboot?: boolean;
  /** Network adapters: since when the task is in state Starting. */
  readonly starting?: string | undefined;
  readonly version_before?: string | undefined;
  /** The update goes on, and no task shows it. */
  readonly unseen?: boolean | undefined;
  /** `versionsDigest` before the update. */
  readonly versions_before?: string | undefined;
  /** Since when the task is gone. */
  readonly gone?: string;
  /** Consecutive good responses. */
  readonly good?: number;
  /** An agent ran on the machine, and must be back before the step ends. */
  readonly with_agent?: boolean;
}

const UPDATES = 'redfish_fw_updates';
const STARTED = 'redfish_fw_update_start_time';
const updatesOf = ({ node }: Task): readonly Update[] => {
  return listOf(node.driver_internal_info[UPDATES]) as readonly Update[];
};
/** Seconds since a stored time. */
const secondsSince = ({ clock }: Task, moment: unknown): number =>
  typeof moment === 'string' && !Number.isNaN(instantOf(moment)) ? (clock.now() - instantOf(moment)) / 1000 : Infinity;
const now = ({ clock }: Task): string => bareTimestamp(clock.now());
const waitFor = (seconds: number): Outcome => ({ kind: 'wait', pollEvery: Math.max(1, seconds) });
const pollLater = ({ options }: Task): Outcome => waitFor(options['redfish.firmware_update_status_interval']);

/** Changes the stored state of the update in progress. */
async function note(task: Task, changes: Partial<Update>): Promise<void> {
  const [current, ...rest] = updatesOf(task);
  await task.saveInternal({ [UPDATES]: [{ ...current, ...changes }, ...rest] });
}
async function forget(task: Task): Promise<void> {
  await forgetFirmwareFiles(task);
  await task.saveInternal({ [UPDATES]: undefined, [STARTED]: undefined });
}
async function fails(task: Task, reason: string): Promise<Outcome> {
  await forget(task);
  return failed(reason);
}

async function start(task: Task, updates: readonly Update[]): Promise<Outcome> {
  const [{ component, url, wait }, ...rest] = updates as readonly [Update, ...Update[]];
  const before = component === 'bmc' ? await bmcVersion(task) : undefined;
  const withAgent = updatesOf(task)[0]?.with_agent ?? task.node.driver_internal_info['agent_url'] !== undefined;
  const versions = await versionsDigest(task);
  const { monitor, unseen } = await simpleUpdate(task, await firmwareUrl(task, url), component);
  const current: Update = {
    component,
    url,
    wait,
    task_monitor: monitor,
    unseen,
    versions_before: versions,
    phase: 'task',
    since: now(task),
    with_agent: withAgent,
    version_before: before,
  };
  await task.saveInternal({ [UPDATES]: [current, ...rest] });
  return pollLater(task);
}

/** The next action. `wait`: poll again; `reboot`: restart the machine, then poll again; `over`: finished, with or without a restart. */
type Verdict =
  | { readonly kind: 'wait'; readonly after?: number; readonly notes?: Partial<Update> }
  | { readonly kind: 'reboot' }
  | { readonly kind: 'over'; readonly reboot: boolean };
const keepWaiting: Verdict = { kind: 'wait' };
const over = (reboot: boolean): Verdict => ({ kind: 'over', reboot });
type Judge = (task: Task, update: Update, state: Exclude<UpdateState, { kind: 'failed' }>) => Verdict | Promise<Verdict>;

const STAGED = ['Starting', 'Running', 'Pending'];
/** The machine applies the update when it starts: it is restarted as soon as the service has begun the update, or has staged it. */
const bios: Judge = (_, { rebooted }, state) => {
  if (state.kind === 'unreachable') return keepWaiting;
  if (state.kind === 'running') return rebooted || !STAGED.includes(state.state ?? '') ? keepWaiting : { kind: 'reboot' };
  return rebooted ? over(false) : { kind: 'reboot' };
};
/** Some adapters begin the update when the machine starts; others update at once and need a restart afterwards. */
const nic: Judge = (task, { rebooted, starting }, state) => {
  if (state.kind === 'unreachable') return keepWaiting;
  if (state.kind !== 'running') return over(!rebooted);
  if (state.state === 'Running')
    return rebooted || starting !== undefined ? { ...keepWaiting, notes: { rebooted: false, starting: undefined } } : keepWaiting;
  if (state.state !== 'Starting' || rebooted) return keepWaiting;
  if (starting === undefined) return { ...keepWaiting, notes: { starting: now(task) } };
  return secondsSince(task, starting) < task.options['redfish.firmware_update_nic_starting_wait'] ? keepWaiting : { kind: 'reboot' };
};
/** Seconds after the start of a BMC update during which its result is not checked: the BMC may not answer meanwhile. */
function bmcWait({ node, options }: Task, { wait }: Update): number {
  const own = Number(node.driver_info['firmware_update_unresponsive_bmc_wait'] ?? 0);
  return (
    wait ?? (own > 0 ? own : options['redfish.firmware_update_wait_unresponsive_bmc'] || options['redfish.firmware_update_reboot_delay'])
  );
}
/** The BMC restarts and may forget its tasks. Then its version shows the result. */
const bmc: Judge = async (task, update, state) => {
  const elapsed = secondsSince(task, update.since);
  const quiet = bmcWait(task, update);
  if (elapsed < quiet) return { ...keepWaiting, after: Math.min(quiet - elapsed, task.options['redfish.firmware_update_status_interval']) };
  if (state.kind === 'running') return keepWaiting;
  const version = await bmcVersion(task);
  const known = version !== undefined && update.version_before !== undefined;
  // Some machines accept the next update only after a restart.
  if (known && version !== update.version_before) return over(updatesOf(task).length > 1);
  if (elapsed >= Math.max(quiet, task.options['redfish.firmware_update_reboot_delay'])) return over(!known);
  return { ...keepWaiting, after: task.options['redfish.firmware_update_bmc_version_check_interval'] };
};
const judgeOf = (component: string): Judge => (component === 'bios' ? bios : component === 'bmc' ? bmc : nic);

/** Reports the progress of the service's task, if it gives a percentage. */
async function reportProgress(task: Task, percent: number | undefined): Promise<void> {
  const kind = (['clean', 'deploy', 'service'] as const satisfies readonly SavedKind[]).find(
    (candidate) => task.node[`${candidate}_step`]['step'] !== undefined,
  );
  if (kind === undefined || percent === undefined) return;
  await task.reportProgress?.(kind, { interface: 'firmware', step: 'update', priority: 0 }, percent);
}

async function reboot(task: Task): Promise<void> {
  if (updatesOf(task)[0]?.with_agent) await task.driver.boot.prepareRamdisk(task, {});
  await task.power('rebooting', task.options['redfish.firmware_update_reboot_delay']);
}

/** An update without a task gets the time of a restart for the download, which nothing shows. */
async function stateOf(task: Task, { unseen, since, task_monitor: monitor }: Update): Promise<UpdateState> {
  if (!unseen) return updateState(task, monitor);
  const left = secondsSince(task, since) < task.options['redfish.firmware_update_reboot_delay'];
  return left ? { kind: 'running', state: undefined, percent: undefined } : { kind: 'gone' };
}
async function pollTask(task: Task, update: Update): Promise<Outcome> {
  const state = await stateOf(task, update);
  if (state.kind === 'failed') return fails(task, updateFailure(task, update.url, state.messages));
  if (state.kind === 'unreachable') task.log.warn('the service does not report the state of a firmware update', { reason: state.reason });
  if (state.kind === 'gone' && update.gone === undefined) {
    task.log.warn('the task of a firmware update is gone', { firmware: withoutCredentials(update.url) });
    await note(task, { gone: now(task) });
  }
  if (state.kind === 'running') await reportProgress(task, state.percent);
  const verdict = await judgeOf(update.component)(task, update, state);
  if (verdict.kind === 'wait') {
    if (verdict.notes) await note(task, verdict.notes);
    return verdict.after === undefined ? pollLater(task) : waitFor(verdict.after);
  }
  if (verdict.kind === 'reboot') {
    // Saved before the restart: a machine that installs firmware must not be restarted twice.
    await note(task, { rebooted: true, starting: undefined });
    await reboot(task);
    return pollLater(task);
  }
  const waits = update.component !== 'bmc' && update.wait !== undefined;
  await note(task, { phase: waits ? 'wait' : 'settle', since: now(task), reboot: verdict.reboot });
  return waits ? waitFor(update.wait) : settling(task);
}

async function waiting(task: Task, update: Update): Promise<Outcome> {
  const left = (update.wait ?? 0) - secondsSince(task, update.since);
  if (left > 0) return waitFor(left);
  await note(task, { phase: 'settle', since: now(task) });
  return settling(task);
}

async function settling(task: Task): Promise<Outcome> {
  const { options } = task;
  const [update] = updatesOf(task) as readonly [Update];
  if (update.reboot) {
    await note(task, { reboot: false, since: now(task) });
    await reboot(task);
  }
  const [required, limit] = [
    options['redfish.firmware_update_required_successes'],
    options['redfish.firmware_update_resource_validation_timeout'],
  ];
  if (required === 0 || limit === 0) return next(task);
  let lastError = '';
  const good = await machineOf(task, { adapters: true }).then(
    () => (update.good ?? 0) + 1,
    (error: unknown) => {
      if (!(error instanceof RedfishError)) throw error;
      lastError = `, last error: ${reasonOf(error)}`;
      return 0;
    },
  );
  if (good >= required) return next(task);
  if (secondsSince(task, updatesOf(task)[0]?.since) >= limit)
    return fails(
      task,
      `Redfish exception occurred. Error: BMC resources failed to stabilize within ${limit} seconds for node ${task.node.uuid}${lastError}`,
    );
  await note(task, { good });
  return waitFor(options['redfish.firmware_update_validation_interval']);
}

async function next(task: Task): Promise<Outcome> {
  const [current, ...rest] = updatesOf(task);
  if (current?.gone !== undefined) {
    const result = await resultByVersions(task, current.url, current.versions_before, secondsSince(task, current.gone));
    if (result === 'failed') return fails(task, updateFailure(task, current.url, [FORGOTTEN]));
    if (result === 'open') return waitFor(task.options['redfish.firmware_update_validation_interval']);
  }
  if (rest.length > 0) return start(task, rest);
  // Each restart removes `agent_url`; the agent's first heartbeat sets it again.
  if (updatesOf(task)[0]?.with_agent && task.node.driver_internal_info['agent_url'] === undefined) return pollLater(task);
  await forget(task);
  try {
    await task.saveFirmwareComponents(await firmwareComponents(task));
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.warn('the firmware cannot be read after its update', { reason: reasonOf(error) });
  }
  return done;
}

const PHASES: Readonly<Record<Phase, (task: Task, update: Update) => Promise<Outcome>>> = {
  task: pollTask,
  wait: waiting,
  settle: settling,
};

async function poll(task: Task): Promise<Outcome> {
  const [update] = updatesOf(task);
  if (update?.phase === undefined) return failed(`Node ${task.node.uuid} has no firmware update that is waited for`);
  const limit = task.options['redfish.firmware_update_overall_timeout'];
  const elapsed = secondsSince(task, task.node.driver_internal_info[STARTED]);
  if (limit > 0 && elapsed >= limit)
    return fails(
      task,
      `Firmware update on node ${task.node.uuid} has exceeded the overall timeout of ${limit} seconds. Elapsed time: ${Math.trunc(elapsed)} seconds.`,
    );
  return PHASES[update.phase](task, update).catch((error: unknown) => {
    throw redfishFault(task, error);
  });
}

const update = {
  step: 'update',
  args: { settings: { description: 'A list of dicts with firmware components to be updated', required: true, type: 'list' } },
  abortable: false,
  checkArguments: ({ settings }) => void firmwareSettings(settings),
  run: async (task, { settings }) => {
    const updates = firmwareSettings(settings);
    await task.saveInternal({ [UPDATES]: undefined, [STARTED]: now(task) });
    try {
      return await start(task, updates);
    } catch (error) {
      await forget(task);
      throw redfishFault(task, error);
    }
  },
  poll,
} satisfies Omit<Step, 'priority'>;

export const redfishFirmware: FirmwareInterface = {
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  components: firmwareComponents,
  steps: [
    { ...update, priority: { clean: 0, deploy: 0 } },
    { ...update, priority: { service: 0 }, requiresRamdisk: false },
  ],
  periodics: [
    discardFailedUpdates(
      'checking if async update of firmware component failed',
      UPDATES,
      ['clean failed', 'deploy failed', 'service failed'],
      forget,
    ),
  ],
};
