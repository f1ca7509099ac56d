/** The agent's ramdisk: its kernel and initramfs for deployment and rescue, and its kernel arguments. */
import { Fault } from '../../model/errors';
import { isKernelCommandLine } from '../../wire/kernel-arguments';
import { repr } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import { configuredRamdisk, filesByArchitecture, wholePair, type Pair, type RamdiskMode } from '../common/configured-ramdisk';
import { type GlanceTask, validImage } from '../common/glance-images';
import type { Property, Task } from '../interfaces';
import { glanceId } from '../../wire/openstack/glance';

/** driver_info: the agent's ramdisk. */
export const ramdiskProperties: Readonly<Record<string, Property>> = {
  deploy_kernel: { description: 'UUID (from Glance) of the deployment kernel. Required.' },
  deploy_ramdisk: { description: 'UUID (from Glance) of the ramdisk that is mounted at boot time. Required.' },
};
export const rescueProperties: Readonly<Record<string, Property>> = {
  rescue_kernel: { description: 'UUID (from Glance) of the rescue kernel. This value is required for rescue mode.' },
  rescue_ramdisk: {
    description:
      'UUID (from Glance) of the rescue ramdisk with agent that is used at node rescue time. This value is required for rescue mode.',
  },
};

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The purpose of a ramdisk that boots in the node's current state. */
export const ramdiskMode = ({ provision_state: state }: NodeRecord): RamdiskMode =>
  ['rescuing', 'rescue wait', 'rescue failed', 'unrescuing', 'unrescue failed'].includes(state) ? 'rescue' : 'deploy';

interface Ramdisk {
  readonly kernel: string;
  readonly ramdisk: string;
  /** From the options, which the operator sets: no list of allowed folders applies. */
  readonly trusted: boolean;
  /** `kernel.aarch64`, …: those of the options for machines of an architecture, if the node does not say which it has. */
  readonly byArchitecture?: Readonly<Record<string, string>>;
}

/** Deploying an instance in memory needs no agent, but cleaning the disks does. */
export const needsAgent = ({ driver, node, options }: Task): boolean =>
  driver.deploy.inMemory !== true || (node.automated_clean ?? options['conductor.automated_clean']);

/** Throws MissingParameterValue that lists the empty values. */
export function requireAll(what: string, values: Readonly<Record<string, unknown>>): void {
  const missing = Object.keys(values).filter((name) => !values[name]);
  if (missing.length > 0) throw new Fault('MissingParameterValue', { message: `${what}. Missing are: ${repr(missing)}` });
}

const MISSING = "Cannot validate PXE bootloader. Some parameters were missing in node's driver_info and configuration";
/** Half a pair: throws MissingParameterValue or only logs, as `[conductor]error_on_ramdisk_config_inconsistency` says. */
function checkHalf(
  { kernel, ramdisk }: Pair,
  task: Task,
  messageOf: (has: 'kernel' | 'ramdisk', lacks: 'kernel' | 'ramdisk') => string,
): void {
  if (Boolean(kernel) === Boolean(ramdisk)) return;
  const message = kernel ? messageOf('kernel', 'ramdisk') : messageOf('ramdisk', 'kernel');
  if (task.options['conductor.error_on_ramdisk_config_inconsistency']) throw new Fault('MissingParameterValue', { message });
  task.log.warn(message);
}

/** The agent's kernel and ramdisk: both from the node, or both from the options. Throws MissingParameterValue, beginning with `missing`. */
export function ramdiskOf(task: Task, mode: RamdiskMode, missing = MISSING): Ramdisk {
  const { uuid, driver_info: info, properties } = task.node;
  const own = { kernel: text(info[`${mode}_kernel`]), ramdisk: text(info[`${mode}_ramdisk`]) };
  const ownPair = wholePair(own);
  if (ownPair) return { ...ownPair, trusted: false };
  const ambiguous = `This configuration is ambiguous. Node ${uuid} cannot boot a ramdisk.`;
  checkHalf(
    own,
    task,
    (has, lacks) => `Node ${uuid} driver_info has an override for ${mode}_${has}, but not for ${mode}_${lacks}. ${ambiguous}`,
  );
  const { byArch, common } = configuredRamdisk(task.options, task.node, mode);
  const archPair = wholePair(byArch);
  if (archPair) return { ...archPair, trusted: true };
  checkHalf(
    byArch,
    task,
    (has, lacks) =>
      `CONF.conductor.${mode}_${has}_by_arch has a value for ${text(properties['cpu_arch'])} servers, but doesn't have one in CONF.conductor.${mode}_${lacks}_by_arch. ${ambiguous}`,
  );
  requireAll(missing, {
    [`${mode}_kernel`]: common.kernel,
    [`${mode}_ramdisk`]: common.ramdisk,
  });
  const byArchitecture = properties['cpu_arch'] ? {} : filesByArchitecture(task.options, mode);
  return { kernel: common.kernel!, ramdisk: common.ramdisk!, trusted: true, byArchitecture };
}

