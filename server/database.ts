/** The database, embedded or of others, and the store on it. */
import type { LoadedOptions } from '../config/options';
import { startEmbedded } from '../store/embedded/embedded';
import { inventoriesIn, noInventories } from '../store/inventory-folder';
import { inventoriesAmong } from '../store/inventory-objects';
import { openStore, type OpenStore, type StoreOptions } from '../store/postgres';
import type { Services } from '../wire/keystone/services';
import { swiftContainer } from '../wire/openstack/swift';
import type { StartContext } from './context';
import { inventoryFolder, prepareFolder } from './settings';

/** Where inventories are stored; undefined: in the database. Throws StartError. */
export function inventoriesOf(options: LoadedOptions, stateDir: string, { swift }: Services): StoreOptions['inventories'] {
  const backend = options['inventory.data_backend'];
  if (backend === 'none') return () => noInventories;
  if (backend === 'database') return undefined;
  if (backend === 'swift') return () => inventoriesAmong(swiftContainer(swift, options['inventory.swift_data_container']));
  const { what, path } = inventoryFolder(options, stateDir)!;
  return inventoriesIn(prepareFolder(path, what));
}

/** Begins to start the embedded database, which takes long. @returns opens the store when the database runs */
export function startDatabase(
  { given, stateDir, log, clock, metrics, databaseUrl, stops }: StartContext,
  inventories: StoreOptions['inventories'],
): () => Promise<OpenStore> {
  const starting = databaseUrl ? undefined : startEmbedded({ stateDir, log: log.child({ component: 'database' }), clock });
  starting?.catch(() => {});
  if (starting) stops.push(async () => (await starting.catch(() => undefined))?.stop());
  return async () => {
    const store = await openStore({
      connection: databaseUrl ?? (await starting!).connection,
      poolSize: given['database.max_pool_size'],
      sizes: {
        field: 1024 * given['database.max_field_size'],
        record: 1024 * given['database.max_record_size'],
        configdrive: 1024 * given['database.max_configdrive_size'],
      },
      clock,
      metrics,
      log: log.child({ component: 'store' }),
      inventories,
    });
    stops.push(() => store.close());
    return store;
  };
}
