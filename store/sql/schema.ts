/** Migrations: reads which ones the database has, and runs the missing ones, even if several processes start at once. */
import type { Knex } from 'knex';
import { MIGRATIONS } from '../../migrations';
import type { Migration } from '../../migrations';

export const MIGRATIONS_TABLE = 'knex_migrations';
/** The last migration of this program. */
export const LATEST: string = MIGRATIONS.at(-1)!.name;
/** The comment on each table that a migration made. It tells a program with an older schema that the table is not somebody else's. */
const TABLE_COMMENT = 'Bloomery';
/** Key of the advisory lock for migrations ("bloomery" in ASCII, as 63 bits). */
const LOCK = '7092186306040132217';
/** Maximum wait for another process that migrates. */
const LOCK_TIMEOUT = '60s';

/** Names of the applied migrations, in order. Empty for an empty database. */
export async function stepsDone(db: Knex): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { present: boolean }[] }>('SELECT to_regclass(?) IS NOT NULL AS present', [MIGRATIONS_TABLE]);
  if (!rows[0]?.present) return [];
  return (await db<{ name: string }>(MIGRATIONS_TABLE).select('name').orderBy('id')).map(({ name }) => name);
}

/** The schema of the database compared with that of this program. */
export type SchemaState = 'none' | 'older' | 'current' | 'newer';
export function schemaState(done: readonly string[], migrations: readonly Migration[] = MIGRATIONS): SchemaState {
  if (done.length === 0) return 'none';
  try {
    return pendingMigrations(done, migrations).length === 0 ? 'current' : 'older';
  } catch {
    return 'newer';
  }
}

/**
 * Runs all missing migrations in one transaction, under an advisory lock that ends with it. A process that dies therefore leaves no partial
 * schema and no lock. Throws if the database has unknown migrations.
 * @returns the last migration before and after; undefined: nothing was missing
 */
export async function migrate(db: Knex, migrations: readonly Migration[] = MIGRATIONS): Promise<SchemaChange | undefined> {
  const done = await stepsDone(db);
  if (pendingMigrations(done, migrations).length === 0) return undefined;
  await db.transaction(async (transaction) => {
    await transaction.raw(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
    await transaction.raw('SELECT pg_advisory_xact_lock(?)', [LOCK]);
    const before = new Set((await tablesOf(transaction)).map(({ name }) => name));
    // knex's own lock remains if its holder dies. Under the advisory lock, no other process can hold it.
    await transaction.migrate.forceFreeMigrationsLock({ tableName: MIGRATIONS_TABLE });
    await transaction.migrate.latest({
      tableName: MIGRATIONS_TABLE,
      migrationSource: {
        getMigrations: async () => [...migrations],
        getMigrationName: (migration: Migration) => migration.name,
        getMigration: async (migration: Migration) => ({ ...migration, down: forwardOnly }),
      },
    });
    for (const { name } of await tablesOf(transaction))
      if (!before.has(name)) await transaction.raw(`COMMENT ON TABLE ?? IS '${TABLE_COMMENT}'`, [name]);
  });
  return { from: done.at(-1), to: migrations.at(-1)!.name };
}

interface SchemaChange {
  /** Undefined: the database was empty. */
  readonly from: string | undefined;
  readonly to: string;
}

interface TableName {
  readonly name: string;
  /** A migration made it. Tables of older programs do not say so. */
  readonly isMarked: boolean;
}
/** The tables of the database but those of extensions. */
export async function tablesOf(db: Knex): Promise<readonly TableName[]> {
  const { rows } = await db.raw<{ rows: TableName[] }>(
    `SELECT relname AS name, obj_description(oid, 'pg_class') IS NOT DISTINCT FROM '${TABLE_COMMENT}' AS "isMarked" FROM pg_class c
     WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
     AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')`,
  );
  return rows;
}

/** The migrations that are not in `done`. Throws if `done` has unknown ones: the database belongs to a newer program or to another one. */
export function pendingMigrations(done: readonly string[], migrations: readonly Migration[] = MIGRATIONS): readonly Migration[] {
  const unknown = done.find((name) => !migrations.some((migration) => migration.name === name));
  if (unknown !== undefined)
    throw new Error(`its schema is newer (${done.at(-1) ?? unknown}) than this program knows (${migrations.at(-1)?.name ?? 'none'})`);
  return migrations.filter(({ name }) => !done.includes(name));
}

const forwardOnly = async (): Promise<void> => {
  throw new Error('Migrations only go forward.');
};
