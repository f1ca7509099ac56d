/** The table `secrets`: values that all processes on this database share. The first process that needs one creates it. */
import type { Knex } from 'knex';
import { run } from '../sql/faults';

export interface Secrets {
  /** Returns the value of this name, which is the same for all processes on this database. `make` creates a missing value. */
  shared(name: string, make: () => string): Promise<string>;
}

export const secretsOn = (db: Knex): Secrets => ({
  async shared(name, make) {
    await run(db('secrets').insert({ name, value: make() }).onConflict('name').ignore());
    const row = await run(db('secrets').where({ name }).first('value') as unknown as PromiseLike<{ value: string }>);
    return row.value;
  },
});
