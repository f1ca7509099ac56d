/**
 * The firmware interface `redfish`: components are updated one after the other by the UpdateService. How far it is stands on the node
 * (`redfish_fw_updates`, the first is the one that runs), so that any conductor goes on with it.
 */
import { bareTimestamp, instantOf } from '../../../model/clock';
import { reasonOf } from '../../../model/errors';
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
  warnOfGoneTask,
  type UpdateState,
} from './update';

/** `task`: the service works on it; `wait`: for so many seconds after it; `settle`: until the service answers well several times in a row. */
type Phase = 'task' | 'wait' | 'settle';
interface Update extends FirmwareSetting {
  /** Where the service tells how it stands; absent: it did it at once. */
  readonly task_monitor?: string;
  readonly phase?: Phase;
  /** When the phase began. */
  readonly since?: string;
  /** The machine was started anew for it. */
  readonly rebooted?: boolean;
  /** It shall be, after it. */
  readonly reboot?: boolean;
  /** A network adapter's: since when it only starts. */
  readonly starting?: string | undefined;
  readonly version_before?: string;
  /** Good answers in a row. */
  readonly good?: number;
  /** There was an agent in the machine: it shall be there again when the step is over. */
  readonly with_agent?: boolean;
}

const UPDATES = 'redfish_fw_updates';
const STARTED = 'redfish_fw_update_start_time';
const updatesOf = ({ node }: Task): readonly Update[] => {
  return listOf(node.driver_internal_info[UPDATES]) as readonly Update[];
};
/** Seconds since a moment that was written down. */
const secondsSince = ({ clock }: Task, moment: unknown): number =>
  typeof moment === 'string' && !Number.isNaN(instantOf(moment)) ? (clock.now() - instantOf(moment)) / 1000 : Infinity;
const now = ({ clock }: Task): string => bareTimestamp(clock.now());
const waitFor = (seconds: number): Outcome => ({ kind: 'wait', pollEvery: Math.max(1, seconds) });
const nextLook = ({ options }: Task): Outcome => waitFor(options['redfish.firmware_update_status_interval']);

/** Changes what is kept of the update that runs. */
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
  const monitor = await simpleUpdate(task, await firmwareUrl(task, url));
  const current: Update = {
    ...{ component, url, ...(wait === undefined ? {} : { wait }) },
    ...(monitor === undefined ? {} : { task_monitor: monitor }),
    phase: 'task',
    since: now(task),
    with_agent: withAgent,
    ...(before === undefined ? {} : { version_before: before }),
  };
  await task.saveInternal({ [UPDATES]: [current, ...rest] });
  return nextLook(task);
}

/** What follows from how an update stands. `look`: nothing yet; `reboot`: now, and then it goes on; `over`, and whether a reboot follows it. */
type Verdict =
  | { readonly kind: 'look'; readonly after?: number; readonly notes?: Partial<Update> }
  | { readonly kind: 'reboot' }
  | { readonly kind: 'over'; readonly reboot: boolean };
const look: Verdict = { kind: 'look' };
const over = (reboot: boolean): Verdict => ({ kind: 'over', reboot });
type Judge = (task: Task, update: Update, state: Exclude<UpdateState, { kind: 'failed' }>) => Verdict | Promise<Verdict>;

