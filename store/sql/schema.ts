/** The schema's steps in this database: which it has, and running the missing ones, whoever else starts at the same moment. */
import type { Knex } from 'knex';
import { MIGRATIONS } from '../../migrations';
import type { Migration } from '../../migrations';

export const TABLE = 'knex_migrations';
/** The last step that this program knows. */
export const LATEST: string = MIGRATIONS.at(-1)!.name;
/** Key of the advisory lock under which the schema is changed: any number that is ours alone ("bloomery" in ASCII, as 63 bits). */
const LOCK = '7092186306040132217';
/** Longest wait for another process that changes the schema. */
const LOCK_TIMEOUT = '60s';

/** Names of the steps that were run, in their order; empty in an empty database. */
export async function stepsDone(db: Knex): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { present: boolean }[] }>('SELECT to_regclass(?) IS NOT NULL AS present', [TABLE]);
  if (!rows[0]?.present) return [];
  return (await db<{ name: string }>(TABLE).select('name').orderBy('id')).map(({ name }) => name);
}

/** How a database's schema stands to this program's. */
export type SchemaState = 'none' | 'older' | 'current' | 'newer';
export function schemaState(done: readonly string[], migrations: readonly Migration[] = MIGRATIONS): SchemaState {
  if (done.length === 0) return 'none';
  try {
    return missing(done, migrations).length === 0 ? 'current' : 'older';
  } catch {
    return 'newer';
  }
}

/**
 * Brings the schema to the last of `migrations`: all missing steps in one transaction, under an advisory lock that ends with it, so a
 * process that dies in between leaves nothing half done and nothing locked. Throws when the database has steps that are not listed.
 */
export async function migrate(db: Knex, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  if (missing(await stepsDone(db), migrations).length === 0) return;
  await db.transaction(async (transaction) => {
    await transaction.raw(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
    await transaction.raw('SELECT pg_advisory_xact_lock(?)', [LOCK]);
    // knex keeps a lock of its own, which outlives whoever dies with it. Here nobody else can have it.
    await transaction.migrate.forceFreeMigrationsLock({ tableName: TABLE });
    await transaction.migrate.latest({
      tableName: TABLE,
      migrationSource: {
        getMigrations: async () => [...migrations],
        getMigrationName: (migration: Migration) => migration.name,
        getMigration: async (migration: Migration) => ({ ...migration, down: forwardOnly }),
      },
    });
  });
}

/** The steps that `done` lacks. Throws when `done` has others than ours: the database belongs to a newer program, or to another one. */
export function missing(done: readonly string[], migrations: readonly Migration[] = MIGRATIONS): readonly Migration[] {
  const unknown = done.find((name) => !migrations.some((migration) => migration.name === name));
  if (unknown !== undefined)
    throw new Error(`its schema is newer (${done.at(-1) ?? unknown}) than this program knows (${migrations.at(-1)?.name ?? 'none'})`);
  return migrations.filter(({ name }) => !done.includes(name));
}

const forwardOnly = async (): Promise<void> => {
  throw new Error('Migrations only go forward.');
};
