/** GET …/validate: whether a node has what its interfaces need. Nothing is reserved, and nothing is changed. */
import { Fault, reasonOf } from '../../model/errors';
import { INTERFACE_KINDS, type InterfaceKind } from '../../model/records';
import type { Validation } from '../core/call-types';
import type { Context } from '../core/context';
import type { NodeTask } from '../core/node-task';
import { withTask } from '../core/task';
import { validateInterface } from '../core/validate';
import { chooseInterface } from '../hardware/deploy-interface';
import { checkDeployRequest } from '../steps/deploy-request';

/**
 * One interface. `deploy` includes what the instance requires: traits, deploy templates, steps.
 * @param traits false: the caller checks the instance's traits itself
 */
export async function validationOf(task: NodeTask, kind: InterfaceKind, traits = true): Promise<Validation> {
  try {
    await validateInterface(task, kind);
    if (kind === 'deploy') await checkDeployRequest(task, { traits });
    return { result: true };
  } catch (error) {
    if (!(error instanceof Fault)) task.log.error(`validation of the ${kind} interface ended unexpectedly`, { error });
    return { result: false, reason: reasonOf(error) };
  }
}

/** All interfaces but vendor. */
export async function validateNode(context: Context, uuid: string): Promise<Readonly<Record<string, Validation>>> {
  return withTask(context, uuid, { purpose: 'driver interface validation', lock: 'shared' }, async (task) => {
    const answers: Record<string, Validation> = {};
    await chooseInterface(task);
    for (const kind of INTERFACE_KINDS.filter((interfaceKind) => interfaceKind !== 'vendor'))
      answers[kind] = await validationOf(task, kind);
    return answers;
  });
}
