/** Boot device and boot mode of a machine with a Redfish service (ComputerSystem, property Boot). */
import { retry } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import {
  RedfishError,
  allowableValues,
  hasMessage,
  isStatus,
  member,
  patchKept,
  readLinked,
  readResource,
  unkeptError,
  type RedfishResource,
  type Unkept,
} from '../../wire/redfish';
import { syncBootMode } from '../common/boot-settings';
import type { ManagementInterface, Task } from '../interfaces';
import { bootUrl, withoutTokens } from '../common/media';
import { bootOptions, networkOption } from './boot-options';
import { quirksOf, type Quirks } from './quirks';
import { onSystem, systemOf, type SystemView } from './target';
import { rebootUntilApplied } from './reboot-until-applied';
import { shortened } from '../../model/text';

/** Name in the API → BootSourceOverrideTarget. */
const DEVICES: Readonly<Record<string, string>> = { pxe: 'Pxe', disk: 'Hdd', cdrom: 'Cd', bios: 'BiosSetup', uefihttp: 'UefiHttp' };
export const BOOT_DEVICES = Object.keys(DEVICES);
const PERSISTENCE: Readonly<Record<string, boolean>> = { Once: false, Continuous: true };
const MODES: Readonly<Record<string, 'bios' | 'uefi'>> = { UEFI: 'uefi', Legacy: 'bios' };
const MODE_NAMES = { uefi: 'UEFI', bios: 'Legacy' } as const;
const lookUp = <T>(table: Readonly<Record<string, T>>, key: unknown): T | null =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key]! : null;

const bootOf = (resource: Pick<RedfishResource, 'body'>, name: string): unknown => member(resource.body, 'Boot', name);
export const bootModeOfSystem = (system: SystemView): 'bios' | 'uefi' | null => lookUp(MODES, bootOf(system, 'BootSourceOverrideMode'));

type BootChange = Readonly<Record<string, string | null>>;
/** The system, and where it is changed: some services have a settings resource for some of the properties. */
interface BootView {
  readonly system: SystemView;
  readonly settings: RedfishResource | undefined;
}
async function bootViewOf(system: SystemView): Promise<BootView> {
  return { system, settings: await readLinked(system.ask, system, '@Redfish.Settings', 'SettingsObject') };
}
/** Targets that mean the same device. sushy-tools boots a URL from a virtual CD, and shows that. */
const SAME_TARGETS: readonly (readonly string[])[] = [['Cd', 'UsbCd', 'UefiHttp']];
/** Whether what the service shows instead of a written value has the same effect. */
function meansTheSame({ property, asked, found }: Unkept, before: unknown): boolean {
  const name = property.replace('Boot/', '');
  // Emulated services always show Continuous.
  if (name === 'BootSourceOverrideEnabled') return asked === 'Once' && found === 'Continuous';
  if (name === 'BootSourceOverrideTarget')
    return SAME_TARGETS.some((same) => same.includes(asked as string) && same.includes(found as string));
  // A URL that is left over has no effect with another target. Services may write a URL in a form of their own.
  if (name === 'HttpBootUri') return asked === null || (typeof found === 'string' && found !== '' && found !== before);
  return false;
}
const withoutSecrets = (unkept: Unkept): Unkept => {
  const shown = (value: unknown): unknown => (typeof value === 'string' ? withoutTokens(value) : value);
  return { ...unkept, asked: shown(unkept.asked), found: shown(unkept.found) };
};
/**
 * Writes each property where the service accepts it: in the settings resource if that shows it, otherwise on the system itself.
 * @param mode whether a boot mode must be shown as it was written
 * @returns the boot mode that the service shows afterwards; undefined: it shows none
 * @throws RedfishError, kind `unkept` when the service shows that it has not kept one
 */
