/** The table `health_alerts`: what is wrong with machines (docs/health.md). A trigger writes an event for each change. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { NodeRecord } from '../../model/records';
import type { AlertKey, AlertMask, AlertRecord, AlertSource, EndedAlert, NewAlert, Severity } from '../../model/rules/health-alerts';
import { storableJson } from '../../model/text';
import { run } from '../sql/faults';
import { applyProject } from '../sql/rows';
import { preparedOn } from '../sql/prepared';

/** An alert with its node. */
export interface ListedAlert extends AlertRecord, Pick<NodeRecord, 'instance_uuid' | 'owner' | 'lessee' | 'driver' | 'conductor_group'> {
  readonly node_name: string | null;
}
interface AlertFilter {
  readonly nodeUuid?: string | undefined;
  /** The owner or the lessee of the nodes. */
  readonly project?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly sources?: readonly AlertSource[] | undefined;
  /** Masked now; absent: both. */
  readonly masked?: boolean | undefined;
  /** Those that are cleared, the latest first; default: the open ones, the oldest first. */
  readonly cleared?: boolean | undefined;
  /** Of the open ones, the critical ones first, and the newest of them first. */
  readonly worstFirst?: true;
  /** Only open alerts with a higher id. */
  readonly after?: number | undefined;
  readonly limit: number;
}
interface AlertCount {
  readonly severity: Severity;
  readonly source: AlertSource;
  readonly masked: boolean;
  readonly count: number;
}
/** What the history of the nodes says: nothing, or who did it (null: the server, or a caller without a name). */
export type InHistory = false | { readonly user: string | null };
interface HealthAlerts {
  /** The open alerts of these sources. */
  open(sources: readonly AlertSource[]): Promise<readonly AlertKey[]>;
  /**
   * Opens alerts, each with an event and an entry of the node's history. An open alert is changed if it says something else. An alert that
   * was masked when it was cleared is masked again, until the same time. Alerts of nodes that are gone are left out.
   * @param alerts no two with the same key
   * @returns those that were opened or changed
   */
  put(alerts: readonly (NewAlert & { readonly uuid: string })[], inHistory: InHistory): Promise<readonly AlertRecord[]>;
  /** Clears open alerts, with events and history as in `put`. Returns how many were open. */
  setCleared(keys: readonly EndedAlert[], inHistory: InHistory): Promise<number>;
  /** Clears and opens alerts. @param newId makes their UUIDs */
  putChanges(
    changes: { readonly raised: readonly NewAlert[]; readonly cleared: readonly EndedAlert[] },
    newId: () => string,
    inHistory: InHistory,
  ): Promise<void>;
  /** Clears the open reports whose time is over, with events and history as in `put`. Returns how many. */
  setExpired(inHistory: InHistory): Promise<number>;
  /** Clears what recorders found on instances that are gone, with events and history as in `put`. Returns how many. */
  endOfInstances(inHistory: InHistory): Promise<number>;
  find(uuid: string): Promise<AlertRecord | undefined>;
  findOpen(key: AlertKey): Promise<AlertRecord | undefined>;
  /** Masks an open alert, or ends its mask (null). Undefined: it is not open. */
  setMask(uuid: string, mask: AlertMask | null): Promise<AlertRecord | undefined>;
  list(filter: AlertFilter): Promise<readonly ListedAlert[]>;
  /** How many reports of a node are open. */
  countReports(nodeUuid: string): Promise<number>;
  /** The open alerts. */
  counts(): Promise<readonly AlertCount[]>;
  /** How many nodes have a critical alert, and how many of the others a warning; without masked alerts. */
  nodeCounts(): Promise<Readonly<Record<Severity, number>>>;
  /** Removes at most `atMost` alerts that were cleared before a time. Returns how many. */
  removeOld(before: string, atMost: number): Promise<number>;
}

