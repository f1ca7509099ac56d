/** Requested logical disks: target_raid_config, or the argument of a step, validated. */
import { invalidParameter } from '../../../model/errors';
import { repr } from '../../../model/python';
import { logicalDisks } from '../../agent/raid';
import { levelOf, type RequestedDisk } from './raid-plan';

const isOneOf =
  (...words: readonly unknown[]) =>
  (value: unknown): boolean =>
    words.includes(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isWhole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
/** Key → its check. Other keys are unknown. */
const MEMBERS: Readonly<Record<keyof RequestedDisk, (value: unknown) => boolean>> = {
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

/** Maximum number of logical disks. More are not plausible. */
const MAX_DISKS = 100;

/** Checks the schema, and that no SCSI is requested, which Redfish does not know. Throws InvalidParameterValue. */
export function requestedDisks(config: unknown): readonly RequestedDisk[] {
  const disks = logicalDisks(config);
  if (disks.length > MAX_DISKS) throw invalidParameter(`RAID config validation error: there are more than ${MAX_DISKS} logical disks`);
  for (const disk of disks) {
    const missing = REQUIRED.find((key) => disk[key] === undefined);
    if (missing !== undefined) throw invalidParameter(`RAID config validation error: ${repr(missing)} is a required property`);
    for (const [key, value] of Object.entries(disk)) {
      if (!Object.hasOwn(MEMBERS, key))
        throw invalidParameter(`RAID config validation error: Additional properties are not allowed (${repr(key)} was unexpected)`);
      if (!MEMBERS[key as keyof RequestedDisk](value))
        throw invalidParameter(`RAID config validation error: ${repr(value)} is not valid for ${key}`);
    }
    if (disk['physical_disks'] !== undefined && disk['controller'] === undefined)
      throw invalidParameter("RAID config validation error: 'controller' is a dependency of 'physical_disks'");
  }
  checkInterfaceTypes(config);
  return disks as unknown as readonly RequestedDisk[];
}

/** Checks interface types, whatever else is wrong. Throws InvalidParameterValue. */
export function checkInterfaceTypes(config: unknown): void {
  const disks = (config as { readonly logical_disks?: unknown }).logical_disks;
  const isScsi = (disk: unknown): boolean => (disk as { readonly interface_type?: unknown } | null)?.interface_type === 'scsi';
  if (Array.isArray(disks) && disks.some(isScsi)) throw invalidParameter('interface type `scsi` not supported by Redfish RAID');
}

/** The checks that need no drives. Throws InvalidParameterValue, DriverOperationError. */
export function checkRequestedDisks(nodeUuid: string, disks: readonly RequestedDisk[]): void {
  for (const disk of disks) {
    if (disk.controller === 'software')
      throw invalidParameter(
        `Software RAID (controller "software") cannot be made by Redfish: set the raid_interface of node ${nodeUuid} to agent`,
      );
    if (disk.size_gb === 'MAX' && disk.physical_disks === undefined)
      throw invalidParameter(
        `create_configuration called with invalid target_raid_configuration for node ${nodeUuid}. 'physical_disks' is missing from logical_disk ` +
          `while 'size_gb'='MAX' was requested: ${repr(disk)}`,
      );
    levelOf(disk.raid_level);
  }
}
