/** The machine's firmware from its Redfish service: BIOS, BMC and network adapters (schemas ComputerSystem, Manager, NetworkAdapter). */
import { Fault, reasonOf } from '../../../model/errors';
import { RedfishError, listOf, member, textOf, type RedfishResource } from '../../../wire/redfish';
import type { FirmwareComponent, Task } from '../../interfaces';
import { redfishFault } from '../target';
import { machineOf, type MachineView } from './update';

/** Characters of one text. */
const MAX_CHARACTERS = 255;
const text = (value: unknown): string | null => textOf(value)?.slice(0, MAX_CHARACTERS) ?? null;

/** Words that some services show in place of a version that they do not know. */
const NO_VERSION = /^(?:nil|null|none|n\/?a|unknown|undefined|not available)$/i;
const version = (value: unknown): string | null => {
  const found = text(value)?.trim() ?? '';
  return found === '' || NO_VERSION.test(found) ? null : found;
};

/** An adapter has one row, for the firmware package of its controllers. Of several packages the last one counts. */
function ofAdapter({ body: adapter }: RedfishResource): readonly FirmwareComponent[] {
  const serial = text(member(adapter, 'SerialNumber'));
  const name = serial ?? text(member(adapter, 'Id'));
  if (name === null) return [];
  return listOf(member(adapter, 'Controllers'))
    .map((controller) => version(member(controller, 'FirmwarePackageVersion')))
    .filter((found) => found !== null)
    .slice(-1)
    .map((found) => ({
      component: `nic:${name}`.slice(0, MAX_CHARACTERS),
      current_version: found,
      vendor: text(member(adapter, 'Manufacturer')),
      model: text(member(adapter, 'Model')),
      serial_number: serial,
    }));
}

/** Some services refuse to show the adapters while the machine is off. Then the adapters are left out. */
async function machine(task: Task): Promise<MachineView> {
  try {
    return await machineOf(task, { adapters: true });
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.warn('the network adapters cannot be read', { reason: reasonOf(error) });
    return machineOf(task, { adapters: false });
  }
}

/** Throws UnsupportedDriverExtension when the machine reports none. */
export async function firmwareComponents(task: Task): Promise<readonly FirmwareComponent[]> {
  try {
    const { system, manager, adapters = [] } = await machine(task);
    const bios = version(member(system.body, 'BiosVersion'));
    const bmc = version(member(manager?.body, 'FirmwareVersion'));
    const found: FirmwareComponent[] = [];
    const unnamed = { vendor: null, model: null, serial_number: null };
    if (bios !== null) found.push({ component: 'bios', current_version: bios, ...unnamed });
    if (bmc !== null) found.push({ component: 'bmc', current_version: bmc, ...unnamed, model: text(member(manager?.body, 'Model')) });
    // Adapters with the same name share one row.
    const nics = new Map(adapters.flatMap(ofAdapter).map((item) => [item.component, item]));
    found.push(...nics.values());
    if (found.length > 0) return found;
  } catch (error) {
    throw redfishFault(task, error);
  }
  throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'cache_firmware_components' });
}
