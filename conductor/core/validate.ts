/** Whether a node's driver_info is what its interfaces need. */
import type { Interface } from '../../drivers/interfaces';
import { Fault, reasonOf } from '../../model/errors';
import { INTERFACE_KINDS, type InterfaceKind } from '../../model/records';
import type { Validation } from '../conductor';
import type { Context } from './context';
import { withTask, type NodeTask } from './task';

/** Throws InvalidParameterValue, MissingParameterValue or UnsupportedDriverExtension. */
export async function validateInterface(task: NodeTask, kind: InterfaceKind): Promise<void> {
  const chosen: Interface = task.driver[kind];
  // The interface first: what it says of a missing key is in the words that its users know.
  await chosen.validate?.(task);
  const missing = Object.entries(chosen.properties ?? {})
    .filter(([key, property]) => property.required && (task.node.driver_info[key] ?? '') === '')
    .map(([key]) => key);
  if (missing.length > 0)
    throw new Fault('MissingParameterValue', {
      message: `The following required parameters are missing in node's driver_info: ${missing.join(', ')}`,
    });
}

/** GET …/validate: per interface kind, all but vendor. Nothing is reserved, nothing changed. */
export async function validateNode(context: Context, uuid: string): Promise<Readonly<Record<string, Validation>>> {
  return withTask(context, uuid, { purpose: 'driver interface validation', lock: 'shared' }, async (task) => {
    const answers: Record<string, Validation> = {};
    for (const kind of INTERFACE_KINDS.filter((one) => one !== 'vendor')) {
      try {
        await validateInterface(task, kind);
        answers[kind] = { result: true };
      } catch (error) {
        if (!(error instanceof Fault)) task.log.error(`validation of the ${kind} interface ended unexpectedly`, { error });
        answers[kind] = { result: false, reason: reasonOf(error) };
      }
    }
    return answers;
  });
}