async function writeBoot(
  task: Task,
  { system, settings }: BootView,
  change: BootChange,
  vendor: string | undefined,
  mode: 'ignored' | 'shown' = 'ignored',
): Promise<unknown> {
  let shownMode: unknown;
  const isSetting = (name: string): boolean => settings !== undefined && bootOf(settings, name) !== undefined;
  const parts = [
    [settings, Object.entries(change).filter(([name]) => isSetting(name))],
    [system, Object.entries(change).filter(([name]) => !isSetting(name))],
  ] as const;
  for (const [resource, entries] of parts) {
    if (!resource || entries.length === 0) continue;
    const { unkept, remarks, shown } = await patchKept(
      system.ask,
      resource,
      { Boot: Object.fromEntries(entries) },
      {
        clock: task.clock,
        signal: task.signal,
        alsoAt: resource === settings ? [system.path] : [],
        isLater: mode === 'shown',
        tolerates: (value) =>
          (mode === 'ignored' && value.property === 'Boot/BootSourceOverrideMode') ||
          meansTheSame(value, bootOf(system, value.property.replace('Boot/', ''))),
      },
    );
    if (unkept.length > 0) throw unkeptError(resource.path, vendor, { unkept: unkept.map(withoutSecrets), remarks });
    shownMode = member(shown, 'Boot', 'BootSourceOverrideMode') ?? shownMode;
  }
  return shownMode;
}

/** BMCs refuse boot settings during POST: iLO with this message, others with these statuses. */
const duringPost = (error: unknown): boolean => isStatus(error, 409, 503) || hasMessage(error, 'UnableToModifyDuringSystemPOST');
function retryDuringPost<T>(task: Task, work: () => Promise<T>): Promise<T> {
  const delay = task.options['redfish.post_boot_retry_delay'];
  const attempts = task.options['redfish.post_boot_retry_attempts'];
  return retry(task, work, (error, attempt) =>
    duringPost(error) && attempt < attempts ? Math.min(Math.max(2 ** (attempt - 1), delay), delay * 6) * 1000 : undefined,
  );
}

/** The values that the service lists for a property of Boot, on the system or where it is changed; undefined: it lists none. */
const allowedBoot = ({ system, settings }: BootView, name: string): readonly string[] | undefined =>
  allowableValues(member(system.body, 'Boot'), name) ?? allowableValues(member(settings?.body, 'Boot'), name);
/** The BootSourceOverrideTarget of a device, if the machine can boot from it; and what it can boot from otherwise. */
function targetOf(
  view: BootView,
  device: string,
  virtualCd: Quirks['virtualCd'],
): { readonly target: string; readonly isOffered: boolean } {
  const allowed = allowedBoot(view, 'BootSourceOverrideTarget');
  if (device === 'cdrom' && virtualCd !== undefined && allowed?.includes(virtualCd)) return { target: virtualCd, isOffered: true };
  const target = DEVICES[device]!;
  return { target, isOffered: allowed === undefined || allowed.includes(target) };
}
const notOffered = (view: BootView, target: string): RedfishError => {
  const allowed = allowedBoot(view, 'BootSourceOverrideTarget') ?? [];
  return new RedfishError('protocol', `the system can boot from ${shortened(allowed.join(', '), 500)} only, not from ${target}`);
};
/** HttpBootUri goes with UefiHttp and is cleared for other targets. Services without the property do not support it. */
function httpUri(system: SystemView, target: string, url: string | undefined): BootChange {
  const now = bootOf(system, 'HttpBootUri');
  if (target === 'UefiHttp' && url !== undefined) {
    if (now === undefined) throw new RedfishError('protocol', `The attribute HttpBootUri is missing from the resource ${system.path}`);
    return { HttpBootUri: url };
  }
  return now === undefined || now === null ? {} : { HttpBootUri: null };
}
const isUnkept = (error: unknown): error is RedfishError => error instanceof RedfishError && error.kind === 'unkept';
type Enabled = 'Once' | 'Continuous';
/** Whether the service refuses a change because it demands the mode or the persistence too. */
const demandsMore = (error: unknown): boolean =>
  isStatus(error, 400) &&
  /BootSourceOverride(?:Mode|Enabled)\b/.test(error.message) &&
  (hasMessage(error, 'PropertyMissing') || /\b(?:required|missing)\b/i.test(error.message));
