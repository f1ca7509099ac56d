/** PUT …/states/boot_mode and secure_boot. */
import type { ManagementInterface, Task } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { str } from '../../model/python';
import type { NodeChanges } from '../../model/records';
import type { Context } from '../core/context';
import { inBackground } from './in-background';
import { validateInterface } from '../core/validate';

interface Control<T> {
  get(task: Task): Promise<T | null>;
  set(task: Task, value: T): Promise<void>;
}
interface BootSettingKind<T> {
  readonly purpose: string;
  readonly control: (management: ManagementInterface) => Control<T> | undefined;
  /** Named in the error of a driver that does not support it. */
  readonly extension: string;
  readonly changes: (value: T) => NodeChanges;
  /** Clients match this message, including its quotes. */
  readonly failed: (value: T, reason: string) => string;
}

async function change<T>(context: Context, uuid: string, value: T, kind: BootSettingKind<T>): Promise<void> {
  await inBackground(context, uuid, {
    purpose: kind.purpose,
    check: (task) => validateInterface(task, 'management'),
    work: async (task) => {
      const control = kind.control(task.driver.management);
      if (!control) throw new Fault('UnsupportedDriverExtension', { driver: task.node.driver, extension: kind.extension });
      const found = await control.get(task).catch((error: unknown) => {
        task.log.warn(`${kind.purpose}: could not read the current value`, { reason: reasonOf(error) });
        return null;
      });
      if (found === value) return;
      await control.set(task, value);
      await task.save(kind.changes(value));
    },
    failed: (reason) => kind.failed(value, reason),
  });
}

export const setBootMode = (context: Context, uuid: string, mode: 'bios' | 'uefi'): Promise<void> =>
  change(context, uuid, mode, {
    purpose: 'changing node boot mode',
    control: ({ bootMode }) => bootMode,
    extension: 'set_boot_mode',
    changes: (value) => ({ boot_mode: value }),
    failed: (value, reason) => `Failed to change boot mode to '${value}: ${reason}`,
  });

export const setSecureBoot = (context: Context, uuid: string, on: boolean): Promise<void> =>
  change(context, uuid, on, {
    purpose: 'changing node secure boot',
    control: ({ secureBoot }) => secureBoot,
    extension: 'set_secure_boot_state',
    changes: (value) => ({ secure_boot: value }),
    failed: (value, reason) => `Failed to change secure_boot state to '${str(value)}': ${reason}`,
  });
