/** /v1/nodes/X/management/boot_device, /v1/nodes/X/inventory, and the extension /v1/nodes/X/sensors. */
import { Fault } from '../../model/errors';
import { repr } from '../../model/python';
import { nodeOf } from '../pipeline/node-find';
import type { SomeHandlers } from '../pipeline/handler';

export const nodeManagementHandlers = {
  showBootDevice: async (request, context) => {
    const node = await nodeOf(request, context, 'node:get_boot_device');
    return { status: 200, body: await context.conductor.getBootDevice(node.uuid) };
  },
  setBootDevice: async (request, context) => {
    const node = await nodeOf(request, context, 'node:set_boot_device');
    const { boot_device: device, persistent } = request.query;
    await context.conductor.setBootDevice(node.uuid, device ?? repr(null), persistent ?? false);
    return { status: 204 };
  },
  listBootDevices: async (request, context) => {
    const node = await nodeOf(request, context, 'node:get_boot_device');
    return { status: 200, body: { supported_boot_devices: await context.conductor.supportedBootDevices(node.uuid) } };
  },
  showSensors: async (request, context) => {
    const node = await nodeOf(request, context, 'node:validate');
    return { status: 200, body: { sensors: await context.conductor.readSensors(node.uuid) } };
  },
  showInventory: async (request, context) => {
    const node = await nodeOf(request, context, 'node:inventory:get');
    const record = await context.store.inventories.find(node.uuid);
    // Ironic's message names the node's database ID.
    if (!record) throw new Fault('NodeInventoryNotFound', { node: String(node.id) });
    return { status: 200, body: { inventory: record.inventory, plugin_data: record.plugin_data } };
  },
} satisfies SomeHandlers;