const COLUMNS = [
  'id',
  'uuid',
  'node_uuid',
  'source',
  'rule',
  'subject',
  'severity',
  'text',
  'since',
  'updated_at',
  'cleared_at',
  'until',
  'reported_by',
  'masked_until',
  'mask_reason',
  'masked_by',
] as const;
const ALL = COLUMNS.map((name) => `health_alerts.${name}`).join(', ');
const KEY = ['node_uuid', 'source', 'rule', 'subject'] as const;
const KEYS = KEY.join(', ');
const sameKey = (one: string, other: string): string => KEY.map((name) => `${one}.${name} = ${other}.${name}`).join(' AND ');
const OPEN = `SELECT ${KEYS} FROM health_alerts WHERE cleared_at IS NULL AND source = ANY($1)`;

/** Adds an entry to the history of the nodes of these rows. $3: whether; $4: the user. */
const written = (from: string, text: string, at: string): string => `
  written AS (
    INSERT INTO node_history (uuid, node_uuid, "user", event_type, severity, event, state, target_provision_state, created_at)
    SELECT gen_random_uuid()::text, nodes.uuid, $4, 'health', 'INFO', ${text}, nodes.provision_state, nodes.target_provision_state,
      ${at}::timestamptz
    FROM ${from} JOIN nodes ON nodes.uuid = ${from}.node_uuid WHERE $3::boolean
  )`;
/** Locks the nodes first, in the same order as their removal does, so that the two cannot deadlock. */
const THERE = `there AS MATERIALIZED (
    SELECT uuid FROM nodes WHERE uuid IN (SELECT node_uuid FROM given) ORDER BY uuid FOR KEY SHARE
  )`;
/**
 * Open alerts of a node, from where on only reports are added, which have a limit of their own: a machine may invent parts without end. So may
 * the recorder of a host, whose alerts are counted apart: they must not keep out what the BMC says.
 */
const MAX_OPEN = 256;
const PUT = `
  WITH given AS (
    SELECT *, row_number() OVER (PARTITION BY node_uuid, coalesce(of_recorder, false) ORDER BY severity, number) AS place
    FROM ROWS FROM (json_to_recordset($1::json) AS (uuid text, node_uuid text, source text, rule text, subject text, severity text,
      text text, until timestamptz, reported_by text, of_recorder boolean)) WITH ORDINALITY
      AS given (uuid, node_uuid, source, rule, subject, severity, text, until, reported_by, of_recorder, number)
  ), ${THERE}, rooms AS MATERIALIZED (
    SELECT there.uuid, teller.is_recorder, ${MAX_OPEN} - (
      SELECT count(*) FROM health_alerts
      WHERE node_uuid = there.uuid AND cleared_at IS NULL AND health_alerts.of_recorder = teller.is_recorder
    ) AS room
    FROM there, (VALUES (false), (true)) AS teller (is_recorder)
  ), latest AS (
    SELECT DISTINCT ON (${KEY.map((name) => `health_alerts.${name}`).join(', ')}) health_alerts.*
    FROM health_alerts JOIN given ON ${sameKey('health_alerts', 'given')}
    ORDER BY ${KEY.map((name) => `health_alerts.${name}`).join(', ')}, health_alerts.id DESC
  ), put AS (
    INSERT INTO health_alerts (uuid, ${KEYS}, severity, text, since, updated_at, until, reported_by, masked_until, mask_reason, masked_by,
      of_recorder)
    SELECT given.uuid, ${KEY.map((name) => `given.${name}`).join(', ')}, given.severity, given.text, $2::timestamptz, $2::timestamptz,
      given.until, given.reported_by, latest.masked_until, latest.mask_reason, latest.masked_by,
      coalesce(given.of_recorder, false)
    FROM given JOIN rooms ON rooms.uuid = given.node_uuid AND rooms.is_recorder = coalesce(given.of_recorder, false)
      LEFT JOIN latest ON ${sameKey('latest', 'given')} AND latest.masked_until > $2::timestamptz
    WHERE given.source = 'report' OR given.place <= rooms.room
      OR EXISTS (SELECT 1 FROM health_alerts WHERE ${sameKey('health_alerts', 'given')} AND cleared_at IS NULL)
    ORDER BY given.number
    ON CONFLICT (${KEYS}) WHERE cleared_at IS NULL DO UPDATE SET severity = excluded.severity, text = excluded.text,
      until = excluded.until, reported_by = excluded.reported_by, updated_at = excluded.updated_at
    WHERE (health_alerts.severity, health_alerts.text, health_alerts.until, health_alerts.reported_by)
      IS DISTINCT FROM (excluded.severity, excluded.text, excluded.until, excluded.reported_by)
    RETURNING ${ALL}, xmax = 0 AS is_new
  ), ${written('put', `'Health, ' || put.severity || CASE WHEN put.is_new THEN ': ' ELSE ', changed: ' END || put.text`, '$2')}
  SELECT ${COLUMNS.join(', ')} FROM put`;
