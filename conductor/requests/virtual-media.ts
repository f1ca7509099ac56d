/** …/vmedia: images that the BMC presents to the machine as drives. */
import type { VirtualMediaType } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import { repr } from '../../model/python';
import type { JsonObject } from '../../model/records';
import type { Context } from '../core/context';
import { inBackground } from './in-background';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { validateInterface } from '../core/validate';

const check =
  (doing: string) =>
  async (task: NodeTask): Promise<void> => {
    await validateInterface(task, 'management');
    const { maintenance, fault, uuid } = task.node;
    if (maintenance && fault === 'power failure')
      throw new Fault('TemporaryFailure', { message: `Unable to ${doing} virtual media for node ${uuid} due to power failure state` });
  };

export async function getVirtualMedia(context: Context, uuid: string): Promise<readonly JsonObject[]> {
  return withTask(context, uuid, { purpose: 'get virtual media devices', lock: 'shared' }, async (task) => {
    await validateInterface(task, 'management');
    const { virtualMedia } = task.driver.management;
    if (!virtualMedia) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'get_virtual_media' });
    return virtualMedia.get(task);
  });
}

/** @param source whether the BMC fetches the image itself (`http`) or this server publishes it (`local`) */
export async function attachVirtualMedia(
  context: Context,
  uuid: string,
  device: VirtualMediaType,
  imageUrl: string,
  source: 'http' | 'local',
): Promise<void> {
  await inBackground(context, uuid, {
    purpose: 'attaching virtual media',
    check: check('attach'),
    work: async (task) => {
      const { virtualMedia } = task.driver.management;
      if (!virtualMedia)
        throw new Fault('InvalidParameterValue', { message: `Publishing images is not supported for driver ${task.node.driver}` });
      await virtualMedia.attach(task, device, imageUrl, source);
    },
    recordedAs: 'UNKNOWN',
    failed: (reason) => `Could not attach device ${device} to node ${uuid}: ${reason}`,
  });
}

/** @param devices null: all devices */
export async function detachVirtualMedia(context: Context, uuid: string, devices: readonly VirtualMediaType[] | null): Promise<void> {
  await inBackground(context, uuid, {
    purpose: 'detaching virtual media',
    check: check('detach'),
    work: async (task) => {
      const { virtualMedia } = task.driver.management;
      if (!virtualMedia) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: 'detach_virtual_media' });
      await virtualMedia.detach(task, devices ?? undefined);
    },
    recordedAs: 'UNKNOWN',
    failed: (reason) => `Could not detach device(s) ${repr(devices)} from node ${uuid}: ${reason}`,
  });
}
