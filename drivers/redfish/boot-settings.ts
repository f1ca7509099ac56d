/** Boot device and boot mode of a machine with a Redfish service (ComputerSystem, property Boot). */
import { Fault, reasonOf } from '../../model/errors';
import { RedfishError, hasMessage, isStatus, linkOf, member, patchResource, readResource, textsOf } from '../../wire/redfish';
import type { RedfishResource } from '../../wire/redfish';
import { syncBootMode } from '../common/boot-settings';
import type { ManagementInterface, Task } from '../interfaces';
import { bootUrl } from '../common/media';
import { quirksOf } from './quirks';
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
/** Writes each property where the service accepts it: in the settings resource if that shows it, otherwise on the system itself. */
async function writeBoot(system: SystemView, change: BootChange): Promise<void> {
  const { ask, body } = system;
  const place = linkOf(member(body, '@Redfish.Settings', 'SettingsObject'));
  const settings = place === undefined ? undefined : await readResource(ask, place);
  const isSetting = (name: string): boolean => settings !== undefined && bootOf(settings, name) !== undefined;
  const parts = [
    [settings, Object.entries(change).filter(([name]) => isSetting(name))],
    [system, Object.entries(change).filter(([name]) => !isSetting(name))],
  ] as const;
  for (const [resource, entries] of parts)
    if (resource && entries.length > 0) await patchResource(ask, resource, { Boot: Object.fromEntries(entries) });
}

/** BMCs refuse boot settings during POST: iLO with this message, others with these statuses. */
const duringPost = (error: unknown): boolean => isStatus(error, 409, 503) || hasMessage(error, 'UnableToModifyDuringSystemPOST');
async function retryDuringPost(task: Task, work: () => Promise<void>): Promise<void> {
  const { options, clock, signal } = task;
  const delay = options['redfish.post_boot_retry_delay'];
  for (let tries = 1; ; tries++) {
    try {
      await work();
      return;
    } catch (error) {
      if (!duringPost(error) || tries >= options['redfish.post_boot_retry_attempts']) throw error;
      await clock.sleep(Math.min(Math.max(2 ** (tries - 1), delay), delay * 6) * 1000, signal);
    }
  }
}

/** The BootSourceOverrideTarget of a device. Throws RedfishError when the machine cannot boot from it. */
function targetOf(system: SystemView, device: string, usbCd: boolean): string {
  const allowed = textsOf(bootOf(system, 'BootSourceOverrideTarget@Redfish.AllowableValues'));
  if (device === 'cdrom' && usbCd && allowed?.includes('UsbCd')) return 'UsbCd';
  const target = DEVICES[device]!;
  if (allowed === undefined || allowed.includes(target)) return target;
  throw new RedfishError('protocol', `the system can boot from ${shortened(allowed.join(', '), 500)} only, not from ${target}`);
}
/** HttpBootUri goes with UefiHttp and is cleared for other targets. Services without the property do not support it. */
function httpUri(system: SystemView, target: string, url: string | undefined): BootChange {
  const now = bootOf(system, 'HttpBootUri');
  if (target === 'UefiHttp' && url !== undefined) {
    if (now === undefined) throw new RedfishError('protocol', `The attribute HttpBootUri is missing from the resource ${system.path}`);
    return { HttpBootUri: url };
  }
  return now === undefined || now === null ? {} : { HttpBootUri: null };
}
async function writeDevice(task: Task, system: SystemView, device: string, enabled: 'Once' | 'Continuous'): Promise<void> {
  const { wholeBoot, alwaysEnabled, usbCd = false } = quirksOf(task.node);
  const target = targetOf(system, device, usbCd);
  const mode = bootOf(system, 'BootSourceOverrideMode');
  // Some services refuse a BootSourceOverrideEnabled that is already set. `Once` is sent again: a boot may have ended it since.
  const unchanged = enabled === 'Continuous' && bootOf(system, 'BootSourceOverrideEnabled') === enabled && !alwaysEnabled && !wholeBoot;
  const change: BootChange = {
    BootSourceOverrideTarget: target,
    ...(unchanged ? {} : { BootSourceOverrideEnabled: enabled }),
    ...(wholeBoot ? { BootSourceOverrideMode: typeof mode === 'string' ? mode : 'UEFI' } : {}),
    // The URL that a boot interface published. Without it, the firmware gets the URL from DHCP.
    ...httpUri(system, target, device === 'uefihttp' ? await bootUrl(task) : undefined),
  };
  await retryDuringPost(task, () => writeBoot(system, change));
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
    const target = bootOf(system, 'BootSourceOverrideTarget');
    const found = target === 'UsbCd' ? 'cdrom' : Object.entries(DEVICES).find(([, name]) => name === target)?.[0];
    return { device: found ?? null, persistent: lookUp(PERSISTENCE, bootOf(system, 'BootSourceOverrideEnabled')) };
  });

export const setBootDevice: ManagementInterface['setBootDevice'] = async (task, device, persistent) => {
  if (!Object.hasOwn(DEVICES, device)) throw new Fault('InvalidParameterValue', { message: `Invalid boot device ${device} specified.` });
  // The last request counts: a device for one boot ends the repetition of an earlier one.
  if (task.node.driver_internal_info['redfish_boot_device'] !== undefined) await task.saveInternal({ redfish_boot_device: undefined });
  await onSystem(task, SETTING, async (system) => {
    try {
      await writeDevice(task, system, device, persistent ? 'Continuous' : 'Once');
    } catch (error) {
      if (!persistent || !isStatus(error)) throw error;
      await writeDevice(task, system, device, 'Once');
      task.log.warn(`The machine does not keep ${device} as its boot device: it is set again before each start`);
      await task.saveInternal({ redfish_boot_device: device });
    }
  });
  if (quirksOf(task.node).forgetsMode) await syncBootMode(task);
};

/** Seconds between reads of the boot mode while the machine changes it. */
const READ_INTERVAL = 15;
export const bootMode: NonNullable<ManagementInterface['bootMode']> = {
  get: (task) => onSystem(task, undefined, async (system) => bootModeOfSystem(system)),
  supported: (task) =>
    onSystem(task, undefined, async (system) => {
      const allowed = textsOf(bootOf(system, 'BootSourceOverrideMode@Redfish.AllowableValues'));
      const modes = allowed?.map((name) => lookUp(MODES, name)).filter((mode) => mode !== null);
      return modes?.length ? modes : undefined;
    }),
  set: async (task, mode) => {
    const doing = `Setting boot mode to ${mode}`;
    const name = MODE_NAMES[mode];
    const before = await onSystem(task, doing, async (system) => {
      const found = bootOf(system, 'BootSourceOverrideMode');
      const { wholeBoot } = quirksOf(task.node);
      const whole = { BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: 'Pxe' } as const;
      const rest = wholeBoot
        ? Object.entries(whole).map(([key, otherwise]) => [key, (bootOf(system, key) as string | null) ?? otherwise])
        : [];
      try {
        await writeBoot(system, { BootSourceOverrideMode: name, ...(Object.fromEntries(rest) as BootChange) });
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
