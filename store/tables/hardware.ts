/** The tables `hardware` and `hardware_changes`: the latest record of each node that a recorder on its host pushed, and what changed. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { JsonObject } from '../../model/records';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';
import type { Hardware, HardwareChangeRow, HardwareToken, HardwareRow } from '../store';

const DOORS = 'SELECT node_uuid, token_hash, digest FROM hardware WHERE node_uuid = ANY($1)';
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
] as const;
/**
 * What is told of recorders that fell silent or are heard again: an event, and an entry of the node's history where `kept` is true.
 * @param from rows with node_uuid and received_at
 */
const tell = (from: string, stale: boolean, at: string, kept: string): string => `
  noted AS (
    INSERT INTO events (at, node_uuid, node_name, owner, lessee, kind, payload)
    SELECT ${at}::timestamptz, nodes.uuid, nodes.name, nodes.owner, nodes.lessee, 'recorder',
      json_build_object('stale', ${stale}, 'received_at', ${from}.received_at)
    FROM ${from} JOIN nodes ON nodes.uuid = ${from}.node_uuid
  ), written AS (
    INSERT INTO node_history (uuid, node_uuid, event_type, severity, event, state, target_provision_state, created_at)
    SELECT gen_random_uuid()::text, nodes.uuid, 'recorder', 'INFO',
      '${stale ? 'The recorder of the running host fell silent.' : 'The recorder of the running host is heard again.'}',
      nodes.provision_state, nodes.target_provision_state, ${at}::timestamptz
    FROM ${from} JOIN nodes ON nodes.uuid = ${from}.node_uuid WHERE ${kept}::boolean
  )`;
/** The node first, as whoever removes it takes them: else the two would wait for each other. */
const LOCK = `
  WITH node AS MATERIALIZED (SELECT uuid FROM nodes WHERE uuid = $1 FOR KEY SHARE)
  SELECT ${ROW.map((name) => `hardware.${name}`).join(', ')} FROM node JOIN hardware ON hardware.node_uuid = node.uuid FOR UPDATE OF hardware`;
const PUT = `
  WITH was AS (SELECT node_uuid, stale FROM hardware WHERE node_uuid = $1), put AS (
    UPDATE hardware SET digest = $2, record = $3, boot_id = $4, recorded_at = $5, received_at = $5, stale = false
    WHERE node_uuid = $1 RETURNING node_uuid, received_at
  ), fresh AS (SELECT put.* FROM put JOIN was USING (node_uuid) WHERE was.stale), ${tell('fresh', false, '$5', '$6')}
  SELECT FROM fresh`;
/** All processes that write many of them take them in the same order, so that none waits for one that waits for it. */
const STAMP = `
  WITH told AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) AS told (node_uuid, digest, boot_id, at)
  ), was AS (
    SELECT hardware.node_uuid, hardware.stale, told.boot_id, told.at
    FROM hardware JOIN told ON told.node_uuid = hardware.node_uuid AND told.digest = hardware.digest
    ORDER BY hardware.node_uuid FOR UPDATE OF hardware
  ), stamped AS (
    UPDATE hardware SET received_at = was.at, boot_id = was.boot_id, stale = false
    FROM was WHERE hardware.node_uuid = was.node_uuid AND hardware.received_at <= was.at
    RETURNING hardware.node_uuid, hardware.received_at, was.stale
  ), fresh AS (SELECT * FROM stamped WHERE stale), ${tell('fresh', false, '$5', '$6')}
  SELECT count(*) AS count FROM fresh`;
/** What somebody writes at the moment is heard of. */
const MARK = `
  WITH silent AS (
    SELECT node_uuid FROM hardware WHERE NOT stale AND received_at < $1::timestamptz FOR UPDATE SKIP LOCKED
  ), gone AS (
    UPDATE hardware SET stale = true FROM silent WHERE hardware.node_uuid = silent.node_uuid
    RETURNING hardware.node_uuid, hardware.received_at
  ), ${tell('gone', true, '$2', '$3')}
  SELECT count(*) AS count FROM gone`;
/**
 * Changes are written by one transaction at a time, until it has committed: who reads on behind the last number that he saw misses none
 * that took a lower one and came later. (Those that wait hold nothing that others need; a change is rare, and this is the end of it.)
 */
