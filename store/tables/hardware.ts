/** The tables `hardware` and `hardware_changes`: the latest record of each node that the recorder on its host sent, and the changes. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { ChangeKind, ChangeSource, Component, HardwareChange } from '../../model/hardware-records';
import type { JsonObject } from '../../model/records';
import type { DiskHealth } from '../../model/rules/health-smart';
import { storableJson } from '../../model/text';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { applyProject } from '../sql/rows';
import { preparedOn } from '../sql/prepared';

/** The values that a push of a recorder is checked against. */
export interface HardwareToken {
  readonly node_uuid: string;
  /** SHA-256 in hexadecimal; null: the token was revoked. */
  readonly token_hash: string | null;
  readonly digest: string | null;
}
interface HardwareRow extends HardwareToken {
  readonly token_from: 'operator' | 'deployment' | 'registration' | null;
  readonly token_made_at: string | null;
  /** Compressed JSON. This and all following columns are null until the first push. */
  readonly record: Buffer | null;
  readonly boot_id: string | null;
  /** When this record arrived. */
  readonly recorded_at: string | null;
  /** When the recorder last sent or confirmed it. */
  readonly received_at: string | null;
  readonly stale: boolean;
  /** What the disks said of themselves at the last push; null: nobody knows. */
  readonly smart: readonly DiskHealth[] | null;
}
interface HardwareChangeRow extends HardwareChange {
  readonly id: number;
  readonly node_uuid: string;
  readonly node_name: string | null;
  /** The present projects of the node. */
  readonly owner: string | null;
  readonly lessee: string | null;
  readonly at: string;
  readonly source: ChangeSource;
}
/** The latest record of a node without the hardware itself. */
interface HardwareSummary {
  readonly node_uuid: string;
  readonly node_name: string | null;
  /** The present projects of the node. */
  readonly owner: string | null;
  readonly lessee: string | null;
  readonly digest: string;
  readonly boot_id: string | null;
  readonly recorded_at: string;
  readonly received_at: string;
  readonly stale: boolean;
}
interface HardwareSummaryFilter {
  /** The owner or the lessee of the nodes. */
  readonly project?: string | undefined;
  /** Only nodes with a higher UUID. */
  readonly after?: string | undefined;
  readonly limit: number;
}
/** A recorder's report that its record is unchanged. */
export interface HardwareUnchanged {
  readonly nodeUuid: string;
  readonly digest: string;
  readonly bootId: string | null;
  readonly smart?: readonly DiskHealth[] | null;
  readonly at: string;
}
export interface HardwareChangeFilter {
  /** Absent: all nodes. */
  readonly nodeUuid?: string;
  /** The owner or the lessee of the nodes. */
  readonly project?: string | undefined;
  readonly kinds?: readonly ChangeKind[] | undefined;
  readonly components?: readonly Component[] | undefined;
  readonly since?: string | undefined;
  /** Only changes with a higher id. */
  readonly after?: number | undefined;
  readonly limit: number;
}
/** Reports of recorders on running hosts. The row of a node lasts from its first token to the end of its instance; changes remain. */
interface Hardware {
  /** Concurrent calls share one query. */
  findToken(nodeUuid: string): Promise<HardwareToken | undefined>;
  find(nodeUuid: string): Promise<HardwareRow | undefined>;
  /** The latest records of nodes, in the order of the UUIDs. */
  summaries(filter: HardwareSummaryFilter): Promise<readonly HardwareSummary[]>;
  /** Reads the row and locks it until the end of the transaction. */
  lock(nodeUuid: string): Promise<HardwareRow | undefined>;
  /** Replaces the stored record. If it was stale, this adds an event, and with `inHistory` an entry of the node's history. */
  put(
    nodeUuid: string,
    latest: Pick<HardwareUnchanged, 'digest' | 'bootId' | 'smart'> & { readonly record: Buffer },
    inHistory: boolean,
  ): Promise<void>;
  /** Replaces the node's token. Throws NodeNotFound. */
  putToken(nodeUuid: string, hash: string, from: 'operator' | 'deployment'): Promise<void>;
  /** Gives an active node a token if it has none. @returns whether it got it */
  claimToken(nodeUuid: string, hash: string): Promise<boolean>;
  revoke(nodeUuid: string): Promise<void>;
  /**
   * Records reports of unchanged records, at most one for each node. Ignores reports whose digest differs from the stored one. Returns
   * how many records were stale; each adds an event and history as in `put`.
   */
  recordUnchanged(reports: readonly HardwareUnchanged[], inHistory: boolean): Promise<number>;
  /** Marks records without a report since a time as stale, with events and history as in `put`. Returns how many became stale. */
  markStale(before: string, inHistory: boolean): Promise<number>;
  counts(): Promise<{ readonly fresh: number; readonly stale: number }>;
  /**
   * Adds changes and keeps the latest `keep` of the node and source. Must be the last call of a transaction, because it blocks other
   * writers of changes until the transaction ends.
   */
  addChanges(nodeUuid: string, changes: readonly HardwareChange[], keep: number, source?: ChangeSource): Promise<void>;
  /** The oldest first. */
  changes(filter: HardwareChangeFilter): Promise<readonly HardwareChangeRow[]>;
  /** Removes at most `atMost` changes before a time. Returns the number of removed changes. */
  trimChanges(before: string, atMost: number): Promise<number>;
}