const STAGED = ['Starting', 'Running', 'Pending'];
/** It is applied while the machine starts: as soon as the service has begun with it, or is done with bringing it there. */
const bios: Judge = (_, { rebooted }, state) => {
  if (state.kind === 'away') return look;
  if (state.kind === 'running') return rebooted || !STAGED.includes(state.state ?? '') ? look : { kind: 'reboot' };
  return rebooted ? over(false) : { kind: 'reboot' };
};
/** Some begin only when the machine starts; others work at once, and need a start afterwards. */
const nic: Judge = (task, { rebooted, starting }, state) => {
  if (state.kind === 'away') return look;
  if (state.kind !== 'running') return over(!rebooted);
  if (state.state === 'Running')
    return rebooted || starting !== undefined ? { ...look, notes: { rebooted: false, starting: undefined } } : look;
  if (state.state !== 'Starting' || rebooted) return look;
  if (starting === undefined) return { ...look, notes: { starting: now(task) } };
  return secondsSince(task, starting) < task.options['redfish.firmware_update_nic_starting_wait'] ? look : { kind: 'reboot' };
};
/** How long a BMC is left alone that installs itself. */
function bmcWait({ node, options }: Task, { wait }: Update): number {
  const own = Number(node.driver_info['firmware_update_unresponsive_bmc_wait'] ?? 0);
  return (
    wait ?? (own > 0 ? own : options['redfish.firmware_update_wait_unresponsive_bmc'] || options['redfish.firmware_update_reboot_delay'])
  );
}
/** It starts itself anew, and with it its tasks may be gone: what it says of its version tells. */
const bmc: Judge = async (task, update, state) => {
  const elapsed = secondsSince(task, update.since);
  const quiet = bmcWait(task, update);
  if (elapsed < quiet) return { ...look, after: Math.min(quiet - elapsed, task.options['redfish.firmware_update_status_interval']) };
  if (state.kind === 'running') return look;
  const version = await bmcVersion(task);
  const known = version !== undefined && update.version_before !== undefined;
  // Some machines take the next update only after a start.
  if (known && version !== update.version_before) return over(updatesOf(task).length > 1);
  if (elapsed >= Math.max(quiet, task.options['redfish.firmware_update_reboot_delay'])) return over(!known);
  return { ...look, after: task.options['redfish.firmware_update_bmc_version_check_interval'] };
};
const judgeOf = (component: string): Judge => (component === 'bios' ? bios : component === 'bmc' ? bmc : nic);

/** The machine's own task of the update, if it tells how far it is. */
async function tellProgress(task: Task, percent: number | undefined): Promise<void> {
  const kind = (['clean', 'deploy', 'service'] as const satisfies readonly SavedKind[]).find(
    (one) => task.node[`${one}_step`]['step'] !== undefined,
  );
  if (kind === undefined || percent === undefined) return;
  await task.reportProgress?.(kind, { interface: 'firmware', step: 'update', priority: 0 }, percent);
}

async function reboot(task: Task): Promise<void> {
  if (updatesOf(task)[0]?.with_agent) await task.driver.boot.prepareRamdisk(task, {});
  await task.power('rebooting', task.options['redfish.firmware_update_reboot_delay']);
}

async function lookAtTask(task: Task, update: Update): Promise<Outcome> {
  const state = await updateState(task, update.task_monitor);
  if (state.kind === 'failed') return fails(task, updateFailure(task, update.url, state.messages));
  if (state.kind === 'away') task.log.warn('the service does not tell how a firmware update stands', { reason: state.reason });
  if (state.kind === 'gone') warnOfGoneTask(task, update.url);
  if (state.kind === 'running') await tellProgress(task, state.percent);
  const verdict = await judgeOf(update.component)(task, update, state);
  if (verdict.kind === 'look') {
    if (verdict.notes) await note(task, verdict.notes);
    return verdict.after === undefined ? nextLook(task) : waitFor(verdict.after);
  }
  if (verdict.kind === 'reboot') {
    // Written first: a machine that installs firmware must not be started twice.
    await note(task, { rebooted: true, starting: undefined });
    await reboot(task);
    return nextLook(task);
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
  const [wanted, limit] = [
    options['redfish.firmware_update_required_successes'],
    options['redfish.firmware_update_resource_validation_timeout'],
  ];
  if (wanted === 0 || limit === 0) return next(task);
  let last = '';
  const good = await machineOf(task, { adapters: true }).then(
    () => (update.good ?? 0) + 1,
    (error: unknown) => {
      if (!(error instanceof RedfishError)) throw error;
      last = `, last error: ${reasonOf(error)}`;
      return 0;
    },
  );
  if (good >= wanted) return next(task);
  if (secondsSince(task, updatesOf(task)[0]?.since) >= limit)
    return fails(
      task,
      `Redfish exception occurred. Error: BMC resources failed to stabilize within ${limit} seconds for node ${task.node.uuid}${last}`,
    );
  await note(task, { good });
  return waitFor(options['redfish.firmware_update_validation_interval']);
}

async function next(task: Task): Promise<Outcome> {
  const rest = updatesOf(task).slice(1);
  if (rest.length > 0) return start(task, rest);
  // It forgot its agent with each start.
  if (updatesOf(task)[0]?.with_agent && task.node.driver_internal_info['agent_url'] === undefined) return nextLook(task);
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
  task: lookAtTask,
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
