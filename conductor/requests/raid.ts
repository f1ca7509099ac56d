/** PUT …/states/raid: sets the configuration that cleaning applies. */
import { Fault } from '../../model/errors';
import type { JsonObject } from '../../model/records';
import type { Context } from '../core/context';
import { withTask } from '../core/task';

/**
 * Throws RaidNotSupported, InvalidParameterValue.
 * @param objection the error that the schema found, thrown only if the driver supports RAID at all
 */
export async function setRaidConfig(context: Context, uuid: string, config: JsonObject, objection?: string): Promise<void> {
  await withTask(context, uuid, { purpose: 'setting target RAID config', retry: true }, async (task) => {
    if (Object.keys(config).length > 0) {
      await task.driver.raid.validateConfig?.(task, config).catch((error: unknown) => {
        const unsupported = error instanceof Fault && error.name === 'UnsupportedDriverExtension';
        throw unsupported ? new Fault('RaidNotSupported', { driver: task.node.driver }, { cause: error }) : error;
      });
      if (objection !== undefined) throw new Fault('InvalidParameterValue', { message: objection });
    }
    await task.save({ target_raid_config: config });
  });
}
