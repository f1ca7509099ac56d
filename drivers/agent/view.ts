/** The node and its ports as sent to the agent: complete, but without secrets. */
import { MANAGER_NAME } from '../../model/agent/manager';
import { isObject } from '../../model/json';
import type { JsonObject, NodeRecord, PortRecord } from '../../model/records';
import { OPAL_PSIDS } from '../common/erase-request';

const MASK = '******';
/** Keys whose texts are secrets, at any depth. */
const SECRET = /pass(word|wd|phrase)|pswd|secret|token|_key$|^opal_psids$/i;

function masked(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return SECRET.test(key) ? MASK : value;
  if (Array.isArray(value)) return value.map((item) => masked(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, masked(entry, name)]));
}

/** `withConfigdrive`: for steps that write the config drive to disk; otherwise the config drive is masked, as in Ironic. */
export function nodeForAgent(node: NodeRecord, withConfigdrive: boolean): JsonObject {
  const whole = masked(without(node, ['lock_fence', 'revision'])) as JsonObject & Pick<NodeRecord, 'instance_info' | 'properties'>;
  const view = { ...whole, properties: withKept(whole.properties, node) };
  const configdrive = node.instance_info['configdrive'];
  if (configdrive === undefined || configdrive === null) return view;
  return { ...view, instance_info: { ...view.instance_info, configdrive: withConfigdrive ? configdrive : MASK } };
}

/** Disks to keep are skipped by ironic-python-agent too, which knows no other word for that. */
function withKept(properties: JsonObject, node: NodeRecord): JsonObject {
  const keep = node.driver_internal_info.erase_choice?.keep ?? [];
  const skipped = properties['skip_block_devices'];
  return keep.length === 0
    ? properties
    : { ...properties, skip_block_devices: [...(Array.isArray(skipped) ? (skipped as readonly unknown[]) : []), ...keep] };
}
/** Steps of our agent that use PSIDs. */
const WITH_PSIDS: readonly string[] = ['erase_devices', 'erase_devices_express'];
/** The view with the PSIDs of the disks, if the step uses them. Other agents would only log them. */
export function withPsids(view: JsonObject, { step }: { readonly step: string }, node: NodeRecord): JsonObject {
  const psids = node.driver_info[OPAL_PSIDS] ?? null;
  const { hardware_manager_version: managers } = node.driver_internal_info;
  const isOurs = isObject(managers) && Object.hasOwn(managers, MANAGER_NAME);
  return psids === null || !isOurs || !WITH_PSIDS.includes(step)
    ? view
    : { ...view, driver_info: { ...(view['driver_info'] as JsonObject), [OPAL_PSIDS]: psids } };
}

export const portForAgent = (port: PortRecord): JsonObject => without(port, ['revision']);

export const without = (row: object, keys: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(row).filter(([key]) => !keys.includes(key)));
