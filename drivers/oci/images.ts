/**
 * What a reference `oci://…` is, and what of it is deployed: a disk image that is stored as an artifact, or a bootable container. Errors have
 * Ironic's words.
 */
import type { Clock } from '../../model/clock';
import { Fault, invalidParameter, reasonOf } from '../../model/errors';
import type { JsonObject, NodeRecord } from '../../model/records';
import { withoutCredentials } from '../../model/urls';
import {
  candidatesOf,
  compressionOf,
  entriesOf,
  isArtifact,
  layersOf,
  OCI_INDEX,
  OCI_MANIFEST,
  sizeOfContainer,
  type Candidate,
  type Layer,
} from '../../wire/oci/manifest';
import { BadReference, manifestUrl, parseDigest, parseReference, type BlobReference, type OciReference } from '../../wire/oci/reference';
import { openRegistry, RegistryError, type Registry, type RegistryOptions } from '../../wire/oci/registry';
import { partIn, rangeOf } from '../../wire/images/first-bytes';
import { timeoutSignal } from '../../wire/timeout-signal';

/** The members of a task that requests to registries need. */
export interface OciTask {
  readonly node: Pick<NodeRecord, 'driver_info' | 'instance_info' | 'properties'>;
  readonly options: RegistryOptions;
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly random: (bytes: number) => Buffer;
}

interface Found {
  /** `oci://` with the digest of the manifest; null: the index has no digest for it. */
  readonly manifest: string | null;
  /** For instance_info, by Ironic's names. */
  readonly facts: JsonObject;
}
/** A disk image. */
interface OciArtifact extends Found {
  readonly kind: 'artifact';
  readonly blob: BlobReference;
  /** The image for an agent. */
  readonly url: string;
}
/** A container from which a machine boots (bootc): the agent runs its installer. */
interface OciContainer extends Found {
  readonly kind: 'bootc';
}
type OciImage = OciArtifact | OciContainer;

/** Parses the reference of a user. Throws InvalidParameterValue. */
export function parseOci(href: string): OciReference {
  try {
    return parseReference(href);
  } catch (error) {
    if (!(error instanceof BadReference)) throw error;
    throw error.notSpecific ? notSpecific(href, error) : refused(href, error.message, error);
  }
}
const refused = (href: string, reason: string, cause?: unknown): Fault =>
  invalidParameter(`Validation of image href ${withoutCredentials(href)} failed, reason: ${reason}`, cause);
const notSpecific = (href: string, cause?: unknown): Fault =>
  invalidParameter(
    `The requested image (${withoutCredentials(href)}) was not specific. Please supply a full URL mapping to the manifest to be utilized for the file download.`,
    cause,
  );

/** Ironic's fault for the answer of a registry. */
function faultOf(href: string, error: unknown): unknown {
  if (!(error instanceof RegistryError)) return error instanceof Fault ? error : refused(href, reasonOf(error), error);
  const { status, url } = error;
  const options = { cause: error };
  if (status === 401) return new Fault('ImageServiceAuthenticationRequired', { image_ref: url }, options);
  if (status === 403 || status === 404) return new Fault('ImageNotFound', { image_id: href }, options);
  if (status === 429) return new Fault('ImageHostRateLimitFailure', { image_ref: url }, options);
  if (status !== undefined && status >= 500)
    return new Fault('TemporaryFailure', { message: 'Resource temporarily unavailable, please retry.' }, options);
  return refused(href, `${url}: ${error.message}`, error);
}

/** Milliseconds for all requests that one answer takes: the node is reserved meanwhile. */
const MAX_MS = 600_000;
/** @param permitsUser whether the secret of `instance_info` counts, which is for the user's image alone */
async function withRegistry<T>(task: OciTask, href: string, permitsUser: boolean, work: (registry: Registry) => Promise<T>): Promise<T> {
  const { node, options, clock, random } = task;
  const signal = timeoutSignal(MAX_MS, task.signal);
  try {
    return await work(await openRegistry(parseOci(href), { secrets: node, permitsUser, options, signal, clock, random }));
  } catch (error) {
    task.signal.throwIfAborted();
    throw faultOf(href, error);
  }
}

