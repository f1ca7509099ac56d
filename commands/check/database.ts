/** The check of the database: whether it is there, its schema and its clock. */
import { silentLog } from '../../model/log';
import { findEmbedded } from '../../store/embedded/embedded';
import { connect } from '../../store/sql/connection';
import { schemaState, stepsDone, type SchemaState } from '../../store/sql/schema';
import type { CheckContext, HostCheck, Result } from './check-row';

/** Clocks that differ more confuse leases and tokens. */
const CLOCK_MS = 5_000;

const SCHEMAS: Readonly<Record<SchemaState, Result>> = {
  none: ['note', 'it is empty: the start of the server creates the schema'],
  older: ['note', 'its schema is older: the start of the server updates it'],
  current: ['ok', 'its schema is up to date'],
  newer: ['refused', 'its schema is newer than this program knows: install the version that created it, or a later one'],
};
async function databaseFindings({ databaseUrl, stateDir }: CheckContext): Promise<readonly Result[]> {
  const found = databaseUrl === undefined ? await findEmbedded(stateDir) : undefined;
  const connection = databaseUrl ?? found?.running?.connection;
  if (connection === undefined) {
    const there = found ? 'the embedded database is there and not running' : 'the start of the server creates the embedded database';
    return [[found ? 'ok' : 'note', `${there} (${stateDir})`]];
  }
  const { db, where } = await connect({ connection, poolSize: 1, log: silentLog });
  try {
    const [severity, message] = SCHEMAS[schemaState(await stepsDone(db))];
    const before = Date.now();
    const { rows } = await db.raw<{ rows: { now: number }[] }>('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
    const difference = Math.max(before - rows[0]!.now, rows[0]!.now - Date.now(), 0);
    const clock: readonly Result[] =
      difference > CLOCK_MS
        ? [['warning', `${where}: its clock differs from that of this host by ${Math.round(difference / 1000)} s`]]
        : [];
    return [[severity, `${where}: ${message}`], ...clock];
  } finally {
    await db.destroy();
  }
}

export const database: HostCheck = { what: 'database', check: databaseFindings };
