/** Inspection of Dell machines: Redfish's, with the service tag, the network card that boots, and the switches as the iDRAC sees them. */
import { reasonOf, Fault } from '../../model/errors';
import type { Inventory, JsonObject } from '../../model/records';
import { linkOf, listOf, member, textOf } from '../../wire/redfish';
import type { InspectInterface, Task } from '../interfaces';
import { inspectBy } from '../redfish/inspect';
import { lldpOf, redfishInventory } from '../redfish/inventory';
import type { RedfishReader } from '../redfish/reader';
import type { SystemView } from '../redfish/target';
import { exportNicConfiguration } from './configuration';
import { onManager } from './manager';

/** Attributes of the BIOS that say which cards boot in UEFI mode: whether, and its name. */
const PXE_DEVICES = [1, 2, 3, 4].map((number) => [`PxeDev${number}EnDis`, `PxeDev${number}Interface`] as const);

/** Names of the cards that boot over the network, in their order. */
async function pxeCards(task: Task, reader: RedfishReader, system: SystemView, bootMode: string | undefined): Promise<readonly string[]> {
  if (bootMode === 'uefi') {
    const attributes = member(await reader.get(member(system.body, 'Bios')), 'Attributes');
    return PXE_DEVICES.flatMap(([enabled, name]) =>
      member(attributes, enabled) === 'Enabled' ? (textOf(member(attributes, name)) ?? []) : [],
    );
  }
  if (bootMode !== 'bios') return [];
  const cards = await onManager(task, 'get PXE port MAC addresses', (manager) => exportNicConfiguration(task, system, manager));
  return [...cards].flatMap(([name, attributes]) => (attributes.get('LegacyBootProto') === 'PXE' ? [name] : []));
}
/**
 * The address of the card that boots over the network; undefined: none does, or several, or the iDRAC does not tell. The inventory has one
 * such address only, and the ports of other cards would count as those that do not boot.
 */
async function pxeInterface(
  task: Task,
  reader: RedfishReader,
  system: SystemView,
  { interfaces, boot }: Inventory,
): Promise<string | undefined> {
  try {
    const cards = await pxeCards(task, reader, system, textOf(member(boot, 'current_boot_mode')));
    const addresses = cards.flatMap((card) => interfaces.find(({ name }) => name === card)?.mac_address ?? []);
    return addresses.length === 1 ? addresses[0] : undefined;
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof Fault)) throw error;
    task.log.warn('The iDRAC does not tell which network card boots', { reason: reasonOf(error) });
    return undefined;
  }
}

/** A card without a neighbour. */
const UNCONNECTED = 'No Link';
const MAX_CONNECTIONS = 256;
/** The switches that the iDRAC found; without any, those of the standard's ports. */
async function neighbours(reader: RedfishReader, system: unknown): Promise<JsonObject> {
  const path = linkOf(system);
  const collection =
    path === undefined ? undefined : await reader.get({ '@odata.id': `${path}/NetworkPorts/Oem/Dell/DellSwitchConnections` });
  const connections: unknown[] = [];
  // The members come with their values; some iDRACs have no resource for each.
  for (const item of listOf(member(collection, 'Members')).slice(0, MAX_CONNECTIONS)) connections.push(await reader.get(item));
  const found = connections.flatMap((connection) => {
    const [card, chassis, port] = ['FQDD', 'SwitchConnectionID', 'SwitchPortConnectionID'].map((name) => textOf(member(connection, name)));
    if (card === undefined || chassis === undefined || port === undefined || chassis === UNCONNECTED || port === UNCONNECTED) return [];
    return [[card, { switch_chassis_id: chassis, switch_port_id: port }] as const];
  });
  return found.length > 0 ? Object.fromEntries(found) : lldpOf(reader, system);
}

export const idracInspect: InspectInterface = inspectBy(async (task, reader, system) => {
  const read = await redfishInventory(reader, system.body, neighbours);
  const { inventory } = read;
  // The serial number of the standard's is that of the main board.
  const tag = textOf(member(system.body, 'SKU'));
  const boots = await pxeInterface(task, reader, system, inventory);
  return {
    ...read,
    inventory: {
      ...inventory,
      ...(tag === undefined ? {} : { system_vendor: { ...(inventory['system_vendor'] as JsonObject | undefined), serial_number: tag } }),
      ...(boots === undefined ? {} : { boot: { ...inventory.boot, pxe_interface: boots } }),
    },
  };
});
