/** The table `erasures`: certificates of erasure. Nothing changes them, and only their age removes them. */
import type { Knex } from 'knex';
import { timestamp, type Clock } from '../../model/clock';
import { ERASURE_FIELDS } from '../../model/fields';
import type { ErasureRecord, NewErasure } from '../../model/records';
import { run } from '../sql/faults';
import type { Sizes } from '../sql/sizes';
import { resourceTable, type Table } from './resources';

interface Erasures extends Pick<Table<ErasureRecord>, 'byUuids' | 'find' | 'sizes'> {
  /** False: the node has a certificate of this command already. */
  issue(record: NewErasure): Promise<boolean>;
  /** Removes at most `atMost` that were issued before a time. Returns the number of removed certificates. */
  trim(limits: { readonly before: string; readonly atMost: number }): Promise<number>;
}

const table = resourceTable<ErasureRecord>({ table: 'erasures', columns: { ...ERASURE_FIELDS, command: 'text' } });
const TRIM = 'DELETE FROM erasures WHERE id IN (SELECT id FROM erasures WHERE created_at < :before ORDER BY created_at LIMIT :atMost)';

/** @param db the pool, or a transaction */
export function erasuresOn(db: Knex, clock: Clock, sizes?: Sizes): Erasures {
  const shared = table(db, clock, sizes);
  return {
    find: (uuid) => shared.find(uuid),
    sizes: (filter) => shared.sizes(filter),
    byUuids: (uuids) => shared.byUuids(uuids),
    async issue(record) {
      const row = { ...record, serials: [...record.serials], created_at: timestamp(clock.now()) };
      const made = await run(db('erasures').insert(row, 'id').onConflict(['node_uuid', 'command']).ignore());
      return made.length > 0;
    },
    async trim(limits) {
      const { rowCount } = await run(db.raw<{ rowCount: number }>(TRIM, { ...limits }));
      return rowCount;
    },
  };
}
