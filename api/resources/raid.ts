/** PUT /v1/nodes/X/states/raid, and /v1/drivers/X/raid/logical_disk_properties. */
import { invalidParameter, notAcceptable } from '../../model/errors';
import { isObject } from '../../model/json';
import { withoutSecrets } from '../../model/masks';
import { str } from '../../model/python';
import type { JsonObject } from '../../model/records';
import { checkDriverServed } from './drivers';
import { nodeOf } from '../pipeline/node-find';
import type { Answer, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

/** The error message of an invalid configuration. */
function problemOf(config: JsonObject, { validators, document }: ApiContext): string | undefined {
  const problem = validators('RaidConfig', () => document.schemas['RaidConfig']!)(config);
  // Without the root cause of a failed `anyOf`, as in Ironic.
  if (problem !== undefined) return `RAID config validation error: ${problem.split('. Possible root cause: ')[0]}`;
  const disks: unknown = config['logical_disks'];
  const roots = Array.isArray(disks) ? disks.filter((disk) => isObject(disk) && disk['is_root_volume'] === true) : [];
  return roots.length > 1 ? `Raid config cannot have more than one root volume. ${roots.length} root volumes were specified` : undefined;
}

async function setRaidConfig(request: RequestOf<'setRaidConfig'>, context: ApiContext): Promise<Answer> {
  const { body, minor } = request;
  if (!isObject(body)) throw invalidParameter(`Expected types <class 'dict'> for target_raid_config: ${str(withoutSecrets(body))}`);
  const node = await nodeOf(request, context, 'node:set_raid_state');
  if (minor < 12) throw notAcceptable();
  await context.conductor.setRaidConfig(node.uuid, body, problemOf(body, context));
  return { status: 204 };
}

/** Returns the descriptions in the schema. */
async function showLogicalDiskProperties({ params }: RequestOf<'showLogicalDiskProperties'>, context: ApiContext): Promise<Answer> {
  await checkDriverServed(params.driver_name, context);
  const rows = Object.entries(context.document.schemas['RaidConfig']?.properties?.['logical_disks']?.items?.properties ?? {});
  return { status: 200, body: Object.fromEntries(rows.map(([name, { description }]) => [name, description])) };
}

export const raidHandlers = { setRaidConfig, showLogicalDiskProperties } satisfies SomeHandlers;
