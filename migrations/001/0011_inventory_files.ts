/** If an inventory is in a file, its row contains only the name of the file. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE inventories
      ADD COLUMN file text,
      ALTER COLUMN inventory DROP NOT NULL,
      ALTER COLUMN plugin_data DROP NOT NULL,
      ADD CONSTRAINT inventories_one_place CHECK ((file IS NULL) <> (inventory IS NULL));
  `);
}
