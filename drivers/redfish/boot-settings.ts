/** Boot device and boot mode of a machine with a Redfish service (ComputerSystem, property Boot). */
import { retry } from '../../model/clock';
import { Fault, reasonOf } from '../../model/errors';
import { RedfishError, allowableValues, hasMessage, isStatus, member, patchResource, readLinked, readResource } from '../../wire/redfish';
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
/** The system, and where it is changed: some services have a settings resource for some of the properties. */
interface BootView {
  readonly system: SystemView;
  readonly settings: RedfishResource | undefined;
}
async function bootViewOf(system: SystemView): Promise<BootView> {
  return { system, settings: await readLinked(system.ask, system, '@Redfish.Settings', 'SettingsObject') };
}
/** Writes each property where the service accepts it: in the settings resource if that shows it, otherwise on the system itself. */
async function writeBoot({ system, settings }: BootView, change: BootChange): Promise<void> {
  const isSetting = (name: string): boolean => settings !== undefined && bootOf(settings, name) !== undefined;
  const parts = [
    [settings, Object.entries(change).filter(([name]) => isSetting(name))],
    [system, Object.entries(change).filter(([name]) => !isSetting(name))],
  ] as const;
  for (const [resource, entries] of parts)
    if (resource && entries.length > 0) await patchResource(system.ask, resource, { Boot: Object.fromEntries(entries) });
}

/** BMCs refuse boot settings during POST: iLO with this message, others with these statuses. */
const duringPost = (error: unknown): boolean => isStatus(error, 409, 503) || hasMessage(error, 'UnableToModifyDuringSystemPOST');
function retryDuringPost(task: Task, work: () => Promise<void>): Promise<void> {
  const delay = task.options['redfish.post_boot_retry_delay'];
  const attempts = task.options['redfish.post_boot_retry_attempts'];
  return retry(task, work, (error, attempt) =>
    duringPost(error) && attempt < attempts ? Math.min(Math.max(2 ** (attempt - 1), delay), delay * 6) * 1000 : undefined,
  );
}

/** The values that the service lists for a property of Boot, on the system or where it is changed; undefined: it lists none. */
const allowedBoot = ({ system, settings }: BootView, name: string): readonly string[] | undefined =>
  allowableValues(member(system.body, 'Boot'), name) ?? allowableValues(member(settings?.body, 'Boot'), name);
/** The BootSourceOverrideTarget of a device. Throws RedfishError when the machine cannot boot from it. */
function targetOf(view: BootView, device: string, usbCd: boolean): string {
  const allowed = allowedBoot(view, 'BootSourceOverrideTarget');
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
  const view = await bootViewOf(system);
  const mode = bootOf(system, 'BootSourceOverrideMode');
  // Some services refuse a BootSourceOverrideEnabled that is already set.
  const unchanged = bootOf(system, 'BootSourceOverrideEnabled') === enabled && !alwaysEnabled && !wholeBoot;
  const change: BootChange = {
    BootSourceOverrideTarget: targetOf(view, device, usbCd),
    ...(wholeBoot ? { BootSourceOverrideMode: typeof mode === 'string' ? mode : 'UEFI' } : {}),
  };
  // The URL that a boot interface published. Without it, the firmware gets the URL from DHCP.
  const uri = httpUri(system, change['BootSourceOverrideTarget']!, device === 'uefihttp' ? await bootUrl(task) : undefined);
  const write = (enabling: BootChange): Promise<void> => retryDuringPost(task, () => writeBoot(view, { ...change, ...enabling, ...uri }));
  try {
    await write(unchanged ? {} : { BootSourceOverrideEnabled: enabled });
  } catch (error) {
    // Some services accept no BootSourceOverrideEnabled, and boot once.
    if (!isStatus(error, 400, 405) || enabled !== 'Once' || unchanged || wholeBoot) throw error;
    await write({}).catch(() => {
      throw error;
    });
    if (bootOf(await readResource(system.ask, system.path), 'BootSourceOverrideEnabled') === 'Disabled') throw error;
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
      const allowed = allowableValues(member(system.body, 'Boot'), 'BootSourceOverrideMode');
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
        await writeBoot(await bootViewOf(system), { BootSourceOverrideMode: name, ...(Object.fromEntries(rest) as BootChange) });
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