/** Writes a target and its persistence. @throws RedfishError */
async function writeTarget(
  task: Task,
  view: BootView,
  target: BootChange,
  enabled: Enabled,
  quirks: Awaited<ReturnType<typeof quirksOf>>,
): Promise<void> {
  const { system } = view;
  const { wholeBoot, alwaysEnabled, forgetsMode, vendor } = quirks;
  const mode = bootOf(system, 'BootSourceOverrideMode');
  // Some services refuse a BootSourceOverrideEnabled that is already set.
  const unchanged = bootOf(system, 'BootSourceOverrideEnabled') === enabled && !alwaysEnabled && !wholeBoot;
  const whole = { BootSourceOverrideEnabled: enabled, BootSourceOverrideMode: typeof mode === 'string' ? mode : 'UEFI' };
  const write = (more: BootChange): Promise<unknown> => retryDuringPost(task, () => writeBoot(task, view, { ...target, ...more }, vendor));
  let shownMode: unknown;
  try {
    shownMode = await write(wholeBoot ? whole : unchanged ? {} : { BootSourceOverrideEnabled: enabled });
  } catch (error) {
    if (!wholeBoot && demandsMore(error)) {
      await write(whole);
      return;
    }
    // Some services accept no BootSourceOverrideEnabled, and boot once.
    if (!isStatus(error, 400, 405) || enabled !== 'Once' || unchanged || wholeBoot) throw error;
    await write({}).catch(() => {
      throw error;
    });
    if (bootOf(await readResource(system.ask, system.path), 'BootSourceOverrideEnabled') === 'Disabled') throw error;
  }
  const isModeLost = shownMode !== undefined && typeof mode === 'string' && shownMode !== mode && !wholeBoot;
  if (!isModeLost) return;
  await write(whole).catch((error: unknown) => {
    // Old services of such a maker take the mode by itself only, as it is set afterwards.
    if (!forgetsMode || !isStatus(error, 400)) throw error;
  });
}
/** Devices of the network, which the firmware's boot options name too. */
const NETWORK: Readonly<Record<string, 'http' | 'pxe'>> = { pxe: 'pxe', uefihttp: 'http' };
/**
 * Other ways to boot once where the target is not offered or not kept. For the network: the boot option of one of the node's ports; for HTTP
 * also Pxe, whose options of the firmware include those of HTTP. The server then serves the machine by either. For a CD: the virtual one by
 * the target that some services have for it beside that of the physical drive.
 * @returns the properties of Boot; undefined: there is no other way
 */
async function otherWay(task: Task, view: BootView, device: string, hasUrl: boolean): Promise<BootChange | undefined> {
  const kind = NETWORK[device];
  const allowed = allowedBoot(view, 'BootSourceOverrideTarget') ?? [];
  if (device === 'cdrom' && allowed.includes('UsbCd')) return { BootSourceOverrideTarget: 'UsbCd' };
  if (kind === undefined || hasUrl) return undefined;
  const options = await bootOptions(view.system).catch((error: unknown) => {
    if (error instanceof RedfishError && error.kind !== 'closed') return [];
    throw error;
  });
  const macs = task.ports.filter(({ pxe_enabled: boots }) => boots).map(({ address }) => address.toLowerCase());
  const option = allowed.includes('UefiBootNext') ? networkOption(options, kind, macs) : undefined;
  if (option) return { BootSourceOverrideTarget: 'UefiBootNext', BootNext: option.reference };
  const isHttp = kind === 'http' && allowed.includes('Pxe') && options.some((candidate) => candidate.kind === 'http');
  return isHttp ? { BootSourceOverrideTarget: 'Pxe' } : undefined;
}
/** @returns the persistence that was written */
async function writeDevice(task: Task, system: SystemView, device: string, enabled: Enabled): Promise<Enabled> {
  const quirks = await quirksOf(task, system);
  const view = await bootViewOf(system);
  const { target, isOffered } = targetOf(view, device, quirks.virtualCd);
  // The URL that a boot interface published. Without it, the firmware gets the URL from DHCP.
  const url = device === 'uefihttp' ? await bootUrl(task) : undefined;
  try {
    if (!isOffered) throw notOffered(view, target);
    await writeTarget(task, view, { BootSourceOverrideTarget: target, ...httpUri(system, target, url) }, enabled, quirks);
    return enabled;
  } catch (error) {
    if (isOffered && !isUnkept(error)) throw error;
    const way = enabled === 'Once' || !isOffered || device === 'cdrom' ? await otherWay(task, view, device, url !== undefined) : undefined;
    if (way === undefined) throw error;
    task.log.warn(`The machine does not take ${target} as its boot device; ${Object.values(way).join(' ')} is set instead`, {
      reason: reasonOf(error),
    });
    const written = way['BootNext'] === undefined ? enabled : 'Once';
    await writeTarget(task, view, way, written, quirks);
    return written;
  }
}

const SETTING = 'Redfish set boot device';
/**
 * For services that refuse Continuous: sets a persistent boot device again, for one boot, before each start. If that fails, the machine
 * starts in its firmware's order.
 */
