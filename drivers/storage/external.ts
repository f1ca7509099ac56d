/** Storage that the operator manages: the volume targets say where the volumes are, and nothing is attached or detached. */
import { Fault, reasonOf } from '../../model/errors';
import type { StorageInterface, Task } from '../interfaces';
import { bootTarget, checkIscsiVolumes, unknownType, writesImage } from './boot-volume';

export const externalStorage: StorageInterface = {
  validate: async (task: Task) => {
    const refuse = (reason: string, error?: unknown): never => {
      const message = `Failed to validate external storage interface for node ${task.node.uuid}. ${reason}`;
      throw new Fault('InvalidParameterValue', { message }, { cause: error });
    };
    if (await writesImage(task)) return;
    if (!task.driver.boot.bootsVolumes)
      refuse('To support network booting to an iSCSI volume, the boot interface must be set to ``ipxe``.');
    const unknown = unknownType((await bootTarget(task))!);
    if (unknown !== undefined) refuse(unknown);
    await checkIscsiVolumes(task).catch((error: unknown) => refuse(reasonOf(error), error));
  },
  shouldWriteImage: writesImage,
};