/** @param which of the alerts of `given`. @param why the expression of a text, or of NULL */
const cleared = (from: string, which: string, why: string): string => `gone AS (
    UPDATE health_alerts SET cleared_at = $2, updated_at = $2 FROM ${from}
    WHERE health_alerts.cleared_at IS NULL AND ${which}
    RETURNING health_alerts.node_uuid, health_alerts.text, ${why} AS why
  ), ${written('gone', `'Health, cleared: ' || gone.text || coalesce(' (' || gone.why || ')', '')`, '$2')}
  SELECT count(*) AS count FROM gone`;
const SET_CLEARED = `
  WITH given AS (
    SELECT DISTINCT ON (${KEYS}) * FROM json_to_recordset($1::json)
      AS given (node_uuid text, source text, rule text, subject text, reason text)
  ), ${THERE}, ${cleared('given JOIN there ON there.uuid = given.node_uuid', sameKey('health_alerts', 'given'), 'given.reason')}`;
const SET_EXPIRED = `
  WITH given AS (SELECT DISTINCT node_uuid FROM health_alerts WHERE cleared_at IS NULL AND until <= $1::timestamptz), ${THERE},
  ${cleared('there', 'there.uuid = health_alerts.node_uuid AND health_alerts.until <= $1::timestamptz', `'its time is over'`)}`;
/** The record of an instance goes with the instance, and that of the next one begins later. A new or a revoked token changes nothing. */
const OF_GONE = `health_alerts.of_recorder AND NOT EXISTS (
    SELECT 1 FROM hardware WHERE hardware.node_uuid = health_alerts.node_uuid AND hardware.begun_at <= health_alerts.since
  )`;
const END_OF_INSTANCES = `
  WITH given AS (SELECT DISTINCT node_uuid FROM health_alerts WHERE cleared_at IS NULL AND ${OF_GONE} AND since <= $1::timestamptz), ${THERE},
  ${cleared('there', `there.uuid = health_alerts.node_uuid AND ${OF_GONE}`, `'the instance has ended'`)}`;
const FIND = `SELECT ${ALL} FROM health_alerts WHERE uuid = $1`;
const FIND_OPEN = `SELECT ${ALL} FROM health_alerts
  WHERE ${KEY.map((name, index) => `${name} = $${index + 1}`).join(' AND ')} AND cleared_at IS NULL`;
const SET_MASK = `UPDATE health_alerts SET masked_until = $2, mask_reason = $3, masked_by = $4, updated_at = $5
  WHERE uuid = $1 AND cleared_at IS NULL RETURNING ${ALL}`;
const REPORTS = `SELECT count(*) AS count FROM health_alerts WHERE node_uuid = $1 AND source = 'report' AND cleared_at IS NULL`;
const COUNTS = `SELECT severity, source, coalesce(masked_until > $1::timestamptz, false) AS masked, count(*) AS count
  FROM health_alerts WHERE cleared_at IS NULL GROUP BY 1, 2, 3`;
const NODE_COUNTS = `SELECT count(*) FILTER (WHERE critical) AS critical, count(*) FILTER (WHERE NOT critical) AS warning FROM (
    SELECT bool_or(severity = 'critical') AS critical FROM health_alerts
    WHERE cleared_at IS NULL AND (masked_until IS NULL OR masked_until <= $1::timestamptz) GROUP BY node_uuid
  ) AS worst`;
const REMOVE_OLD = `WITH gone AS (
    DELETE FROM health_alerts WHERE id IN (SELECT id FROM health_alerts WHERE cleared_at < $1::timestamptz ORDER BY cleared_at LIMIT $2)
    RETURNING id
  ) SELECT count(*) AS count FROM gone`;

interface Count {
  readonly count: number;
}
/**
 * @param db the pool, or a transaction
 * @param clock for the times of alerts and events
 */
