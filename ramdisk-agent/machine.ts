/** The context of commands and steps: the machine, and its node. */
import type { Clock } from '../model/clock';
import type { InventoryDisk, JsonObject } from '../model/records';
import type { DiscoveredService } from '../wire/dns/mdns';
import { type Device, openDevice } from './disk/device';
import type { Fetching } from './disk/download';
import { readDisks } from './inventory/disks';
import type { HostEnvironment } from './inventory/inventory';
import type { Frames } from './inventory/lldp';
import type { BufferedLog } from './log';
import type { Parameters } from './parameters';

export interface Machine extends HostEnvironment {
  readonly parameters: Parameters;
  readonly frames: Frames;
  /** Looks up a service by multicast DNS; undefined: not found. */
  readonly findService: (service: string, signal: AbortSignal) => Promise<DiscoveredService | undefined>;
  readonly clock: Clock;
  readonly log: BufferedLog;
  readonly fetching: Fetching;
  readonly random: (bytes: number) => Buffer;
  readonly newUuid: () => string;
  /** The root folder of the system's files: /. */
  readonly root: string;
  /** Ends the agent, its heartbeats and its API; the machine stays on. */
  readonly retire: () => void;
  /** The folder for temporary directories. */
  readonly temporary: string;
  /** The lookup changes the state, and so does each command whose parameters contain the node. */
  readonly state: MachineState;
}
interface MachineState {
  node: JsonObject;
  /** The lookup's `config`. */
  config: JsonObject;
  /** The identifiers of the last written image, for get_partition_uuids. Null: none has been written. */
  partitionUuids: JsonObject | null;
}

/** The machine's disks, read again at each call, since erasing and writing change them. */
export const disksOf = (machine: Machine): readonly InventoryDisk[] => readDisks(machine.tree);

export const openDisk = (machine: Machine, disk: InventoryDisk): Promise<Device> =>
  openDevice({ path: disk.name, size: disk.size, sectorSize: Number(disk['logical_sectors'] ?? 512), run: machine.run });

/** Flushes all writes to the disks. */
export async function syncDisks(machine: Machine): Promise<void> {
  await machine.run('sync', [], { timeoutMs: 600_000 });
  for (const disk of disksOf(machine)) await machine.run('blockdev', ['--flushbufs', disk.name], { timeoutMs: 600_000 });
}
