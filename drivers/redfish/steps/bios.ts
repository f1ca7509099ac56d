/** BIOS settings of machines with a Redfish service (schemas Bios and AttributeRegistry): set, reset, and stored in the database. */
import { Fault } from '../../../model/errors';
import { repr } from '../../../model/python';
import {
  RedfishError,
  actionOf,
  isStatus,
  listOf,
  member,
  patchResource,
  readLinked,
  textOf,
  textsOf,
  type RedfishResource,
} from '../../../wire/redfish';
import { done, failed, type BiosInterface, type BiosSetting, type Outcome, type Step, type StepKind, type Task } from '../../interfaces';
import { isAgentBack, hasAgent, rebootForStep } from '../../common/reboot-step';
import { attributeRegistry } from './bios-registry';
import { allInPlace, attributesOf, convertSettings, readable, settingsOf, unapplied, type Attributes } from './bios-settings';
import { namedValues } from '../../common/named-values';
import { REDFISH_PROPERTIES, onSystem, redfishSystem, systemOf, type SystemView } from '../target';
import { shortened } from '../../../model/text';

/** driver_internal_info: settings were sent, and take effect when the machine starts. */
const STATE = 'redfish_bios_state';
interface RequestedSettings {
  readonly reboot_requested: true;
  /** Absent: factory defaults. */
  readonly requested_bios_attrs?: Attributes;
  /** When the BIOS last applied settings before this request. */
  readonly settings_time: string | null;
  /** What BootProgress showed of the running machine before this request, if that was no end of a boot. */
  readonly boot_progress?: string;
  /** What BootProgress has shown since a time (milliseconds of the epoch), while the machine is on. */
  readonly shown?: { readonly progress: string; readonly since: number };
}
const requested = ({ node }: Task): RequestedSettings | undefined => node.driver_internal_info[STATE] as RequestedSettings | undefined;

/** The Bios resource with its system. */
interface BiosView {
  readonly system: SystemView;
  readonly bios: RedfishResource;
  /** Where settings for the next start are written: the settings resource, or the Bios resource itself where there is none. */
  readonly settings: RedfishResource;
}
/** @throws RedfishError; undefined: the system has no BIOS resource */
async function biosOf(system: SystemView): Promise<BiosView | undefined> {
  const bios = await readLinked(system.ask, system, 'Bios');
  if (!bios) return undefined;
  return { system, bios, settings: (await readLinked(system.ask, bios, '@Redfish.Settings', 'SettingsObject')) ?? bios };
}
const currentOf = ({ bios }: BiosView): Attributes => attributesOf(bios.body);
const pendingOf = ({ bios, settings }: BiosView): Attributes => (settings === bios ? {} : attributesOf(settings.body));

const APPLYING = 'Redfish BIOS apply configuration';
const RESETTING = 'Redfish BIOS factory reset';
const onBios = <T>(task: Task, doing: string, work: (view: BiosView) => Promise<T>): Promise<T> =>
  onSystem(task, doing, async (system) => {
    const view = await biosOf(system);
    if (view) return work(view);
    throw new Fault('DriverOperationError', {
      message: `Redfish exception occurred. Error: ${doing} failed for node ${task.node.uuid}, because BIOS settings are not supported.`,
    });
  });

/** Throws UnsupportedDriverExtension when the machine has no BIOS settings. */
const settingsNow = (task: Task): Promise<readonly BiosSetting[]> =>
  onSystem(task, undefined, async (system) => {
    const bios = await readLinked(system.ask, system, 'Bios');
    if (!bios) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'cache_bios_settings' });
    return settingsOf(attributesOf(bios.body), await attributeRegistry(task, system, bios.body));
  });

