/** The kickstart file of an installer, which the boot service serves. It is apart from the other files, since it may have megabytes. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE boots ADD COLUMN kickstart text COLLATE "C"');
}
