/** Sends notifications of what the API creates, changes and deletes: at the start, and at the end or on an error. */
import { announce, announceNode, type NotifiedResource, type Status } from '../../model/notifications';
import type { NodeRecord } from '../../model/records';
import type { Request, ApiContext } from './handler';

/** @param after what the message at the end shows */
async function notifyAround<T>(
  tell: (status: Status, record: object) => void,
  record: object,
  work: () => Promise<T>,
  after: (result: T) => object,
) {
  tell('start', record);
  let result: T;
  try {
    result = await work();
  } catch (error) {
    tell('error', record);
    throw error;
  }
  tell('end', after(result));
  return result;
}

/**
 * @param record as it shall be; of what is removed, as it was
 * @param work what it comes of: the record as it is then, or nothing
 */
export const withNotifications = <T>(
  { notifier }: ApiContext,
  { origin }: Request,
  resource: NotifiedResource,
  action: 'create' | 'update' | 'delete',
  record: object,
  work: () => Promise<T>,
): Promise<T> =>
  notifyAround(
    (status, shown) => announce(notifier, resource, action, status, shown, origin),
    record,
    work,
    (made) => ((made ?? undefined) === undefined ? record : (made as object)),
  );

/** `node`: as it shall be. */
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
