/** The context of commands and steps: the machine, and its node. */
import { rootDisk } from '../model/agent/root-disk';
import { concerning, describeDisks } from '../model/agent/subject';
import { retry, type Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { JsonObject } from '../model/records';
import type { DiscoveredService } from '../wire/dns/mdns';
import type { Device } from './disk/device';
import type { Fetching } from './disk/download';
import { openToRead, openToWrite, protectsShared } from './disk/guard';
import { findDisks, type FoundDisk, mediaOf } from './inventory/disks';
import type { HostEnvironment } from './inventory/inventory';
import type { Frames } from './inventory/lldp';
import type { Kept } from './kept';
import type { KernelCalls } from './kexec/kernel-calls';
import type { BufferedLog } from './log';
import type { Parameters as Settings } from './parameters';
import type { RaidHost } from './raid/arrays';
import type { RootVolumes } from './raid/configuration';
import { rootCandidates } from './raid/root';
import { untouchable } from './raid/untouchable';

export interface Machine extends HostEnvironment {
  readonly parameters: Settings;
  readonly frames: Frames;
  /** Looks up a service by multicast DNS; undefined: not found. */
  readonly findService: (service: string, signal: AbortSignal) => Promise<DiscoveredService | undefined>;
  /** The time of an NTP server, milliseconds of the Unix epoch. */
  readonly ntpTime: (server: string, signal: AbortSignal) => Promise<number>;
  readonly kernelCalls: KernelCalls;
  readonly clock: Clock;
  readonly log: BufferedLog;
  /** Outlives this program. */
  readonly kept: Kept;
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
  /** Of the node, since the first command that had them. */
  ports?: readonly JsonObject[];
  /** The lookup's `config`. */
  config: JsonObject;
  /** The identifiers of the last written image, for get_partition_uuids. Null: none has been written. */
  partitionUuids: JsonObject | null;
  /** The API that answered the lookup, and the token of this agent. Null: before the lookup, or the agent has no token. */
  api: { readonly url: string; readonly token: string } | null;
  /** Arrays that this agent created → is_root_volume, as the configuration says it. */
  rootVolumes?: RootVolumes;
  /** Files with results of steps, for the logs. */
  outputFiles?: readonly string[];
}

/** The machine's disks without media of the ramdisk, read again at each call, since erasing and writing change them. */
const disksOf = (machine: Machine): readonly FoundDisk[] => findDisks(machine);

const patience = ({ tree, run, clock, parameters }: Machine) => ({ tree, run, clock, limitMs: parameters.diskTimeout * 1000 });
export const openDiskToRead = (machine: Machine, disk: Parameters<typeof openToRead>[0]): Promise<Device> =>
  openToRead(disk, patience(machine));
/** Throws what openToWrite throws: the disk may hold shared storage. */
export const openDisk = (machine: Machine, disk: Parameters<typeof openToWrite>[0]): Promise<Device> =>
  openToWrite(disk, {
    ...patience(machine),
    media: mediaOf(machine),
    kept: [...untouchable(machine.tree, disksOf(machine), machine.state.node)],
    protectsShared: protectsShared(machine.parameters.guardSharedStorage, machine.state.node),
  });

export const raidHost = (machine: Machine): RaidHost => ({
  tree: machine.tree,
  run: machine.run,
  clock: machine.clock,
  log: machine.log,
  random: machine.random,
  newUuid: machine.newUuid,
  open: (disk) => openDisk(machine, disk),
  openToRead: (disk) => openDiskToRead(machine, disk),
  disks: () => disksOf(machine),
  temporary: machine.temporary,
});

/**
 * The disk that the configuration of software RAID or the hints of the node select. The error DeviceNotFound concerns all disks that the
 * machine has.
 */
export function findRootDisk(machine: Machine, node = machine.state.node): Promise<FoundDisk> {
  const disks = disksOf(machine);
  return concerning(
    () => describeDisks(disks),
    async () => {
      const candidates = await rootCandidates(raidHost(machine), node, disks, machine.state.rootVolumes);
      return 'root' in candidates ? candidates.root : rootDisk(candidates.disks, node);
    },
  );
}

/**
 * The disk for the image, for which it waits: controllers and arrays may show it late. Throws DeviceNotFound after all attempts. Before the
 * lookup the node has no hints, and any disk that is large enough will do.
 */
export async function waitForRootDisk(machine: Machine, signal?: AbortSignal): Promise<FoundDisk> {
  const { diskWaitAttempts, diskWaitDelay } = machine.parameters;
  return retry(
    { clock: machine.clock, signal },
    () => findRootDisk(machine),
    (error, attempt) => {
      if (attempt >= diskWaitAttempts) return undefined;
      machine.log.debug(`${reasonOf(error)} Attempt ${attempt} of ${diskWaitAttempts}`);
      return diskWaitDelay * 1000;
    },
  );
}

/** Flushes all writes to the disks. */
export async function syncDisks(machine: Machine): Promise<void> {
  await machine.run('sync', [], { timeoutMs: 600_000 });
  for (const disk of disksOf(machine)) await machine.run('blockdev', ['--flushbufs', disk.name], { timeoutMs: 600_000 });
}