const waiting = ({ options }: Task): Outcome => {
  const pollEvery = options['redfish.firmware_update_status_interval'];
  return { kind: 'wait', pollEvery: pollEvery > 0 ? pollEvery : undefined };
};
const progressOf = (system: unknown): string | undefined => textOf(member(system, 'BootProgress', 'LastState'))?.slice(0, 100);
/** Of a machine that is on. */
function progressBefore({ system }: BiosView): Pick<RequestedSettings, 'boot_progress'> {
  const progress = progressOf(system.body);
  return progress !== undefined && member(system.body, 'PowerState') === 'On' ? { boot_progress: progress } : {};
}
const timeOf = ({ bios }: BiosView): string | null => textOf(member(bios.body, '@Redfish.Settings', 'Time'))?.slice(0, 100) ?? null;
/** Saves the state on the node before the restart, so that another conductor can continue. */
async function restart(task: Task, state: RequestedSettings): Promise<Outcome> {
  await task.saveInternal({ [STATE]: state });
  await rebootForStep(task);
  return waiting(task);
}

async function apply(task: Task, settings: unknown): Promise<Outcome> {
  const values = namedValues(settings);
  return onBios(task, APPLYING, async (view) => {
    const { uuid } = task.node;
    const before = requested(task);
    const [current, pending] = [currentOf(view), pendingOf(view)];
    // A conductor that died began this step. A second restart does no harm, but is not needed when the settings are in effect already.
    if (before) {
      const left = unapplied(before.requested_bios_attrs ?? {}, current, pending);
      return Object.keys(left).length > 0 ? restart(task, before) : waiting(task);
    }
    const registry = await attributeRegistry(task, view.system, view.bios.body);
    const { attributes, invalid } = convertSettings(values, registry, current);
    if (invalid.length > 0)
      throw new Fault('InvalidParameterValue', {
        message: `Redfish BIOS apply_configuration failed for node ${uuid}: invalid value for setting(s): ${invalid.join(', ')}`,
      });
    if (allInPlace(attributes, current, pending)) {
      task.log.info('all requested BIOS settings are in place');
      await tryToSave(task);
      return done;
    }
    const onReset = textsOf(member(view.bios.body, '@Redfish.Settings', 'SupportedApplyTimes'))?.includes('OnReset');
    const preferred = { '@odata.type': '#Settings.v1_0_0.PreferredApplyTime', ApplyTime: 'OnReset' };
    const body = { Attributes: attributes, '@Redfish.SettingsApplyTime': onReset ? preferred : undefined };
    await patchResource(view.system.ask, view.settings, body);
    await tryToSave(task);
    return restart(task, {
      reboot_requested: true,
      requested_bios_attrs: readable(attributes, registry),
      settings_time: timeOf(view),
      ...progressBefore(view),
    });
  });
}

const reset = (task: Task): Promise<Outcome> =>
  onBios(task, RESETTING, async (view) => {
    const before = requested(task);
    if (before) return restart(task, before);
    const action = actionOf(view.bios, '#Bios.ResetBios');
    if (!action) throw new RedfishError('protocol', `${view.bios.path} does not offer the action #Bios.ResetBios`);
    const { ask } = view.system;
    try {
      await ask('POST', action.target, { body: {} });
    } catch (error) {
      // Some services refuse even an empty object.
      if (!isStatus(error, 400, 415)) throw error;
      await ask('POST', action.target);
    }
    return restart(task, { reboot_requested: true, settings_time: timeOf(view), ...progressBefore(view) });
  });

/** Saves the settings in the database. A failure does not fail the step. */
async function tryToSave(task: Task): Promise<void> {
  try {
    await task.saveBiosSettings(await settingsNow(task));
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof Fault)) throw error;
    task.log.warn('the BIOS settings could not be saved', { reason: error.message });
  }
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
/** Messages of the BIOS about settings that it did not apply. Messages are ignored unless their time (settings_time) is newer. */
function errorsOfBios(view: BiosView, since: string | null): readonly string[] {
  if (timeOf(view) === since) return [];
  const messages = listOf(member(view.bios.body, '@Redfish.Settings', 'Messages')).slice(0, 20);
  return messages.flatMap((message) => {
    const severity = textOf(member(message, 'MessageSeverity')) ?? textOf(member(message, 'Severity')) ?? 'OK';
    const text = textOf(member(message, 'Message')) ?? textOf(member(message, 'MessageId'));
    return severity !== 'OK' && text !== undefined ? [shortened(text, 300)] : [];
  });
}