/** Throws InvalidParameterValue for a value of `image_pull_secret` that is no text. */
export function checkPullSecrets({ instance_info, driver_info }: OciTask['node']): void {
  for (const [name, info] of Object.entries({ instance_info, driver_info })) {
    const secret = info['image_pull_secret'];
    if (secret !== undefined && secret !== null && typeof secret !== 'string')
      throw invalidParameter(`${name}/image_pull_secret is not a string`);
  }
}

export const SWIFT_REFUSED =
  'An image_download_source of swift is incompatible with retrieval of artifacts from an OCI container registry.';

const MAX_SHOWN_TAGS = 100;
/** Ironic lists the tags first; here only to say why there is no such tag. */
async function missingTag(registry: Registry, href: string, { tag }: OciReference, error: unknown): Promise<unknown> {
  if (!(error instanceof RegistryError) || error.status !== 404) return error;
  const tags = await registry.tags().catch(() => undefined);
  if (tags === undefined || tags.includes(tag)) return error;
  if (tags.length === 0) return invalidParameter(`Image ${href} does not have any tags`, error);
  const shown = tags.length > MAX_SHOWN_TAGS ? [...tags.slice(0, MAX_SHOWN_TAGS), '…'] : tags;
  return new Fault('OciImageTagNotFound', { image_url: href, tags: shown.join(', ') }, { cause: error });
}

function blobOf(reference: OciReference, layer: Layer | undefined): BlobReference {
  if (layer === undefined) throw new Error('the manifest has no layer');
  return { registry: reference.registry, repository: reference.repository, digest: parseDigest(layer.digest) };
}
const hexOf = (digest: string): string => digest.slice(digest.indexOf(':') + 1);

/** The image of a given manifest. Nobody says its format. */
async function byDigest(registry: Registry, reference: OciReference, href: string, digest: string): Promise<OciImage> {
  const { content } = await registry.manifest(digest);
  if (!isArtifact(content))
    return {
      kind: 'bootc',
      manifest: href,
      facts: { oci_image_manifest_url: href, image_checksum: hexOf(digest), image_url: href, image_disk_format: 'bootc' },
    };
  const blob = blobOf(reference, layersOf(content)[0]);
  const url = registry.blobUrl(blob.digest);
  return {
    kind: 'artifact',
    manifest: href,
    blob,
    url,
    facts: { oci_image_manifest_url: href, image_checksum: hexOf(blob.digest), image_url: url, image_disk_format: 'unknown' },
  };
}

interface Entry extends Candidate {
  /** Of the manifest; null: the index does not say it. */
  readonly digest: string | null;
  readonly layers: readonly Layer[];
}
/** Entries of an index that are looked at: each costs a request, during which the node is reserved. */
const MAX_CANDIDATES = 32;
/** The first entry that can be deployed: a container, or an artifact with one layer. */
async function firstOf(registry: Registry, candidates: readonly Candidate[], own: string): Promise<Entry | undefined> {
  for (const candidate of candidates.slice(0, MAX_CANDIDATES)) {
    const { entry, diskType } = candidate;
    const isManifest = Array.isArray(entry['layers']) && entry['layers'].length > 0;
    const digest = typeof entry['digest'] === 'string' ? parseDigest(entry['digest']) : isManifest ? own : null;
    const isDisk = diskType !== undefined || isArtifact(entry);
    const content = isManifest || digest === null ? entry : (await registry.manifest(digest)).content;
    const layers = layersOf(content);
    if (!isDisk || layers.length === 1) return { ...candidate, digest, layers };
  }
  return undefined;
}