const IN_TURN = `SELECT pg_advisory_xact_lock(hashtext('hardware_changes'))`;
const COUNTS = 'SELECT stale, count(*) AS count FROM hardware WHERE received_at IS NOT NULL GROUP BY stale';

interface Count {
  readonly count: number;
}

/**
 * @param db the pool, or a transaction
 * @param clock stamps what is noted
 */
export function hardwareOn(db: Knex, clock: Clock): Hardware {
  const prepared = preparedOn(db);
  const now = (): string => timestamp(clock.now());
  const rows = () => db<HardwareRow>('hardware');
  const door = batched<string, HardwareToken | undefined>(async (uuids) => {
    const found = await prepared<HardwareToken>('hardware_doors', DOORS, [uuids]);
    const byNode = new Map(found.map((row) => [row.node_uuid, row]));
    return uuids.map((uuid) => byNode.get(uuid));
  });
  return {
    findToken: door,
    async find(nodeUuid) {
      const [row] = await run(
        rows()
          .select(...ROW)
          .where('node_uuid', nodeUuid),
      );
      return row;
    },
    async lock(nodeUuid) {
      const [row] = await prepared<HardwareRow>('hardware_lock', LOCK, [nodeUuid]);
      return row;
    },
    async put(nodeUuid, { digest, record, bootId }, inHistory) {
      await prepared('hardware_put', PUT, [nodeUuid, digest, record, bootId, now(), inHistory]);
    },
    async putToken(nodeUuid, hash, from) {
      const token = { token_hash: hash, token_from: from, token_made_at: now() };
      await run(
        rows()
          .insert({ node_uuid: nodeUuid, ...token })
          .onConflict('node_uuid')
          .merge(token),
        { node_uuid: nodeUuid },
      );
    },
    async revoke(nodeUuid) {
      await run(rows().where('node_uuid', nodeUuid).update({ token_hash: null, token_from: null, token_made_at: null }));
    },
    async recordUnchanged(signs, inHistory) {
      const columns = (['nodeUuid', 'digest', 'bootId', 'at'] as const).map((name) => signs.map((sign) => sign[name]));
      const [fresh] = await prepared<Count>('hardware_stamp', STAMP, [...columns, now(), inHistory]);
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
    async addChanges(nodeUuid, changes, keep) {
      await prepared('hardware_in_turn', IN_TURN, []);
      const at = now();
      const json = (value: JsonObject | null): string | null => (value === null ? null : JSON.stringify(value));
      await run(
        db('hardware_changes').insert(
          changes.map(({ kind, component, key, before, after }) => ({
            ...{ node_uuid: nodeUuid, at, kind, component, key },
            before: json(before),
            after: json(after),
          })),
        ),
        { node_uuid: nodeUuid },
      );
      const oldest = db('hardware_changes').select('id').where('node_uuid', nodeUuid).orderBy('id', 'desc').offset(keep).limit(1);
      await run(db('hardware_changes').where('node_uuid', nodeUuid).where('id', '<=', oldest).delete());
    },
    async changes({ nodeUuid, kinds, components, since, after, limit }) {
      const query = db<HardwareChangeRow>('hardware_changes')
        .join('nodes', 'nodes.uuid', 'hardware_changes.node_uuid')
        .select(
          ...['id', 'node_uuid', 'at', 'kind', 'component', 'key', 'before', 'after'].map((name) => `hardware_changes.${name}`),
          'nodes.name as node_name',
          'nodes.owner',
          'nodes.lessee',
        )
        .orderBy('hardware_changes.id')
        .limit(limit);
      if (nodeUuid !== undefined) void query.where('hardware_changes.node_uuid', nodeUuid);
      if (kinds) void query.whereRaw('hardware_changes.kind = ANY(?)', [[...kinds]]);
      if (components) void query.whereRaw('hardware_changes.component = ANY(?)', [[...components]]);
      if (since !== undefined) void query.where('hardware_changes.at', '>=', since);
      if (after !== undefined) void query.where('hardware_changes.id', '>', after);
      return run(query as unknown as PromiseLike<HardwareChangeRow[]>);
    },
    async trimChanges(before, atMost) {
      const oldest = db('hardware_changes').select('id').where('at', '<', before).orderBy('at').limit(atMost);
      return run(db('hardware_changes').whereIn('id', oldest).delete());
    },
  };
}
