/** Indexes for lists of one project's records. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE INDEX allocations_owner ON allocations (owner) WHERE owner IS NOT NULL;
    CREATE INDEX runbooks_owner ON runbooks (owner) WHERE owner IS NOT NULL;
    CREATE INDEX runbooks_public ON runbooks (id) WHERE public;
  `);
}
