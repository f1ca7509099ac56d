/**
 * Software RAID as `target_raid_config` describes it: which configurations are accepted, the disks of each volume, and its partitions on
 * them. The rules, the layout and the error messages are ironic-python-agent's.
 */
import { isObject } from '../json';
import type { JsonObject } from '../records';
import { AgentError } from './errors';
import { type HintedDisk, matchDisks, parseHints } from './hints';
import { reasonOf } from '../errors';
import { shortened } from '../text';

/** Level in a configuration → the least number of disks, and mdadm's name. */
const LEVELS: Readonly<Record<string, { readonly disks: number; readonly mdadm: string }>> = {
  '0': { disks: 2, mdadm: '0' },
  '1': { disks: 2, mdadm: '1' },
  '1+0': { disks: 2, mdadm: '10' },
  '5': { disks: 3, mdadm: '5' },
  '6': { disks: 4, mdadm: '6' },
};
export const ESP_VOLUME = 'esp';
/** What mdadm stores of a name without changing it. */
const VOLUME_NAME = /^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}$/;
const MAX_HINTS = 128;

interface Volume {
  /** mdadm's name of the level. */
  readonly level: string;
  readonly leastDisks: number;
  /** GiB; null: all that is left. */
  readonly size: number | null;
  readonly name: string | undefined;
  /** Undefined: the configuration does not say it. */
  readonly isRoot: boolean | undefined;
  /** One disk each; undefined: all disks. */
  readonly hints: readonly JsonObject[] | undefined;
}

const logicalDisksOf = (config: unknown): readonly JsonObject[] => {
  const given = isObject(config) ? config['logical_disks'] : undefined;
  return Array.isArray(given) ? given.filter(isObject) : [];
};
const softwareError = (details: string): AgentError => new AgentError('SoftwareRAIDError', details);

/** The steps of software RAID as both agents, ours and the simulated one, offer them; each runs its own. */
export const RAID_STEPS = {
  delete: { step: 'delete_configuration', interface: 'raid', priority: { clean: 0, service: 0 }, abortable: true },
  create: { step: 'create_configuration', interface: 'raid', priority: { clean: 0, service: 0 }, abortable: true },
  apply: {
    step: 'apply_configuration',
    interface: 'raid',
    priority: { deploy: 0, service: 0 },
    abortable: false,
    argsinfo: {
      raid_config: { description: 'The RAID configuration to apply.', required: true },
      delete_existing: { description: 'Whether the existing RAID configuration is deleted before. Default: true.', required: false },
    },
  },
} as const;

/** Whether a configuration has volumes that the agent makes. */
export const hasSoftwareVolumes = (config: unknown): boolean => logicalDisksOf(config).some((disk) => disk['controller'] === 'software');

/** The names of volumes in `properties.skip_block_devices`, which stay. */
export function keptVolumes(node: JsonObject): readonly string[] {
  const { properties } = node;
  const hints = isObject(properties) ? properties['skip_block_devices'] : undefined;
  const names = Array.isArray(hints) ? hints.filter(isObject).map((hint) => hint['volume_name']) : [];
  return names.filter((name): name is string => typeof name === 'string');
}

/** The volumes of a configuration. Throws SoftwareRAIDError with all that is wrong. @param diskCount of the machine */
export function readVolumes(config: JsonObject, node: JsonObject, diskCount: number): readonly Volume[] {
  const disks = logicalDisksOf(config);
  if (disks.length === 0) throw softwareError('RAID config contains no logical disks');
  const problems = [...problemsOf(disks, keptVolumes(node), diskCount), ...disks.flatMap((disk) => [...furtherProblems(disk)])];
  if (problems.length > 0) throw softwareError(`Could not validate Software RAID config for ${uuidOf(node)}: ${problems.join('; ')}`);
  return disks.map((disk) => {
    const { mdadm, disks: least } = LEVELS[levelOf(disk)]!;
    const { size_gb: size, volume_name: name, is_root_volume: root, physical_disks: hints } = disk;
    return {
      level: mdadm,
      leastDisks: least,
      size: size === 'MAX' ? null : Number(size),
      name: typeof name === 'string' ? name : undefined,
      isRoot: typeof root === 'boolean' ? root : undefined,
      hints: Array.isArray(hints) ? (hints as JsonObject[]) : undefined,
    };
  });
}

const uuidOf = ({ uuid }: JsonObject): string => (typeof uuid === 'string' ? uuid : '');
const given = (value: unknown): boolean => value !== undefined && value !== null;

