/** BIOS settings of machines with a Redfish service (schemas Bios and AttributeRegistry): set, reset, and stored in the database. */
import { Fault } from '../../../model/errors';
import { repr } from '../../../model/python';
import type { JsonObject } from '../../../model/records';
import {
  RedfishError,
  actionOf,
  isStatus,
  patchKept,
  patchResource,
  readLinked,
  readResource,
  unkeptError,
  type RedfishAnswer,
  type RedfishResource,
  type SendRedfishRequest,
} from '../../../wire/redfish';
import { done, type BiosInterface, type BiosSetting, type Outcome, type Step, type StepKind, type Task } from '../../interfaces';
import { afterRestart, appliedAt, applyTime, progressBefore, restart, settingsErrors, waiting, type BootSeen } from './after-restart';
import { attributeRegistry } from './bios-registry';
import { allInPlace, attributesOf, convertSettings, readable, settingsOf, unapplied, type Attributes } from './bios-settings';
import { namedValues } from '../../common/named-values';
import { identify } from '../makers';
import { quirksOf } from '../quirks';
import { REDFISH_PROPERTIES, onSystem, redfishSystem, systemOf, type SystemView } from '../target';

/** driver_internal_info: settings were sent, and take effect when the machine starts. */
const STATE = 'redfish_bios_state';
interface RequestedSettings extends BootSeen {
  readonly reboot_requested: true;
  /** Absent: factory defaults. */
  readonly requested_bios_attrs?: Attributes;
  /** Where the service says what becomes of the settings. */
  readonly job?: string | undefined;
  /** When the BIOS last applied settings before this request. */
  readonly settings_time: string | null;
}
const requested = ({ node }: Task): RequestedSettings | undefined => node.driver_internal_info[STATE] as RequestedSettings | undefined;

/** What the BMCs of a maker need for BIOS settings beside the standard's requests. */
interface BiosMaker {
  /** Removes what makes the service refuse settings. @returns whether the request may succeed now */
  readonly unblock?: (task: Task, system: SystemView, error: RedfishError) => Promise<boolean>;
  /** Why the job that applies the settings will not do so, whatever its state. Undefined: it may. @throws RedfishError */
  readonly hopeless?: (ask: SendRedfishRequest, job: string) => Promise<string | undefined>;
}

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

/** Whether the service may drop a change without If-Match, and answer with success: those of unknown makers may. */
const mayDrop = async (task: Task, system: SystemView): Promise<boolean> =>
  (await identify(task, system)).makers.length === 0 || (await quirksOf(task, system)).dropsUntagged === true;
/**
 * Writes settings for the next start, and reads the settings object again. A service that lists another value for one of them has not kept it.
 * One that lists none may list only some, or none until the start.
 */
async function keep(task: Task, { system, bios, settings }: BiosView, body: JsonObject, visible: Attributes): Promise<RedfishAnswer> {
  const { ask } = system;
  if (settings === bios) return patchResource(ask, settings, body);
  const before = attributesOf(settings.body);
  const kept = await patchKept(ask, settings, body, {
    clock: task.clock,
    signal: task.signal,
    alsoAt: [bios.path],
    isForNextStart: true,
    tolerates: ({ property, found }) => {
      const name = property.replace('Attributes/', '');
      // Some services write a value in another form than the one that they take.
      return !Object.hasOwn(visible, name) || found !== before[name];
    },
  });
  if (kept.unkept.length > 0) throw unkeptError(settings.path, (await identify(task, system)).vendor, kept);
  const isTold = Object.keys(attributesOf(kept.shown)).some((name) => Object.hasOwn(visible, name));
  if (isTold || settings.etag !== undefined || !(await mayDrop(task, system))) return kept.answer;
  // A service that has kept the change takes it again, or refuses that.
  await ask('PATCH', settings.path, { body, headers: { 'if-match': '*' } }).catch((error: unknown) => {
    if (!isStatus(error)) throw error;
  });
  return kept.answer;
}
/** Sends settings; once more if the maker's obstacle to them is gone. */
async function write(task: Task, { unblock }: BiosMaker, view: BiosView, body: JsonObject, visible: Attributes): Promise<RedfishAnswer> {
  try {
    return await keep(task, view, body, visible);
  } catch (error) {
    if (!isStatus(error) || !(await unblock?.(task, view.system, error))) throw error;
    return keep(task, { ...view, settings: await readResource(view.system.ask, view.settings.path) }, body, visible);
  }
}

