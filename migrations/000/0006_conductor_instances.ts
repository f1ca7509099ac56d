import type { Knex } from 'knex';

/**
 * RPC addresses of conductors, and the instance that a row belongs to (null: none, so that its reservations are invalid). Secrets that the
 * processes on this database share.
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