const TOKENS = 'SELECT node_uuid, token_hash, digest FROM hardware WHERE node_uuid = ANY($1)';
const ROW = [
  'node_uuid',
  'token_hash',
  'token_from',
  'token_made_at',
  'digest',
  'record',
  'boot_id',
  'recorded_at',
  'received_at',
  'stale',
  'smart',
] as const;
/**
 * Announces that a record became stale or fresh: an event, and an entry of the node's history if `inHistory` is true.
 * @param from rows with node_uuid and received_at
 */
const announceStale = (from: string, stale: boolean, at: string, inHistory: string): string => `
  noted AS (
    INSERT INTO events (at, node_uuid, node_name, owner, lessee, kind, payload)
    SELECT ${at}::timestamptz, nodes.uuid, nodes.name, nodes.owner, nodes.lessee, 'recorder',
      json_build_object('stale', ${stale}, 'received_at', ${from}.received_at)
    FROM ${from} JOIN nodes ON nodes.uuid = ${from}.node_uuid
  ), written AS (
    INSERT INTO node_history (uuid, node_uuid, event_type, severity, event, state, target_provision_state, created_at)
    SELECT gen_random_uuid()::text, nodes.uuid, 'recorder', 'INFO',
      '${stale ? 'The recorder of the running host stopped pushing.' : 'The recorder of the running host pushes again.'}',
      nodes.provision_state, nodes.target_provision_state, ${at}::timestamptz
    FROM ${from} JOIN nodes ON nodes.uuid = ${from}.node_uuid WHERE ${inHistory}::boolean
  )`;
/** Locks the node first, in the same order as its removal does, so that the two cannot deadlock. */
const LOCK = `
  WITH node AS MATERIALIZED (SELECT uuid FROM nodes WHERE uuid = $1 FOR KEY SHARE)
  SELECT ${ROW.map((name) => `hardware.${name}`).join(', ')} FROM node JOIN hardware ON hardware.node_uuid = node.uuid FOR UPDATE OF hardware`;
const PUT = `
  WITH was AS (SELECT node_uuid, stale FROM hardware WHERE node_uuid = $1), put AS (
    UPDATE hardware SET digest = $2, record = $3, boot_id = $4, smart = $7, recorded_at = $5, received_at = $5, stale = false
    WHERE node_uuid = $1 RETURNING node_uuid, received_at
  ), fresh AS (SELECT put.* FROM put JOIN was USING (node_uuid) WHERE was.stale), ${announceStale('fresh', false, '$5', '$6')}
  SELECT FROM fresh`;