/** What an instance in memory boots from. */
type InMemoryImages = { readonly boot_iso?: string; readonly kernel?: string; readonly ramdisk?: string };
/**
 * The images that the properties of the instance's image in Glance name. Empty: instance_info names them, or its image is not in Glance.
 * Throws InvalidParameterValue, MissingParameterValue.
 */
export async function inMemoryImages(task: GlanceTask & Pick<Task, 'node'>): Promise<InMemoryImages> {
  const { image_source: source, boot_iso: own, kernel, ramdisk } = task.node.instance_info;
  const id = typeof source === 'string' && !own && !(kernel && ramdisk) ? glanceId(source) : undefined;
  if (id === undefined) return {};
  const { boot_iso_id: iso, kernel_id: kernelId, ramdisk_id: ramdiskId } = (await validImage(task, id)).properties;
  if (iso !== undefined) return { boot_iso: iso };
  const found = { kernel: text(kernel) || kernelId, ramdisk: text(ramdisk) || ramdiskId };
  const missing = Object.entries(found).flatMap(([name, href]) => (href ? [] : [`${name}_id`]));
  if (missing.length === 0) return { kernel: found.kernel!, ramdisk: found.ramdisk! };
  throw new Fault('MissingParameterValue', {
    message: `Image ${String(source)} is missing the following properties: ${missing.join(', ')}`,
  });
}

type AppendOption = 'pxe.kernel_append_params' | 'redfish.kernel_append_params';
type Place = 'instance_info' | 'driver_info';
const malformed = (message: string): Fault => new Fault('InvalidParameterValue', { message });
/** The value in this field; undefined: none. Throws InvalidParameterValue unless it is a kernel command line, with the option in place of %default%. */
function ownArguments({ node }: Pick<Task, 'node'>, place: Place, name: string, standard: string): string | undefined {
  const own = node[place][name] ?? undefined;
  if (own === undefined) return undefined;
  const filled = typeof own === 'string' ? own.replaceAll('%default%', () => standard) : undefined;
  if (filled === undefined || !isKernelCommandLine(filled))
    throw malformed(`node's ${place}['${name}'] contains malformed kernel command line`);
  return filled;
}
/** The option, or the node's value in its place. Throws InvalidParameterValue. */
function appended(task: Pick<Task, 'node' | 'options'>, option: AppendOption = 'pxe.kernel_append_params'): string {
  const standard = task.options[option];
  const own = (place: Place): string | undefined => ownArguments(task, place, 'kernel_append_params', standard);
  return own('instance_info') ?? own('driver_info') ?? standard;
}
/** What `kernelArguments` would refuse of the node, before anything is prepared. Throws InvalidParameterValue. */
export const checkKernelArguments = (task: Pick<Task, 'node' | 'options'>, option?: AppendOption): void => void appended(task, option);
/** The arguments that the node or the option adds to a kernel, on one line. Throws InvalidParameterValue. */
export const appendedArguments = (task: Pick<Task, 'node' | 'options'>): string => oneLine([appended(task)]);
const oneLine = (words: readonly string[]): string =>
  words
    .map((word) => word.trim())
    .join(' ')
    .replace(/ {2,}/g, ' ')
    .trim();

/** The API's URL for ramdisks. Throws InvalidParameterValue. */
export const apiUrlOf = async ({ connections, options }: Pick<Task, 'connections' | 'options'>): Promise<string> =>
  (await connections.apiUrl?.()) ?? options['service_catalog.endpoint_override'];

/** The arguments of the agent's kernel. An argument with an empty value is written without `=`. Throws InvalidParameterValue. */
export async function kernelArguments(task: Task, given: Readonly<Record<string, string>>, option?: AppendOption): Promise<string> {
  const named: Readonly<Record<string, string>> = {
    'ipa-api-url': await apiUrlOf(task),
    ...(task.globalRequestId === undefined ? {} : { 'ipa-global-request-id': task.globalRequestId }),
    ...given,
  };
  const more = Object.entries(named).map(([name, value]) => (value === '' ? name : `${name}=${value}`));
  const wrong = more.find((argument) => !isKernelCommandLine(argument));
  if (wrong !== undefined) throw malformed(`The kernel argument ${wrong.split('=', 1)[0]} of the ramdisk is malformed`);
  return oneLine(['selinux=0 troubleshoot=0 text', appended(task, option), ...more]);
}

/** The arguments of an instance's kernel. Throws InvalidParameterValue. */
export const instanceArguments = (task: Task): string =>
  oneLine(['root=/dev/ram0 text', appended(task), ownArguments(task, 'instance_info', 'ramdisk_kernel_arguments', '') ?? '']);
