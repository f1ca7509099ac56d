/** /v1/nodes/X/states/boot_mode, secure_boot and console: states of the machine beside its power. */
import { conflict, invalidParameter, notFound } from '../../model/errors';
import { repr } from '../../model/python';
import type { NodeRecord } from '../../model/records';
import { stateRow } from '../../model/states';
import { location } from '../pipeline/present';
import { nodeOf, onNode } from '../pipeline/node-find';
import type { Answer, Request, RequestOf, RequestOn, SomeHandlers, ApiContext } from '../pipeline/handler';

/** @param rest of the path below the node, where clients see the progress */
export const accepted = ({ base, params }: RequestOn<'node_ident'>, rest = 'states'): Answer => ({
  status: 202,
  headers: location(base, `nodes/${params.node_ident}/${rest}`),
});

/** Bytes of an answer. */
const MAX_LOG_PART = 262_144;
const USUAL_LOG_PART = 65_536;

const SINCE = 76;
function checkVersion({ minor }: Request): void {
  if (minor < SINCE) throw notFound(`This endpoint is supported starting with the API version 1.${SINCE}`);
}
/** Refuses to change a node during a state transition, because the transition may depend on these settings. */
function checkNotTransitioning({ provision_state: state }: NodeRecord): void {
  const { working, timeout } = stateRow(state);
  if (!working && timeout === undefined) return;
  throw conflict(
    `Node is in ${state} state. Since node is transitioning, the boot mode will not be set as this may interfere with ongoing changes and result in erroneous modification. Try again later.`,
  );
}

async function setBootMode(request: RequestOf<'setBootMode'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:set_boot_mode');
  const target = request.query.target;
  checkVersion(request);
  if (target !== 'bios' && target !== 'uefi')
    throw invalidParameter(`Invalid boot mode ${target ?? repr(null)} requested for node. Allowed boot modes are: bios, uefi`);
  checkNotTransitioning(node);
  await context.conductor.setBootMode(node.uuid, target);
  return accepted(request);
}

async function setSecureBoot(request: RequestOf<'setSecureBoot'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:set_secure_boot');
  const target = request.query.target;
  checkVersion(request);
  if (target === null)
    throw invalidParameter(`Invalid secure_boot ${repr(target)} requested for node. Allowed secure_boot states are: True, False) `);
  checkNotTransitioning(node);
  await context.conductor.setSecureBoot(node.uuid, target);
  return accepted(request);
}

async function setConsole(request: RequestOf<'setConsole'>, context: ApiContext): Promise<Answer> {
  const node = await nodeOf(request, context, 'node:set_console_state');
  await context.conductor.setConsole(node.uuid, request.query.enabled === true);
  return accepted(request, 'states/console');
}

export const machineStateHandlers = {
  setBootMode,
  setSecureBoot,
  showConsoleLog: onNode(({ uuid }, { query: { offset, limit } }, { conductor }) => {
    if (offset !== undefined && (offset < 0 || !Number.isSafeInteger(offset))) throw invalidParameter('offset must be a number of bytes');
    if (limit !== undefined && (limit < 1 || limit > MAX_LOG_PART)) throw invalidParameter(`limit must be from 1 to ${MAX_LOG_PART}`);
    return conductor.readConsoleLog(uuid, offset ?? null, limit ?? USUAL_LOG_PART);
  }),
  showConsole: onNode(async ({ uuid }, _, { conductor }) => {
    const info = await conductor.consoleInfo(uuid);
    return { console_enabled: info !== null, console_info: info };
  }),
  setConsole,
} satisfies SomeHandlers;
