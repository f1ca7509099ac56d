/**
 * The table of metrics, and the interface for recording them. server/metrics.ts implements it; docs/reference/metrics.md is generated
 * from the table. Label values are names from this program, never values from callers, machines or agents, so that the number of series is
 * small. Sensor metrics are the exception.
 */
import type { Clock } from './clock';

export interface MetricRow {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /** Maximum number of series. Absent: the default of server/metrics.ts. */
  readonly most?: number;
}

/** Bounds in seconds: for API requests and RPC calls; for requests to other hosts, periodic tasks and locks; for steps and flows. */
const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const REMOTE = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LONG = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400];

/** Maximum number of series of a sensor metric. Its labels contain values from machines, which conductor/periodic/sensor-samples.ts limits. */
const MAX_SENSORS = 500_000;

// One row per line, so that the columns are easy to read.
// prettier-ignore
export const METRICS = {
  bloomery_build_info: { kind: 'gauge', help: 'Always 1. The labels show the running version.', labels: ['version', 'node_version', 'roles'] },

  bloomery_api_request_duration_seconds: { kind: 'histogram', help: 'Duration of requests, from the request head to the end of processing. `route`: the path in openapi.yaml, or `other`. `status`: the status class, or `aborted` if the caller disconnected.', labels: ['method', 'route', 'status'], buckets: QUICK },
  bloomery_api_requests_in_flight: { kind: 'gauge', help: 'Requests in progress.', labels: [] },
  bloomery_connections_refused_total: { kind: 'counter', help: 'HTTP connections that a limit refused or closed. `listener`: api, introspection, metrics, rpc, boot. `limit`: total, source, pipelined, slow, unread. `total` and `source`: too many connections in all, or of one address. `pipelined`: too many requests without a response. `slow`: the client did not read a response in time. `unread`: the client left too many bytes of responses unread.', labels: ['listener', 'limit'] },
  bloomery_api_fragments_total: { kind: 'counter', help: 'Rows of responses by use of the JSON cache: `hit` or `miss`.', labels: ['result'] },
  bloomery_api_fragments_bytes: { kind: 'gauge', help: 'Size of the JSON cache, limited by [api]fragment_cache_size.', labels: [] },

  bloomery_nodes: { kind: 'gauge', help: 'Nodes in the database, of all conductors. Equal in every process with the API role, so use `max without (instance)`.', labels: ['provision_state', 'power_state', 'maintenance', 'fault'] },
  bloomery_nodes_out_of_service: { kind: 'gauge', help: 'Nodes out of service, of all conductors. `overdue`: whether their time is over. Equal in every process with the API role, so use `max without (instance)`.', labels: ['overdue'] },

  bloomery_health_nodes: { kind: 'gauge', help: 'Nodes by their worst alert that is not masked: ok, warning, critical. Of all conductors and equal in every process with the API role, so use `max without (instance)`.', labels: ['health'] },
  bloomery_health_alerts: { kind: 'gauge', help: 'Open alerts about nodes. `source`: sensor, system, log, event, hardware, smart, state, report. Of all conductors and equal in every process with the API role, so use `max without (instance)`.', labels: ['severity', 'source', 'masked'] },

  bloomery_bmc_events_total: { kind: 'counter', help: 'Requests of BMCs with events. `outcome`: read (the machine is read), dropped (there were too many, or the node cannot be read) or refused (the key is wrong).', labels: ['outcome'] },
  bloomery_health_alerts_left_out: { kind: 'gauge', help: 'Open alerts that the metric with the names of machines leaves out, because there are too many. The newest critical ones come first in it. Of all conductors and equal in each of them, so use `max without (instance)`.', labels: [] },

  bloomery_agent_requests_refused_total: { kind: 'counter', help: 'Lookups, heartbeats and inventories that the server refused. `reason`: source (they came from another address than the agent has), callback (the agent named another address), recorder (a second recorder of a node wanted to register) or agent (its token, version or address is not that of the agent that the node waits for).', labels: ['reason'] },
  bloomery_workers: { kind: 'gauge', help: 'Maximum number of concurrent workers ([conductor]workers_pool_size).', labels: [] },
  bloomery_workers_in_use: { kind: 'gauge', help: 'Workers in use.', labels: [] },
  bloomery_workers_refused_total: { kind: 'counter', help: 'Requests for work refused with 503, because all workers were in use or the conductor was stopping.', labels: [] },
  bloomery_step_duration_seconds: { kind: 'histogram', help: 'Duration of step calls. The call of an asynchronous step ends with the outcome `wait`. Steps of unknown drivers are `other`.', labels: ['kind', 'interface', 'step', 'outcome'], buckets: LONG },
  bloomery_flow_duration_seconds: { kind: 'histogram', help: 'Duration of flows from the verb to a stable or failed state, for flows that started in this process.', labels: ['flow', 'outcome'], buckets: LONG },
  bloomery_flows_total: { kind: 'counter', help: 'Flows that ended in this process, wherever they started.', labels: ['flow', 'outcome'] },
  bloomery_periodic_last_run_timestamp_seconds: { kind: 'gauge', help: 'End of the last run of a periodic task.', labels: ['task'] },
  bloomery_periodic_duration_seconds: { kind: 'histogram', help: 'Duration of runs of periodic tasks.', labels: ['task'], buckets: REMOTE },
  bloomery_periodic_failures_total: { kind: 'counter', help: 'Failed runs of periodic tasks.', labels: ['task'] },
  bloomery_periodic_items: { kind: 'gauge', help: 'Nodes or rows that the last run handled, for tasks that report it.', labels: ['task'] },
  bloomery_lock_wait_seconds: { kind: 'histogram', help: 'Wait for the lock of a node, until it was obtained or given up.', labels: ['outcome'], buckets: REMOTE },
  bloomery_lock_conflicts_total: { kind: 'counter', help: 'Attempts to lock a locked node.', labels: [] },
  bloomery_locks_held: { kind: 'gauge', help: 'Nodes locked by this process.', labels: [] },
  bloomery_locks_lost_total: { kind: 'counter', help: 'Tasks that ended because another conductor took over their node.', labels: [] },
  bloomery_heartbeats_total: { kind: 'counter', help: 'Heartbeats of agents by the state of the node. `outcome`: resumed, recorded, ignored, refused.', labels: ['state', 'outcome'] },

  bloomery_rpc_call_duration_seconds: { kind: 'histogram', help: 'Duration of RPC calls by operation. `side`: client (caller) or server (callee). `outcome`: ok, failed (the operation threw), unanswered.', labels: ['side', 'method', 'outcome'], buckets: QUICK },
  bloomery_rpc_refused_total: { kind: 'counter', help: 'RPC calls refused before they were read: not signed by a process on this database, or replayed.', labels: [] },

  bloomery_bmc_request_duration_seconds: { kind: 'histogram', help: 'Duration of requests to BMCs. `protocol`: ipmi, redfish. `operation`: command, or method and action.', labels: ['protocol', 'operation', 'outcome'], buckets: REMOTE },
  bloomery_service_request_duration_seconds: { kind: 'histogram', help: 'Duration of requests to OpenStack services, with retries. `service`: its name, such as neutron. `outcome`: ok, unreachable (no response), refused (Keystone or the configuration), failing (an error response), aborted.', labels: ['service', 'method', 'outcome'], buckets: REMOTE },
  bloomery_agent_request_duration_seconds: { kind: 'histogram', help: 'Duration of requests to agents by command. `command`: its name, or `poll` for a request that reads the state of commands. `outcome`: ok, unreachable (no response), busy (another command runs), refused (an error response), aborted.', labels: ['command', 'outcome'], buckets: REMOTE },

  bloomery_token_validation_duration_seconds: { kind: 'histogram', help: 'Duration of validations of tokens by Keystone. `outcome`: valid, rejected, failed (Keystone could not be asked).', labels: ['outcome'], buckets: REMOTE },

  bloomery_database_up: { kind: 'gauge', help: 'Whether the database responds to a query of this scrape.', labels: [] },
  bloomery_database_connections: { kind: 'gauge', help: 'Database connections by state (used, free), and queries that wait for a connection (waiting).', labels: ['state'] },
  bloomery_database_connections_max: { kind: 'gauge', help: 'Maximum number of database connections ([database]max_pool_size).', labels: [] },
  bloomery_database_errors_total: { kind: 'counter', help: 'Failed queries. `kind`: unreachable (the database was unreachable or full), refused (a constraint or an invalid value), other.', labels: ['kind'] },

  bloomery_dhcp_packets_total: { kind: 'counter', help: 'DHCP and DHCPv6 packets by type and response (`none`, `malformed`, `dropped`, `failed`, or the type of the response).', labels: ['type', 'answer'] },
  bloomery_dhcp_addresses: { kind: 'gauge', help: 'Addresses of all DHCP ranges by state: free, offered, bound, ended (reserved for its previous machine while others are free), declined.', labels: ['state'] },
  bloomery_tftp_transfers_total: { kind: 'counter', help: 'TFTP requests by outcome: sent, refused (no such file), dropped (too many, or ended for another), silent (the machine stopped responding), ended by client, failed.', labels: ['outcome'] },
  bloomery_http_boot_answers_total: { kind: 'counter', help: 'Responses of the HTTP boot service by kind (script, file) and status class.', labels: ['kind', 'status'] },
  bloomery_http_boot_bytes_total: { kind: 'counter', help: 'Bytes sent by the HTTP boot service.', labels: [] },
  bloomery_image_cache_total: { kind: 'counter', help: 'Requests for files from other servers by use of the cache: `hit` or `miss` (downloaded).', labels: ['result'] },

  bloomery_recorder_pushes_total: { kind: 'counter', help: 'Pushes of recorders by result: first, changed, updated, unchanged, unknown, refused (token), limited ([recorder]max_pushes_per_minute), disabled. `changed`: the hardware differs. `updated`: only values differ that are not compared. `unknown`: no stored record has the digest.', labels: ['result'] },
  bloomery_recorder_changes_total: { kind: 'counter', help: 'Hardware changes that recorders reported.', labels: ['component', 'kind'] },
  bloomery_recorder_nodes: { kind: 'gauge', help: 'Nodes with a hardware record, by the age of their last push (`fresh` or `stale`). Equal in every process with the API role, so use `max without (instance)`.', labels: ['state'] },

  baremetal_sensor_reading: { kind: 'gauge', help: 'Last value of a sensor of a machine, in the unit of its label. Absent if the sensor has no value or could not be read.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'kind', 'entity_id', 'sensor_id', 'unit'], most: MAX_SENSORS },
  baremetal_fan_status: { kind: 'gauge', help: 'Status of a fan of a machine with Redfish: 0 is OK, 1 is not.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'entity_id', 'sensor_id'], most: MAX_SENSORS },
  baremetal_power_status: { kind: 'gauge', help: 'Status of a power supply of a machine with Redfish: 0 is OK, 1 is not.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'entity_id', 'sensor_id'], most: MAX_SENSORS },
  baremetal_drive_status: { kind: 'gauge', help: 'Status of a drive of a machine with Redfish: 0 is OK, 1 is not.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'entity_id', 'sensor_id'], most: MAX_SENSORS },
  baremetal_health_alert: { kind: 'gauge', help: 'Always 1: an open alert about a node of this conductor that is not masked.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'source', 'rule', 'subject', 'severity'], most: MAX_SENSORS },
  baremetal_last_payload_timestamp_seconds: { kind: 'gauge', help: "Time of the last reading of a machine's sensors.", labels: ['node_uuid', 'node_name', 'instance_uuid'], most: MAX_SENSORS },

  bloomery_notifications_total: { kind: 'counter', help: 'Notifications by driver (log, webhook) and outcome: sent, lost.', labels: ['driver', 'outcome'] },
  bloomery_notifications_waiting: { kind: 'gauge', help: 'Queued notifications.', labels: [] },
  bloomery_audit_entries_lost_total: { kind: 'counter', help: 'Entries of the audit log that were dropped, because it could not be written.', labels: [] },
  bloomery_event_listeners: { kind: 'gauge', help: 'Listeners to /v1/events/stream of this process.', labels: [] },
} as const satisfies Readonly<Record<string, MetricRow>>;

export type MetricName = keyof typeof METRICS;
type NameOf<Kind extends MetricRow['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];
type Counter = NameOf<'counter'>;
type Gauge = NameOf<'gauge'>;
type Histogram = NameOf<'histogram'>;
type Labels<Name extends MetricName> = Readonly<Record<(typeof METRICS)[Name]['labels'][number], string>>;
export type Sample<Name extends MetricName> = readonly [Labels<Name>, number];

/** The `sum` of a timer is in milliseconds. */
export type Total =
  | { readonly type: 'timer'; readonly count: number; readonly sum: number }
  | { readonly type: 'counter'; readonly count: number };

export interface Metrics {
  count<Name extends Counter>(name: Name, labels: Labels<Name>, by?: number): void;
  observe<Name extends Histogram>(name: Name, labels: Labels<Name>, seconds: number): void;
  set<Name extends Gauge>(name: Name, labels: Labels<Name>, value: number): void;
  /** Reads a gauge at each scrape: the samples replace all its series. A later call for the gauge replaces an earlier one. */
  read<Name extends Gauge>(name: Name, read: () => readonly Sample<Name>[] | Promise<readonly Sample<Name>[]>): void;
  /** All counters and histograms, summed over their labels, in the format of Ironic's metrics. */
  totals(): Promise<Readonly<Record<string, Total>>>;
  /** Returns a function that returns the seconds since this call, by a monotonic clock. */
  timer(): () => number;
}

/** All scrapes within this time share one query. Milliseconds. */
const TTL_MS = 5000;
/** Reads a gauge from rows of the database. @param keptMs as TTL_MS */
export function measureRows<Name extends Gauge>(
  name: Name,
  clock: Clock,
  metrics: Metrics,
  read: () => Promise<readonly Sample<Name>[]>,
  keptMs = TTL_MS,
): void {
  let cached: { readonly until: number; readonly samples: Promise<readonly Sample<Name>[]> } | undefined;
  metrics.read(name, () => {
    if (cached && cached.until > clock.now()) return cached.samples;
    const samples = read();
    cached = { until: clock.now() + keptMs, samples };
    samples.catch(() => (cached = undefined));
    return samples;
  });
}

/** Renders a scrape. The Accept header selects OpenMetrics or Prometheus' text format. */
export type Scrape = (accept: string | undefined) => Promise<{ readonly type: string; readonly text: string }>;

const nothing = (): void => {};
export const silentMetrics: Metrics = {
  count: nothing,
  observe: nothing,
  set: nothing,
  read: nothing,
  totals: async () => ({}),
  timer: () => () => 0,
};
