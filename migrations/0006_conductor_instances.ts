import type { Knex } from 'knex';

/**
 * Where conductors answer to each other, and which start of one a row belongs to (null: nobody's, its reservations are up); secrets that
 * the processes on this database share.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE conductors ADD COLUMN address text, ADD COLUMN instance text COLLATE "C";
    CREATE TABLE secrets (
      name text COLLATE "C" CONSTRAINT secrets_pkey PRIMARY KEY,
      value text NOT NULL
    );
  `);
}
