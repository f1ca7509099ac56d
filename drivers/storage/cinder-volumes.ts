/** Volumes of Cinder, by the actions of its API v3: reserve, connect, attach, and the way back. */
import { isUuid } from '../../model/idents';
import { Fault, reasonOf } from '../../model/errors';
import { timestamp } from '../../model/clock';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { ServiceError, type ServiceCall } from '../../wire/keystone/services';
import type { Task } from '../interfaces';

/** How the storage reaches the machine: its addresses on the storage network. */
export type Connector = Readonly<Record<string, string | boolean | readonly string[]>>;
interface CinderVolume {
  readonly id: string;
  readonly status: string;
  /** The attachment to this node, if there is one. */
  readonly attachment: { readonly id: string | null } | undefined;
}

const storageError = (message: string, cause: unknown): Fault => new Fault('StorageError', { message }, { cause });

/** @param failed the message, with the reason */
async function send(task: Task, path: string, call: ServiceCall, failed: (reason: string) => string): Promise<unknown> {
  await task.stillHeld?.();
  try {
    const { body } = await task.connections.services.cinder.request(path, {
      ...call,
      signal: task.signal,
      globalRequestId: task.globalRequestId,
    });
    return body;
  } catch (error) {
    task.signal.throwIfAborted();
    if (error instanceof ServiceError && error.kind !== 'failing')
      throw storageError(`Failed to connect to block storage service : ${error.message}`, error);
    throw storageError(failed(reasonOf(error)), error);
  }
}
const pathOf = (id: string): string => `/volumes/${encodeURIComponent(id)}`;
const act = (task: Task, id: string, action: string, args: unknown, failed: (reason: string) => string): Promise<unknown> =>
  send(task, `${pathOf(id)}/action`, { method: 'POST', body: { [action]: args } }, failed);

/** The instances that an attachment of this node may name. */
const serversOf = ({ node }: Task): readonly unknown[] => [node.instance_uuid ?? node.uuid, node.uuid];

/** Undefined: there is no such volume. Throws StorageError. */
export async function findVolume(task: Task, id: string): Promise<CinderVolume | undefined> {
  const failed = (reason: string): string => `Failed to get volume ${id} from cinder for node ${task.node.uuid}: ${reason}`;
  if (!isUuid(id)) throw storageError(failed('the volume_id is not a UUID'), undefined);
  const body = await send(task, pathOf(id), { accept: [404] }, failed);
  if (isObject(body) && isObject(body['itemNotFound'])) return undefined;
  const volume = isObject(body) ? body['volume'] : undefined;
  if (!isObject(volume) || typeof volume['status'] !== 'string') throw storageError(failed('the response is not a volume'), undefined);
  const attachments: readonly unknown[] = Array.isArray(volume['attachments']) ? volume['attachments'] : [];
  const own = attachments.find((attachment) => isObject(attachment) && serversOf(task).includes(attachment['server_id']));
  const attachmentId = isObject(own) ? own['attachment_id'] : undefined;
  return {
    id,
    status: volume['status'],
    attachment: own === undefined ? undefined : { id: typeof attachmentId === 'string' ? attachmentId : null },
  };
}

export const reserve = (task: Task, id: string): Promise<unknown> =>
  act(task, id, 'os-reserve', null, (reason) => `Failed to reserve volume ${id} for node ${task.node.uuid}: ${reason})`);
export const unreserve = (task: Task, id: string): Promise<unknown> =>
  act(task, id, 'os-unreserve', null, (reason) => `Failed to release volume ${id} of node ${task.node.uuid}: ${reason}`);

/** @returns the connection information, for the properties of the volume target */
export async function connect(task: Task, id: string, connector: Connector): Promise<JsonObject> {
  const failed = (reason: string): string => `Failed to initialize connection for volume ${id} to node ${task.node.uuid}: ${reason}`;
  const body = await act(task, id, 'os-initialize_connection', { connector }, failed);
  const info = isObject(body) ? body['connection_info'] : undefined;
  const data = isObject(info) ? info['data'] : undefined;
  if (!isObject(data)) throw storageError(failed('the response has no connection information'), undefined);
  return { volume_id: id, ...data, ironic_volume_uuid: id };
}

/** Cinder requires a mount point, although nothing is mounted there. */
export const attach = (task: Task, id: string): Promise<unknown> =>
  act(
    task,
    id,
    'os-attach',
    { mountpoint: 'ironic_mountpoint', instance_uuid: task.node.instance_uuid ?? task.node.uuid },
    (reason) => `Failed to inform cinder that the attachment for volume ${id} for node ${task.node.uuid} has been completed: ${reason}`,
  );

export const beginDetaching = (task: Task, id: string): Promise<unknown> =>
  act(
    task,
    id,
    'os-begin_detaching',
    null,
    (reason) => `Failed to request detach for volume ${id} from cinder for node ${task.node.uuid}: ${reason}`,
  );
export const disconnect = (task: Task, id: string, connector: Connector): Promise<unknown> =>
  act(
    task,
    id,
    'os-terminate_connection',
    { connector },
    (reason) => `Failed to detach volume ${id} from node ${task.node.uuid}: ${reason}`,
  );
export const detach = (task: Task, id: string, attachmentId: string | null): Promise<unknown> =>
  act(
    task,
    id,
    'os-detach',
    { attachment_id: attachmentId },
    (reason) => `Failed to inform cinder that the detachment for volume ${id} from node ${task.node.uuid} has been completed: ${reason}`,
  );

/** Tells users of Cinder which node has the volume. A failure is only logged. */
export async function describeUse(task: Task, id: string, action: 'attached' | 'detached'): Promise<void> {
  const { node, clock, log } = task;
  const use = { instance_uuid: node.instance_uuid ?? node.uuid, last_seen: timestamp(clock.now()), last_action: action };
  const body = { metadata: { [`ironic_node_${node.uuid}`]: JSON.stringify(use) } };
  const failed = (reason: string): string => `Failed to update volume metadata for volume ${id} for node ${node.uuid}: ${reason}`;
  await send(task, `${pathOf(id)}/metadata`, { method: 'POST', body }, failed).catch((error: unknown) => {
    task.signal.throwIfAborted();
    log.warn('The metadata of a volume was not updated', { volume: id, reason: reasonOf(error) });
  });
}
