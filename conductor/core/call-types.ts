/** Arguments and results of the calls to a conductor: plain JSON. `conductor/conductor.ts` lists the calls. */
import type { HttpMethod } from '../../drivers/interfaces';
import type { AllocationRecord, Json, JsonObject, NewOf, VolumeConnectorRecord, VolumeTargetRecord } from '../../model/records';

export interface Validation {
  readonly result: boolean;
  readonly reason?: string;
}
/**
 * A record that the API has read for the request, as the last argument of a call: a conductor in the same process need not read it again.
 * RPC omits it.
 */
export class AlreadyRead<T> {
  constructor(readonly record: T) {}
}
/** Undefined: nothing was read. From another process, any value may arrive. */
export const recordOf = <T>(read: AlreadyRead<T> | undefined): T | undefined => (read instanceof AlreadyRead ? read.record : undefined);
/** The arguments of a provision verb, named like the keys of the request body. */
export interface ProvisionArgs {
  readonly configdrive?: string | JsonObject | null;
  readonly clean_steps?: readonly JsonObject[];
  readonly deploy_steps?: readonly JsonObject[];
  readonly service_steps?: readonly JsonObject[];
  readonly rescue_password?: string;
  readonly disable_ramdisk?: boolean;
  /** How the cleaning that follows erases the disks. */
  readonly erase?: string;
  /** Hints for disks that it does not write. */
  readonly keep?: readonly JsonObject[];
}
/** A vendor's method, as the API shows it. */
export interface VendorMethodInfo {
  readonly http_methods: readonly HttpMethod[];
  readonly async: boolean;
  readonly description: string;
  readonly attach: boolean;
  readonly require_exclusive_lock: boolean;
}
export interface VendorAnswer {
  /** Accepted: the work continues after the response. */
  readonly async: boolean;
  readonly result: Json;
}
export interface Lookup {
  readonly macs: readonly string[];
  readonly bmcAddresses?: readonly string[];
  readonly nodeUuid?: string | undefined;
  /** Whether the response carries the agent's token. Otherwise the agent gets it at its lookup, and only one response may have it. */
  readonly wantsToken?: boolean;
  /** How a machine with unknown addresses is enrolled; absent: it is not. */
  readonly discovery?: Discovery;
}
export interface Discovery {
  readonly driver: string;
  readonly conductor_group: string;
}

/** Records about the volumes from which a node can boot over a storage network. */
export interface VolumeRecords {
  readonly connector: VolumeConnectorRecord;
  readonly target: VolumeTargetRecord;
}
export type VolumeKind = keyof VolumeRecords;
export type NewAllocation = Omit<NewOf<AllocationRecord, never>, 'state' | 'node_uuid' | 'last_error'>;

/** A part of what a machine said on its serial line. Offsets count its bytes since the log began. */
export interface ConsoleLogPart {
  /** The offsets of the first byte that is saved, and after the last one. */
  readonly start: number;
  readonly end: number;
  readonly offset: number;
  /** Where the next part begins. */
  readonly next_offset: number;
  readonly text: string;
}
