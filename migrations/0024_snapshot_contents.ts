/** What snapshots leave out of their disks, and how they are compressed. */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE snapshots
      ADD COLUMN blocks text COLLATE "C" NOT NULL DEFAULT 'used',
      ADD COLUMN compression text COLLATE "C",
      ADD COLUMN left_out bigint,
      ADD COLUMN partitions json NOT NULL DEFAULT '[]';
    UPDATE snapshots SET blocks = 'all', compression = 'zlib', left_out = 0 WHERE state = 'available';
  `);
}
