import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { str } from '../../model/python';

/**
 * A text of driver_info, empty where it is absent. A number becomes its digits: clients turn a numeric password into a number.
 * The value may be secret, so the error does not show it. Throws Fault InvalidParameterValue.
 */
export function textOf(node: NodeRecord, key: string): string {
  const value = node.driver_info[key] ?? '';
  if (typeof value === 'object') throw new Fault('InvalidParameterValue', { message: `${key} is not a text.` });
  return str(value);
}
