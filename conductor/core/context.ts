/** The context of a running conductor: store, drivers, options, and its state in memory. Types only. */
import type { Options } from '../../config/options';
import type { Connections, HardwareType, Interfaces } from '../../drivers/interfaces';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { MacLists } from '../../wire/mac-lists';
import type { Metrics } from '../../model/metrics';
import type { Notifier } from '../../model/notifications';
import type { Origin } from '../../model/origin';
import type { FlowName } from '../../model/states';
import type { Store } from '../../store/store';
import type { EventReads } from '../runtime/event-reads';
import type { HeartbeatBuffer } from '../runtime/heartbeat-buffer';
import type { BmcTurns } from '../runtime/bmc-turns';
import type { NovaEvents } from '../runtime/nova-events';
import type { Hardware } from '../hardware/hardware';
import type { Accelerator } from '../hardware/accelerator';
import type { HealthRule, Standings } from '../../model/rules/health-rules';
import type { TimeLimits } from '../../model/rules/time-limits';
import type { InspectionRule } from '../../model/rules/inspection-rules';
import type { Lease, Probed } from '../runtime/lease';
import type { Locks } from '../runtime/locks';
import type { Ownership } from '../runtime/ownership';
import type { Workers } from '../runtime/workers';

/** What main (or a test) starts a conductor from. */
export interface ConductorParts {
  readonly store: Store;
  readonly options: Options;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Absent: no notifications are sent. */
  readonly notifier?: Notifier;
  readonly random: (bytes: number) => Buffer;
  readonly connections: Connections;
  readonly interfaces: Interfaces;
  readonly hardwareTypes: Readonly<Record<string, HardwareType>>;
  /** The address for other processes; absent: no other process uses this database. */
  readonly address?: string | undefined;
  /** Checks whether the process at this address is alive. */
  readonly probe?: ((holder: { readonly hostname: string; readonly address: string }) => Promise<Probed>) | undefined;
}

/** What this conductor counts of the health of machines between readings. */
interface HealthWatch {
  readonly standings: Standings;
  /** Whether the open alerts are known from the database. */
  isCurrent: boolean;
}
export interface Context extends ConductorParts, Ownership {
  readonly host: string;
  readonly notifier: Notifier;
  readonly hardware: Hardware;
  /** The flows, as far as the core needs them: the type of their errors in the node's history. */
  readonly flows: Readonly<Record<FlowName, { readonly errorType: string }>>;
  /** Read from [inspection_rules]built_in_rules. */
  readonly builtInRules: readonly InspectionRule[];
  /** The built-in rules, with those of [health]rules. */
  readonly healthRules: readonly HealthRule[];
  readonly healthWatch: HealthWatch;
  readonly eventReads: EventReads;
  /** Read from [health]time_limits. */
  readonly timeLimits: TimeLimits;
  /** Read from [inspector]known_accelerators. */
  readonly accelerators: readonly Accelerator[];
  /** Which unknown machines may be enrolled. */
  readonly unknownMacs: MacLists;
  readonly workers: Workers;
  readonly locks: Locks;
  readonly heartbeats: HeartbeatBuffer;
  /** When the flow of each node began, in milliseconds; only of flows that began in this process. */
  readonly flowStarts: Map<string, number>;
  readonly lease: Lease;
  /** Nodes that the periodic work of an interface is reading without a lock. */
  readonly nodesBeingRead: Set<string>;
  readonly bmcTurns: BmcTurns;
  readonly nova: NovaEvents;
  /** The request that caused this work; absent: none. */
  readonly origin?: Origin;
  /** Aborted when the caller disconnects before the response; absent: unknown, or no caller waits. */
  readonly caller?: AbortSignal | undefined;
  /** Aborted when the conductor stops. */
  readonly signal: AbortSignal;
  /** Schedules a poll of the running step of a waiting node. */
  readonly pollLater: (nodeUuid: string, seconds: number) => void;
  /** Whether a poll of the node is scheduled. */
  readonly isPolling: (nodeUuid: string) => boolean;
  /** Cancels the scheduled poll: another conductor polls the node, or its step is over. */
  readonly stopPolling: (nodeUuid: string) => void;
  /** Counts background work until it ends: rounds of periodic work, polls, events for Nova. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
}
