/** What a machine is told before it boots: from which device, and in which firmware mode. */
import { Fault, reasonOf } from '../model/errors';
import type { NodeRecord } from '../model/records';
import { instanceCapabilities, machineCapabilities } from './capabilities';
import type { Task } from './interfaces';

export type BootMode = 'bios' | 'uefi';

/** Sets the boot device through the management interface; driver_info.force_persistent_boot_device has the last word on `persistent`. */
export async function setBootDevice(task: Task, device: string, persistent: boolean): Promise<void> {
  const { management } = task.driver;
  await management.validate?.(task);
  await management.setBootDevice(task, device, forcedPersistence(task.node.driver_info['force_persistent_boot_device']) ?? persistent);
}

/** Always and Never decide; of the older booleans only true ever mattered. */
function forcedPersistence(value: unknown): boolean | undefined {
  if (value === 'Never') return false;
  return value === 'Always' || isTrue(value) ? true : undefined;
}

/** true, or a text that operators write for it. */
export const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === 'string' && ['1', 't', 'true', 'on', 'y', 'yes'].includes(value.trim().toLowerCase()));

/**
 * The boot mode that the node asks for: the instance's capability, the machine's, or what an earlier boot settled; undefined: none.
 * Throws InvalidParameterValue when the instance wants another one than the machine has.
 */
function wantedBootMode(node: NodeRecord): BootMode | undefined {
  const instance = instanceCapabilities(node);
  if (instance['secure_boot']?.toLowerCase() === 'true') return 'uefi';
  const machine = machineCapabilities(node)['boot_mode']?.toLowerCase();
  const settled = node.driver_internal_info['deploy_boot_mode'];
  const mode = (instance['boot_mode'] ?? machine ?? (typeof settled === 'string' ? settled : undefined))?.toLowerCase();
  if (machine !== undefined && machine !== mode) {
    throw new Fault('InvalidParameterValue', {
      message: `Node ${node.uuid} boot mode ${mode ?? ''} violates node properties/capabilities ${machine}`,
    });
  }
  return mode === 'bios' || mode === 'uefi' ? mode : undefined;
}

/** The boot mode of this deployment: what the node asks for, else `[deploy]default_boot_mode`. */
export const bootModeOf = (task: Task): BootMode =>
  wantedBootMode(task.node) ?? (task.options['deploy.default_boot_mode'] === 'bios' ? 'bios' : 'uefi');

/**
 * Makes the machine's boot mode and the node's agree: a wish is set on the machine, without one the machine's own mode is kept in
 * driver_internal_info.deploy_boot_mode. A machine that says another mode and cannot be told fails; one that says nothing is believed.
 */
export async function syncBootMode(task: Task): Promise<void> {
  const control = task.driver.management.bootMode;
  const wanted = wantedBootMode(task.node);
  const found = await control?.get(task).catch((error: unknown) => {
    task.log.warn('The boot mode cannot be read', { reason: reasonOf(error) });
    return null;
  });
  if (wanted === undefined) await task.saveInternal({ deploy_boot_mode: found ?? bootModeOf(task) });
  const mode = wanted ?? found ?? bootModeOf(task);
  if (!control || mode === found) return;
  await control.set(task, mode).catch((error: unknown) => {
    if (found || !(error instanceof Fault && error.name === 'UnsupportedDriverExtension')) throw error;
    task.log.debug('The boot mode cannot be set; the machine is taken to be in it', { mode, reason: reasonOf(error) });
  });
}
