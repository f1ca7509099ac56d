import type { Knex } from 'knex';

/** Clients may remove these flags. The value is then null, which the API distinguishes from false. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE nodes ALTER COLUMN retired DROP NOT NULL, ALTER COLUMN disable_power_off DROP NOT NULL;
    ALTER TABLE ports ALTER COLUMN is_smartnic DROP NOT NULL;
  `);
}
