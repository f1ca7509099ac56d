/** Sends notifications about changes by the API: one at the start, and one at the end or on an error. */
import { announce, announceNode, isAnnounced, type NotifiedResource, type Status } from '../../model/notifications';
import type { NodeRecord } from '../../model/records';
import type { Request, ApiContext } from './handler';
import { requireGranted } from './permission';

/** @param after the record of the final notification */
async function notifyAround<T>(
  notify: (status: Status, record: object) => void,
  record: object,
  work: () => Promise<T>,
  after: (result: T) => object,
) {
  notify('start', record);
  let result: T;
  try {
    result = await work();
  } catch (error) {
    notify('error', record);
    throw error;
  }
  notify('end', after(result));
  return result;
}

/** @param schema of the resource. Undefined: Ironic has no notifications about it. */
export function notificationName(schema: string): NotifiedResource | undefined {
  const name = schema.toLowerCase();
  return isAnnounced(name) ? name : undefined;
}

/**
 * @param resource undefined: sends nothing
 * @param record after the change; for a deletion, before it
 * @param work makes the change; may return the record afterwards
 */
export async function withNotifications<T extends object | void>(
  { notifier }: ApiContext,
  { origin, permission }: Request,
  resource: NotifiedResource | undefined,
  action: 'create' | 'update' | 'delete',
  record: object,
  work: () => Promise<T>,
): Promise<T> {
  requireGranted(permission);
  return resource === undefined
    ? work()
    : notifyAround(
        (status, shown) => announce(notifier, resource, action, status, shown, origin),
        record,
        work,
        (result) => result ?? record,
      );
}

/** @param node after the change */
export async function withMaintenanceNotifications(
  context: ApiContext,
  { origin, permission }: Request,
  node: NodeRecord,
  work: () => Promise<void>,
): Promise<void> {
  requireGranted(permission);
  return notifyAround(
    (status, shown) => announceNode(context.notifier, 'ironic-api', 'maintenance_set', status, shown, {}, origin),
    node,
    work,
    () => node,
  );
}
