/** Files of snapshots as images of Glance (docs/snapshots.md). */
import { createHash, getHashes } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { SnapshotRecord } from '../../model/records';
import type { ServiceClient } from '../../wire/keystone/services';
import { ServiceError } from '../../wire/keystone/services';
import { createImage, deleteImage, showImage, uploadImage, type GlanceImage } from '../../wire/openstack/glance';
import { timeoutSignal } from '../../wire/timeout-signal';

/** Bytes that are read at a time. */
const CHUNK = 256 * 1024;
const MAX_NAME = 255;
/** Milliseconds to delete an image whose upload failed. */
const CLEANUP_MS = 60_000;

interface Given {
  readonly glance: ServiceClient;
  readonly snapshot: SnapshotRecord;
  /** The whole file. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** Records the id of an image before the image is created. */
  readonly remember: (id: string) => Promise<void>;
  readonly newId: () => string;
}

const nameOf = ({ uuid, node_name: name, node_uuid: node, description }: SnapshotRecord): string =>
  Array.from(description || `snapshot ${uuid} of ${name ?? node}`)
    .slice(0, MAX_NAME)
    .join('');

/** The digests of a file in hexadecimal digits. */
async function digestsOf(path: string, algorithms: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
  const hashes = algorithms.map((algorithm) => createHash(algorithm));
  const file = await open(path);
  for await (const chunk of file.createReadStream({ signal, highWaterMark: CHUNK }) as AsyncIterable<Buffer>)
    for (const hash of hashes) hash.update(chunk);
  return hashes.map((hash) => hash.digest('hex'));
}

async function uploadFile({ glance, path, signal }: Given, id: string): Promise<void> {
  const file = await open(path);
  const { size } = await file.stat();
  const body = file.createReadStream({ highWaterMark: CHUNK });
  try {
    await uploadImage(glance, id, { body, size }, signal);
  } finally {
    body.on('error', () => {}).destroy();
  }
}

/** Why an image has not the bytes of the file. Undefined: it has them. */
async function difference(
  { status, size, hashAlgorithm, hash, checksum }: GlanceImage,
  { snapshot, path, signal }: Given,
): Promise<string | undefined> {
  if (status !== 'active') return `the image is in the state ${status}`;
  if (size !== snapshot.size) return `the image has ${size} bytes, and the file ${snapshot.size}`;
  const known = hashAlgorithm !== null && getHashes().includes(hashAlgorithm) ? { algorithm: hashAlgorithm, value: hash } : undefined;
  const { algorithm, value } = known ?? { algorithm: 'md5', value: checksum };
  if (value === null) return 'Glance has no checksum of the image';
  const [own, ofGlance] = await digestsOf(path, ['sha256', algorithm], signal);
  if (own !== snapshot.sha256) return 'the file has changed since its check';
  return ofGlance === value.toLowerCase() ? undefined : `the ${algorithm} checksum of the image is not that of the file`;
}

const shown = (glance: ServiceClient, id: string, signal: AbortSignal): Promise<GlanceImage | undefined> =>
  showImage(glance, id, { signal }).catch((error: unknown) => {
    if (error instanceof ServiceError && error.status === 404) return undefined;
    throw error;
  });

/**
 * Makes an image of the file. An interrupted earlier call has left an image whose id is known: it counts if it is whole, and is deleted
 * otherwise, since Glance takes data for an image once only.
 * @throws Error with the reason; there is no image then, unless Glance did not delete it: the next call does
 */
export async function keepInGlance(given: Given): Promise<void> {
  const { glance, snapshot, signal, remember, newId } = given;
  const { uuid, node_uuid: node, owner, public: isPublic, image_id: earlier } = snapshot;
  if (earlier !== null) {
    const image = await shown(glance, earlier, signal);
    if (image && (await difference(image, given)) === undefined) return;
    await deleteImage(glance, earlier, { signal });
  }
  const id = newId();
  await remember(id);
  const properties = { bloomery_snapshot: uuid, bloomery_node: node };
  const visibility = isPublic ? 'public' : 'private';
  try {
    await createImage(glance, { id, name: nameOf(snapshot), owner, visibility, diskFormat: 'qcow2', properties }, { signal });
    await uploadFile(given, id);
    const image = await shown(glance, id, signal);
    const problem = image ? await difference(image, given) : 'the image was deleted';
    if (problem !== undefined) throw new Error(problem);
  } catch (error) {
    // Glance may be the reason, so this may fail too.
    if (!signal.aborted) await deleteImage(glance, id, { signal: timeoutSignal(CLEANUP_MS, signal) }).catch(() => {});
    throw error;
  }
}
