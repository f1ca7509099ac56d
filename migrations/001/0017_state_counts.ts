/** How many nodes were in each provision state, for the page: a row each minute. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE state_counts (
      at timestamptz CONSTRAINT state_counts_pkey PRIMARY KEY,
      counts jsonb NOT NULL
    );
  `);
}
