/** The lockdown mode of an iDRAC, in which it refuses changes of the machine's configuration. */
import { listOf, linkOf, member, readResource, textOf, type RedfishResource } from '../../wire/redfish';
import type { Step, Task } from '../interfaces';
import { managersOf } from '../redfish/managers';
import type { SystemView } from '../redfish/target';
import { withHint } from './hints';

/** Where the attributes of the iDRAC itself are. */
export function attributesPath({ body, path }: RedfishResource): string {
  const id = textOf(member(body, 'Id'));
  const links = listOf(member(body, 'Links', 'Oem', 'Dell', 'DellAttributes')).flatMap((item) => linkOf(item) ?? []);
  return links.find((link) => link.endsWith(`/${id ?? ''}`)) ?? `${path}/Attributes`;
}

const LOCKDOWN = 'Lockdown.1.SystemLockdown';
const HINT = `the iDRAC is in lockdown mode, ${LOCKDOWN}: it takes changes of the configuration after that is Disabled`;
async function locked(system: SystemView): Promise<string | undefined> {
  for (const manager of await managersOf(system)) {
    const attributes = await readResource(system.ask, attributesPath(manager));
    if (member(attributes.body, 'Attributes', LOCKDOWN) === 'Enabled') return HINT;
  }
  return undefined;
}
/** Runs `work`. If it fails while the iDRAC is in lockdown mode, the error says so: what the iDRAC itself says differs by its firmware. */
export const namingLockdown = <T>(task: Task, work: () => Promise<T>): Promise<T> => withHint(task, work, locked);
/** Steps whose errors name the lockdown mode. */
export const lockable = (steps: readonly Step[] = []): readonly Step[] =>
  steps.map((step) => ({ ...step, run: (task, args) => namingLockdown(task, () => step.run(task, args)) }));
