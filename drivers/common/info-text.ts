import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import { str } from '../../model/python';

/**
 * A text of driver_info, empty where there is none. A number is taken as its digits: clients make one of a password that looks like it.
 * What it is instead is not told, it may be secret. Throws Fault InvalidParameterValue.
 */
export function textOf(node: NodeRecord, key: string): string {
  const value = node.driver_info[key] ?? '';
  if (typeof value === 'object') throw new Fault('InvalidParameterValue', { message: `${key} is not a text.` });
  return str(value);
}
