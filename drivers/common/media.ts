/** Images for BMCs. They are published as rows, and the HTTP boot service builds them under a secret URL. */
import type { MediumContent, MediumRecord, MediumRole } from '../../model/records';
import type { Task } from '../interfaces';
import { reachableFrom } from './reach';

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
const urlOf = (task: Task, { token, role }: Pick<MediumRecord, 'token' | 'role'>): string =>
  `${urlForBmc(task)}/media/${token}/${NAMES[role]}`;

/** The URL for the BMC. The node's earlier image of this role is no longer served. */
export async function publish(task: Task, role: MediumRole, content: MediumContent): Promise<string> {
  const token = task.random(TOKEN_BYTES).toString('base64url');
  await task.media.put({ token, node_uuid: task.node.uuid, role, content, made_at: task.clock.now() });
  return urlOf(task, { token, role });
}
export async function unpublish(task: Task, roles: readonly MediumRole[]): Promise<void> {
  for (const role of roles) await task.media.remove(task.node.uuid, role);
}
/** The URL of the published image that the node boots from. */
export async function bootUrl(task: Task): Promise<string | undefined> {
  const medium = await task.media.ofNode(task.node.uuid, 'boot');
  return medium && urlOf(task, medium);
}

/** Hides the secret URL of an image in a BMC's message. */
export const withoutTokens = (text: string): string => text.replace(/(\/media\/)[\w-]{20,}/g, '$1***');
