import type { Knex } from 'knex';

/** Flags that clients may take away: they have no value then, which is not the same as false to them. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE nodes ALTER COLUMN retired DROP NOT NULL, ALTER COLUMN disable_power_off DROP NOT NULL;
    ALTER TABLE ports ALTER COLUMN is_smartnic DROP NOT NULL;
  `);
}
