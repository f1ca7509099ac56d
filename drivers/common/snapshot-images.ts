/** Snapshots as images of deployments (docs/snapshots.md). */
import { Fault, invalidParameter } from '../../model/errors';
import type { JsonObject, SnapshotRecord } from '../../model/records';
import type { Task } from '../interfaces';
import type { ImageSource } from './images';
import { keyOf, withS3 } from './snapshot-s3';

/** The API has checked that the caller may use the snapshot. Throws InvalidParameterValue, unless its file is complete. */
export async function findSnapshot({ snapshots }: Pick<Task, 'snapshots'>, uuid: string): Promise<SnapshotRecord> {
  const refused = (reason: string): Fault => invalidParameter(`Validation of image href snapshot://${uuid} failed, reason: ${reason}`);
  const found = await snapshots.find(uuid).catch((error: unknown) => {
    throw error instanceof Fault && error.status === 404 ? refused('There is no such snapshot.') : error;
  });
  if (found.state !== 'available') throw refused(`The snapshot is in the state ${found.state}.`);
  return found;
}

/** Where the file is. */
export const sourceOf = ({ uuid, storage, image_id: image }: SnapshotRecord): ImageSource =>
  storage === 'glance' && image !== null ? { kind: 'glance', id: image } : { kind: 'snapshot', id: uuid };

/** For instance_info. */
export const factsOf = ({ sha256 }: SnapshotRecord): JsonObject => ({
  image_checksum: null,
  image_os_hash_algo: 'sha256',
  image_os_hash_value: sha256,
  image_disk_format: 'qcow2',
});

/** A URL from which the agent can read a snapshot in S3 for a time. Undefined: the HTTP boot service serves it. */
export async function snapshotUrl(
  { options, clock }: Pick<Task, 'clock' | 'options'>,
  snapshot: SnapshotRecord,
): Promise<string | undefined> {
  if (snapshot.storage !== 's3') return undefined;
  const seconds = options['snapshot.s3_url_duration'];
  return withS3(
    options,
    () => clock.now(),
    async (s3) => s3.urlOf(keyOf(snapshot.uuid), seconds),
  );
}