/** How long BootProgress shows the same of a machine that boots. A service that shows it longer does not report the end of the boot. */
const MAX_STAGE_MS = 15 * 60_000;
/** Whether BootProgress no longer changes although the machine is on. */
async function standsStill(task: Task, state: RequestedSettings, { body }: SystemView): Promise<boolean> {
  const [stage, ofMaker] = [progressOf(body), textOf(member(body, 'BootProgress', 'OemLastState'))];
  const isOn = member(body, 'PowerState') === 'On';
  const progress = stage !== undefined && isOn ? shortened(`${stage} ${ofMaker ?? ''}`, 200) : undefined;
  if (state.shown?.progress === progress) return state.shown !== undefined && task.clock.now() - state.shown.since >= MAX_STAGE_MS;
  const { shown: _, ...rest } = state;
  const shown = progress === undefined ? {} : { shown: { progress, since: task.clock.now() } };
  await task.saveInternal({ [STATE]: { ...rest, ...shown } });
  return false;
}

/** Whether the machine has come so far that its settings can be judged. */
async function hasStarted(task: Task, state: RequestedSettings, system: SystemView, isApplied: boolean): Promise<boolean> {
  // The agent's return shows it, whatever the service says.
  if (hasAgent(task)) return isAgentBack(task);
  const progress = progressOf(system.body);
  if (progress === undefined || STARTED.includes(progress)) return true;
  // Some services show the same of every machine that runs. Others show nothing new: then the applied settings show that the BIOS has run.
  if (progress === state.boot_progress || (isApplied && !BEFORE_END.includes(progress))) return true;
  return standsStill(task, state, system);
}

/** Polls after the restart: checks that the machine has started, and that the settings are in effect. */
async function afterRestart(task: Task): Promise<Outcome> {
  const state = requested(task);
  if (!state) return done;
  const quiet: Outcome = { kind: 'wait', quiet: true };
  let view: BiosView | undefined;
  try {
    view = await biosOf(await systemOf(task));
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.warn('the Redfish service does not report the state of the restart for the BIOS', { reason: error.message });
  }
  if (!view) return quiet;
  const left = unapplied(state.requested_bios_attrs ?? {}, currentOf(view), pendingOf(view));
  const isApplied = state.requested_bios_attrs !== undefined && Object.keys(left).length === 0;
  if (!(await hasStarted(task, state, view.system, isApplied))) {
    const progress = progressOf(view.system.body);
    return progress === undefined || progress === 'None' ? quiet : { kind: 'wait' };
  }
  if (Object.keys(left).length > 0) {
    const errors = errorsOfBios(view, state.settings_time);
    // Without an agent nothing shows that the machine has started: the BIOS may still be working.
    if (!hasAgent(task) && errors.length === 0) return quiet;
    await task.saveInternal({ [STATE]: undefined });
    const also = errors.length === 0 ? '' : ` ${errors.join(' ')}`;
    return failed(`Redfish BIOS apply_configuration step failed. Attributes ${repr(left)} are not updated.${also}`);
  }
  await task.saveInternal({ [STATE]: undefined });
  await tryToSave(task);
  return done;
}

/** Runs only on request. Service and cleaning need no ramdisk for it. */
const onRequest: Readonly<Partial<Record<StepKind, number>>> = { clean: 0, deploy: 0, service: 0 };
const rebooting = {
  priority: onRequest,
  requiresRamdisk: false,
  resumable: true,
  poll: afterRestart,
  pollAtHeartbeat: true,
} as const satisfies Partial<Step>;

export const redfishBios: BiosInterface = {
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  settings: settingsNow,
  steps: [
    {
      ...rebooting,
      step: 'apply_configuration',
      args: { settings: { description: 'A list of BIOS settings to be applied', required: true, type: 'list' } },
      checkArguments: ({ settings }) => void namedValues(settings),
      run: (task, { settings }) => apply(task, settings),
    },
    { ...rebooting, step: 'factory_reset', run: reset },
  ],
};
