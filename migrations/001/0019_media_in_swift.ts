/** Where the copies of images for BMCs are, so that they can be removed when the options have changed. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE media ADD COLUMN swift_container text COLLATE "C"');
}
