/** The architecture of the node whose machine boots, so that a machine of another one is told (boot/architectures.ts). */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE boots ADD COLUMN cpu_arch text');
}