/** Locks the rows in the order of their UUIDs, so that concurrent writers cannot deadlock. */
const UNCHANGED = `
  WITH reports AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $7::text[]) AS reports (node_uuid, digest, boot_id, at, smart)
  ), was AS (
    SELECT hardware.node_uuid, hardware.stale, reports.boot_id, reports.at, reports.smart
    FROM hardware JOIN reports ON reports.node_uuid = hardware.node_uuid AND reports.digest = hardware.digest
    ORDER BY hardware.node_uuid FOR UPDATE OF hardware
  ), stamped AS (
    UPDATE hardware SET received_at = was.at, boot_id = was.boot_id, smart = was.smart::json, stale = false
    FROM was WHERE hardware.node_uuid = was.node_uuid AND hardware.received_at <= was.at
    RETURNING hardware.node_uuid, hardware.received_at, was.stale
  ), fresh AS (SELECT * FROM stamped WHERE stale), ${announceStale('fresh', false, '$5', '$6')}
  SELECT count(*) AS count FROM fresh`;
/** Skips locked rows: a report for them is being written. */
const MARK = `
  WITH silent AS (
    SELECT node_uuid FROM hardware WHERE NOT stale AND received_at < $1::timestamptz FOR UPDATE SKIP LOCKED
  ), gone AS (
    UPDATE hardware SET stale = true FROM silent WHERE hardware.node_uuid = silent.node_uuid
    RETURNING hardware.node_uuid, hardware.received_at
  ), ${announceStale('gone', true, '$2', '$3')}
  SELECT count(*) AS count FROM gone`;
/**
 * One transaction at a time writes changes, until it commits. A reader that continues after an id therefore never misses a lower id that
 * commits later. The wait is harmless: waiting transactions hold no other contended locks, and changes are rare.
 */
const SERIALIZE = `SELECT pg_advisory_xact_lock(hashtext('hardware_changes'))`;
/**
 * Of two registrations at once, the second one waits for the first, and then finds its token. FOR SHARE waits for a change of the node, whose
 * instance may end: FOR KEY SHARE would not.
 */
const CLAIM = `
  INSERT INTO hardware (node_uuid, token_hash, token_from, token_made_at, begun_at)
  SELECT uuid, $2, 'registration', $3::timestamptz, $3::timestamptz FROM nodes WHERE uuid = $1 AND provision_state = 'active' FOR SHARE
  ON CONFLICT (node_uuid) DO UPDATE SET token_hash = $2, token_from = 'registration', token_made_at = $3::timestamptz
  WHERE hardware.token_hash IS NULL RETURNING node_uuid`;
const COUNTS = 'SELECT stale, count(*) AS count FROM hardware WHERE received_at IS NOT NULL GROUP BY stale';

interface Count {
  readonly count: number;
}

async function findSummaries(db: Knex, { project, after, limit }: HardwareSummaryFilter): Promise<readonly HardwareSummary[]> {
  const query = db<HardwareSummary>('hardware')
    .join('nodes', 'nodes.uuid', 'hardware.node_uuid')
    .select(
      ...['node_uuid', 'digest', 'boot_id', 'recorded_at', 'received_at', 'stale'].map((name) => `hardware.${name}`),
      'nodes.name as node_name',
      'nodes.owner',
      'nodes.lessee',
    )
    .whereNotNull('hardware.received_at')
    .orderBy('hardware.node_uuid')
    .limit(limit);
  if (project !== undefined) applyProject(query, project);
  if (after !== undefined) void query.where('hardware.node_uuid', '>', after);
  return run(query as unknown as PromiseLike<HardwareSummary[]>);
}
async function findChanges(
  db: Knex,
  { nodeUuid, project, kinds, components, since, after, limit }: HardwareChangeFilter,
): Promise<readonly HardwareChangeRow[]> {
  const query = db<HardwareChangeRow>('hardware_changes')
    .join('nodes', 'nodes.uuid', 'hardware_changes.node_uuid')
    .select(
      ...['id', 'node_uuid', 'at', 'source', 'kind', 'component', 'key', 'before', 'after'].map((name) => `hardware_changes.${name}`),
      'nodes.name as node_name',
      'nodes.owner',
      'nodes.lessee',
    )
    .orderBy('hardware_changes.id')
    .limit(limit);
  if (nodeUuid !== undefined) void query.where('hardware_changes.node_uuid', nodeUuid);
  if (project !== undefined) applyProject(query, project);
  if (kinds) void query.whereRaw('hardware_changes.kind = ANY(?)', [[...kinds]]);
  if (components) void query.whereRaw('hardware_changes.component = ANY(?)', [[...components]]);
  if (since !== undefined) void query.where('hardware_changes.at', '>=', since);
  if (after !== undefined) void query.where('hardware_changes.id', '>', after);
  return run(query as unknown as PromiseLike<HardwareChangeRow[]>);
}

