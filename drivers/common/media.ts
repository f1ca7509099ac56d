/** Images for BMCs. They are published as rows; the HTTP boot service generates each image and serves it under a secret URL. */
import { newSecret } from '../../model/masks';
import type { MediumContent, MediumRecord, MediumRole } from '../../model/records';
import { reasonOf } from '../../model/errors';
import { deleteObject } from '../../wire/openstack/swift';
import type { Upload } from '../../wire/keystone/exchange';
import type { Task } from '../interfaces';
import { openUrl } from './images';
import { removeFromShare, writeToShare, type MediaShare } from './media-shares';
import { reachableFrom } from './reach';
import { putTemporaryObject } from './swift-objects';
import { withoutEndSlashes } from '../../wire/urls';

/** BMCs, and firmware that boots by HTTP, check the name's extension. */
const NAMES: Readonly<Record<MediumRole, string>> = {
  boot: 'boot.iso',
  parameters: 'parameters.img',
  configdrive: 'configdrive.img',
  cdrom: 'cdrom.iso',
  disk: 'disk.img',
  floppy: 'floppy.img',
};

/** The URL by which the node's BMC reaches the HTTP boot service, without a slash at its end. */
export function urlForBmc({ node, options }: Task): string {
  const own = node.driver_info['external_http_url'];
  const { redfish_address: bmc } = node.driver_info;
  const common = (): string => reachableFrom(bmc, options['deploy.external_http_url'] ?? options['deploy.http_url'], options);
  const base = typeof own === 'string' && own !== '' ? own : common();
  return withoutEndSlashes(base);
}
type Address = Pick<MediumRecord, 'token' | 'role'>;
const urlBelow = (base: string, { token, role }: Address): string => `${base}/media/${token}/${NAMES[role]}`;
const urlOf = (task: Task, medium: Address): string => urlBelow(urlForBmc(task), medium);

/** `boot-UUID.iso`: a node has one image of each role. */
const objectName = (task: Task, role: MediumRole): string => NAMES[role].replace('.', `-${task.node.uuid}.`);
/** The image as the HTTP boot service generates it. */
const generated = (task: Task, medium: Address) => (): Promise<Upload> =>
  openUrl(urlBelow(withoutEndSlashes(task.options['deploy.http_url']), medium), task).catch((error: unknown) => {
    // Without the cause, whose text has the token.
    throw new Error(withoutTokens(reasonOf(error)));
  });
/** Copies an image to Swift. @throws Fault SwiftOperationError, MissingParameterValue */
async function toSwift(task: Task, medium: Address, container: string): Promise<string> {
  const name = objectName(task, medium.role);
  const data = generated(task, medium);
  const url = await putTemporaryObject(task, { container, name, data, secondsToLive: task.options['redfish.swift_object_expiry_timeout'] });
  // BMCs check the name's extension.
  return `${url}&filename=${name}`;
}

/** Serves an image. The node's earlier one of this role is no longer served. */
async function serve(task: Task, role: MediumRole, content: MediumContent, container: string | null): Promise<Address> {
  const token = newSecret(task.random);
  await task.media.put({ token, node_uuid: task.node.uuid, role, content, made_at: task.clock.now(), swift_container: container });
  return { token, role };
}
/** @returns the URL for the BMC */
export async function publish(task: Task, role: MediumRole, content: MediumContent): Promise<string> {
  return urlOf(task, await serve(task, role, content, null));
}
/** As `publish`, for an image that the BMC itself reads: with [redfish]use_swift, it reads it from Swift. */
export async function publishMedium(task: Task, role: MediumRole, content: MediumContent): Promise<string> {
  if (!task.options['redfish.use_swift']) return publish(task, role, content);
  const container = task.options['redfish.swift_container'];
  // The row names the container before the upload begins: then `unpublish` also removes what a failed upload left.
  return toSwift(task, await serve(task, role, content, container), container);
}
/** As `publish`, for an image that the BMC mounts from a share. Throws DriverOperationError. */
export async function publishOnShare(task: Task, share: MediaShare, role: MediumRole, content: MediumContent): Promise<string> {
  return writeToShare(task, share, objectName(task, role), generated(task, await serve(task, role, content, null)));
}
export const unpublishFromShare = (task: Task, share: MediaShare, role: MediumRole): Promise<void> =>
  removeFromShare(task, share, objectName(task, role));
/** Stops serving the images, and deletes their copies in Swift. The row names the container: the options may have changed since. */
export async function unpublish(task: Task, roles: readonly MediumRole[]): Promise<void> {
  for (const role of roles) {
    const medium = await task.media.ofNode(task.node.uuid, role);
    // Rows of earlier releases name no container.
    const fallback = task.options['redfish.use_swift'] ? task.options['redfish.swift_container'] : null;
    const container = medium && (medium.swift_container ?? fallback);
    if (container) await removeFromSwift(task, container, role);
    await task.media.remove(task.node.uuid, role);
  }
}
/** A failure is only logged: an object that Swift does not delete now expires later. */
async function removeFromSwift(task: Task, container: string, role: MediumRole): Promise<void> {
  const { connections, signal, log } = task;
  const object = { container, name: objectName(task, role) };
  await deleteObject(connections.services.swift, object, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    log.warn('an image for virtual media cannot be removed from Swift', { role, reason: reasonOf(error) });
  });
}
/** The URL of the published image that the node boots from. */
export async function bootUrl(task: Task): Promise<string | undefined> {
  const medium = await task.media.ofNode(task.node.uuid, 'boot');
  return medium && urlOf(task, medium);
}

/** Hides the secret URL of an image in a BMC's message. A BMC may percent-encode the URL, up to four times. */
export const withoutTokens = (text: string): string =>
  text
    .replace(/((?:\/|%(?:25){0,3}2F)media(?:\/|%(?:25){0,3}2F))[\w-]{20,}/gi, '$1***')
    .replace(/(temp_url_sig(?:=|%(?:25){0,3}3D))[\da-f]+/gi, '$1***');
