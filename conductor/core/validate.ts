/** Checks that a node's driver_info has what an interface needs. */
import type { Interface } from '../../drivers/interfaces';
import { Fault } from '../../model/errors';
import type { InterfaceKind } from '../../model/records';
import type { NodeTask } from './node-task';

/** Throws InvalidParameterValue, MissingParameterValue or UnsupportedDriverExtension. */
export async function validateInterface(task: NodeTask, kind: InterfaceKind): Promise<void> {
  const chosen: Interface = task.driver[kind];
  // The interface's own check comes first: its message about a missing key is Ironic's.
  await chosen.validate?.(task);
  const missing = Object.entries(chosen.properties ?? {})
    .filter(([key, property]) => property.required && (task.node.driver_info[key] ?? '') === '')
    .map(([key]) => key);
  if (missing.length > 0)
    throw new Fault('MissingParameterValue', {
      message: `The following required parameters are missing in node's driver_info: ${missing.join(', ')}`,
    });
}
