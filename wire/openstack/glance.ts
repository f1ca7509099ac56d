/** Images of Glance (Image API v2). */
import { isObject } from '../../model/json';
import type { Upload } from '../keystone/exchange';
import { ServiceError, type ServiceCall, type ServiceClient } from '../keystone/services';
import { timeoutSignal } from '../timeout-signal';

export interface GlanceImage {
  readonly id: string;
  /** `active`: it has data. */
  readonly status: string;
  /** `public`, `community`, `shared` or `private`. */
  readonly visibility: string;
  /** The id of a project. */
  readonly owner: string | null;
  readonly size: number | null;
  readonly diskFormat: string | null;
  readonly containerFormat: string | null;
  /** MD5. */
  readonly checksum: string | null;
  readonly hashAlgorithm: string | null;
  readonly hash: string | null;
  readonly tags: readonly string[];
  /** What the image's owner added: `kernel_id`, `ramdisk_id`, `img_type`, … */
  readonly properties: Readonly<Record<string, string>>;
}

const UUID = /^[\da-f]{8}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{4}-?[\da-f]{12}$/i;
const SCHEME = 'glance://';
/** The URL of an image in records of this program. */
export const glanceUrl = (id: string): string => `${SCHEME}${id}`;
export const isGlanceUrl = (href: string): boolean => href.startsWith(SCHEME);
/** The id that a UUID or `glance://…/UUID` names; undefined: it is neither. */
export function glanceId(href: string): string | undefined {
  const id = isGlanceUrl(href) ? href.slice(href.lastIndexOf('/') + 1) : href;
  return UUID.test(id) ? id : undefined;
}

/** Glance's own members of an image. The others are properties that the image's owner added. */
const STANDARD = new Set([
  'id',
  'name',
  'status',
  'visibility',
  'owner',
  'size',
  'virtual_size',
  'disk_format',
  'container_format',
  'checksum',
  'tags',
  'os_hash_algo',
  'os_hash_value',
  'os_hidden',
  'protected',
  'min_disk',
  'min_ram',
  'created_at',
  'updated_at',
  'file',
  'schema',
  'self',
  'locations',
  'direct_url',
  'stores',
]);
const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Undefined: it is not an image. @internal */
export function parseImage(body: unknown): GlanceImage | undefined {
  if (!isObject(body) || typeof body['id'] !== 'string') return undefined;
  const { size, tags } = body;
  const own = Object.entries(body).filter((entry): entry is [string, string] => !STANDARD.has(entry[0]) && textOf(entry[1]) !== null);
  return {
    id: body['id'],
    status: textOf(body['status']) ?? '',
    visibility: textOf(body['visibility']) ?? '',
    owner: textOf(body['owner']),
    size: typeof size === 'number' && Number.isSafeInteger(size) ? size : null,
    diskFormat: textOf(body['disk_format']),
    containerFormat: textOf(body['container_format']),
    checksum: textOf(body['checksum']),
    hashAlgorithm: textOf(body['os_hash_algo']),
    hash: textOf(body['os_hash_value']),
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
    properties: Object.fromEntries(own),
  };
}

/** @throws ServiceError */
export async function showImage(glance: ServiceClient, id: string, call: ServiceCall): Promise<GlanceImage | undefined> {
  return parseImage((await glance.request(`/images/${id}`, call)).body);
}

/** An image without data yet. */
interface NewImage {
  readonly id: string;
  readonly name: string;
  /** The id of a project. Null: that of this program. */
  readonly owner: string | null;
  readonly visibility: 'private' | 'public';
  readonly diskFormat: string;
  readonly properties: Readonly<Record<string, string>>;
}
/** @throws ServiceError */
export async function createImage(glance: ServiceClient, image: NewImage, call: ServiceCall): Promise<void> {
  const { id, name, owner, visibility, diskFormat, properties } = image;
  const body = {
    ...properties,
    id,
    name,
    visibility,
    disk_format: diskFormat,
    container_format: 'bare',
    ...(owner === null ? {} : { owner }),
  };
  const made = parseImage((await glance.request('/images', { ...call, method: 'POST', body })).body);
  if (made?.id !== id) throw new ServiceError('glance', 'failing', 'the response is not the image that was created');
}

const UPLOAD_BASE_MS = 600_000;
/** A service that takes less than this is as good as unreachable. */
const UPLOAD_BYTES_PER_MS = 500;
/** Sends the data of an image that has none. @throws ServiceError */
export async function uploadImage(glance: ServiceClient, id: string, upload: Upload, signal: AbortSignal): Promise<void> {
  const limit = timeoutSignal(UPLOAD_BASE_MS + Math.ceil(upload.size / UPLOAD_BYTES_PER_MS), signal);
  await glance.upload(`/images/${id}/file`, upload, { 'content-type': 'application/octet-stream' }, limit);
}

/** An image that is not there is no error. @throws ServiceError */
export async function deleteImage(glance: ServiceClient, id: string, call: ServiceCall): Promise<void> {
  await glance.request(`/images/${id}`, { ...call, method: 'DELETE', accept: [404] });
}

/** The projects that a shared image is for. @throws ServiceError */
export async function membersOf(glance: ServiceClient, id: string, call: ServiceCall): Promise<readonly string[]> {
  const { body } = await glance.request(`/images/${id}/members`, call);
  const members = isObject(body) ? body['members'] : undefined;
  return Array.isArray(members)
    ? members.flatMap((member) => (isObject(member) && typeof member['member_id'] === 'string' ? [member['member_id']] : []))
    : [];
}

/** Who wants to use an image. */
interface ImageUser {
  /** The caller has the role `admin`. */
  readonly admin: boolean;
  /** The caller's project. Null: the caller has none, or the work goes on without a caller. */
  readonly project: string | null;
  /** The project of this program. */
  readonly ownProject: string | null;
}

/**
 * Ironic's rule permits public and community images, all images for administrators (unless `checksAdmins`), and images that belong to this
 * program's own project or are shared with it. For the last ones, the caller must also be able to see the image in Glance. Ironic leaves
 * that check to Glance, to which it passes the caller's token.
 * @param members of a shared image
 */
export function mayUseImage(
  { visibility, owner }: Pick<GlanceImage, 'visibility' | 'owner'>,
  members: readonly string[],
  { admin, project, ownProject }: ImageUser,
  checksAdmins: boolean,
): boolean {
  if (visibility === 'public' || visibility === 'community' || (admin && !checksAdmins)) return true;
  const isFor = (id: string): boolean => owner === id || (visibility === 'shared' && members.includes(id));
  const forThis = ownProject !== null && (visibility === 'private' ? owner === ownProject : members.includes(ownProject));
  return forThis && (admin || project === null || isFor(project));
}
