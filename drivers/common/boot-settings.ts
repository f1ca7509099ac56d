/** Settings of a machine before it boots: boot device, boot mode and secure boot. */
import { Fault, reasonOf } from '../../model/errors';
import { toBoolean } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import { instanceCapabilities, machineCapabilities } from './capabilities';
import type { Task } from '../interfaces';
import { timeoutSignal } from '../../wire/timeout-signal';

type BootMode = 'bios' | 'uefi';

/** Sets the boot device through the management interface. driver_info.force_persistent_boot_device overrides `persistent`. */
export async function setBootDevice(task: Task, device: string, persistent: boolean): Promise<void> {
  const { management } = task.driver;
  await management.validate?.(task);
  await management.setBootDevice(task, device, forcedPersistence(task.node.driver_info['force_persistent_boot_device']) ?? persistent);
}

/** `Always` and `Never` replace the caller's choice. Of the older boolean values, only true has an effect. */
function forcedPersistence(value: unknown): boolean | undefined {
  if (value === 'Never') return false;
  return value === 'Always' || isTrue(value) ? true : undefined;
}

/** true, or one of the words for it. Fields of nodes that are objects may have text in place of a boolean. */
export const isTrue = (value: unknown): boolean => toBoolean(value) === true;

interface FirmwareRequest {
  readonly mode?: string | undefined;
  readonly secureBoot: boolean;
  /** The field that requests the mode. */
  readonly by: string;
}
/** The firmware settings that the instance requests, by its capabilities or by its image. */
function instanceRequest(node: NodeRecord): FirmwareRequest {
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

/** Whether the instance requests secure boot. */
export const requestsSecureBoot = (node: NodeRecord): boolean => instanceRequest(node).secureBoot;

/**
 * The boot mode that the node requests: the instance's capability, its image's property, the machine's capability, or the mode of an
 * earlier boot; undefined: none. Throws InvalidParameterValue when the instance's mode contradicts the machine's.
 */
function requestedBootMode(node: NodeRecord): BootMode | undefined {
  const instance = instanceRequest(node);
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

/** Milliseconds for a BMC's answer: a client is waiting. */
const QUERY_MS = 10_000;
/** The BMC's answer; undefined: an error, or none in time. Throws UnsupportedDriverExtension for a machine that lacks the feature. */
async function queryBmc<T>(task: Task, query: (limited: Task) => Promise<T>): Promise<T | undefined> {
  const signal = timeoutSignal(QUERY_MS, task.signal);
  try {
    return await query(Object.create(task, { signal: { value: signal } }) as Task);
  } catch (error) {
    task.signal.throwIfAborted();
    if (error instanceof Fault && error.name === 'UnsupportedDriverExtension') throw error;
    task.log.warn('The BMC does not report what the firmware supports', { reason: reasonOf(error) });
    return undefined;
  }
}

/**
 * Compares the requested firmware settings (of the instance or the machine's properties) with what the BMC supports. Throws
 * InvalidParameterValue that names both, before the machine is touched. Facts that the BMC does not report are not checked.
 */
export async function checkBootMode(task: Task): Promise<void> {
  const { node, driver } = task;
  const refuse = (message: string): never => {
    throw new Fault('InvalidParameterValue', { message });
  };
  const { mode: own, secureBoot, by: instance } = instanceRequest(node);
  const machine = machineCapabilities(node)['boot_mode']?.toLowerCase();
  const [requested, by] = own === undefined ? [machine, 'properties/capabilities'] : [own, instance];
  if (secureBoot && requested === 'bios')
    refuse(`Node ${node.uuid} is asked for secure boot, which needs UEFI, and for boot mode bios (${by})`);
  requestedBootMode(node);
  const mode = secureBoot ? 'uefi' : requested;
  if (mode === undefined) return;
  const { bootMode, secureBoot: security } = driver.management;
  // Without control of the boot mode: the mode that was read from the machine earlier.
  if (!bootMode && node.boot_mode !== null && node.boot_mode !== mode)
    refuse(
      `Node ${node.uuid} is asked for boot mode ${mode} (${secureBoot ? 'secure boot' : by}), and the machine is in boot mode ${node.boot_mode}, which its management interface ${node.management_interface ?? ''} cannot change`,
    );
  const supported = bootMode?.supported && (await queryBmc(task, (limited) => bootMode.supported!(limited)));
  if (supported && !(supported as readonly string[]).includes(mode))
    refuse(
      `Node ${node.uuid} is asked for boot mode ${mode} (${secureBoot ? 'secure boot' : by}), and its BMC says that the machine supports ${supported.join(' and ')} only`,
    );
  if (!secureBoot || !security) return;
  await queryBmc(task, (limited) => security.get(limited)).catch(() =>
    refuse(`Node ${node.uuid} is asked for secure boot, and its BMC says that the machine has none`),
  );
}

/** Enables secure boot for an instance that requests it. Throws the BMC's error. */
export const configureSecureBoot = (task: Task): Promise<void> => switchSecureBoot(task, true);
/** Disables secure boot when an instance ends that requested it. A machine without secure boot stays as it is. */
export const forgetSecureBoot = (task: Task): Promise<void> => switchSecureBoot(task, false);
async function switchSecureBoot(task: Task, on: boolean): Promise<void> {
  if (!instanceRequest(task.node).secureBoot) return;
  const { secureBoot } = task.driver.management;
  try {
    if (!secureBoot) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'set_secure_boot_state' });
    await secureBoot.set(task, on);
    await task.save({ secure_boot: on });
  } catch (error) {
    if (!(error instanceof Fault) || error.name !== 'UnsupportedDriverExtension') throw error;
    task.log.warn('Secure boot is requested, and cannot be set', { on, reason: error.message });
  }
}

/** The boot mode of this deployment: the requested one, otherwise `[deploy]default_boot_mode`. */
export const bootModeOf = (task: Task): BootMode =>
  requestedBootMode(task.node) ?? (task.options['deploy.default_boot_mode'] === 'bios' ? 'bios' : 'uefi');

/**
 * Makes the boot modes of machine and node agree. A requested mode is set on the machine; without a request, the machine's own mode is
 * stored in driver_internal_info.deploy_boot_mode. Fails when the machine has another mode that cannot be changed. A machine that reports
 * no mode counts as being in the requested one.
 */
export async function syncBootMode(task: Task): Promise<void> {
  const control = task.driver.management.bootMode;
  const requested = requestedBootMode(task.node);
  const actual = await control?.get(task).catch((error: unknown) => {
    task.log.warn('The boot mode cannot be read', { reason: reasonOf(error) });
    return null;
  });
  if (requested === undefined) await task.saveInternal({ deploy_boot_mode: actual ?? bootModeOf(task) });
  const mode = requested ?? actual ?? bootModeOf(task);
  if (!control || mode === actual) return;
  await control.set(task, mode).catch((error: unknown) => {
    if (actual || !(error instanceof Fault && error.name === 'UnsupportedDriverExtension')) throw error;
    task.log.debug('The boot mode cannot be set; the machine counts as being in it', { mode, reason: reasonOf(error) });
  });
}
