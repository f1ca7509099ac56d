/** The lockdown mode of an iDRAC, in which it refuses changes of the machine's configuration. */
import { Fault } from '../../model/errors';
import { RedfishError, listOf, linkOf, member, readResource, textOf, type RedfishResource } from '../../wire/redfish';
import type { Step, Task } from '../interfaces';
import { managersOf } from '../redfish/managers';
import { systemOf } from '../redfish/target';

/** Where the attributes of the iDRAC itself are. */
export function attributesPath({ body, path }: RedfishResource): string {
  const id = textOf(member(body, 'Id'));
  const links = listOf(member(body, 'Links', 'Oem', 'Dell', 'DellAttributes')).flatMap((item) => linkOf(item) ?? []);
  return links.find((link) => link.endsWith(`/${id ?? ''}`)) ?? `${path}/Attributes`;
}

const LOCKDOWN = 'Lockdown.1.SystemLockdown';
async function isLocked(task: Task): Promise<boolean> {
  const system = await systemOf(task);
  for (const manager of await managersOf(system)) {
    const attributes = await readResource(system.ask, attributesPath(manager));
    if (member(attributes.body, 'Attributes', LOCKDOWN) === 'Enabled') return true;
  }
  return false;
}
/** Runs `work`. If it fails while the iDRAC is in lockdown mode, the error says so: what the iDRAC itself says differs by its firmware. */
export async function namingLockdown<T>(task: Task, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    task.signal.throwIfAborted();
    if (!(error instanceof Fault) || error.name !== 'DriverOperationError') throw error;
    const locked = await isLocked(task).catch((reading: unknown) => {
      task.signal.throwIfAborted();
      if (!(reading instanceof RedfishError || reading instanceof Fault)) throw reading;
      return false;
    });
    if (!locked) throw error;
    const message = `${error.message} (the iDRAC is in lockdown mode, ${LOCKDOWN}: it takes changes of the configuration after that is Disabled)`;
    throw new Fault('DriverOperationError', { message }, { cause: error });
  }
}
/** Steps whose errors name the lockdown mode. */
export const lockable = (steps: readonly Step[] = []): readonly Step[] =>
  steps.map((step) => ({ ...step, run: (task, args) => namingLockdown(task, () => step.run(task, args)) }));
