/** The node and its ports as sent to the agent: complete, but without secrets. */
import type { JsonObject, NodeRecord, PortRecord } from '../../model/records';

const MASK = '******';
/** Keys whose texts are secrets, at any depth. */
const SECRET = /pass(word|wd|phrase)|pswd|secret|token|_key$/i;

function masked(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return SECRET.test(key) ? MASK : value;
  if (Array.isArray(value)) return value.map((item) => masked(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, masked(entry, name)]));
}

/** `withConfigdrive`: for steps that write the config drive to disk; otherwise the config drive is masked, as in Ironic. */
export function nodeForAgent(node: NodeRecord, withConfigdrive: boolean): JsonObject {
  const view = masked(without(node, ['lock_fence', 'revision'])) as JsonObject & Pick<NodeRecord, 'instance_info'>;
  const configdrive = node.instance_info['configdrive'];
  if (configdrive === undefined || configdrive === null) return view;
  return { ...view, instance_info: { ...view.instance_info, configdrive: withConfigdrive ? configdrive : MASK } };
}

export const portForAgent = (port: PortRecord): JsonObject => without(port, ['revision']);

export const without = (row: object, keys: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(row).filter(([key]) => !keys.includes(key)));
