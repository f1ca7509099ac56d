/** The last requests of machines that boot, for `bloomery why`. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`ALTER TABLE boots ADD COLUMN requests jsonb NOT NULL DEFAULT '{}'`);
}
