/** The UpdateService of a machine's Redfish service: requests an update, reads its state, and reads what may be unavailable meanwhile. */
import { createHash } from 'node:crypto';
import { reasonOf } from '../../../model/errors';
import { withoutCredentials } from '../../../model/urls';
import {
  RedfishError,
  actionOf,
  hasMessage,
  isStatus,
  isUnseen,
  linkOf,
  linkedCollection,
  listOf,
  member,
  memberPaths,
  messagesOf,
  readLinked,
  readResource,
  rootPath,
  startedTask,
  textOf,
  type RedfishAnswer,
  type RedfishResource,
} from '../../../wire/redfish';
import type { InternalKey } from '../../../model/internal-info';
import type { InterfacePeriodic, Task } from '../../interfaces';
import { readTaskOrJob } from '../jobs';
import { pushUpdate } from './push-update';
import { managersOf } from '../managers';
import { redfishRequester, redfishSystem, systemOf, type SystemView } from '../target';

/** The state of an update. `unreachable`: the service does not answer now; `gone`: it has forgotten the task, or never named one. */
export type UpdateState =
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'gone' | 'done' }
  | { readonly kind: 'failed'; readonly messages: readonly string[] }
  | { readonly kind: 'running'; readonly state: string | undefined; readonly percent: number | undefined };

/** In Ironic's words. */
const missing = (attribute: string, { path }: { readonly path: string }): RedfishError =>
  new RedfishError('protocol', `Redfish exception occurred. Error: The attribute ${attribute} is missing from the resource ${path}`);

/** TransferProtocol for a URL: its scheme, or HTTP if the service does not accept the scheme; undefined: neither is accepted. */
function protocolFor(url: string, allowed: readonly string[] | undefined): string | undefined {
  const scheme = new URL(url).protocol.slice(0, -1).toUpperCase();
  return allowed === undefined ? scheme : [scheme, 'HTTP'].find((candidate) => allowed.includes(candidate));
}

/** How the service has taken an update. Without a monitor: it is done, or goes on unseen. */
interface StartedUpdate {
  readonly monitor?: string;
  readonly unseen?: true;
}
/** Whether the service refuses to fetch a file, or to fetch it from this URL. */
const refusesToFetch = (error: unknown): boolean =>
  isStatus(error, 404, 405, 501) ||
  (isStatus(error, 400) && (hasMessage(error, 'ActionNotSupported') || /\b(?:ImageURI|TransferProtocol)\b/.test(error.message)));
/**
 * Makes the service fetch and apply the file. Where it cannot, the file is sent to it.
 * @param component of the file, as in the step's settings, if it is known
 * @throws RedfishError
 */
export async function simpleUpdate(task: Task, url: string, component?: string): Promise<StartedUpdate> {
  const system = await systemOf(task);
  const { ask, target, path } = system;
  const root = await readResource(ask, rootPath(target));
  const service = await readLinked(ask, root, 'UpdateService');
  if (service === undefined) throw missing('UpdateService/@odata.id', root);
  const action = actionOf(service, '#UpdateService.SimpleUpdate');
  const protocol = protocolFor(url, await action?.allowed(ask, 'TransferProtocol'));
  // A service with several systems must be told which one to update.
  const systems = linkOf(member(root.body, 'Systems'));
  const several = systems !== undefined && (await memberPaths(ask, systems)).length > 1;
  const body = {
    ImageURI: url,
    TransferProtocol: protocol,
    Targets: several ? [path] : undefined,
  };
  const push = (): Promise<RedfishAnswer | undefined> =>
    pushUpdate(task, system, service, { url, component, targets: several ? [path] : [] });
  const fetch = async (): Promise<RedfishAnswer> => {
    if (action === undefined) throw missing('#UpdateService.SimpleUpdate', service);
    return ask('POST', action.target, { body });
  };
  // A service that lists no protocol of the URL is sent the file, if it takes files.
  const first = action === undefined || protocol === undefined ? await push() : undefined;
  const answer =
    first ??
    (await fetch().catch(async (error: unknown) => {
      const pushed = refusesToFetch(error) && protocol !== undefined ? await push() : undefined;
      if (pushed === undefined) throw error;
      return pushed;
    }));
  const monitor = startedTask(answer);
  return monitor === undefined ? (isUnseen(answer) ? { unseen: true } : {}) : { monitor };
}

/** A failed task's messages, as Ironic reports them: each message's text, or its MessageId where the text says nothing. */
const wordsOf = (body: unknown): readonly string[] =>
  messagesOf(member(body, 'Messages'))
    .map(({ id, text }) => (text === undefined || /^unknown( error)?$/i.test(text) ? (id ?? text) : text))
    .filter((words) => words !== undefined);