/** What ironic-python-agent refuses, in its order. */
function* problemsOf(disks: readonly JsonObject[], kept: readonly string[], diskCount: number): Generator<string> {
  if (disks.length > 2) yield 'Software RAID configuration requires one or two logical disks';
  const names: unknown[] = [];
  let hasRoot = false;
  for (const { controller, volume_name: name, is_root_volume: isRoot, physical_disks: hints } of disks) {
    if (controller !== 'software') yield "Software RAID configuration requires all logical disks to have 'controller'='software'";
    if (!given(name) && kept.length > 0)
      yield 'All logical disks are required to have a volume name specified as a volume name is mentioned in the property skip block devices.';
    if (typeof name === 'string' && names.includes(name)) yield `Duplicate software RAID device name ${shortened(name, 40)} detected`;
    names.push(name);
    if (isRoot && hasRoot) yield 'Software RAID configuration allows only one logical disk to be marked as is_root_volume';
    hasRoot ||= isRoot === true;
    if (!given(hints)) continue;
    if (!Array.isArray(hints) || hints.length < 2)
      yield 'The physical_disks parameter for software RAID must be a list with at least 2 items, each specifying a disk in the device hints format';
    if (!Array.isArray(hints) || !hints.every(isObject))
      yield 'The physical_disks parameter for software RAID must be a list of device hints (dictionaries)';
  }
  if (disks[0]!['raid_level'] !== '1') yield 'Software RAID Configuration requires RAID-1 for the first logical disk';
  const [first, second, ...others] = disks;
  if (!second || others.length > 0) return;
  if (first!['size_gb'] === 'MAX' && second['size_gb'] === 'MAX') yield "Software RAID can have only one RAID device with size 'MAX'";
  const level = levelOf(second);
  if (!Object.hasOwn(LEVELS, level)) yield `Software RAID configuration does not support RAID level ${level}`;
  else if ((level === '5' || level === '6') && diskCount < LEVELS[level]!.disks)
    yield `Software RAID configuration is not possible for RAID level ${level} with only ${diskCount} block devices found.`;
}
const levelOf = ({ raid_level: level }: JsonObject): string =>
  shortened(typeof level === 'string' ? level : JSON.stringify(level ?? null), 20);

/** What mdadm or the layout cannot do. */
function* furtherProblems(disk: JsonObject): Generator<string> {
  const { size_gb: size, volume_name: name, physical_disks: hints } = disk;
  if (!Object.hasOwn(LEVELS, levelOf(disk))) yield `There is no RAID level ${levelOf(disk)} for software RAID`;
  if (size !== 'MAX' && !(Number.isSafeInteger(Number(size)) && Number(size) > 0 && typeof size !== 'boolean'))
    yield `The size_gb of a logical disk is a number of GiB above zero, or 'MAX', and not ${shortened(JSON.stringify(size) ?? 'missing', 40)}`;
  if (given(name) && (typeof name !== 'string' || !VOLUME_NAME.test(name)))
    yield `The volume_name of a software RAID device has 1 to 32 of the characters A-Z, a-z, 0-9, _, . and -, and does not start with -: ${shortened(JSON.stringify(name), 60)}`;
  if (name === ESP_VOLUME) yield `The volume_name ${ESP_VOLUME} is that of the EFI system partitions`;
  if (!Array.isArray(hints)) return;
  if (hints.length > MAX_HINTS) yield `The physical_disks parameter for software RAID has at most ${MAX_HINTS} items`;
  for (const hint of hints.slice(0, MAX_HINTS).filter(isObject)) yield* problemOfHint(hint);
}
function* problemOfHint(hint: JsonObject): Generator<string> {
  try {
    parseHints(hint);
  } catch (error) {
    yield reasonOf(error);
  }
}

/** A volume with the names of its disks. */
export interface PlacedVolume extends Volume {
  readonly disks: readonly string[];
}
/** Chooses the disks of each volume. Throws SoftwareRAIDError where too few match. */
export function placeVolumes(volumes: readonly Volume[], disks: readonly HintedDisk[]): readonly PlacedVolume[] {
  return volumes.map((volume) => {
    const names = volume.hints ? chosenBy(volume.hints, disks) : disks.map(({ name }) => name);
    if (names.length < volume.leastDisks)
      throw softwareError(
        `Software RAID level ${volume.level} needs at least ${volume.leastDisks} disks, and has ${names.length}: ${names.join(', ')}`,
      );
    return { ...volume, disks: names };
  });
}
function chosenBy(hints: readonly JsonObject[], disks: readonly HintedDisk[]): readonly string[] {
  const chosen: string[] = [];
  for (const hint of hints) {
    const candidates = matchDisks(disks, parseHints(hint)).map(({ name }) => name);
    const shown = JSON.stringify(hint);
    if (candidates.length === 0)
      throw softwareError(
        `No candidates for physical disk ${shown} from the list ${shortened(disks.map(({ name }) => name).join(', '), 500)}`,
      );
    const next = candidates.find((name) => !chosen.includes(name));
    if (next === undefined)
      throw softwareError(
        `No candidates left for physical disk ${shown} from the list ${candidates.join(', ')} after picking ${chosen.join(', ')} for previous volumes`,
      );
    chosen.push(next);
  }
  return chosen;
}

