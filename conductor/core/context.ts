/** What every file of this room gets: the rooms below, the options, and what one running conductor keeps in memory. */
import type { Options } from '../../config/options';
import type { Connections, HardwareType, Interfaces } from '../../drivers/interfaces';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { MacLists } from '../../model/mac-lists';
import type { Metrics } from '../../model/metrics';
import type { Notifier } from '../../model/notifications';
import type { Origin } from '../../model/origin';
import type { FlowName } from '../../model/states';
import type { Store } from '../../store/store';
import type { HeartbeatBuffer } from './heartbeat-buffer';
import type { BmcTurns } from './bmc-turns';
import type { Hardware } from './hardware';
import type { Accelerator } from './accelerator';
import type { InspectionRule } from '../../model/rules/inspection-rules';
import type { Lease, Probed } from './lease';
import type { Locks } from './locks';
import type { Ownership } from './ownership';
import type { Tokens } from './token';
import type { Workers } from './workers';

/** What main (or a test) starts a conductor from. */
export interface ConductorParts {
  readonly store: Store;
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: nobody gets notifications. */
  readonly notifier?: Notifier;
  readonly random: (bytes: number) => Buffer;
  readonly connections: Connections;
  readonly interfaces: Interfaces;
  readonly hardwareTypes: Readonly<Record<string, HardwareType>>;
  /** Where this conductor answers to other processes; absent: they do not reach it, and none shares its database. */
  readonly address?: string;
  /** How it stands with the process at this address. */
  readonly probe?: (holder: { readonly hostname: string; readonly address: string }) => Promise<Probed>;
}

export interface Context extends ConductorParts, Ownership {
  readonly host: string;
  readonly notifier: Notifier;
  readonly hardware: Hardware;
  /** The flows, as far as the core needs them: the type of their errors in the node's history. */
  readonly flows: Readonly<Record<FlowName, { readonly errorType: string }>>;
  /** Those of [inspection_rules]built_in_rules. */
  readonly builtInRules: readonly InspectionRule[];
  /** Those of [inspector]known_accelerators. */
  readonly accelerators: readonly Accelerator[];
  /** Which machines may be enrolled that nobody knows. */
  readonly unknownMacs: MacLists;
  readonly workers: Workers;
  readonly locks: Locks;
  readonly heartbeats: HeartbeatBuffer;
  /** When the flow of each node began, as far as it began in this process. */
  readonly flowStarts: Map<string, number>;
  readonly lease: Lease;
  /** Nodes that a periodic looks at without holding them. */
  readonly nodesBeingRead: Set<string>;
  readonly bmcTurns: BmcTurns;
  readonly tokens: Tokens;
  /** Whose request this work follows from; absent: nobody's. */
  readonly origin?: Origin;
  /** Aborted when whoever made the call went away without its answer; absent: that is not known, or nobody waits for one. */
  readonly caller?: AbortSignal | undefined;
  /** Aborted when the conductor stops. */
  readonly signal: AbortSignal;
  /** Asks, after so many seconds, how the running step of a waiting node stands. */
  readonly pollLater: (nodeUuid: string, seconds: number) => void;
  /** Whether it will be. */
  readonly isPolling: (nodeUuid: string) => boolean;
  /** Another conductor asks. */
  readonly stopPolling: (nodeUuid: string) => void;
  /** Counts a round of periodic work while it is under way. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
}