/** The image of a tag: of an index the entry that suits the machine. */
async function byTag(registry: Registry, reference: OciReference, href: string, choice: Choice): Promise<OciImage> {
  const {
    content,
    mediaType,
    digest: own,
  } = await registry.manifest(reference.tag, [OCI_INDEX, OCI_MANIFEST]).catch(async (error: unknown) => {
    throw await missingTag(registry, href, reference, error);
  });
  const listed = entriesOf(content);
  if (listed.length === 0 && mediaType !== OCI_MANIFEST) throw invalidParameter(`Invalid image href ${href}.`);
  if (choice.downloadSource === 'swift') throw invalidParameter(SWIFT_REFUSED);
  const candidates = candidatesOf(listed.length === 0 ? [content] : listed, {
    by: choice.downloadSource === 'local' ? 'local' : 'agent',
    cpuArch: choice.cpuArch,
  });
  const found = await firstOf(registry, candidates, own);
  if (!found)
    throw invalidParameter(
      `Invalid image href ${href}. The registry has no disk image or bootable container in it for the architecture ${choice.cpuArch ?? 'of the node'}.`,
    );
  const { entry, diskType, digest, layers } = found;
  const manifest = digest === null ? null : manifestUrl(reference, digest);
  const common = { image_container_manifest_digest: digest, oci_image_manifest_url: manifest };
  if (diskType === undefined && !isArtifact(entry))
    return {
      kind: 'bootc',
      manifest,
      facts: {
        ...common,
        image_url: href,
        image_size: sizeOfContainer(entry['config'], layers),
        image_filename: null,
        image_checksum: digest === null ? null : hexOf(digest),
        image_media_type: null,
        image_compression_type: null,
        image_disk_format: 'bootc',
      },
    };
  const layer = layers[0]!;
  const blob = blobOf(reference, layer);
  const url = registry.blobUrl(blob.digest);
  return {
    kind: 'artifact',
    manifest,
    blob,
    url,
    facts: {
      ...common,
      image_url: url,
      image_size: layer.size,
      image_filename: layer.title,
      image_checksum: hexOf(blob.digest),
      image_media_type: layer.mediaType,
      image_compression_type: compressionOf(layer.mediaType),
      image_disk_format: diskType ?? null,
    },
  };
}

interface Choice {
  /** The effective `image_download_source`. */
  readonly downloadSource: string;
  /** `properties/cpu_arch`; null: any. */
  readonly cpuArch: string | null;
}
/**
 * What the reference is, for this node: asks the registry, with the node's secret. A bootable container is what is neither an artifact nor
 * has an annotation `disktype`, as in Ironic.
 * @param downloadSource the effective `image_download_source`
 * @throws Fault InvalidParameterValue, ImageNotFound, OciImageTagNotFound, ImageServiceAuthenticationRequired, ImageHostRateLimitFailure or
 * TemporaryFailure
 */
export async function identifyOciImage(task: OciTask, href: string, downloadSource: string): Promise<OciImage> {
  const reference = parseOci(href);
  const { cpu_arch: cpuArch } = task.node.properties;
  const choice: Choice = { downloadSource, cpuArch: typeof cpuArch === 'string' && cpuArch !== '' ? cpuArch : null };
  return withRegistry(task, href, true, async (registry) =>
    reference.digest === undefined ? byTag(registry, reference, href, choice) : byDigest(registry, reference, href, reference.digest),
  );
}

/** Throws InvalidParameterValue for a reference that is no file: it has no digest. */
export function requireDigest(href: string): OciReference & { readonly digest: string } {
  const reference = parseOci(href);
  const { digest } = reference;
  if (digest === undefined) throw notSpecific(href);
  return { ...reference, digest };
}

/**
 * The file of a kernel, a ramdisk or an ISO image: the one layer of a manifest that the reference names by its digest. Uses the secret of
 * `driver_info` alone, since such files are not the user's. Throws as `identifyOciImage`.
 */
export async function identifyOciFile(task: OciTask, href: string): Promise<BlobReference> {
  const reference = requireDigest(href);
  return withRegistry(task, href, false, async (registry) => {
    const layers = layersOf((await registry.manifest(reference.digest)).content);
    if (layers.length !== 1) throw refused(href, `Incorrect number of layers. Expected 1 layer, found ${layers.length} layers.`);
    return blobOf(reference, layers[0]);
  });
}

/** What an agent sends to get the blobs of the image; undefined: nothing. Throws as `identifyOciImage`. */
export const ociAuthorization = (task: OciTask, href: string): Promise<string | undefined> =>
  withRegistry(task, href, true, ({ authorization }) => Promise.resolve(authorization));

/** Bytes of a blob; fewer at its end. Throws an Error if the registry cannot send a part. */
export async function readBlobPart(
  task: OciTask,
  blob: BlobReference,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<Buffer> {
  const { node, options, clock, random } = task;
  // For the whole part: single bytes may arrive again and again.
  const signal = timeoutSignal(options['DEFAULT.webserver_connection_timeout'] * 1000, task.signal);
  const registry = await openRegistry(blob, { secrets: node, permitsUser: true, options, signal, clock, random });
  const answer = await registry.openBlob(blob.digest, rangeOf(offset, length));
  try {
    return await partIn(answer, offset, length);
  } finally {
    answer.body.on('error', () => {}).destroy();
  }
}