export async function repeatBootDevice(task: Task): Promise<void> {
  const device = task.node.driver_internal_info['redfish_boot_device'];
  if (typeof device !== 'string' || !Object.hasOwn(DEVICES, device)) return;
  await onSystem(task, SETTING, (system) => writeDevice(task, system, device, 'Once')).catch((error: unknown) => {
    task.signal.throwIfAborted();
    task.log.warn(`The boot device ${device} cannot be set again; the machine starts in its firmware's order`, {
      reason: reasonOf(error),
    });
  });
}

export const getBootDevice: ManagementInterface['getBootDevice'] = (task) =>
  onSystem(task, undefined, async (system) => {
    const enabled = bootOf(system, 'BootSourceOverrideEnabled');
    // A target that is left over has no effect.
    const target = enabled === 'Disabled' ? undefined : bootOf(system, 'BootSourceOverrideTarget');
    const found = target === 'UsbCd' ? 'cdrom' : Object.entries(DEVICES).find(([, name]) => name === target)?.[0];
    return { device: found ?? null, persistent: lookUp(PERSISTENCE, enabled) };
  });

export const setBootDevice: ManagementInterface['setBootDevice'] = async (task, device, persistent) => {
  if (!Object.hasOwn(DEVICES, device)) throw new Fault('InvalidParameterValue', { message: `Invalid boot device ${device} specified.` });
  // The last request counts: a device for one boot ends the repetition of an earlier one.
  if (task.node.driver_internal_info['redfish_boot_device'] !== undefined) await task.saveInternal({ redfish_boot_device: undefined });
  const forgetsMode = await onSystem(task, SETTING, async (system) => {
    const asked: Enabled = persistent ? 'Continuous' : 'Once';
    const written = await writeDevice(task, system, device, asked).catch((error: unknown) => {
      if (!persistent || !(isStatus(error) || isUnkept(error))) throw error;
      return writeDevice(task, system, device, 'Once');
    });
    if (written !== asked) {
      task.log.warn(`The machine does not keep ${device} as its boot device: it is set again before each start`);
      await task.saveInternal({ redfish_boot_device: device });
    }
    return (await quirksOf(task, system)).forgetsMode;
  });
  if (forgetsMode) await syncBootMode(task);
};

/** Seconds between reads of the boot mode while the machine changes it. */
const READ_INTERVAL = 15;
export const bootMode: NonNullable<ManagementInterface['bootMode']> = {
  get: (task) => onSystem(task, undefined, async (system) => bootModeOfSystem(system)),
  supported: (task) =>
    onSystem(task, undefined, async (system) => {
      const allowed = allowableValues(member(system.body, 'Boot'), 'BootSourceOverrideMode');
      const modes = allowed?.map((name) => lookUp(MODES, name)).filter((mode) => mode !== null);
      return modes?.length ? modes : undefined;
    }),
  set: async (task, mode) => {
    const doing = `Setting boot mode to ${mode}`;
    const name = MODE_NAMES[mode];
    const before = await onSystem(task, doing, async (system) => {
      const found = bootOf(system, 'BootSourceOverrideMode');
      const { wholeBoot, dropsUntagged, vendor } = await quirksOf(task, system);
      const whole = { BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: 'Pxe' } as const;
      const rest = wholeBoot
        ? Object.entries(whole).map(([key, otherwise]) => [key, (bootOf(system, key) as string | null) ?? otherwise])
        : [];
      try {
        const change = { BootSourceOverrideMode: name, ...(Object.fromEntries(rest) as BootChange) };
        // Most services show the change at the next start only.
        const shows = dropsUntagged && system.etag === undefined ? 'shown' : 'ignored';
        await writeBoot(task, await bootViewOf(system), change, vendor, shows).catch((error: unknown) => {
          if (!isUnkept(error)) throw error;
          task.log.debug('The service does not show the boot mode that was written; it may do so after a restart', {
            reason: error.message,
          });
        });
      } catch (error) {
        // The service neither shows nor accepts a mode: there is nothing to set.
        if (isStatus(error) && typeof found !== 'string')
          throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'set_boot_mode' });
        throw error;
      }
      return found;
    });
    if (typeof before !== 'string') return;
    await rebootUntilApplied(task, READ_INTERVAL, {
      read: async () => bootModeOfSystem(await systemOf(task)) ?? 'None',
      target: mode,
      timeoutMessage: (found) =>
        `Timeout reached while waiting for boot mode of node ${task.node.uuid} to become ${mode}, current is ${found}`,
    });
  },
};
