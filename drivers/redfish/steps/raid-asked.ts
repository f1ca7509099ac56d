/** The logical disks that are asked for: target_raid_config, or the argument of a step, held against what there can be. */
import { Fault } from '../../../model/errors';
import { repr } from '../../../model/python';
import { logicalDisks } from '../../agent/raid';
import { levelOf, type AskedDisk } from './raid-plan';

const invalid = (message: string): Fault => new Fault('InvalidParameterValue', { message });

const isOneOf =
  (...words: readonly unknown[]) =>
  (value: unknown): boolean =>
    words.includes(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isWhole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
/** Key → what it may be. Others are not known. */
const MEMBERS: Readonly<Record<keyof AskedDisk, (value: unknown) => boolean>> = {
  size_gb: (value) => value === 'MAX' || isWhole(value),
  raid_level: isOneOf('JBOD', '0', '1', '2', '5', '6', '1+0', '5+0', '6+0'),
  is_root_volume: isBoolean,
  volume_name: isText,
  share_physical_disks: isBoolean,
  disk_type: isOneOf('hdd', 'ssd'),
  interface_type: isOneOf('sata', 'scsi', 'sas'),
  number_of_physical_disks: isWhole,
  controller: isText,
  physical_disks: Array.isArray,
};
const REQUIRED = ['size_gb', 'raid_level'] as const;

/** A volume each; more are nobody's intention. */
const MAX_DISKS = 100;

/** What the schema says, and that Redfish knows no SCSI. Throws InvalidParameterValue. */
export function askedDisks(config: unknown): readonly AskedDisk[] {
  const disks = logicalDisks(config);
  if (disks.length > MAX_DISKS) throw invalid(`RAID config validation error: there are more than ${MAX_DISKS} logical disks`);
  for (const disk of disks) {
    const missing = REQUIRED.find((key) => disk[key] === undefined);
    if (missing !== undefined) throw invalid(`RAID config validation error: ${repr(missing)} is a required property`);
    for (const [key, value] of Object.entries(disk)) {
      if (!Object.hasOwn(MEMBERS, key))
        throw invalid(`RAID config validation error: Additional properties are not allowed (${repr(key)} was unexpected)`);
      if (!MEMBERS[key as keyof AskedDisk](value)) throw invalid(`RAID config validation error: ${repr(value)} is not valid for ${key}`);
    }
    if (disk['physical_disks'] !== undefined && disk['controller'] === undefined)
      throw invalid("RAID config validation error: 'controller' is a dependency of 'physical_disks'");
  }
  checkInterfaceTypes(config);
  return disks as unknown as readonly AskedDisk[];
}

/** Whatever else is wrong with it. Throws InvalidParameterValue. */
export function checkInterfaceTypes(config: unknown): void {
  const disks = (config as { readonly logical_disks?: unknown }).logical_disks;
  const isScsi = (disk: unknown): boolean => (disk as { readonly interface_type?: unknown } | null)?.interface_type === 'scsi';
  if (Array.isArray(disks) && disks.some(isScsi)) throw invalid('interface type `scsi` not supported by Redfish RAID');
}

/** What can be said before the drives are known. Throws InvalidParameterValue, DriverOperationError. */
export function checkAskedDisks(nodeUuid: string, asked: readonly AskedDisk[]): void {
  for (const disk of asked) {
    if (disk.controller === 'software')
      throw invalid(`Software RAID (controller "software") cannot be made by Redfish: set the raid_interface of node ${nodeUuid} to agent`);
    if (disk.size_gb === 'MAX' && disk.physical_disks === undefined)
      throw invalid(
        `create_configuration called with invalid target_raid_configuration for node ${nodeUuid}. 'physical_disks' is missing from logical_disk ` +
          `while 'size_gb'='MAX' was requested: ${repr(disk)}`,
      );
    levelOf(disk.raid_level);
  }
}
