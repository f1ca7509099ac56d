/**
 * The table `events`: changes of nodes, in an order that lets a reader continue after any event without missing one.
 *
 * Numbers of a sequence do not have this property: a transaction may commit after others that took higher numbers. Here the order is
 * (transaction, id). Only transactions below the oldest running one are read, because all later events have higher numbers.
 */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { timestamp } from '../../model/clock';
import type { EventKind, EventRecord } from '../../model/events';
import type { JsonObject, NodeRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';

/** Changes of nodes. Triggers of the database write most of them, with every change of a node. */
interface Events {
  /**
   * At most `atMost` events after a position, and the position to continue from. If fewer events are left, that is the present end.
   * @param project reads only events of nodes that the project owned or leased at the time; absent: all events
   */
  read(after: string, atMost: number, project?: string): Promise<{ readonly events: readonly EventRecord[]; readonly reached: string }>;
  /** Adds an event that is not a change of a node's column, so that no trigger writes it. */
  add(node: NodeRecord, kind: EventKind, payload: JsonObject): Promise<void>;
  /** The position from which only new events are read. */
  endPosition(): Promise<string>;
  /** Whether no event after this position has been removed. */
  isReachable(position: string): Promise<boolean>;
  /** Removes at most `atMost` events: those before a time, and the oldest beyond `keep`. Returns the number of removed events. */
  trim(limits: { readonly keep: number; readonly before: string; readonly atMost: number }): Promise<number>;
}

/** The oldest running transaction. No event is ever written before it. */
const END = 'pg_snapshot_xmin(pg_current_snapshot())';
/** Returns at least one row, because `reached` must come from the same snapshot as the events. */
const read = (condition: string): string => `
  SELECT ends.reached, found.* FROM (SELECT ${END} || '-0' AS reached) AS ends LEFT JOIN LATERAL (
    SELECT transaction || '-' || id AS position, at, node_uuid, node_name, owner, lessee, kind, payload FROM events
    WHERE (transaction, id) > ($1::text::xid8, $2::bigint) AND transaction < ${END}${condition}
    ORDER BY transaction, id LIMIT $3
  ) AS found ON true`;
const READ = read('');
const READ_OF_PROJECT = read(' AND (owner = $4 OR lessee = $4)');
/** False for positions before removed events, and for positions of another server with higher transaction numbers (a copied database). */
const REACHABLE = `
  SELECT NOT EXISTS (
    SELECT FROM events_trimmed
    WHERE (transaction, id) > ($1::text::xid8, $2::bigint) AND transaction <= pg_snapshot_xmax(pg_current_snapshot())
  ) AND $1::text::xid8 <= pg_snapshot_xmax(pg_current_snapshot()) AS reachable`;
/** Removes the oldest events, and those of another server, whose higher numbers would block reading. Stores the last removed position. */
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

/** Called after a restore: earlier positions become unreachable, and the events of the other server are removed. */
export async function forgetEvents(db: Knex): Promise<void> {
  await db.raw(
    `TRUNCATE events, events_trimmed; INSERT INTO events_trimmed (transaction, id) VALUES (pg_current_xact_id(), ${2n ** 63n - 1n})`,
  );
}

type EventRow = { readonly reached: string } & EventRecord;
/** The event without the column `reached`. */
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
 * @param clock for the times of added events
 */
export function eventsOn(db: Knex, clock: Clock): Events {
  const prepared = preparedOn(db);
  return {
    async read(after, atMost, project) {
      const values = [...partsOf(after), atMost];
      const rows = await (project === undefined
        ? prepared<EventRow>('events_read', READ, values)
        : prepared<EventRow>('events_read_project', READ_OF_PROJECT, [...values, project]));
      const events = rows.filter(({ position }) => position !== null).map(eventOf);
      return { events, reached: events.length < atMost ? rows[0]!.reached : events.at(-1)!.position };
    },
    async add({ uuid, name, owner, lessee }, kind, payload) {
      const row = { at: timestamp(clock.now()), node_uuid: uuid, node_name: name, owner, lessee, kind, payload: storableJson(payload) };
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
