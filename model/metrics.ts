/**
 * What is measured: every metric as a row, and what the rooms measure through. metrics.ts at the root makes it; docs/metrics.md is written
 * from these rows. Labels take few values: names of ours and of tables, never what a caller, a machine or an agent says.
 */
export interface MetricRow {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /** Most series; absent: as few as names of ours can make. */
  readonly most?: number;
}

/** Answers and queries; what machines are asked; what machines do. */
const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const REMOTE = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LONG = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400];

/** Series of a metric of machines' sensors. They alone have labels that machines make; what is kept of a machine is bounded (conductor/periodic/sensors.ts). */
const MOST_SENSORS = 500_000;

// One row a line, however long: a table is read by its columns.
// prettier-ignore
export const METRICS = {
  bloomery_build_info: { kind: 'gauge', help: 'Always 1; the labels say what runs.', labels: ['version', 'node_version', 'roles'] },

  bloomery_api_request_duration_seconds: { kind: 'histogram', help: 'From the head of a request to the end of the work on its answer. `route`: the path in openapi.yaml, `other` when none was found; `status`: its class, `aborted` when the caller went first.', labels: ['method', 'route', 'status'], buckets: QUICK },
  bloomery_api_requests_in_flight: { kind: 'gauge', help: 'Requests that are being answered now.', labels: [] },
  bloomery_api_fragments_total: { kind: 'counter', help: 'Rows of answers by whether their JSON was kept (`hit`) or made (`miss`).', labels: ['result'] },
  bloomery_api_fragments_bytes: { kind: 'gauge', help: 'Size of the kept JSON ([api]fragment_cache_size is its bound).', labels: [] },

  bloomery_nodes: { kind: 'gauge', help: 'Nodes in the database, whichever conductor has them: the same in every process with the API role, so take `max without (instance)`.', labels: ['provision_state', 'power_state', 'maintenance', 'fault'] },

  bloomery_workers: { kind: 'gauge', help: 'Most pieces of work at once ([conductor]workers_pool_size).', labels: [] },
  bloomery_workers_in_use: { kind: 'gauge', help: 'Pieces of work under way.', labels: [] },
  bloomery_workers_refused_total: { kind: 'counter', help: 'Work that was refused (503) because all workers were in use, or the conductor was stopping.', labels: [] },
  bloomery_step_duration_seconds: { kind: 'histogram', help: 'Calls of steps; a step that waits for its machine ends its call with the outcome `wait`. Steps that are not in the drivers of this program are `other`.', labels: ['kind', 'interface', 'step', 'outcome'], buckets: LONG },
  bloomery_flow_duration_seconds: { kind: 'histogram', help: 'From the verb to the state in which the node comes to rest, for flows that began in this process.', labels: ['flow', 'outcome'], buckets: LONG },
  bloomery_flows_total: { kind: 'counter', help: 'Flows that ended here, wherever they began.', labels: ['flow', 'outcome'] },
  bloomery_periodic_last_run_timestamp_seconds: { kind: 'gauge', help: 'When the periodic work last ended.', labels: ['task'] },
  bloomery_periodic_duration_seconds: { kind: 'histogram', help: 'How long runs of periodic work took.', labels: ['task'], buckets: REMOTE },
  bloomery_periodic_failures_total: { kind: 'counter', help: 'Runs of periodic work that failed.', labels: ['task'] },
  bloomery_periodic_items: { kind: 'gauge', help: 'Nodes (or rows) that the last run worked on, for work that says so.', labels: ['task'] },
  bloomery_lock_wait_seconds: { kind: 'histogram', help: 'Waits for a node that another held, until it was had or given up.', labels: ['outcome'], buckets: REMOTE },
  bloomery_lock_conflicts_total: { kind: 'counter', help: 'Tries to hold a node that was held.', labels: [] },
  bloomery_locks_held: { kind: 'gauge', help: 'Nodes that this process holds.', labels: [] },
  bloomery_locks_lost_total: { kind: 'counter', help: 'Work that ended because another conductor had taken its node.', labels: [] },
  bloomery_heartbeats_total: { kind: 'counter', help: "Agents' signs of life by the state of the node. `outcome`: resumed, recorded, ignored, refused.", labels: ['state', 'outcome'] },

  bloomery_rpc_call_duration_seconds: { kind: 'histogram', help: 'Calls between processes by operation. `side`: client (asked here) or server (done here); `outcome`: ok, failed (the operation threw), unanswered.', labels: ['side', 'method', 'outcome'], buckets: QUICK },
  bloomery_rpc_refused_total: { kind: 'counter', help: 'Calls of others that were refused unread: not signed by a process on this database, or not for the first time.', labels: [] },

  bloomery_bmc_request_duration_seconds: { kind: 'histogram', help: 'Requests to BMCs. `protocol`: ipmi, redfish; `operation`: command, or method and action.', labels: ['protocol', 'operation', 'outcome'], buckets: REMOTE },
  bloomery_agent_request_duration_seconds: { kind: 'histogram', help: 'Requests to agents by command.', labels: ['command', 'outcome'], buckets: REMOTE },

  bloomery_database_up: { kind: 'gauge', help: 'Whether the database answered when it was asked for this scrape.', labels: [] },
  bloomery_database_connections: { kind: 'gauge', help: 'Connections by what they do (used, free), and queries that wait for one (waiting).', labels: ['state'] },
  bloomery_database_connections_max: { kind: 'gauge', help: 'Most connections ([database]max_pool_size).', labels: [] },
  bloomery_database_errors_total: { kind: 'counter', help: 'Queries that failed. `kind`: away (the database could not be reached, or had no room), refused (a constraint, a value), other.', labels: ['kind'] },

  bloomery_dhcp_packets_total: { kind: 'counter', help: 'DHCP packets by their type, and what was answered (`none`: silence, `malformed`, `dropped`, `failed`).', labels: ['type', 'answer'] },
  bloomery_dhcp_addresses: { kind: 'gauge', help: 'Addresses of [boot]dhcp_range by state: free, offered, bound, ended (kept for its machine while there are others), declined.', labels: ['state'] },
  bloomery_tftp_transfers_total: { kind: 'counter', help: 'TFTP requests by outcome: sent, refused (no such file), dropped (too many), silent (the machine went away), ended by client, failed.', labels: ['outcome'] },
  bloomery_http_boot_answers_total: { kind: 'counter', help: 'Answers of the HTTP boot service by kind (script, file) and class of status.', labels: ['kind', 'status'] },
  bloomery_http_boot_bytes_total: { kind: 'counter', help: 'Bytes that the HTTP boot service sent.', labels: [] },
  bloomery_image_cache_total: { kind: 'counter', help: "Files of other servers by whether they were kept (`hit`), or fetched (`miss`).", labels: ['result'] },

  bloomery_recorder_pushes_total: { kind: 'counter', help: 'Pushes of recorders by what became of them: first, changed (hardware differs), updated (something differs that is not compared), unchanged, unknown (a digest of a record that is not kept), refused (the token), limited ([recorder]max_pushes_per_minute), disabled.', labels: ['result'] },
  bloomery_recorder_changes_total: { kind: 'counter', help: 'Changes of hardware that recorders saw.', labels: ['component', 'kind'] },
  bloomery_recorder_nodes: { kind: 'gauge', help: 'Nodes with a record, by whether their recorder was heard of lately (`fresh`) or not (`stale`): the same in every process with the API role, so take `max without (instance)`.', labels: ['state'] },

  baremetal_sensor_reading: { kind: 'gauge', help: 'What a sensor of a machine said last, in the unit that its label names. Not there: it said nothing, or could not be asked.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'kind', 'entity_id', 'sensor_id', 'unit'], most: MOST_SENSORS },
  baremetal_fan_status: { kind: 'gauge', help: 'Whether a fan of a machine with Redfish is well (0) or not (1).', labels: ['node_uuid', 'node_name', 'instance_uuid', 'entity_id', 'sensor_id'], most: MOST_SENSORS },
  baremetal_power_status: { kind: 'gauge', help: 'The same of a power supply.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'entity_id', 'sensor_id'], most: MOST_SENSORS },
  baremetal_drive_status: { kind: 'gauge', help: 'The same of a drive.', labels: ['node_uuid', 'node_name', 'instance_uuid', 'entity_id', 'sensor_id'], most: MOST_SENSORS },
  baremetal_last_payload_timestamp_seconds: { kind: 'gauge', help: "When a machine's sensors were last read.", labels: ['node_uuid', 'node_name', 'instance_uuid'], most: MOST_SENSORS },

  bloomery_notifications_total: { kind: 'counter', help: 'Notifications by driver (log, webhook) and what became of them: sent, lost.', labels: ['driver', 'outcome'] },
  bloomery_notifications_waiting: { kind: 'gauge', help: 'Notifications that wait to be posted.', labels: [] },
  bloomery_event_listeners: { kind: 'gauge', help: 'Who listens to /v1/events/stream at this process.', labels: [] },
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

/** `timer`: milliseconds. */
export type Total =
  | { readonly type: 'timer'; readonly count: number; readonly sum: number }
  | { readonly type: 'counter'; readonly count: number };

/** What every room measures through, as it logs through `Log`. */
export interface Metrics {
  count<Name extends Counter>(name: Name, labels: Labels<Name>, by?: number): void;
  observe<Name extends Histogram>(name: Name, labels: Labels<Name>, seconds: number): void;
  set<Name extends Gauge>(name: Name, labels: Labels<Name>, value: number): void;
  /** Has a gauge read at each scrape: what `read` answers are all its series then. A later call for the gauge takes the place of an earlier. */
  read<Name extends Gauge>(name: Name, read: () => readonly Sample<Name>[] | Promise<readonly Sample<Name>[]>): void;
  /** What was counted and observed so far, summed over the labels, in the shape of Ironic's own metrics. */
  totals(): Promise<Readonly<Record<string, Total>>>;
  /** @returns seconds since the call, by a clock that is never set */
  timer(): () => number;
}

/** What is scraped. `accept`: the header, by which OpenMetrics is told from Prometheus' own text. */
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
