/** Whether a node's driver_info is what its interfaces need. */
import type { Interface } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { InterfaceKind } from '../../model/records';
import type { NodeTask } from './node-task';

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
