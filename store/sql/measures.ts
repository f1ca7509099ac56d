/** Metrics of the database: connections and failed queries. */
import type { Knex } from 'knex';
import type { Metrics } from '../../model/metrics';
import { isUnavailable, toFault } from './faults';

/** The pool of the query builder (tarn). */
interface Pool {
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

const kindOf = (error: unknown): string => (isUnavailable(error) ? 'unreachable' : toFault(error) === error ? 'other' : 'refused');

/** Milliseconds after which the database counts as unavailable. */
const PING_TIMEOUT_MS = 1500;
/** Whether the database responds. Also false if all connections are in use until the timeout. */
export function isUp(db: Knex): Promise<boolean> {
  return new Promise((answer) => {
    const late = setTimeout(() => answer(false), PING_TIMEOUT_MS);
    db.raw('SELECT 1')
      .then(
        () => answer(true),
        () => answer(false),
      )
      .finally(() => clearTimeout(late));
  });
}

export function measurePool(db: Knex, size: number, metrics: Metrics): void {
  const { pool } = db.client as { readonly pool: Pool };
  metrics.read('bloomery_database_up', async () => [[{}, (await isUp(db)) ? 1 : 0]]);
  metrics.read('bloomery_database_connections_max', () => [[{}, size]]);
  metrics.read('bloomery_database_connections', () => [
    [{ state: 'used' }, pool.numUsed()],
    [{ state: 'free' }, pool.numFree()],
    [{ state: 'waiting' }, pool.numPendingAcquires()],
  ]);
  db.on('query-error', (error: unknown) => metrics.count('bloomery_database_errors_total', { kind: kindOf(error) }));
}
