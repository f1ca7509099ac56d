/** Sends notifications about changes by the API: one at the start, and one at the end or on an error. */
import { announce, announceNode, type NotifiedResource, type Status } from '../../model/notifications';
import type { NodeRecord } from '../../model/records';
import type { Request, ApiContext } from './handler';

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

/**
 * @param resource undefined: sends nothing
 * @param record after the change; for a deletion, before it
 * @param work makes the change; may return the record afterwards
 */
export const withNotifications = <T>(
  { notifier }: ApiContext,
  { origin }: Request,
  resource: NotifiedResource | undefined,
  action: 'create' | 'update' | 'delete',
  record: object,
  work: () => Promise<T>,
): Promise<T> =>
  resource === undefined
    ? work()
    : notifyAround(
        (status, shown) => announce(notifier, resource, action, status, shown, origin),
        record,
        work,
        (result) => ((result ?? undefined) === undefined ? record : (result as object)),
      );

/** @param node after the change */
export const withMaintenanceNotifications = (
  context: ApiContext,
  { origin }: Request,
  node: NodeRecord,
  work: () => Promise<void>,
): Promise<void> =>
  notifyAround(
    (status, shown) => announceNode(context.notifier, 'ironic-api', 'maintenance_set', status, shown, {}, origin),
    node,
    work,
    () => node,
  );
