/** Opens the store: connects to PostgreSQL, checks or migrates the schema, and creates the tables. */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { Clock } from '../model/clock';
import { silentMetrics, type Metrics } from '../model/metrics';
import { connect, unusable, type Connected, type ConnectOptions } from './sql/connection';
import { run } from './sql/faults';
import { createIdentityCheck, IDENTITY_SECRET } from './sql/identity';
import { isUp, measurePool } from './sql/measures';
import { migrate, pendingMigrations, stepsDone } from './sql/schema';
import { DEFAULT_SIZES, type Sizes } from './sql/sizes';
import type { Store } from './store';
import { TABLES, type Tables } from './tables';
import type { Inventories } from './tables/inspection/inventories';
import { secretsOn } from './tables/secrets';

export interface StoreOptions extends ConnectOptions {
  readonly clock: Clock;
  /** Absent: no metrics (tools, tests). */
  readonly metrics?: Metrics;
  /** Default: migrate the schema. False: refuse an outdated schema. */
  readonly migrate?: boolean;
  /** The limits of records. */
  readonly sizes?: Sizes;
  /** Replaces the table `inventories` by another storage. */
  readonly inventories?: ((db: Knex, clock: Clock) => Inventories) | undefined;
}
export interface OpenStore extends Store {
  /** Whether the database responds within a short timeout. */
  isUp(): Promise<boolean>;
  /** The local address of the connection; undefined for a Unix socket. */
  localAddress(): Promise<string | undefined>;
  /** Waits for running queries, then closes the connections. */
  close(): Promise<void>;
  /** Versions of the server ('18.4') and of the schema (name of the last migration). Rejects if the database does not respond. */
  version(): Promise<{ readonly postgres: string; readonly schema: string }>;
}

type Factories = { readonly [Name in keyof Tables]: (db: Knex, clock: Clock, sizes: Sizes) => Tables[Name] };

const storeOn = (db: Knex, clock: Clock, factories: Factories, sizes: Sizes): Store => ({
  ...(Object.fromEntries(
    Object.entries<Factories[keyof Tables]>(factories).map(([name, on]) => [name, on(db, clock, sizes)]),
  ) as unknown as Tables),
  transaction: (work) => run(db.transaction((transaction) => work(storeOn(transaction, clock, factories, sizes)))),
});

/** The part of knex's client that is used here. */
interface Pool {
  acquireConnection(): Promise<{ readonly connection: { readonly stream: { readonly localAddress?: string } } }>;
  releaseConnection(connection: object): Promise<void>;
}

/** Throws an Error of one line that names the problem, without the password. */
export async function openStore(options: StoreOptions): Promise<OpenStore> {
  const { clock, metrics = silentMetrics } = options;
  const identity = createIdentityCheck(options.log);
  const connected = await connect({ ...options, identity });
  const { db } = connected;
  measurePool(db, options.poolSize, metrics);
  try {
    await prepareSchema(connected, options);
    identity.expect(await secretsOn(db).shared(IDENTITY_SECRET, randomUUID));
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return {
    ...storeOn(db, clock, options.inventories ? { ...TABLES, inventories: options.inventories } : TABLES, options.sizes ?? DEFAULT_SIZES),
    async localAddress() {
      const { client } = db as unknown as { readonly client: Pool };
      const connection = await run(client.acquireConnection());
      await client.releaseConnection(connection);
      return connection.connection.stream.localAddress;
    },
    close: () => db.destroy(),
    isUp: () => isUp(db),
    async version() {
      const { rows } = await run(db.raw<{ rows: { server: string }[] }>("SELECT current_setting('server_version') AS server"));
      return { postgres: rows[0]!.server.split(' ')[0]!, schema: (await run(stepsDone(db))).at(-1) ?? '' };
    },
  };
}

async function prepareSchema({ db, where }: Connected, options: StoreOptions): Promise<void> {
  try {
    const [next] = pendingMigrations(await stepsDone(db));
    if (!next) return;
    if (options.migrate === false) throw new Error(`its schema is older than this program needs (${next.name} is missing)`);
  } catch (error) {
    throw unusable(where, error);
  }
  const patient = await connect({ ...options, poolSize: 1, patient: true });
  try {
    const change = await migrate(patient.db);
    if (change) options.log.info(`the schema of the database went from ${change.from ?? 'nothing'} to ${change.to}`);
  } catch (error) {
    throw unusable(where, error);
  } finally {
    await patient.db.destroy();
  }
}
