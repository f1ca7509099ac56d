/** The table `conductors`: who is there to hold nodes, and when it was last heard of. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { systemClock, timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { ConductorRecord } from '../../model/records';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';
import type { AliveConductors, Conductors } from '../store';

/**
 * Signs of life are stamped and judged by the database's clock: those of hosts differ. `$2`: a test's clock in its place, else null.
 * `$1`: seconds without one after which a conductor counts as dead.
 */
const HEARD = 'updated_at >= coalesce($2::timestamptz, now()) - make_interval(secs => $1)';
/** One row: the word of `alive`, null for nobody. */
export const ALIVE_VERSION = `SELECT string_agg(id || ':' || revision, ',' ORDER BY id) AS version FROM conductors WHERE online AND ${HEARD}`;
/** What `$2` is there. */
export const aliveAt = (clock: Clock): string | null => (clock === systemClock ? null : timestamp(clock.now()));

const COLUMNS = 'id, hostname, conductor_group, drivers, online, address, instance, created_at, updated_at, revision';
const LIST = `SELECT ${COLUMNS}, online AND ${HEARD} AS alive, instance IS NOT NULL AND ${HEARD} AS locks_valid FROM conductors ORDER BY id`;

export function conductorsOn(db: Knex, clock: Clock): Conductors {
  const prepared = preparedOn(db);
  const list = (timeout: number) => prepared<ConductorRecord>('conductors', LIST, [timeout, aliveAt(clock)]);
  const now = () => (clock === systemClock ? db.raw('now()') : timestamp(clock.now()));
  const aliveVersion = batched(async (timeouts: readonly number[]): Promise<readonly string[]> => {
    const [found] = await prepared<{ version: string | null }>('conductors_alive', ALIVE_VERSION, [Math.min(...timeouts), aliveAt(clock)]);
    return timeouts.map(() => found!.version ?? '');
  });
  let last: AliveConductors = { version: '', conductors: [] };
  /** Registering, and being declared dead with all that comes of it, one after the other; until the end of the transaction. */
  const oneByOne = (hostname: string) => run(db.raw('SELECT pg_advisory_xact_lock(hashtext(?))', [`conductor ${hostname}`]));
  /** Throws ConductorNotFound when the row belongs to nobody, or to another instance. */
  const change = async (hostname: string, instance: string, row: object): Promise<void> => {
    const changed = await run(db('conductors').where({ hostname, instance }).update(row));
    if (changed === 0) throw new Fault('ConductorNotFound', { conductor: hostname });
  };
  return {
    async register({ hostname, conductor_group, drivers, address, instance }, over) {
      await oneByOne(hostname);
      const offered = { conductor_group, drivers: JSON.stringify(drivers), address, instance, online: true, updated_at: now() };
      const query = db('conductors')
        .insert({ hostname, created_at: now(), ...offered }, 'id')
        .onConflict('hostname')
        .merge({ ...offered, revision: db.raw('conductors.revision + 1') })
        .whereRaw('conductors.instance IS NOT DISTINCT FROM ?', [over]) as unknown as PromiseLike<unknown[]>;
      return (await run(query)).length > 0;
    },
    touch: (hostname, instance) => change(hostname, instance, { updated_at: now() }),
    drain: (hostname, instance) => change(hostname, instance, { online: false, updated_at: now() }),
    unregister: (hostname, instance) => change(hostname, instance, { online: false, instance: null, updated_at: now() }),
    async declareDead(hostname, timeout) {
      await oneByOne(hostname);
      const [row] = (await list(timeout)).filter((one) => one.hostname === hostname);
      if (row?.locks_valid) return false;
      if (row) await run(db('conductors').where({ hostname }).update({ online: false, instance: null }));
      return true;
    },
    async removeExpired(seconds, atMost) {
      const { rows } = await run(
        db.raw<{ rows: { hostname: string }[] }>(
          `DELETE FROM conductors WHERE id IN (
             SELECT id FROM conductors
              WHERE updated_at < coalesce(?::timestamptz, now()) - make_interval(secs => ?)
                AND NOT EXISTS (SELECT 1 FROM nodes WHERE reservation = hostname)
              ORDER BY updated_at LIMIT ?) RETURNING hostname`,
          [aliveAt(clock), seconds, atMost] as Knex.RawBinding[],
        ),
      );
      return rows.map(({ hostname }) => hostname);
    },
    async alive(timeout, version) {
      if ((version ?? (await aliveVersion(timeout))) === last.version) return last;
      const found = (await list(timeout)).filter(({ alive }) => alive);
      // Of what was read, which may be later than what was asked.
      last = { version: found.map(({ id, revision }) => `${id}:${revision}`).join(), conductors: found };
      return last;
    },
    list,
  };
}
