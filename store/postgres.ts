/** The store on PostgreSQL: a pool of connections, what it must be to be used, and the tables on it. */
import type { Knex } from 'knex';
import type { Clock } from '../model/clock';
import { silentMetrics, type Metrics } from '../model/metrics';
import { bootsOn } from './tables/boots';
import { conductorsOn } from './tables/conductors';
import { connect, unusable, type Connected, type ConnectOptions } from './sql/connection';
import { run } from './sql/faults';
import { discoveriesOn } from './tables/discoveries';
import { eventsOn } from './tables/events';
import { hardwareOn } from './tables/hardware';
import { biosSettingsOn, firmwareComponentsOn } from './tables/hardware-facts';
import { introspectionsOn } from './tables/introspections';
import { inventoriesOn } from './tables/inventories';
import { leasesOn } from './tables/leases';
import { mediaOn } from './tables/media';
import { isUp, measurePool } from './sql/measures';
import { nodesOn } from './tables/nodes';
import { portsOn } from './tables/ports';
import { secretsOn } from './tables/secrets';
import { migrate, missing, stepsDone } from './sql/schema';
import type { Inventories, Store } from './store';
import { tablesOn } from './tables/tables';

export interface StoreOptions extends ConnectOptions {
  readonly clock: Clock;
  /** Absent: nothing is measured (tools, tests). */
  readonly metrics?: Metrics;
  /** Bring the schema up to date (default); false: refuse an outdated one. */
  readonly migrate?: boolean;
  /** Where inventories are instead of the database, given what is in it. */
  readonly inventories?: (db: Knex, clock: Clock) => Inventories;
}
export interface OpenStore extends Store {
  /** Whether the database answers, in a moment. */
  isUp(): Promise<boolean>;
  /** Which of this host's addresses the database is reached from; undefined: through a socket in the file system. */
  localAddress(): Promise<string | undefined>;
  /** Waits for running queries, then ends the connections. */
  close(): Promise<void>;
  /** Versions of the server ('18.4') and of the schema (name of the last migration). Answers only if the database does. */
  version(): Promise<{ readonly postgres: string; readonly schema: string }>;
}

const storeOn = (db: Knex, clock: Clock, inventories: NonNullable<StoreOptions['inventories']> = inventoriesOn): Store => ({
  nodes: nodesOn(db, clock),
  ports: portsOn(db, clock),
  boots: bootsOn(db, clock),
  media: mediaOn(db),
  inventories: inventories(db, clock),
  hardware: hardwareOn(db, clock),
  discoveries: discoveriesOn(db),
  introspections: introspectionsOn(db),
  conductors: conductorsOn(db, clock),
  leases: leasesOn(db),
  secrets: secretsOn(db),
  ...tablesOn(db, clock),
  biosSettings: biosSettingsOn(db, clock),
  firmwareComponents: firmwareComponentsOn(db, clock),

  events: eventsOn(db, clock),

  transaction: (work) => run(db.transaction((transaction) => work(storeOn(transaction, clock, inventories)))),
});

/** What knex keeps its connections in, as far as it is needed here. */
interface Pool {
  acquireConnection(): Promise<{ readonly connection: { readonly stream: { readonly localAddress?: string } } }>;
  releaseConnection(connection: object): Promise<void>;
}

/** Opens the store. Throws an Error of one line that names what is wrong with the database, without the password. */
export async function openStore(options: StoreOptions): Promise<OpenStore> {
  const { clock, metrics = silentMetrics } = options;
  const connected = await connect(options);
  const { db } = connected;
  measurePool(db, options.poolSize, metrics);
  await prepareSchema(connected, options).catch(async (error: unknown) => {
    await db.destroy();
    throw error;
  });
  return {
    ...storeOn(db, clock, options.inventories),
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
    const [next] = missing(await stepsDone(db));
    if (!next) return;
    if (options.migrate === false) throw new Error(`its schema is older than this program needs (${next.name} is missing)`);
  } catch (error) {
    throw unusable(where, error);
  }
  const patient = await connect({ ...options, poolSize: 1, patient: true });
  try {
    await migrate(patient.db);
  } catch (error) {
    throw unusable(where, error);
  } finally {
    await patient.db.destroy();
  }
}
