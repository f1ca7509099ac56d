/**
 * Partition images: an image of a root file system, for which the agent makes the partitions. Instances boot from their disk. Errors are found
 * before the machine is touched.
 */
import { invalidParameter, Fault } from '../../model/errors';
import { EPHEMERAL_FORMATS } from '../../model/agent/partition-plan';
import { isObject } from '../../model/json';
import { BOOLEAN_WORDS, str, toBoolean, toInteger } from '../../model/python';
import type { JsonObject, NodeRecord } from '../../model/records';
import { bootModeOf } from '../common/boot-settings';
import { instanceCapabilities } from '../common/capabilities';
import type { GlanceImage } from '../../wire/openstack/glance';
import type { Task } from '../interfaces';
import { diskRoom } from './image-checks';

/** Whether an image in Glance is a partition image, by its properties. */
export const isPartition = ({ img_type: type, kernel_id: kernel, ramdisk_id: ramdisk }: GlanceImage['properties']): boolean =>
  type ? type === 'partition' : Boolean(kernel ?? ramdisk);

/** The sizes that an instance asks for. A rebuild that preserves the ephemeral partition must ask for the same. */
const SIZES = ['root_gb', 'swap_mb', 'ephemeral_gb'] as const;
type Sizes = Readonly<Record<(typeof SIZES)[number], number>>;
/** MiB. */
const GB = 1024;
/** MiB, as the agent's limit: a pebibyte. */
const MOST = 2 ** 30;

const invalid = (param: string, reason: string): Fault => invalidParameter(`Invalid parameter ${param}: ${reason}`);

function readSizes(info: JsonObject): Sizes {
  const read = (param: keyof Sizes): number => {
    const given = info[param] ?? 0;
    const value = toInteger(given);
    if (value === undefined) throw invalid(param, `${str(given)} is not an integer value.`);
    if (value < (param === 'root_gb' ? 1 : 0)) throw invalid(param, `${str(given)} is too small.`);
    if (value > MOST / GB) throw invalid(param, `${str(given)} is too large.`);
    return value;
  };
  return Object.fromEntries(SIZES.map((param) => [param, read(param)])) as Sizes;
}

function readPreserve(info: JsonObject): boolean {
  const given = info['preserve_ephemeral'] === undefined ? false : info['preserve_ephemeral'];
  const value = toBoolean(given);
  if (value === undefined)
    throw invalid('preserve_ephemeral', `Unrecognized value '${str(given)}', acceptable values are: ${BOOLEAN_WORDS}`);
  return value;
}

function checkUnchanged({ driver_internal_info: { instance } }: NodeRecord, sizes: Sizes, info: JsonObject): void {
  if (!isObject(instance)) return;
  const before = Object.fromEntries(SIZES.map((param) => [param, toInteger(instance[param] ?? 0) ?? 0])) as Sizes;
  // Of swap_mb, Ironic shows the number, of the others what was given.
  const given = { ...sizes, root_gb: info['root_gb'], ephemeral_gb: info['ephemeral_gb'] ?? 0 };
  const changed = SIZES.filter((param) => before[param] !== sizes[param]).map(
    (param) => ` Deployed value of ${param} was ${before[param]} but requested value is ${str(given[param])}.`,
  );
  if (changed.length > 0)
    throw invalidParameter(`The following parameters have different values from previous deployment:${changed.join('')}`);
}

function checkRoom(node: NodeRecord, { root_gb: root, swap_mb: swap, ephemeral_gb: ephemeral }: Sizes): void {
  const needed = (root + ephemeral) * GB + swap;
  const room = diskRoom(node);
  if (!room || needed <= room.most) return;
  throw invalidParameter(
    `The partitions of node ${node.uuid} do not fit: root_gb ${root}, ephemeral_gb ${ephemeral} and swap_mb ${swap} need ${needed} MiB, and properties/local_gb is ${room.local}`,
  );
}

/**
 * What instance_info says of the partitions, in the form in which it keeps it for the agent. Throws MissingParameterValue,
 * InvalidParameterValue.
 */
export function partitionFields({ node, options }: Pick<Task, 'node' | 'options'>): JsonObject {
  const { instance_info: info } = node;
  if (instanceCapabilities(node)['boot_option'] === 'netboot')
    throw invalidParameter(
      "The parameter 'boot_option' from instance_info['capabilities'] has an invalid value: 'netboot'. Acceptable values are: local.",
    );
  // In Ironic's order
  if (!info['root_gb'])
    throw new Fault('MissingParameterValue', {
      message: "Some parameters were missing in node's instance_info. Missing are: ['root_gb']",
    });
  const preserve = readPreserve(info);
  const sizes = readSizes(info);
  const { root_gb: root, swap_mb: swap, ephemeral_gb: ephemeral } = sizes;
  const format = info['ephemeral_format'] || (ephemeral > 0 ? options['pxe.default_ephemeral_format'] : null);
  if (ephemeral > 0 && (typeof format !== 'string' || !/^[a-z0-9_.-]{1,32}$/i.test(format)))
    throw invalid(
      'ephemeral_format',
      `${str(format)} is not the name of a file system, such as ${Object.keys(EPHEMERAL_FORMATS).join(', ')}.`,
    );
  if (preserve) checkUnchanged(node, sizes, info);
  checkRoom(node, sizes);
  return {
    root_gb: root,
    swap_mb: swap,
    ephemeral_gb: ephemeral,
    root_mb: root * GB,
    ephemeral_mb: ephemeral * GB,
    ephemeral_format: format,
    preserve_ephemeral: preserve,
  };
}

/** The members of instance_info that image_info has (agent protocol, partition images). */
const LABELS = [
  'kernel',
  'ramdisk',
  'root_gb',
  'root_mb',
  'swap_mb',
  'ephemeral_mb',
  'ephemeral_format',
  'preserve_ephemeral',
  'image_type',
] as const;
export function partitionInfo(task: Task): JsonObject {
  const { node } = task;
  const bootMode = bootModeOf(task);
  const label = instanceCapabilities(node)['disk_label'] ?? (bootMode === 'uefi' ? 'gpt' : undefined);
  return {
    ...Object.fromEntries(LABELS.map((name) => [name, node.instance_info[name] ?? null])),
    deploy_boot_mode: bootMode,
    boot_option: 'local',
    ...(label === undefined ? {} : { disk_label: label }),
  };
}

/** For driver_internal_info: what a later rebuild has to ask for. */
export const deployedSizes = ({ instance_info: info }: NodeRecord): JsonObject =>
  Object.fromEntries(SIZES.map((param) => [param, toInteger(info[param] ?? 0) ?? 0]));
