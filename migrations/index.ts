// Generated from the files in these folders by `npm run types`: do not edit.
import type { Knex } from 'knex';
import { up as firstTables } from './000/0001_first_tables';
import { up as wholeApi } from './000/0002_whole_api';
import { up as revisions } from './000/0003_revisions';
import { up as flagsWithoutValue } from './000/0004_flags_without_value';
import { up as events } from './000/0005_events';
import { up as conductorInstances } from './000/0006_conductor_instances';
import { up as media } from './000/0007_media';
import { up as hardware } from './000/0008_hardware';
import { up as discoveredAddresses } from './000/0009_discovered_addresses';
import { up as introspections } from './001/0010_introspections';
import { up as inventoryFiles } from './001/0011_inventory_files';
import { up as bootTokens } from './001/0012_boot_tokens';
import { up as apiTokens } from './001/0013_api_tokens';
import { up as owners } from './001/0014_owners';
import { up as leaseAddresses } from './001/0015_lease_addresses';
import { up as bootRequests } from './001/0016_boot_requests';
import { up as stateCounts } from './001/0017_state_counts';
import { up as images } from './001/0018_images';
import { up as mediaInSwift } from './001/0019_media_in_swift';
import { up as parents } from './002/0020_parents';
import { up as outOfService } from './002/0021_out_of_service';
import { up as defaultConfigs } from './002/0022_default_configs';
import { up as snapshots } from './002/0023_snapshots';
import { up as residentAgents } from './002/0024_resident_agents';
import { up as erasures } from './002/0025_erasures';
import { up as healthAlerts } from './002/0026_health_alerts';
import { up as oneEndOfInstances } from './003/0030_one_end_of_instances';
import { up as healthStatements } from './003/0033_health_statements';
import { up as bmcWatches } from './003/0034_bmc_watches';
import { up as smart } from './003/0035_smart';
import { up as architecturesOfBoots } from './003/0038_architectures_of_boots';
import { up as kickstarts } from './004/0040_kickstarts';

export interface Migration {
  readonly name: string;
  /** Runs inside a transaction. */
  up(knex: Knex): Promise<void>;
}

/**
 * The migrations of the schema, forward only: one file each, in the order of their numbers. A released migration never changes; a later one
 * corrects it. Each folder has ten numbers. Names have no extension, because the same migrations run from TypeScript and from the build.
 */
export const MIGRATIONS: readonly Migration[] = [
  { name: '0001_first_tables', up: firstTables },
  { name: '0002_whole_api', up: wholeApi },
  { name: '0003_revisions', up: revisions },
  { name: '0004_flags_without_value', up: flagsWithoutValue },
  { name: '0005_events', up: events },
  { name: '0006_conductor_instances', up: conductorInstances },
  { name: '0007_media', up: media },
  { name: '0008_hardware', up: hardware },
  { name: '0009_discovered_addresses', up: discoveredAddresses },
  { name: '0010_introspections', up: introspections },
  { name: '0011_inventory_files', up: inventoryFiles },
  { name: '0012_boot_tokens', up: bootTokens },
  { name: '0013_api_tokens', up: apiTokens },
  { name: '0014_owners', up: owners },
  { name: '0015_lease_addresses', up: leaseAddresses },
  { name: '0016_boot_requests', up: bootRequests },
  { name: '0017_state_counts', up: stateCounts },
  { name: '0018_images', up: images },
  { name: '0019_media_in_swift', up: mediaInSwift },
  { name: '0020_parents', up: parents },
  { name: '0021_out_of_service', up: outOfService },
  { name: '0022_default_configs', up: defaultConfigs },
  { name: '0023_snapshots', up: snapshots },
  { name: '0024_resident_agents', up: residentAgents },
  { name: '0025_erasures', up: erasures },
  { name: '0026_health_alerts', up: healthAlerts },
  { name: '0030_one_end_of_instances', up: oneEndOfInstances },
  { name: '0033_health_statements', up: healthStatements },
  { name: '0034_bmc_watches', up: bmcWatches },
  { name: '0035_smart', up: smart },
  { name: '0038_architectures_of_boots', up: architecturesOfBoots },
  { name: '0040_kickstarts', up: kickstarts },
];
