/** The UpdateService of a machine's Redfish service: requests an update, reads its state, and reads what may be unavailable meanwhile. */
import { reasonOf } from '../../../model/errors';
import { withoutCredentials } from '../../../model/urls';
import {
  RedfishError,
  actionOf,
  linkOf,
  linkedCollection,
  listOf,
  readTask,
  member,
  memberPaths,
  messagesOf,
  readLinked,
  readResource,
  rootPath,
  startedTask,
  textOf,
  type RedfishResource,
} from '../../../wire/redfish';
import type { InterfacePeriodic, Task } from '../../interfaces';
import { managersOf } from '../managers';
import { redfishRequester, redfishSystem, systemOf, type SystemView } from '../target';

/** The state of an update. `unreachable`: the service does not answer now; `gone`: it has forgotten the task. */
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
  return allowed === undefined ? scheme : [scheme, 'HTTP'].find((one) => allowed.includes(one));
}

/** Makes the service fetch and apply the file. Returns the task's monitor; undefined: done already. @throws RedfishError */
export async function simpleUpdate(task: Task, url: string): Promise<string | undefined> {
  const { ask, target, path } = await systemOf(task);
  const root = await readResource(ask, rootPath(target));
  const service = await readLinked(ask, root, 'UpdateService');
  if (service === undefined) throw missing('UpdateService/@odata.id', root);
  const action = actionOf(service, '#UpdateService.SimpleUpdate');
  if (action === undefined) throw missing('#UpdateService.SimpleUpdate', service);
  const protocol = protocolFor(url, await action.allowed(ask, 'TransferProtocol'));
  // A service with several systems must be told which one to update.
  const systems = linkOf(member(root.body, 'Systems'));
  const several = systems !== undefined && (await memberPaths(ask, systems)).length > 1;
  const body = {
    ImageURI: url,
    ...(protocol === undefined ? {} : { TransferProtocol: protocol }),
    ...(several ? { Targets: [path] } : {}),
  };
  return startedTask(await ask('POST', action.target, { body }));
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
    const { kind, state, percent, messages, answer } = await readTask(redfishRequester(task, target), monitor);
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
/** An update whose task the service has forgotten counts as done, as in Ironic. */
export const warnOfGoneTask = ({ log }: Task, url: string): void =>
  log.warn('the task of a firmware update is gone; the update counts as done', { firmware: withoutCredentials(url) });

/** Discards the remaining updates (a key of driver_internal_info) of a failed step, so that they do not continue by themselves. */
export const discardFailedUpdates = (
  name: string,
  key: string,
  states: InterfacePeriodic['states'],
  forget: (task: Task) => Promise<void>,
): InterfacePeriodic => ({
  ...{ name, states },
  every: (options) => options['redfish.firmware_update_fail_interval'],
  inMaintenance: true,
  only: ({ driver_internal_info: internal }) => internal[key] !== undefined,
  run: async (task) => {
    task.log.warn('a firmware update failed; its remaining updates are discarded');
    await forget(task);
    return undefined;
  },
});
