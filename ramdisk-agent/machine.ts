/** What commands and steps work on: the machine, and what is known of its node. */
import type { Clock } from '../model/clock';
import type { InventoryDisk, JsonObject } from '../model/records';
import type { DiscoveredService } from '../wire/dns/mdns';
import { type Device, openDevice } from './disk/device';
import type { Fetching } from './disk/download';
import { readDisks } from './inventory/disks';
import type { Surroundings } from './inventory/inventory';
import type { Frames } from './inventory/lldp';
import type { KeptLog } from './log';
import type { Parameters } from './parameters';

export interface Machine extends Surroundings {
  readonly parameters: Parameters;
  readonly frames: Frames;
  /** Asks multicast DNS for a service; undefined: nobody has it. */
  readonly findService: (service: string, signal: AbortSignal) => Promise<DiscoveredService | undefined>;
  readonly clock: Clock;
  readonly log: KeptLog;
  readonly fetching: Fetching;
  readonly random: (bytes: number) => Buffer;
  readonly newUuid: () => string;
  /** The folder that the system's files are under: /. */
  readonly root: string;
  /** Ends the agent, its heartbeats and its API; the machine stays as it is. */
  readonly retire: () => void;
  /** Where directories may be made. */
  readonly temporary: string;
  /** Changes with the lookup and with each command that brings the node. */
  readonly state: MachineState;
}
export interface MachineState {
  node: JsonObject;
  /** What lookup said under `config`. */
  config: JsonObject;
  /** Of the image written last, for get_partition_uuids; null before. */
  partitionUuids: JsonObject | null;
}

/** Read anew each time: erasing and writing change them. */
export const disksOf = (machine: Machine): readonly InventoryDisk[] => readDisks(machine.tree);

export const openDisk = (machine: Machine, disk: InventoryDisk): Promise<Device> =>
  openDevice({ path: disk.name, size: disk.size, sectorSize: Number(disk['logical_sectors'] ?? 512), run: machine.run });

/** Everything that was written is on the disks. */
export async function syncDisks(machine: Machine): Promise<void> {
  await machine.run('sync', [], { timeoutMs: 600_000 });
  for (const disk of disksOf(machine)) await machine.run('blockdev', ['--flushbufs', disk.name], { timeoutMs: 600_000 });
}
