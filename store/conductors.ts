/** The table `conductors`: who is there to hold nodes, and when it was last heard of. */
import type { Knex } from 'knex';
import type { Clock } from '../model/clock';
import { timestamp } from '../model/clock';
import { Fault } from '../model/errors';
import type { ConductorRecord } from '../model/records';
import { batched } from './batch';
import { run } from './faults';
import { preparedOn } from './prepared';
import type { Alive, Conductors } from './store';

/** One row: the word of `alive`, null for nobody. */
export const ALIVE = `SELECT string_agg(id || ':' || revision, ',' ORDER BY id) AS alive FROM conductors WHERE online AND updated_at >= $1`;

export function conductorsOn(db: Knex, clock: Clock): Conductors {
  const prepared = preparedOn(db);
  const conductors = () => db<ConductorRecord>('conductors');
  const list = (): Promise<readonly ConductorRecord[]> => run(conductors().orderBy('id'));
  const aliveWord = batched(async (since: readonly number[]): Promise<readonly string[]> => {
    const [found] = await prepared<{ alive: string | null }>('conductors_alive', ALIVE, [timestamp(Math.max(...since))]);
    return since.map(() => found!.alive ?? '');
  });
  let last: Alive = { word: '', conductors: [] };
  /** Sets the sign of life. Throws ConductorNotFound. */
  const mark = async (hostname: string, online: boolean): Promise<void> => {
    const changed = await run(
      conductors()
        .where({ hostname })
        .update({ online, updated_at: timestamp(clock.now()) }),
    );
    if (changed === 0) throw new Fault('ConductorNotFound', { conductor: hostname });
  };
  return {
    async register({ hostname, conductor_group, drivers }) {
      const now = timestamp(clock.now());
      const row = { hostname, conductor_group, drivers: JSON.stringify(drivers), online: true, created_at: now, updated_at: now };
      const query = db('conductors')
        .insert(row, '*')
        .onConflict('hostname')
        .merge({
          conductor_group,
          drivers: row.drivers,
          online: true,
          updated_at: now,
          revision: db.raw('conductors.revision + 1'),
        }) as unknown as PromiseLike<ConductorRecord[]>;
      const [conductor] = await run(query);
      return conductor!;
    },
    touch: (hostname) => mark(hostname, true),
    unregister: (hostname) => mark(hostname, false),
    async alive(since, word) {
      if ((word ?? (await aliveWord(since))) === last.word) return last;
      const found = (await list()).filter(({ online, updated_at: sign }) => online && Date.parse(sign) >= since);
      // Of what was read, which may be later than what was asked.
      last = { word: found.map(({ id, revision }) => `${id}:${revision}`).join(), conductors: found };
      return last;
    },
    list,
  };
}
