/** Images for BMCs. They are published as rows, and the HTTP boot service builds them under a secret URL. */
import type { MediumContent, MediumRecord, MediumRole } from '../../model/records';
import { Fault, reasonOf } from '../../model/errors';
import { deleteObject } from '../../wire/openstack/swift';
import type { Upload } from '../../wire/keystone/exchange';
import type { Task } from '../interfaces';
import { opened } from './images';
import { reachableFrom } from './reach';
import { putForAWhile } from './swift-objects';

/** BMCs, and firmware that boots by HTTP, check the name's extension. */
const NAMES: Readonly<Record<MediumRole, string>> = {
  boot: 'boot.iso',
  parameters: 'parameters.img',
  configdrive: 'configdrive.img',
  cdrom: 'cdrom.iso',
  disk: 'disk.img',
  floppy: 'floppy.img',
};
const TOKEN_BYTES = 32;

/** The URL by which the node's BMC reaches the HTTP boot service, without a slash at its end. */
export function urlForBmc({ node, options }: Task): string {
  const own = node.driver_info['external_http_url'];
  const { redfish_address: bmc } = node.driver_info;
  const common = (): string => reachableFrom(bmc, options['deploy.external_http_url'] ?? options['deploy.http_url'], options);
  const base = typeof own === 'string' && own !== '' ? own : common();
  return base.replace(/(?<!\/)\/+$/, '');
}
type Address = Pick<MediumRecord, 'token' | 'role'>;
const urlBelow = (base: string, { token, role }: Address): string => `${base}/media/${token}/${NAMES[role]}`;
const urlOf = (task: Task, medium: Address): string => urlBelow(urlForBmc(task), medium);

/** `boot-UUID.iso`: a node has one image of each role. */
const objectOf = ({ node, options }: Task, role: MediumRole) => ({
  container: options['redfish.swift_container'],
  name: NAMES[role].replace('.', `-${node.uuid}.`),
});
/** Copies an image from the HTTP boot service, which generates it, to Swift. @throws Fault SwiftOperationError, MissingParameterValue */
async function toSwift(task: Task, medium: Address): Promise<string> {
  const object = objectOf(task, medium.role);
  const source = urlBelow(task.options['deploy.http_url'].replace(/(?<!\/)\/+$/, ''), medium);
  const data = (): Promise<Upload> =>
    opened(source, task).catch((error: unknown) => {
      // Without the cause, whose text has the token.
      throw new Error(withoutTokens(reasonOf(error)));
    });
  const url = await putForAWhile(task, { ...object, data, secondsToLive: task.options['redfish.swift_object_expiry_timeout'] });
  // BMCs check the name's extension.
  return `${url}&filename=${object.name}`;
}

/** The URL for the BMC. The node's earlier image of this role is no longer served. */
export async function publish(task: Task, role: MediumRole, content: MediumContent): Promise<string> {
  const token = task.random(TOKEN_BYTES).toString('base64url');
  await task.media.put({ token, node_uuid: task.node.uuid, role, content, made_at: task.clock.now() });
  return urlOf(task, { token, role });
}
/** As `publish`, for an image that the BMC itself reads: with [redfish]use_swift, it reads it from Swift. */
export async function publishMedium(task: Task, role: MediumRole, content: MediumContent): Promise<string> {
  const url = await publish(task, role, content);
  if (!task.options['redfish.use_swift']) return url;
  const medium = await task.media.ofNode(task.node.uuid, role);
  if (!medium) throw new Fault('SwiftOperationError', { operation: 'put object', error: 'the image was removed meanwhile' });
  return toSwift(task, medium);
}
export async function unpublish(task: Task, roles: readonly MediumRole[]): Promise<void> {
  for (const role of roles) {
    if (task.options['redfish.use_swift'] && (await task.media.ofNode(task.node.uuid, role)) !== undefined)
      await removeFromSwift(task, role);
    await task.media.remove(task.node.uuid, role);
  }
}
/** What Swift keeps expires. */
async function removeFromSwift(task: Task, role: MediumRole): Promise<void> {
  const { connections, signal, log } = task;
  await deleteObject(connections.services.swift, objectOf(task, role), { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    log.warn('an image for virtual media cannot be removed from Swift', { role, reason: reasonOf(error) });
  });
}
/** The URL of the published image that the node boots from. */
export async function bootUrl(task: Task): Promise<string | undefined> {
  const medium = await task.media.ofNode(task.node.uuid, 'boot');
  return medium && urlOf(task, medium);
}

/** Hides the secret URL of an image in a BMC's message. */
export const withoutTokens = (text: string): string =>
  text.replace(/(\/media\/)[\w-]{20,}/g, '$1***').replace(/(temp_url_sig=)[\da-f]+/gi, '$1***');
