/**
 * The table `events`: what happened to nodes, in an order in which a reader may go on after any event without ever missing one.
 *
 * Numbers of a sequence are no such order: a transaction may commit after others that took later numbers. Here the order is (transaction,
 * id), and only transactions below the oldest that still runs are read: all that can come later has a higher number.
 */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { EventRecord } from '../../model/events';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';
import type { Events } from '../store';

/** The oldest running transaction: nothing is ever written before it. */
const END = 'pg_snapshot_xmin(pg_current_snapshot())';
/** One row at least: that of `reached`, which all rows are from the same moment as. */
const READ = `
  SELECT ends.reached, found.* FROM (SELECT ${END} || '-0' AS reached) AS ends LEFT JOIN LATERAL (
    SELECT transaction || '-' || id AS position, at, node_uuid, node_name, owner, lessee, kind, payload FROM events
    WHERE (transaction, id) > ($1::text::xid8, $2::bigint) AND transaction < ${END}
    ORDER BY transaction, id LIMIT $3
  ) AS found ON true`;
/** Not behind what was removed; and not of another server, whose transactions were ahead of this one's, before the database was copied. */
const REACHABLE = `
  SELECT NOT EXISTS (
    SELECT FROM events_trimmed
    WHERE (transaction, id) > ($1::text::xid8, $2::bigint) AND transaction <= pg_snapshot_xmax(pg_current_snapshot())
  ) AND $1::text::xid8 <= pg_snapshot_xmax(pg_current_snapshot()) AS reachable`;
/** The oldest first; and those of another server, which would stand in the way of what comes. The last of what goes is remembered. */
const TRIM = `
  WITH gone AS (
    DELETE FROM events WHERE (transaction, id) IN (
      SELECT transaction, id FROM events
      WHERE at < :before OR transaction > pg_snapshot_xmax(pg_current_snapshot())
        OR (transaction, id) <= (SELECT transaction, id FROM events ORDER BY transaction DESC, id DESC OFFSET :keep LIMIT 1)
      ORDER BY transaction, id LIMIT :atMost
    ) RETURNING transaction, id
  ), last AS (
    INSERT INTO events_trimmed (transaction, id)
    SELECT transaction, id FROM gone WHERE transaction <= pg_snapshot_xmax(pg_current_snapshot()) ORDER BY transaction DESC, id DESC LIMIT 1
    ON CONFLICT (single) DO UPDATE SET transaction = excluded.transaction, id = excluded.id
    WHERE (events_trimmed.transaction, events_trimmed.id) < (excluded.transaction, excluded.id)
      OR events_trimmed.transaction > pg_snapshot_xmax(pg_current_snapshot())
  )
  SELECT count(*) AS gone FROM gone`;

/** Of a database that was put back: no position from before leads on, and what it tells was of another server. */
export async function forgetEvents(db: Knex): Promise<void> {
  await db.raw(
    `TRUNCATE events, events_trimmed; INSERT INTO events_trimmed (transaction, id) VALUES (pg_current_xact_id(), ${2n ** 63n - 1n})`,
  );
}

/** Without what stands beside it in its row. */
const eventOf = ({ position, at, node_uuid, node_name, owner, lessee, kind, payload }: EventRecord): EventRecord => ({
  position,
  at,
  node_uuid,
  node_name,
  owner,
  lessee,
  kind,
  payload,
});
const partsOf = (position: string): readonly string[] => position.split('-');

/**
 * @param db the pool, or a transaction
 * @param clock stamps what is noted
 */
export function eventsOn(db: Knex, clock: Clock): Events {
  const prepared = preparedOn(db);
  return {
    async read(after, atMost) {
      const values = [...partsOf(after), atMost];
      const rows = await prepared<{ readonly reached: string } & EventRecord>('events_read', READ, values);
      const events = rows.filter(({ position }) => position !== null).map(eventOf);
      return { events, reached: events.length < atMost ? rows[0]!.reached : events.at(-1)!.position };
    },
    async add({ uuid, name, owner, lessee }, kind, payload) {
      const row = { at: timestamp(clock.now()), node_uuid: uuid, node_name: name, owner, lessee, kind, payload: JSON.stringify(payload) };
      await run(db('events').insert(row));
    },
    async endPosition() {
      const [found] = await prepared<{ readonly reached: string }>('events_end', `SELECT ${END} || '-0' AS reached`, []);
      return found!.reached;
    },
    async isReachable(position) {
      const [found] = await prepared<{ readonly reachable: boolean }>('events_reachable', REACHABLE, partsOf(position));
      return found!.reachable;
    },
    async trim(limits) {
      const { rows } = await run(db.raw<{ rows: { gone: number }[] }>(TRIM, { ...limits }));
      return rows[0]!.gone;
    },
  };
}
