/**
 * The deploy interface that `autodetect` stands for. A flow that may work on the machine gives the node the chosen interface when it begins.
 * The node keeps it while it has an instance, and gets `autodetect` again at the end of cleaning or servicing, as in Ironic.
 */
import type { Options } from '../../config/options';
import type { Interfaces, Task } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { InternalChanges } from '../../model/internal-info';
import type { NodeChanges, NodeRecord } from '../../model/records';
import type { Hardware } from './hardware';

interface ChoosingTask extends Task {
  readonly context: { readonly hardware: Hardware; readonly interfaces: Interfaces; readonly options: Options };
  note(changes: NodeChanges, internal: InternalChanges): void;
}

interface Chosen {
  readonly name: string;
  readonly supports: boolean;
}
/** The first of [DEFAULT]autodetect_deploy_interfaces that supports the instance, else the last. */
async function choose(task: ChoosingTask): Promise<Chosen> {
  const { hardware, options, interfaces } = task.context;
  let last: Chosen | undefined;
  for (const name of options['DEFAULT.autodetect_deploy_interfaces']) {
    // The start of the conductor has warned of an interface of Ironic that is not here.
    if (!Object.hasOwn(interfaces.deploy, name)) continue;
    const { deploy } = hardware.driverOf({ ...task.node, deploy_interface: name });
    last = { name, supports: (await deploy.supports?.(task)) ?? true };
    if (last.supports) return last;
  }
  if (last) return last;
  throw new Fault('InvalidParameterValue', {
    message: 'No valid deploy interfaces found in autodetect_deploy_interfaces configuration.',
  });
}

/** Notes the interface that `autodetect` chooses. Does nothing on a node with another interface. Throws InvalidParameterValue. */
export async function chooseInterface(task: ChoosingTask): Promise<void> {
  if (!task.driver.deploy.detects) return;
  const { name, supports } = await choose(task);
  if (!supports && task.node.instance_info['image_source'])
    task.log.warn('no interface of [DEFAULT]autodetect_deploy_interfaces recognises the image: the last one is used', { interface: name });
  task.note({ deploy_interface: name }, { original_deploy_interface: task.node.deploy_interface ?? 'autodetect' });
}

/** What gives the node `autodetect` again. */
export function restoredInterface({ driver_internal_info: { original_deploy_interface: original } }: NodeRecord): {
  readonly changes: NodeChanges;
  readonly internal: InternalChanges;
} {
  if (typeof original !== 'string') return { changes: {}, internal: {} };
  return { changes: { deploy_interface: original }, internal: { original_deploy_interface: undefined } };
}