const MiB = 2 ** 20;
const GiB = 2 ** 30;
/** Of the EFI system partition on each disk, as other tools make it. */
export const ESP_SIZE = 550 * MiB;
/** What is left before the first partition: for an EFI system partition, or for a boot loader of a BIOS. */
const FRONT = { uefi: ESP_SIZE + MiB, gpt: 8 * MiB, msdos: MiB } as const;
/** At the end of each disk, for the second copy of a GPT. */
const TAIL = MiB;

interface Layout {
  readonly label: 'gpt' | 'msdos';
  /** Bytes, in the order of the volumes. */
  readonly partitions: readonly { readonly start: number; readonly size: number }[];
}
/** Volumes in the order of their devices: the one that takes what is left is the last. */
export const inOrder = (volumes: readonly PlacedVolume[]): readonly PlacedVolume[] => [
  ...volumes.filter(({ size }) => size !== null),
  ...volumes.filter(({ size }) => size === null),
];

/** The partitions of a disk. Throws SoftwareRAIDError if it is too small. */
export function layoutOf(
  volumes: readonly PlacedVolume[],
  disk: { readonly name: string; readonly size: number },
  { bootMode, label }: { readonly bootMode: 'uefi' | 'bios'; readonly label: 'gpt' | 'msdos' },
): Layout {
  const end = Math.floor((disk.size - TAIL) / MiB) * MiB;
  let at: number = FRONT[bootMode === 'uefi' ? 'uefi' : label];
  // The first partition ends at its size from the disk's start, so the volumes begin at whole GiB after it.
  let isFirst = true;
  const partitions = volumes
    .filter((volume) => volume.disks.includes(disk.name))
    .map(({ size }) => {
      const start = at;
      at = size === null ? end : (isFirst ? 0 : start) + size * GiB;
      isFirst = false;
      if (at > end || at <= start)
        throw softwareError(
          `Failed to create partitions on ${disk.name}: ${size === null ? 'nothing is left' : `${size} GiB do not fit`} on its ${(disk.size / GiB).toFixed(2)} GiB`,
        );
      return { start, size: at - start };
    });
  if (label === 'msdos' && end > 2 ** 32 * 512)
    throw softwareError(`Failed to create partitions on ${disk.name}: it is larger than 2 TiB, and needs the capability disk_label:gpt`);
  return { label, partitions };
}

type BootMode = 'uefi' | 'bios';
/** The capabilities of a node's field: a JSON object, its text, or `a:b,c:d`. */
function capabilitiesOf(field: unknown): Readonly<Record<string, unknown>> {
  const given = isObject(field) ? field['capabilities'] : undefined;
  if (isObject(given)) return given;
  if (typeof given !== 'string') return {};
  try {
    const parsed: unknown = JSON.parse(given);
    if (isObject(parsed)) return parsed;
  } catch {
    // The other notation
  }
  return Object.fromEntries(given.split(',').map((pair) => pair.split(/:(.*)/s, 2).map((part) => part.trim()) as [string, string]));
}
/** How the instance will boot, and the partition tables that this needs. @param own the ramdisk's boot mode */
export function bootOf(node: JsonObject, own: BootMode): { readonly bootMode: BootMode; readonly label: 'gpt' | 'msdos' } {
  const { instance_info: instance, driver_internal_info: internal } = node;
  const [wanted, has] = [capabilitiesOf(instance), capabilitiesOf(node['properties'])];
  const isSecure = String(wanted['secure_boot'] ?? has['secure_boot']).toLowerCase() === 'true';
  const modes = [
    isObject(instance) ? instance['deploy_boot_mode'] : undefined,
    has['boot_mode'],
    isObject(internal) ? internal['deploy_boot_mode'] : undefined,
  ];
  const given = modes.find((value) => value !== undefined && value !== null);
  const mode = typeof given === 'string' ? given.toLowerCase() : '';
  const bootMode = isSecure ? 'uefi' : mode === 'uefi' || mode === 'bios' ? mode : own;
  return { bootMode, label: bootMode === 'uefi' || (wanted['disk_label'] ?? has['disk_label']) === 'gpt' ? 'gpt' : 'msdos' };
}
