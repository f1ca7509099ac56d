/** Settings that take effect when the machine starts (DSP0266 §9.10): how they are sent, and how a step waits for the start. */
import type { InternalKey } from '../../../model/internal-info';
import { shortened } from '../../../model/text';
import { RedfishError, listOf, member, textOf, textsOf } from '../../../wire/redfish';
import { done, failed, type Outcome, type Task } from '../../interfaces';
import { hasAgent, isAgentBack, rebootForStep } from '../../common/reboot-step';
import type { SystemView } from '../target';

/** What BootProgress showed: part of the state that a step keeps in driver_internal_info from its restart on. */
export interface BootSeen {
  /** Of the running machine before the request, if that was no end of a boot. */
  readonly boot_progress?: string;
  /** What it has shown since a time (milliseconds of the epoch), while the machine is on. */
  readonly shown?: { readonly progress: string; readonly since: number };
  /** When the machine was restarted, in milliseconds of the epoch. */
  readonly restarted?: number;
}
/** Keys of driver_internal_info with such a state. */
type RestartState = Extract<InternalKey, 'redfish_bios_state' | 'redfish_network_state'>;

/** `@Redfish.SettingsApplyTime` of a change, where the service lets clients choose the next restart. */
export function applyTime(resource: unknown): object | undefined {
  const onReset = textsOf(member(resource, '@Redfish.Settings', 'SupportedApplyTimes'))?.includes('OnReset');
  return onReset ? { '@odata.type': '#Settings.v1_0_0.PreferredApplyTime', ApplyTime: 'OnReset' } : undefined;
}
/** When settings of a resource were last applied. */
export const appliedAt = (resource: unknown): string | null => textOf(member(resource, '@Redfish.Settings', 'Time'))?.slice(0, 100) ?? null;
/** Messages about settings that were not applied. Messages are ignored unless their time is another than `since`. */
export function settingsErrors(resource: unknown, since: string | null): readonly string[] {
  if (appliedAt(resource) === since) return [];
  const messages = listOf(member(resource, '@Redfish.Settings', 'Messages')).slice(0, 20);
  return messages.flatMap((message) => {
    const severity = textOf(member(message, 'MessageSeverity')) ?? textOf(member(message, 'Severity')) ?? 'OK';
    const text = textOf(member(message, 'Message')) ?? textOf(member(message, 'MessageId'));
    return severity !== 'OK' && text !== undefined ? [shortened(text, 300)] : [];
  });
}

const progressOf = (system: unknown): string | undefined => textOf(member(system, 'BootProgress', 'LastState'))?.slice(0, 100);
/** Of a machine that is on. */
export function progressBefore({ body }: SystemView): Pick<BootSeen, 'boot_progress'> {
  const progress = progressOf(body);
  return progress !== undefined && member(body, 'PowerState') === 'On' ? { boot_progress: progress } : {};
}

export const waiting = ({ options }: Task): Outcome => {
  const pollEvery = options['redfish.firmware_update_status_interval'];
  return { kind: 'wait', pollEvery: pollEvery > 0 ? pollEvery : undefined };
};
/** Saves the state on the node before the restart, so that another conductor can continue. */
export async function restart(task: Task, key: RestartState, state: BootSeen): Promise<Outcome> {
  await task.saveInternal({ [key]: { ...state, restarted: task.clock.now() } });
  await rebootForStep(task);
  return waiting(task);
}

/** BootProgress.LastState after the BIOS has finished. */
const STARTED: readonly string[] = ['OSBootStarted', 'OSRunning'];
/** BootProgress.LastState before that. */
const BEFORE_END: readonly string[] = [
  'None',
  'PrimaryProcessorInitializationStarted',
  'BusInitializationStarted',
  'MemoryInitializationStarted',
  'SecondaryProcessorInitializationStarted',
  'PCIResourceConfigStarted',
  'SystemHardwareInitializationComplete',
  'SetupEntered',
];
/** How long BootProgress shows the same of a machine that boots. A service that shows it longer does not report the end of the boot. */
const MAX_STAGE_MS = 15 * 60_000;
/** Whether BootProgress no longer changes although the machine is on. */
async function standsStill(task: Task, key: RestartState, state: BootSeen, { body }: SystemView): Promise<boolean> {
  const [stage, ofMaker] = [progressOf(body), textOf(member(body, 'BootProgress', 'OemLastState'))];
  const isOn = member(body, 'PowerState') === 'On';
  const progress = stage !== undefined && isOn ? shortened(`${stage} ${ofMaker ?? ''}`, 200) : undefined;
  if (state.shown?.progress === progress) return state.shown !== undefined && task.clock.now() - state.shown.since >= MAX_STAGE_MS;
  const { shown: _, ...rest } = state;
  const shown = progress === undefined ? {} : { shown: { progress, since: task.clock.now() } };
  await task.saveInternal({ [key]: { ...rest, ...shown } });
  return false;
}
/** Whether the machine has come so far that its settings can be judged. */
async function hasStarted(task: Task, key: RestartState, state: BootSeen, { system, isApplied }: Effect): Promise<boolean> {
  // The agent's return shows it, whatever the service says.
  if (hasAgent(task)) return isAgentBack(task);
  const progress = progressOf(system.body);
  if (progress === undefined || STARTED.includes(progress)) return true;
  // Some services show the same of every machine that runs. Others show nothing new: then the applied settings show that the BIOS has run.
  if (progress === state.boot_progress || (isApplied && !BEFORE_END.includes(progress))) return true;
  return standsStill(task, key, state, system);
}

/** After a restart without an agent, settings that are not in effect by then are not kept. No firmware needs longer. */
const MAX_RESTART_MS = 25 * 60_000;
/** What the service shows of the settings after the restart. */
interface Effect {
  readonly system: SystemView;
  /** The service shows that the settings are in effect. False also if they cannot be compared. */
  readonly isApplied: boolean;
  /** What is not in effect, as a sentence; undefined: nothing. */
  readonly left: string | undefined;
  readonly errors: readonly string[];
}
/**
 * Polls after the restart: checks that the machine has started, and that the settings are in effect.
 * @param step its name in the sentence of a failure
 */
export async function afterRestart(
  task: Task,
  key: RestartState,
  state: BootSeen,
  step: string,
  look: () => Promise<Effect | undefined>,
): Promise<Outcome> {
  const quiet: Outcome = { kind: 'wait', quiet: true };
  let effect: Effect | undefined;
  try {
    effect = await look();
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.warn(`the Redfish service does not report the state of the restart for ${step}`, { reason: error.message });
  }
  if (!effect) return quiet;
  if (!(await hasStarted(task, key, state, effect))) {
    const progress = progressOf(effect.system.body);
    return progress === undefined || progress === 'None' ? quiet : { kind: 'wait' };
  }
  const { left, errors } = effect;
  // Without an agent nothing shows that the machine has started: the BIOS may still be working.
  const isLate = state.restarted !== undefined && task.clock.now() - state.restarted > MAX_RESTART_MS;
  if (left !== undefined && !hasAgent(task) && errors.length === 0 && !isLate) return quiet;
  await task.saveInternal({ [key]: undefined });
  if (left === undefined) return done;
  const why = errors.length > 0 || hasAgent(task) ? errors : ['The service has accepted them, and not kept them.'];
  return failed(`Redfish ${step} step failed. ${[left, ...why].join(' ')}`);
}
