/** The table `conductors`: the registered conductors and the times of their last heartbeats. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { systemClock, timestamp } from '../../model/clock';
import { Fault } from '../../model/errors';
import type { ConductorRecord } from '../../model/records';
import { storableJson } from '../../model/text';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';

export interface AliveConductors {
  /** `id:revision,…`: changes when a conductor becomes alive or dead, and when one registers again. */
  readonly version: string;
  /** Cached by version, so that `updated_at` may be outdated. */
  readonly conductors: readonly ConductorRecord[];
}
interface Conductors {
  /**
   * Inserts the row, or takes it over from the instance `previous` (null: from no instance). False: another instance has registered
   * meanwhile. Called in a transaction.
   */
  register(
    conductor: Pick<ConductorRecord, 'hostname' | 'conductor_group' | 'drivers' | 'address'> & { readonly instance: string },
    previous: string | null,
  ): Promise<boolean>;
  /** Records a heartbeat. Throws ConductorNotFound if the row no longer belongs to this instance. */
  touch(hostname: string, instance: string): Promise<void>;
  /** Goes offline, so that no new work arrives. Its locks stay valid while it sends heartbeats. Throws as `touch`. */
  drain(hostname: string, instance: string): Promise<void>;
  /** Gives up all locks. Throws as `touch`. */
  unregister(hostname: string, instance: string): Promise<void>;
  /**
   * Invalidates the locks of a conductor without a heartbeat within `timeout` seconds. False: it has sent one. An unknown conductor has no
   * valid locks: true. Called in the transaction that takes over its nodes.
   */
  declareDead(hostname: string, timeout: number): Promise<boolean>;
  /** Removes at most `atMost` conductors that have no reservations and sent no heartbeat for `seconds`. Returns their host names. */
  removeExpired(seconds: number, atMost: number): Promise<readonly string[]>;
  /**
   * The online conductors with a heartbeat within `timeout` seconds. Reads their rows only if the version in the database has changed.
   * @param version the current version, if the caller has just read it (`NodeSummary.conductors_version`)
   */
  alive(timeout: number, version?: string): Promise<AliveConductors>;
  /** All conductors. `timeout`: as for `alive`. */
  list(timeout: number): Promise<readonly ConductorRecord[]>;
}

/**
 * Heartbeats are written and compared by the database's clock, because clocks of hosts differ. `$1`: seconds without a heartbeat after
 * which a conductor is dead. `$2`: the time of a test's clock instead; otherwise null.
 */
const RECENT = 'updated_at >= coalesce($2::timestamptz, now()) - make_interval(secs => $1)';
/** One row with the version of the alive conductors; null if there are none. */
export const ALIVE_VERSION = `SELECT string_agg(id || ':' || revision, ',' ORDER BY id) AS version FROM conductors WHERE online AND ${RECENT}`;
/** The value of `$2`. */
export const aliveCheckTime = (clock: Clock): string | null => (clock === systemClock ? null : timestamp(clock.now()));

const COLUMNS = 'id, hostname, conductor_group, drivers, online, address, instance, created_at, updated_at, revision';
const LIST = `SELECT ${COLUMNS}, online AND ${RECENT} AS alive, instance IS NOT NULL AND ${RECENT} AS locks_valid FROM conductors ORDER BY id`;

export function conductorsOn(db: Knex, clock: Clock): Conductors {
  const prepared = preparedOn(db);
  const list = (timeout: number) => prepared<ConductorRecord>('conductors', LIST, [timeout, aliveCheckTime(clock)]);
  const now = () => (clock === systemClock ? db.raw('now()') : timestamp(clock.now()));
  const aliveVersion = batched(async (timeouts: readonly number[]): Promise<readonly string[]> => {
    const [found] = await prepared<{ version: string | null }>('conductors_alive', ALIVE_VERSION, [
      Math.min(...timeouts),
      aliveCheckTime(clock),
    ]);
    return timeouts.map(() => found!.version ?? '');
  });
  let last: AliveConductors = { version: '', conductors: [] };
  /** Serializes registration and declareDead of one conductor until the end of the transaction. */
  const serialize = (hostname: string) => run(db.raw('SELECT pg_advisory_xact_lock(hashtext(?))', [`conductor ${hostname}`]));
  /** Throws ConductorNotFound if the row belongs to no instance or to another one. */
  const change = async (hostname: string, instance: string, row: object): Promise<void> => {
    const changed = await run(db('conductors').where({ hostname, instance }).update(row));
    if (changed === 0) throw new Fault('ConductorNotFound', { conductor: hostname });
  };
  return {
    async register({ hostname, conductor_group, drivers, address, instance }, previous) {
      await serialize(hostname);
      const offered = { conductor_group, drivers: storableJson(drivers), address, instance, online: true, updated_at: now() };
      const query = db('conductors')
        .insert({ hostname, created_at: now(), ...offered }, 'id')
        .onConflict('hostname')
        .merge({ ...offered, revision: db.raw('conductors.revision + 1') })
        .whereRaw('conductors.instance IS NOT DISTINCT FROM ?', [previous]) as unknown as PromiseLike<unknown[]>;
      return (await run(query)).length > 0;
    },
    touch: (hostname, instance) => change(hostname, instance, { updated_at: now() }),
    drain: (hostname, instance) => change(hostname, instance, { online: false, updated_at: now() }),
    unregister: (hostname, instance) => change(hostname, instance, { online: false, instance: null, updated_at: now() }),
    async declareDead(hostname, timeout) {
      await serialize(hostname);
      const [row] = (await list(timeout)).filter((candidate) => candidate.hostname === hostname);
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
          [aliveCheckTime(clock), seconds, atMost] as Knex.RawBinding[],
        ),
      );
      return rows.map(({ hostname }) => hostname);
    },
    async alive(timeout, version) {
      if ((version ?? (await aliveVersion(timeout))) === last.version) return last;
      const found = (await list(timeout)).filter(({ alive }) => alive);
      // The rows may be newer than the version that was compared, so the version is computed from the rows.
      last = { version: found.map(({ id, revision }) => `${id}:${revision}`).join(), conductors: found };
      return last;
    },
    list,
  };
}
