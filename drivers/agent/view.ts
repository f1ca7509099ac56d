/** The node and its ports as the agent is shown them: whole, without secrets. */
import type { JsonObject, NodeRecord, PortRecord } from '../../model/records';

const MASK = '******';
/** Keys whose texts are secrets, wherever they stand. */
const SECRET = /pass(word|wd|phrase)|pswd|secret|token|_key$/i;

function masked(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return SECRET.test(key) ? MASK : value;
  if (Array.isArray(value)) return value.map((one) => masked(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, masked(one, name)]));
}

/** `withConfigdrive`: the step may write it to the disk; else it is masked, like Ironic's. */
export function nodeForAgent(node: NodeRecord, withConfigdrive: boolean): JsonObject {
  const view = masked(without(node, ['lock_fence', 'revision'])) as JsonObject & Pick<NodeRecord, 'instance_info'>;
  const configdrive = node.instance_info['configdrive'];
  if (configdrive === undefined || configdrive === null) return view;
  return { ...view, instance_info: { ...view.instance_info, configdrive: withConfigdrive ? configdrive : MASK } };
}

export const portForAgent = (port: PortRecord): JsonObject => without(port, ['revision']);

export const without = (row: object, keys: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(row).filter(([key]) => !keys.includes(key)));