async function apply(task: Task, maker: BiosMaker, settings: unknown): Promise<Outcome> {
  const values = namedValues(settings);
  return onBios(task, APPLYING, async (view) => {
    const { uuid } = task.node;
    const before = requested(task);
    const [current, pending] = [currentOf(view), pendingOf(view)];
    // A conductor that died began this step. A second restart does no harm, but is not needed when the settings are in effect already.
    if (before) {
      const left = unapplied(before.requested_bios_attrs ?? {}, current, pending);
      return Object.keys(left).length > 0 ? restart(task, STATE, before) : waiting(task);
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
    const body = { Attributes: attributes, '@Redfish.SettingsApplyTime': applyTime(view.bios.body) };
    const answer = await write(task, maker, view, body, readable(attributes, registry));
    await tryToSave(task);
    const state: RequestedSettings = {
      reboot_requested: true,
      requested_bios_attrs: readable(attributes, registry),
      job: answer.location,
      settings_time: appliedAt(view.bios.body),
      ...progressBefore(view.system),
    };
    return restart(task, STATE, state);
  });
}

/** The standard's; for services that refuse even an empty object; for those that demand a type, which Lenovo's name so. */
const RESET_BODIES: readonly (JsonObject | undefined)[] = [{}, undefined, { ResetType: 'default' }];

/** Throws the refusal of the first body, which is the standard's, when all are refused. */
async function resetBios({ ask }: SystemView, target: string): Promise<void> {
  let refusal: unknown;
  for (const body of RESET_BODIES)
    try {
      await ask('POST', target, body === undefined ? {} : { body });
      return;
    } catch (error) {
      if (!isStatus(error, 400, 415)) throw error;
      refusal ??= error;
    }
  throw refusal;
}

const reset = (task: Task): Promise<Outcome> =>
  onBios(task, RESETTING, async (view) => {
    const before = requested(task);
    if (before) return restart(task, STATE, before);
    const action = actionOf(view.bios, '#Bios.ResetBios');
    if (!action) throw new RedfishError('protocol', `${view.bios.path} does not offer the action #Bios.ResetBios`);
    await resetBios(view.system, action.target);
    const state: RequestedSettings = { reboot_requested: true, settings_time: appliedAt(view.bios.body), ...progressBefore(view.system) };
    return restart(task, STATE, state);
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

/** Polls after the restart: checks that the machine has started, and that the settings are in effect. */
async function poll(task: Task, { hopeless }: BiosMaker): Promise<Outcome> {
  const state = requested(task);
  if (!state) return done;
  const outcome = await afterRestart(task, STATE, state, 'BIOS apply_configuration', async () => {
    const view = await biosOf(await systemOf(task));
    if (!view) return undefined;
    const left = unapplied(state.requested_bios_attrs ?? {}, currentOf(view), pendingOf(view));
    const isNothing = Object.keys(left).length === 0;
    const reason = isNothing || state.job === undefined ? undefined : await hopeless?.(view.system.ask, state.job);
    return {
      system: view.system,
      isApplied: state.requested_bios_attrs !== undefined && isNothing,
      left: isNothing ? undefined : `Attributes ${repr(left)} are not updated.`,
      errors: isNothing ? [] : [...settingsErrors(view.bios.body, state.settings_time), ...(reason === undefined ? [] : [reason])],
    };
  });
  if (outcome.kind === 'done') await tryToSave(task);
  return outcome;
}

/** Runs only on request. Service and cleaning need no ramdisk for it. */
const onRequest: Readonly<Partial<Record<StepKind, number>>> = { clean: 0, deploy: 0, service: 0 };
const rebooting = (maker: BiosMaker) =>
  ({
    priority: onRequest,
    requiresRamdisk: false,
    resumable: true,
    poll: (task: Task) => poll(task, maker),
    pollAtHeartbeat: true,
  }) as const satisfies Partial<Step>;

/** The BIOS interface of machines whose BMCs need this beside the standard's requests. */
export const biosBy = (maker: BiosMaker): BiosInterface => ({
  properties: REDFISH_PROPERTIES,
  validate: async (task) => {
    await redfishSystem(task);
  },
  settings: settingsNow,
  steps: [
    {
      ...rebooting(maker),
      step: 'apply_configuration',
      args: { settings: { description: 'A list of BIOS settings to be applied', required: true, type: 'list' } },
      checkArguments: ({ settings }) => void namedValues(settings),
      run: (task, { settings }) => apply(task, maker, settings),
    },
    { ...rebooting(maker), step: 'factory_reset', run: reset },
  ],
});
export const redfishBios: BiosInterface = biosBy({});
