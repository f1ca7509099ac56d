/** Images in Glance: whether a task's caller may use them, their properties, and temporary URLs of Swift for them. */
import { retry } from '../../model/clock';
import { invalidParameter, Fault } from '../../model/errors';
import { membersOf, mayUseImage, showImage, type GlanceImage } from '../../wire/openstack/glance';
import { containerOf, tempUrlPath, withoutAccount } from '../../wire/openstack/temp-url';
import { temporaryUrlKey } from '../../wire/openstack/swift';
import { ServiceError, type Services } from '../../wire/keystone/services';
import type { Task } from '../interfaces';
import { withoutEndSlashes } from '../../wire/urls';

/** The members of a task that lookups in Glance need. */
export type GlanceTask = Pick<Task, 'signal' | 'options' | 'connections' | 'clock' | 'globalRequestId' | 'caller'>;

const RETRY_PAUSE_MS = 1000;

function faultOf(task: GlanceTask, id: string, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  if (error.status === 404) return new Fault('ImageNotFound', { image_id: id }, { cause: error });
  if (error.status === 403) return new Fault('ImageNotAuthorized', { image_id: id }, { cause: error });
  const endpoint = task.options['glance.endpoint_override'] ?? 'of [glance]';
  const todo = task.connections.services.glance.isConfigured
    ? ''
    : '; an image that is given by its UUID needs [glance]auth_type and its options';
  return new Fault('GlanceConnectionFailed', { endpoint, reason: `${error.reason}${todo}` }, { cause: error });
}

const withRetries = <T>(task: GlanceTask, id: string, ask: () => Promise<T>): Promise<T> =>
  retry(task, ask, (error, attempt) => {
    task.signal.throwIfAborted();
    const isUnreachable = error instanceof ServiceError && error.kind === 'unreachable';
    if (!isUnreachable || attempt > task.options['glance.num_retries']) throw faultOf(task, id, error);
    return RETRY_PAUSE_MS;
  });

/**
 * Looks up an image that has data, whoever may use it.
 * Throws ImageNotFound, ImageNotAuthorized, ImageUnacceptable, GlanceConnectionFailed.
 */
export async function findAnyImage(task: GlanceTask, id: string): Promise<GlanceImage> {
  const { connections, signal, globalRequestId } = task;
  const { glance } = connections.services;
  const image = await withRetries(task, id, () => showImage(glance, id, { signal, globalRequestId }));
  if (!image) throw faultOf(task, id, new ServiceError('glance', 'failing', 'the response is not an image'));
  if (image.status === 'active') return image;
  throw new Fault('ImageUnacceptable', { image_id: id, reason: 'The image is required to be in an active state.' });
}

/** As `findAnyImage`, and checks that the task's caller may use the image. */
export async function findImage(task: GlanceTask, id: string): Promise<GlanceImage> {
  const { connections, options, caller, signal, globalRequestId } = task;
  const { glance } = connections.services;
  const call = { signal, globalRequestId };
  const image = await findAnyImage(task, id);
  const checksAdmins = !options['DEFAULT.ignore_project_check_for_admin_tasks'];
  const user = { admin: caller?.admin === true, project: caller?.project ?? null };
  if (mayUseImage(image, [], { ...user, ownProject: null }, checksAdmins)) return image;
  const ownProject = (await withRetries(task, id, () => glance.projectId())) ?? null;
  // Glance lists the members of shared images only.
  const members = image.visibility === 'shared' ? await withRetries(task, id, () => membersOf(glance, id, call)) : [];
  if (mayUseImage(image, members, { ...user, ownProject }, checksAdmins)) return image;
  throw new Fault('ImageNotFound', { image_id: id });
}

/** As `findImage` or `findAnyImage`, for validation. Throws InvalidParameterValue. */
export async function validImage(task: GlanceTask, id: string, find = findImage): Promise<GlanceImage> {
  try {
    return await find(task, id);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (error.name === 'ImageNotFound') throw invalidParameter(`Image ${id} can not be found.`, error);
    throw invalidParameter(`Failed to connect to Glance to get the properties of the image ${id}: ${error.message}`, error);
  }
}

interface CachedUrl {
  readonly url: string;
  /** Seconds since the epoch. */
  readonly expires: number;
}
/** The cached URLs of each conductor: image id → URL. */
const cachedUrls = new WeakMap<Services, Map<string, CachedUrl>>();
const MAX_CACHED_URLS = 10_000;

/** A URL from which everybody can read the image's object in Swift for a time. Throws InvalidParameterValue, MissingParameterValue. */
export async function imageTempUrl(task: GlanceTask, { id }: Pick<GlanceImage, 'id'>): Promise<string> {
  const { options, clock, signal, connections } = task;
  const [duration, delay] = [options['glance.swift_temp_url_duration'], options['glance.swift_temp_url_expected_download_start_delay']];
  if (duration < delay)
    throw invalidParameter(
      '"swift_temp_url_duration" must be greater than or equal to "[glance]swift_temp_url_expected_download_start_delay" option, otherwise the Swift temporary URL may expire before the download starts.',
    );
  const now = Math.floor(clock.now() / 1000);
  const cache = cachedUrls.get(connections.services) ?? new Map<string, CachedUrl>();
  cachedUrls.set(connections.services, cache);
  for (const [key, { expires }] of cache) if (expires < now + delay) cache.delete(key);
  const known = cache.get(id);
  if (known && options['glance.swift_temp_url_cache_enabled']) return known.url;
  const url = await newTempUrl(task, id, now + duration, signal);
  if (options['glance.swift_temp_url_cache_enabled'] && cache.size < MAX_CACHED_URLS) cache.set(id, { url, expires: now + duration });
  return url;
}

async function newTempUrl({ options, connections }: GlanceTask, id: string, expires: number, signal: AbortSignal): Promise<string> {
  const { swift } = connections.services;
  const missing = (message: string, cause?: unknown): Fault => new Fault('MissingParameterValue', { message }, { cause });
  const prefix = options['glance.swift_account_prefix'];
  const accountPrefix = prefix && !prefix.endsWith('_') ? `${prefix}_` : prefix;
  try {
    const endpoint = options['glance.swift_endpoint_url'] ?? (await swift.endpoint());
    const account = options['glance.swift_account'] ?? `${accountPrefix}${(await swift.projectId()) ?? ''}`;
    const key = options['glance.swift_temp_url_key'] ?? (await temporaryUrlKey(swift, { signal }));
    if (!key)
      throw missing(
        'Swift temporary URLs require a shared secret to be created. You must provide "swift_temp_url_key" as a config option or pre-generate the key on the project used to access Swift.',
      );
    const container = containerOf(options['glance.swift_container'], id, options['glance.swift_store_multiple_containers_seed']);
    const path = ['', options['glance.swift_api_version'], account, container, id].map(encodeURIComponent).join('/');
    return withoutAccount(withoutEndSlashes(endpoint), accountPrefix) + tempUrlPath({ method: 'GET', path, expires, key });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    throw missing(
      `Swift temporary URLs require a Swift endpoint URL, but it was not found in the service catalog. You must provide "swift_endpoint_url" as a config option. (${error.message})`,
      error,
    );
  }
}