/**
 * @param db the pool, or a transaction
 * @param clock for the times of events and changes
 */
export function hardwareOn(db: Knex, clock: Clock): Hardware {
  const prepared = preparedOn(db);
  const now = (): string => timestamp(clock.now());
  const rows = () => db<HardwareRow & { readonly begun_at: string }>('hardware');
  const findToken = batched<string, HardwareToken | undefined>(async (uuids) => {
    const found = await prepared<HardwareToken>('hardware_tokens', TOKENS, [uuids]);
    const byNode = new Map(found.map((row) => [row.node_uuid, row]));
    return uuids.map((uuid) => byNode.get(uuid));
  });
  return {
    findToken,
    async find(nodeUuid) {
      const found = rows().select(...ROW);
      const [row] = await run(found.where('node_uuid', nodeUuid));
      return row;
    },
    summaries: (filter) => findSummaries(db, filter),
    async lock(nodeUuid) {
      const [row] = await prepared<HardwareRow>('hardware_lock', LOCK, [nodeUuid]);
      return row;
    },
    async put(nodeUuid, { digest, record, bootId, smart }, inHistory) {
      await prepared('hardware_put', PUT, [nodeUuid, digest, record, bootId, now(), inHistory, smart ? storableJson(smart) : null]);
    },
    async putToken(nodeUuid, hash, from) {
      const token = { token_hash: hash, token_from: from, token_made_at: now() };
      await run(
        rows()
          .insert({ node_uuid: nodeUuid, ...token, begun_at: token.token_made_at })
          .onConflict('node_uuid')
          .merge(token),
        { node_uuid: nodeUuid },
      );
    },
    async claimToken(nodeUuid, hash) {
      return (await prepared('hardware_claim', CLAIM, [nodeUuid, hash, now()])).length === 1;
    },
    async revoke(nodeUuid) {
      await run(rows().where('node_uuid', nodeUuid).update({ token_hash: null, token_from: null, token_made_at: null }));
    },
    async recordUnchanged(reports, inHistory) {
      const columns = (['nodeUuid', 'digest', 'bootId', 'at'] as const).map((name) => reports.map((report) => report[name]));
      const [fresh] = await prepared<Count>('hardware_unchanged', UNCHANGED, [
        ...columns,
        now(),
        inHistory,
        reports.map(({ smart }) => (smart ? storableJson(smart) : null)),
      ]);
      return fresh!.count;
    },
    async markStale(before, inHistory) {
      const [gone] = await prepared<Count>('hardware_mark', MARK, [before, now(), inHistory]);
      return gone!.count;
    },
    async counts() {
      const found = await prepared<Count & { readonly stale: boolean }>('hardware_counts', COUNTS, []);
      const of = (stale: boolean): number => found.find((row) => row.stale === stale)?.count ?? 0;
      return { fresh: of(false), stale: of(true) };
    },
    async addChanges(nodeUuid, changes, keep, source = 'recorder') {
      const kept = changes.slice(0, keep);
      if (kept.length === 0) return;
      await prepared('hardware_serialize', SERIALIZE, []);
      const own = { node_uuid: nodeUuid, source };
      const at = now();
      const json = (value: JsonObject | null): string | null => (value === null ? null : storableJson(value));
      await run(
        db('hardware_changes').insert(
          kept.map(({ kind, component, key, before, after }) => ({
            ...own,
            at,
            kind,
            component,
            key,
            before: json(before),
            after: json(after),
          })),
        ),
        { node_uuid: nodeUuid },
      );
      const oldest = db('hardware_changes').select('id').where(own).orderBy('id', 'desc').offset(keep).limit(1);
      await run(db('hardware_changes').where(own).where('id', '<=', oldest).delete());
    },
    changes: (filter) => findChanges(db, filter),
    async trimChanges(before, atMost) {
      const oldest = db('hardware_changes').select('id').where('at', '<', before).orderBy('at').limit(atMost);
      return run(db('hardware_changes').whereIn('id', oldest).delete());
    },
  };
}
