/** /v1/nodes/X/management/boot_device, /v1/nodes/X/inventory, and the extension /v1/nodes/X/sensors. */
import { Fault } from '../../model/errors';
import { repr } from '../../model/python';
import { onNode } from '../pipeline/node-find';
import type { SomeHandlers } from '../pipeline/handler';

export const nodeManagementHandlers = {
  showBootDevice: onNode(({ uuid }, _, { conductor }) => conductor.getBootDevice(uuid)),
  setBootDevice: onNode(({ uuid }, { query: { boot_device: device, persistent } }, { conductor }) =>
    conductor.setBootDevice(uuid, device ?? repr(null), persistent ?? false),
  ),
  listBootDevices: onNode(async ({ uuid }, _, { conductor }) => ({ supported_boot_devices: await conductor.supportedBootDevices(uuid) })),
  showSensors: onNode(async ({ uuid }, _, { conductor }) => ({ sensors: await conductor.readSensors(uuid) })),
  showInventory: onNode(async ({ uuid, id }, _, { store }) => {
    const record = await store.inventories.find(uuid);
    // Ironic's message names the node's database ID.
    if (!record) throw new Fault('NodeInventoryNotFound', { node: String(id) });
    return { inventory: record.inventory, plugin_data: record.plugin_data };
  }),
} satisfies SomeHandlers;
