/** What a machine is told before it boots: from which device, and in which firmware mode. */
import { Fault, reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { instanceCapabilities, machineCapabilities } from './capabilities';
import type { Task } from '../interfaces';
import { timeoutSignal } from '../../wire/timeout-signal';

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

interface Asked {
  readonly mode?: string | undefined;
  readonly secureBoot: boolean;
  /** Who asks for the mode. */
  readonly by: string;
}
/** What the instance asks of the firmware: by its capabilities, or by its image. */
function instanceAsks(node: NodeRecord): Asked {
  const capabilities = instanceCapabilities(node);
  const image = node.instance_info['image_properties'];
  const property = (name: string): string | undefined => {
    const value = typeof image === 'object' && image !== null ? (image as Readonly<Record<string, unknown>>)[name] : undefined;
    return typeof value === 'string' ? value.toLowerCase() : undefined;
  };
  const secureBoot = capabilities['secure_boot']?.toLowerCase() === 'true' || property('os_secure_boot') === 'required';
  const own = capabilities['boot_mode']?.toLowerCase();
  if (own !== undefined) return { mode: own, secureBoot, by: 'instance_info/capabilities' };
  return { mode: property('hw_firmware_type'), secureBoot, by: 'instance_info/image_properties' };
}

/**
 * The boot mode that the node asks for: the instance's capability, its image's property, the machine's, or what an earlier boot settled;
 * undefined: none. Throws InvalidParameterValue when the instance wants another one than the machine has.
 */
function wantedBootMode(node: NodeRecord): BootMode | undefined {
  const instance = instanceAsks(node);
  const machine = machineCapabilities(node)['boot_mode']?.toLowerCase();
  if (instance.secureBoot) return 'uefi';
  const settled = node.driver_internal_info['deploy_boot_mode'];
  const mode = instance.mode ?? machine ?? (typeof settled === 'string' ? settled.toLowerCase() : undefined);
  if (machine !== undefined && machine !== mode) {
    throw new Fault('InvalidParameterValue', {
      message: `Node ${node.uuid} boot mode ${mode ?? ''} violates node properties/capabilities ${machine}`,
    });
  }
  return mode === 'bios' || mode === 'uefi' ? mode : undefined;
}

/** Milliseconds that a BMC may take to say what it supports: somebody waits. */
const QUESTION_MS = 10_000;
/** What the BMC answers; undefined: it does not, so that nothing is known. Faults of a machine that lacks it are the caller's. */
async function known<T>(task: Task, ask: (brief: Task) => Promise<T>): Promise<T | undefined> {
  const signal = timeoutSignal(QUESTION_MS, task.signal);
  try {
    return await ask(Object.create(task, { signal: { value: signal } }) as Task);
  } catch (error) {
    task.signal.throwIfAborted();
    if (error instanceof Fault && error.name === 'UnsupportedDriverExtension') throw error;
    task.log.warn('The BMC cannot be asked what the firmware supports', { reason: reasonOf(error) });
    return undefined;
  }
}

/**
 * What the instance (or the machine's own properties) asks of the firmware, against what the BMC says that it can. Throws
 * InvalidParameterValue that names both, before anything is touched; what the BMC does not say is not held against it.
 */
export async function checkBootMode(task: Task): Promise<void> {
  const { node, driver } = task;
  const refuse = (message: string): never => {
    throw new Fault('InvalidParameterValue', { message });
  };
  const { mode: own, secureBoot, by: instance } = instanceAsks(node);
  const machine = machineCapabilities(node)['boot_mode']?.toLowerCase();
  const [asked, by] = own === undefined ? [machine, 'properties/capabilities'] : [own, instance];
  if (secureBoot && asked === 'bios')
    refuse(`Node ${node.uuid} is asked for secure boot, which needs UEFI, and for boot mode bios (${by})`);
  wantedBootMode(node);
  const wanted = secureBoot ? 'uefi' : asked;
  if (wanted === undefined) return;
  const { bootMode, secureBoot: security } = driver.management;
  // Where nobody can ask: what was learned of the machine before.
  if (!bootMode && node.boot_mode !== null && node.boot_mode !== wanted)
    refuse(
      `Node ${node.uuid} is asked for boot mode ${wanted} (${secureBoot ? 'secure boot' : by}), and the machine is in boot mode ${node.boot_mode}, which its management interface ${node.management_interface ?? ''} cannot change`,
    );
  const supported = bootMode?.supported && (await known(task, (brief) => bootMode.supported!(brief)));
  if (supported && !(supported as readonly string[]).includes(wanted))
    refuse(
      `Node ${node.uuid} is asked for boot mode ${wanted} (${secureBoot ? 'secure boot' : by}), and its BMC says that the machine supports ${supported.join(' and ')} only`,
    );
  if (!secureBoot || !security) return;
  await known(task, (brief) => security.get(brief)).catch(() =>
    refuse(`Node ${node.uuid} is asked for secure boot, and its BMC says that the machine has none`),
  );
}

/** Switches secure boot on for an instance that asks for it. Throws what the BMC says. */
export const configureSecureBoot = (task: Task): Promise<void> => switchSecureBoot(task, true);
/** Off again at its end; a machine that cannot is left. */
export const forgetSecureBoot = (task: Task): Promise<void> => switchSecureBoot(task, false);
async function switchSecureBoot(task: Task, on: boolean): Promise<void> {
  if (!instanceAsks(task.node).secureBoot) return;
  const { secureBoot } = task.driver.management;
  try {
    if (!secureBoot) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'set_secure_boot_state' });
    await secureBoot.set(task, on);
    await task.save({ secure_boot: on });
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'UnsupportedDriverExtension') throw error;
    task.log.warn('Secure boot is asked for, and cannot be set', { on, reason: error.message });
  }
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
