/** The table `secrets`: what the processes on this database share, made once by whoever needs it first. */
import type { Knex } from 'knex';
import { run } from '../sql/faults';
import type { Secrets } from '../store';

export const secretsOn = (db: Knex): Secrets => ({
  async shared(name, make) {
    await run(db('secrets').insert({ name, value: make() }).onConflict('name').ignore());
    const row = await run(db('secrets').where({ name }).first('value') as unknown as PromiseLike<{ value: string }>);
    return row.value;
  },
});
