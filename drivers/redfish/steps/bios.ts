/** The BIOS settings of machines with a Redfish service (schemas Bios and AttributeRegistry): set, reset, and kept as they are. */
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

/** driver_internal_info: settings were sent, and the machine must start before they hold. */
const STATE = 'redfish_bios_state';
interface Requested {
  readonly reboot_requested: true;
  /** Absent: the factory's. */
  readonly requested_bios_attrs?: Attributes;
  /** When the BIOS last took settings over, before it was asked to. */
  readonly settings_time: string | null;
}
const requested = ({ node }: Task): Requested | undefined => node.driver_internal_info[STATE] as Requested | undefined;

/** The Bios resource, with its system for whatever else is asked. */
interface BiosView {
  readonly system: SystemView;
  readonly bios: RedfishResource;
  /** What takes the settings for the next start; services without one take them at the resource itself. */
  readonly settings: RedfishResource;
}
/** @throws RedfishError; undefined: the system has none */
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

/** Throws UnsupportedDriverExtension when the machine tells of none. */
const settingsNow = (task: Task): Promise<readonly BiosSetting[]> =>
  onSystem(task, undefined, async (system) => {
    const bios = await readLinked(system.ask, system, 'Bios');
    if (!bios) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'cache_bios_settings' });
    return settingsOf(attributesOf(bios.body), await attributeRegistry(task, system, bios.body));
  });

const waiting = ({ options }: Task): Outcome => {
  const pollEvery = options['redfish.firmware_update_status_interval'];
  return { kind: 'wait', ...(pollEvery > 0 ? { pollEvery } : {}) };
};
const timeOf = ({ bios }: BiosView): string | null => textOf(member(bios.body, '@Redfish.Settings', 'Time'))?.slice(0, 100) ?? null;
/** It stands on the node before the machine restarts: whoever goes on knows what was asked for. */
async function restart(task: Task, state: Requested): Promise<Outcome> {
  await task.saveInternal({ [STATE]: state });
  await rebootForStep(task);
  return waiting(task);
}

async function apply(task: Task, settings: unknown): Promise<Outcome> {
  const asked = namedValues(settings);
  return onBios(task, APPLYING, async (view) => {
    const { uuid } = task.node;
    const before = requested(task);
    const [current, pending] = [currentOf(view), pendingOf(view)];
    // Begun by a conductor that is gone. Starting the machine twice does no harm, but to settings that hold already it is not needed.
    if (before) {
      const left = unapplied(before.requested_bios_attrs ?? {}, current, pending);
      return Object.keys(left).length > 0 ? restart(task, before) : waiting(task);
    }
    const registry = await attributeRegistry(task, view.system, view.bios.body);
    const { attributes, invalid } = convertSettings(asked, registry, current);
    if (invalid.length > 0)
      throw new Fault('InvalidParameterValue', {
        message: `Redfish BIOS apply_configuration failed for node ${uuid}: invalid value for setting(s): ${invalid.join(', ')}`,
      });
    if (allInPlace(attributes, current, pending)) {
      task.log.info('all BIOS settings that are asked for are in place');
      await tryKeeping(task);
      return done;
    }
    const onReset = textsOf(member(view.bios.body, '@Redfish.Settings', 'SupportedApplyTimes'))?.includes('OnReset');
    const preferred = { '@odata.type': '#Settings.v1_0_0.PreferredApplyTime', ApplyTime: 'OnReset' };
    const body = { Attributes: attributes, ...(onReset ? { '@Redfish.SettingsApplyTime': preferred } : {}) };
    await patchResource(view.system.ask, view.settings, body);
    await tryKeeping(task);
    return restart(task, { reboot_requested: true, requested_bios_attrs: readable(attributes, registry), settings_time: timeOf(view) });
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
    return restart(task, { reboot_requested: true, settings_time: timeOf(view) });
  });

/** What was asked for holds or not, whether its result can be kept or not. */
async function tryKeeping(task: Task): Promise<void> {
  try {
    await task.saveBiosSettings(await settingsNow(task));
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof Fault)) throw error;
    task.log.warn('the BIOS settings could not be kept', { reason: error.message });
  }
}

/** BootProgress.LastState of a machine whose BIOS has done its work. */
const STARTED: readonly string[] = ['OSBootStarted', 'OSRunning'];
/** What the BIOS itself says against settings that it was to take over, since then. */
function complaints(view: BiosView, since: string | null): readonly string[] {
  if (timeOf(view) === since) return [];
  const messages = listOf(member(view.bios.body, '@Redfish.Settings', 'Messages')).slice(0, 20);
  return messages.flatMap((one) => {
    const severity = textOf(member(one, 'MessageSeverity')) ?? textOf(member(one, 'Severity')) ?? 'OK';
    const text = textOf(member(one, 'Message')) ?? textOf(member(one, 'MessageId'));
    return severity !== 'OK' && text !== undefined ? [text.slice(0, 300)] : [];
  });
}

/** After the restart: whether the machine is through it, and the settings hold. */
async function standing(task: Task): Promise<Outcome> {
  const state = requested(task);
  if (!state) return done;
  const quiet: Outcome = { kind: 'wait', quiet: true };
  let view: BiosView | undefined;
  try {
    const system = await systemOf(task);
    const progress = textOf(member(system.body, 'BootProgress', 'LastState'));
    if (progress !== undefined && !STARTED.includes(progress)) return progress === 'None' ? quiet : { kind: 'wait' };
    if (!isAgentBack(task)) return quiet;
    view = await biosOf(system);
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.warn('the Redfish service does not say how the restart for the BIOS stands', { reason: error.message });
  }
  if (!view) return quiet;
  const left = unapplied(state.requested_bios_attrs ?? {}, currentOf(view), pendingOf(view));
  if (Object.keys(left).length > 0) {
    const why = complaints(view, state.settings_time);
    // Without an agent nothing tells when the machine is through: the BIOS may still be at it.
    if (!hasAgent(task) && why.length === 0) return quiet;
    await task.saveInternal({ [STATE]: undefined });
    const also = why.length === 0 ? '' : ` ${why.join(' ')}`;
    return failed(`Redfish BIOS apply_configuration step failed. Attributes ${repr(left)} are not updated.${also}`);
  }
  await task.saveInternal({ [STATE]: undefined });
  await tryKeeping(task);
  return done;
}

/** Only when asked for; in service and cleaning it does without the ramdisk. */
const asked: Readonly<Partial<Record<StepKind, number>>> = { clean: 0, deploy: 0, service: 0 };
const rebooting = {
  priority: asked,
  requiresRamdisk: false,
  resumable: true,
  poll: standing,
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
      run: (task, { settings }) => apply(task, settings),
    },
    { ...rebooting, step: 'factory_reset', run: reset },
  ],
};
