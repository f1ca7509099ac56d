/** The managers of Dell machines (iDRACs), and the services that they have beside the standard's. */
import { Fault } from '../../model/errors';
import { repr } from '../../model/python';
import {
  RedfishError,
  actionOf,
  linkOf,
  member,
  readResource,
  textOf,
  type RedfishResource,
  type SendRedfishRequest,
} from '../../wire/redfish';
import type { Task } from '../interfaces';
import { managersOf } from '../redfish/managers';
import { onSystem, type SystemView } from '../redfish/target';

/** In Ironic's words. */
const broken = (message: string): Fault => new Fault('DriverOperationError', { message: `Redfish exception occurred. Error: ${message}` });
export const missing = (attribute: string, { path }: { readonly path: string }): RedfishError =>
  new RedfishError('protocol', `The attribute ${attribute} is missing from the resource ${path}`);

const nameOf = ({ body, path }: RedfishResource): string => textOf(member(body, 'UUID')) ?? textOf(member(body, 'Id')) ?? path;

/**
 * Runs `work` on each manager of the system, up to the first that it succeeds on.
 * @throws Fault DriverOperationError with the errors of all of them, in Ironic's words
 */
export function onManager<T>(task: Task, doing: string, work: (manager: RedfishResource, system: SystemView) => Promise<T>): Promise<T> {
  return onSystem(task, undefined, async (system) => {
    const managers = await managersOf(system);
    if (managers.length === 0) throw broken(`System ${nameOf(system)} has no managers`);
    const errors: string[] = [];
    for (const manager of managers) {
      try {
        return await work(manager, system);
      } catch (error) {
        task.signal.throwIfAborted();
        if (!(error instanceof RedfishError) || error.kind === 'closed') throw error;
        errors.push(`Manager ${nameOf(manager)}: ${error.message}`);
      }
    }
    throw broken(`In system ${nameOf(system)} for node ${task.node.uuid} all managers failed: ${doing}. Errors: ${repr(errors)}`);
  });
}

/** The path of a service of a manager or a system, such as `DellJobService`. Throws RedfishError. */
function servicePath(owner: RedfishResource, name: string): string {
  const path = linkOf(member(owner.body, 'Links', 'Oem', 'Dell', name));
  if (path === undefined) throw missing(`Links/Oem/Dell/${name}`, owner);
  return path;
}
/**
 * Runs an action of a service of Dell's, such as `#DellJobService.DeleteJobQueue`.
 * @param owner the manager or the system that links the service
 * @throws RedfishError, also when there is no such service or action
 */
export async function callService(
  ask: SendRedfishRequest,
  owner: RedfishResource,
  action: `#${string}.${string}`,
  body: object,
): ReturnType<SendRedfishRequest> {
  const service = await readResource(ask, servicePath(owner, action.slice(1).split('.', 1)[0]!));
  const found = actionOf(service, action);
  if (!found) throw missing(`Actions/${action}`, service);
  return ask('POST', found.target, { body });
}

/** Which of the services of the Lifecycle Controller: its own, and changes of RAID without a restart. */
type Readiness = 'LCStatus' | 'RTStatus';
/** Throws RedfishError. */
export async function isReady(ask: SendRedfishRequest, manager: RedfishResource, which: Readiness): Promise<boolean> {
  const { status, body } = await callService(ask, manager, '#DellLCService.GetRemoteServicesAPIStatus', {});
  return status === 200 && member(body, which) === 'Ready';
}
