/** /v1/nodes/X/firmware: the firmware components of a node, as the database has them. */
import { invalidParameter } from '../../model/errors';
import { repr } from '../../model/python';
import { columnsOf } from '../pipeline/fields';
import { refuseWord } from '../pipeline/resource';
import { nodeOf } from '../pipeline/node-find';
import type { Answer, RequestOf, SomeHandlers, ApiContext } from '../pipeline/handler';

const TIMES = ['created_at', 'updated_at'];
const VERSIONS = ['component', 'initial_version', 'current_version', 'last_version_flashed'];
const IDENTITY = ['vendor', 'model', 'serial_number'];
const IDENTITY_SINCE = 114;

async function listFirmware(request: RequestOf<'listFirmware'>, context: ApiContext): Promise<Answer> {
  const { query, minor } = request;
  const { fields, detail } = query;
  const known = [...TIMES, ...VERSIONS, ...IDENTITY];
  const unknown = fields?.find((field) => !known.includes(field));
  if (unknown !== undefined) refuseWord(unknown, known);
  if (detail !== undefined) throw invalidParameter(`Schema error: ${repr(detail)} is not of type 'boolean'`);
  const node = await nodeOf(request, context, 'node:firmware:get');
  const early = minor < IDENTITY_SINCE ? (fields ?? []).filter((field) => IDENTITY.includes(field)).sort() : [];
  if (early.length > 0)
    throw invalidParameter(
      `Fields ${early.join(', ')} are not allowed in this API version. They require at least API version 1.${IDENTITY_SINCE}.`,
    );
  const shown = [...TIMES, ...(fields ?? [...VERSIONS, ...(minor < IDENTITY_SINCE ? [] : IDENTITY)])];
  const components = await context.store.firmwareComponents.ofNode(node.uuid);
  const firmware = components.map((component) => Object.fromEntries(shown.map((field) => [field, columnsOf(component)[field]])));
  return { status: 200, body: { firmware } };
}

export const firmwareHandlers = { listFirmware } satisfies SomeHandlers;
