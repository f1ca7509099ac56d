/** The table `node_history`. */
import type { Knex } from 'knex';
import type { Clock } from '../../model/clock';
import { HISTORY_ENTRY_FIELDS } from '../../model/fields';
import type { HistoryRecord } from '../../model/records';
import { run } from '../sql/faults';
import type { Sizes } from '../sql/sizes';
import { resourceTable, type Table } from './resources';

interface History extends Table<HistoryRecord, 'node_uuid'> {
  /** Removes at most `atMost` entries before a time, but leaves the latest `keep` of each node. Returns the number of removed entries. */
  trim(limits: { readonly keep: number; readonly before: string; readonly atMost: number }): Promise<number>;
}

const historyTable = resourceTable<HistoryRecord, 'node_uuid'>({
  table: 'node_history',
  columns: { ...HISTORY_ENTRY_FIELDS, node_uuid: 'text' },
  notFound: ['NodeHistoryNotFound', 'history'],
});
const TRIM = `DELETE FROM node_history WHERE id IN (
  SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY node_uuid ORDER BY id DESC) AS place FROM node_history WHERE created_at < :before) AS old
   WHERE place > :keep ORDER BY id LIMIT :atMost)`;

/** @param db the pool, or a transaction */
export const historyOn = (db: Knex, clock: Clock, sizes?: Sizes): History => ({
  ...historyTable(db, clock, sizes),
  async trim(limits) {
    const { rowCount } = await run(db.raw<{ rowCount: number }>(TRIM, { ...limits }));
    return rowCount;
  },
});