/** @param monitor absent: the service did it at once */
export async function updateState(task: Task, monitor: string | undefined): Promise<UpdateState> {
  if (monitor === undefined) return { kind: 'done' };
  const { target } = await redfishSystem(task);
  try {
    const { kind, state, percent, messages, answer } = await readTaskOrJob(redfishRequester(task, target), monitor);
    if (kind === 'running') return { kind, state, percent };
    return kind === 'failed' ? { kind, messages: answer ? wordsOf(answer.body) : [messages] } : { kind };
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    return { kind: 'unreachable', reason: reasonOf(error) };
  }
}

export interface MachineView {
  readonly system: SystemView;
  /** Undefined: the system has none. */
  readonly manager: RedfishResource | undefined;
  /** Undefined: there are none, or they were not requested. */
  readonly adapters: readonly RedfishResource[] | undefined;
}
/** The first of a list of links. */
const firstOf = (list: unknown): string | undefined => linkOf(listOf(list)[0]);
/**
 * The system with its BMC, and the network adapters of its chassis on request.
 * @throws RedfishError when one of them cannot be read
 */
export async function machineOf(task: Task, include: { readonly adapters: boolean }): Promise<MachineView> {
  const system = await systemOf(task);
  const { ask, body } = system;
  const [manager] = await managersOf(system);
  const housed = include.adapters ? firstOf(member(body, 'Links', 'Chassis')) : undefined;
  const adapters = housed === undefined ? undefined : await linkedCollection(ask, await readResource(ask, housed), 'NetworkAdapters');
  return { system, manager, adapters };
}

/** The BMC's firmware version; undefined while it does not answer, or when it reports none. */
export async function bmcVersion(task: Task): Promise<string | undefined> {
  try {
    const { manager } = await machineOf(task, { adapters: false });
    return textOf(member(manager?.body, 'FirmwareVersion'));
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.debug('the BMC does not report its version', { reason: reasonOf(error) });
    return undefined;
  }
}

/** Why an update step failed, in Ironic's words. */
export const updateFailure = ({ node }: Task, url: string, messages: readonly string[]): string =>
  `Firmware update failed for node ${node.uuid}, firmware ${withoutCredentials(url)}. Error: ${messages.join(',  ')}`;
/** Firmware of one inventory that is read. */
const MAX_ITEMS = 256;
/** Versions that do not run: Dell lists those that wait, and those before the last update, beside the installed ones. */
const NOT_INSTALLED = /\/(?:Available|Previous|Staged)-[^/]*$/;
/**
 * A digest of all firmware versions that the service shows; undefined: it shows none. After an update whose task is gone, another digest shows
 * that the update took place.
 */
export async function versionsDigest(task: Task): Promise<string | undefined> {
  try {
    const { system, manager } = await machineOf(task, { adapters: false });
    const { ask, target } = system;
    const service = await readLinked(ask, await readResource(ask, rootPath(target)), 'UpdateService');
    const items = service === undefined ? [] : ((await linkedCollection(ask, service, 'FirmwareInventory')) ?? []);
    const shown = [
      ['bios', textOf(member(system.body, 'BiosVersion'))],
      ['bmc', textOf(member(manager?.body, 'FirmwareVersion'))],
      ...items
        .filter(({ path }) => !NOT_INSTALLED.test(path))
        .slice(0, MAX_ITEMS)
        .map(({ path, body }) => [path, textOf(member(body, 'Version'))]),
    ].filter(([, version]) => version !== undefined);
    return shown.length === 0 ? undefined : createHash('sha256').update(JSON.stringify(shown)).digest('base64url');
  } catch (error) {
    if (!(error instanceof RedfishError)) throw error;
    task.log.debug('the service does not show the versions of its firmware', { reason: reasonOf(error) });
    return undefined;
  }
}
/**
 * The result of an update whose task is gone, by the versions. `open`: they are the old ones still, and may change yet.
 * @param since seconds since the task is gone
 */
export async function resultByVersions(
  task: Task,
  url: string,
  before: string | undefined,
  since: number,
): Promise<'done' | 'open' | 'failed'> {
  const now = before === undefined ? undefined : await versionsDigest(task);
  if (now === undefined)
    task.log.warn('the task of a firmware update is gone, and no version shows its result; the update counts as done', {
      firmware: withoutCredentials(url),
    });
  if (now !== before || now === undefined) return 'done';
  return since < task.options['redfish.firmware_update_resource_validation_timeout'] ? 'open' : 'failed';
}
export const FORGOTTEN = 'the service has forgotten the task of the update, and shows no new version';

/** Discards the remaining updates (a key of driver_internal_info) of a failed step, so that they do not continue by themselves. */
export const discardFailedUpdates = (
  name: string,
  key: InternalKey,
  states: InterfacePeriodic['states'],
  forget: (task: Task) => Promise<void>,
): InterfacePeriodic => ({
  name,
  states,
  every: (options) => options['redfish.firmware_update_fail_interval'],
  inMaintenance: true,
  only: ({ driver_internal_info: internal }) => internal[key] !== undefined,
  run: async (task) => {
    task.log.warn('a firmware update failed; its remaining updates are discarded');
    await forget(task);
    return undefined;
  },
});
