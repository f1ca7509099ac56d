/** What the disks of a running host said of themselves at the last push of its recorder (docs/health.md). */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE hardware ADD COLUMN smart json');
}