export function healthAlertsOn(db: Knex, clock: Clock): HealthAlerts {
  const prepared = preparedOn(db);
  const now = (): string => timestamp(clock.now());
  const counted = async (name: string, text: string, values: readonly unknown[]): Promise<number> =>
    (await prepared<Count>(name, text, values))[0]!.count;
  const recorded = (inHistory: InHistory): readonly unknown[] => (inHistory === false ? [false, null] : [true, inHistory.user]);
  const put: HealthAlerts['put'] = async (alerts, inHistory) =>
    alerts.length === 0 ? [] : prepared<AlertRecord>('health_put', PUT, [storableJson(alerts), now(), ...recorded(inHistory)]);
  const setCleared: HealthAlerts['setCleared'] = async (keys, inHistory) =>
    keys.length === 0 ? 0 : counted('health_clear', SET_CLEARED, [storableJson(keys), now(), ...recorded(inHistory)]);
  return {
    open: (sources) => prepared<AlertKey>('health_open', OPEN, [[...sources]]),
    put,
    setCleared,
    putChanges: async ({ raised, cleared: gone }, newId, inHistory) => {
      await setCleared(gone, inHistory);
      await put(
        raised.map((alert) => ({ ...alert, uuid: newId() })),
        inHistory,
      );
    },
    setExpired: async (inHistory) => {
      const at = now();
      return counted('health_expire', SET_EXPIRED, [at, at, ...recorded(inHistory)]);
    },
    endOfInstances: async (inHistory) => {
      const at = now();
      return counted('health_end_instances', END_OF_INSTANCES, [at, at, ...recorded(inHistory)]);
    },
    find: async (uuid) => (await prepared<AlertRecord>('health_find', FIND, [uuid]))[0],
    findOpen: async (key) =>
      (
        await prepared<AlertRecord>(
          'health_find_open',
          FIND_OPEN,
          KEY.map((name) => key[name]),
        )
      )[0],
    setMask: async (uuid, mask) => {
      const values = [uuid, mask?.until ?? null, mask?.reason ?? null, mask?.by ?? null, now()];
      return (await prepared<AlertRecord>('health_mask', SET_MASK, values))[0];
    },
    async list({ nodeUuid, project, severity, sources, masked, cleared: isCleared = false, worstFirst, after, limit }) {
      const query = db<ListedAlert>('health_alerts')
        .join('nodes', 'nodes.uuid', 'health_alerts.node_uuid')
        .select(
          ...COLUMNS.map((name) => `health_alerts.${name}`),
          'nodes.name as node_name',
          ...(['instance_uuid', 'owner', 'lessee', 'driver', 'conductor_group'] as const).map((name) => `nodes.${name}`),
        )
        .limit(limit);
      if (isCleared) void query.whereNotNull('health_alerts.cleared_at').orderBy('health_alerts.cleared_at', 'desc');
      else void query.whereNull('health_alerts.cleared_at');
      // By their letters: critical, warning.
      if (worstFirst) void query.orderBy('health_alerts.severity').orderBy('health_alerts.id', 'desc');
      else if (!isCleared) void query.orderBy('health_alerts.id');
      if (nodeUuid !== undefined) void query.where('health_alerts.node_uuid', nodeUuid);
      if (project !== undefined) applyProject(query, project);
      if (severity !== undefined) void query.where('health_alerts.severity', severity);
      if (sources) void query.whereRaw('health_alerts.source = ANY(?)', [[...sources]]);
      if (masked !== undefined) void query.whereRaw('coalesce(health_alerts.masked_until > ?::timestamptz, false) = ?', [now(), masked]);
      if (after !== undefined) void query.where('health_alerts.id', '>', after);
      return run(query) as Promise<readonly ListedAlert[]>;
    },
    countReports: (nodeUuid) => counted('health_reports', REPORTS, [nodeUuid]),
    counts: () => prepared<AlertCount>('health_counts', COUNTS, [now()]),
    nodeCounts: async () => (await prepared<Readonly<Record<Severity, number>>>('health_nodes', NODE_COUNTS, [now()]))[0]!,
    removeOld: (before, atMost) => counted('health_trim', REMOVE_OLD, [before, atMost]),
  };
}
