/** The role conductor: it manages nodes through their drivers. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startConductor, type RunningConductor } from '../conductor/index';
import { parseIni } from '../config/ini';
import type { LoadedOptions, Options } from '../config/options';
import { discoverdService } from '../drivers/agent/discoverd';
import { createConsoleLogs } from '../drivers/console-logs';
import type { Consoles } from '../drivers/consoles';
import type { Screens } from '../drivers/screens';
import { withStepLog } from '../drivers/fake/log';
import { HARDWARE_TYPES, INTERFACES } from '../drivers/index';
import { createIpmiClients } from '../drivers/ipmi/clients';
import { measureConnections } from '../drivers/measured-connections';
import { openNetworkTraits } from '../drivers/network/network-traits';
import { createRegistryCache } from '../drivers/redfish/steps/bios-registry';
import { Fault } from '../model/errors';
import type { Notifier } from '../model/notifications';
import type { NetworkTraits } from '../model/rules/trait-filter';
import { ServiceError, type Services } from '../wire/keystone/services';
import { createRedfishPool } from '../wire/redfish';
import { switchesIn } from '../wire/switches/config';
import { createSwitches, noopSwitchDriver, type SwitchDrivers, type Switches } from '../wire/switches/switches';
import { parseVlans } from '../wire/switches/vlans';
import { createSwitchWorker } from '../wire/switches/worker';
import { withoutEndSlashes } from '../wire/urls';
import type { StoreContext } from './context';
import type { Rpc } from './rpc';
import { StartError } from './settings';

/**
 * The API's URL in Keystone's catalog, for ramdisks. Undefined: [service_catalog]endpoint_override sets the URL, or the options do not
 * configure Keystone.
 * @param given the options before `resolveOptions`
 * @internal
 */
export function catalogUrl(given: LoadedOptions, { service_catalog: catalog }: Services): (() => Promise<string>) | undefined {
  const isWanted = given['DEFAULT.auth_strategy'] === 'keystone' && given['service_catalog.endpoint_override'] === null;
  if (!isWanted || !catalog.isConfigured) return undefined;
  return async () => {
    try {
      return withoutEndSlashes(await catalog.endpoint());
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new Fault('InvalidParameterValue', {
        message: `Couldn't get the URL of the Ironic API service from the configuration file or keystone catalog. Keystone error: ${error.reason}`,
      });
    }
  };
}

/** The traits of trait-based networking; undefined: it is disabled. @throws StartError */
function networkTraitsOf(options: Options): NetworkTraits | undefined {
  if (!options['conductor.enable_trait_based_networking']) return undefined;
  const file = options['conductor.trait_based_networking_config_file'];
  try {
    return openNetworkTraits(file);
  } catch (error) {
    throw new StartError(`[conductor]trait_based_networking_config_file: ${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** The switches of [ironic_networking]; undefined: no switch driver is enabled. @throws StartError */
function switchesOf(options: Options): Switches | undefined {
  const { 'ironic_networking.enabled_switch_drivers': enabled, 'ironic_networking.switch_config_file': file } = options;
  const { 'ironic_networking.generic_switch_python': python, 'ironic_networking.allowed_vlans': vlans } = options;
  if (enabled.length === 0) return undefined;
  try {
    const known = ['generic-switch', 'noop'];
    const unknown = enabled.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new Error(`enabled_switch_drivers: there is no driver ${unknown}; choose from ${known.join(', ')}`);
    if (!file) throw new Error('switch_config_file is not set');
    const settings = switchesIn(parseIni(readFileSync(file, 'utf8')));
    const disabled = settings.find(({ driver }) => !enabled.includes(driver));
    if (disabled)
      throw new Error(`switch_config_file: driver_type ${disabled.driver} of switch ${disabled.name} is not in enabled_switch_drivers`);
    if (enabled.includes('generic-switch') && !python)
      throw new Error('generic_switch_python is not set: it must be a Python that has networking-generic-switch');
    const generic = settings.filter(({ driver }) => driver === 'generic-switch');
    const worker = createSwitchWorker(python, Object.fromEntries(generic.map(({ name, device }) => [name, device])));
    const drivers: SwitchDrivers = { 'generic-switch': worker, noop: noopSwitchDriver };
    return createSwitches(settings, vlans === null ? null : parseVlans(vlans), drivers, () => worker.close());
  } catch (error) {
    throw new StartError(`[ironic_networking]${(error as Error).message}`, { cause: error });
  }
}

interface ConductorParts {
  readonly notifier: Notifier;
  readonly rpc: Rpc | undefined;
  /** Consoles over TCP, which the API in this process uses too. */
  readonly consoles: Consoles;
  /** Who looks at screens. */
  readonly viewers: Screens;
}
export async function startConductorRole(
  { given, options, stateDir, store, services, clock, metrics, stops, log, stopOptions }: StoreContext,
  { notifier, rpc, consoles: tcpConsoles, viewers: screens }: ConductorParts,
): Promise<RunningConductor> {
  const ipmi = createIpmiClients(options, { log, clock, random: randomBytes });
  const consoles = { ...tcpConsoles, openSol: ipmi.openSol };
  const redfish = createRedfishPool({
    maxSessions: options['redfish.connection_cache_size'],
    connectTimeoutMs: options['redfish.connect_timeout'] * 1000,
  });
  const introspection = discoverdService(options);
  const consoleLogs = createConsoleLogs({
    root: join(stateDir, 'console-logs'),
    inAll: options['console.saved_logs_limit'] * 2 ** 20,
    log: log.child({ component: 'consoles' }),
  });
  const switches = switchesOf(options);
  const networkTraits = networkTraitsOf(options);
  const apiUrl = catalogUrl(given, services);
  const connections = {
    services,
    ipmi: ipmi.ipmi,
    sdrCache: ipmi.sdrCache,
    consoles,
    consoleLogs,
    screens,
    redfish,
    biosRegistries: createRegistryCache(),
    introspection,
    switches,
    networkTraits,
    apiUrl,
  };
  stops.push(async () => {
    await consoles.closeAll();
    await consoleLogs.settle();
    await ipmi.close();
    await redfish.close();
    await introspection?.close();
    await switches?.close();
  });
  const conductor = await startConductor({
    store,
    options,
    clock,
    metrics,
    notifier,
    log: log.child({ component: 'conductor', host: options['DEFAULT.host'] }),
    random: randomBytes,
    connections: measureConnections(connections, metrics),
    interfaces: withStepLog(INTERFACES, options['fake.step_log']),
    hardwareTypes: HARDWARE_TYPES,
    address: rpc?.server?.address,
    probe: rpc?.server && ((holder) => rpc.client.probe(holder)),
  });
  stops.push(() => conductor.stop(stopOptions()));
  rpc?.server?.serve(conductor);
  return conductor;
}
