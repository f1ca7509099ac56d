/** Where the files of snapshots go after their check. Without a target, they stay in the folder. */
import { randomUUID } from 'node:crypto';
import type { Options } from '../../config/options';
import type { SnapshotRecord } from '../../model/records';
import type { ServiceClient } from '../../wire/keystone/services';
import { deleteImage } from '../../wire/openstack/glance';
import { keepInGlance } from './snapshot-glance';
import { keyOf, usesS3, withS3, type S3Options } from './snapshot-s3';

type TargetOptions = S3Options & Pick<Options, 'snapshot.glance'>;
interface Given {
  readonly options: TargetOptions;
  readonly glance: ServiceClient;
  /** Milliseconds of the Unix epoch. */
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly snapshot: SnapshotRecord;
}
interface Target {
  readonly storage: 'glance' | 's3';
  readonly title: string;
  readonly isUsed: (options: TargetOptions) => boolean;
  /** Whether something of the snapshot may be there. */
  readonly mayHave: (snapshot: SnapshotRecord, options: TargetOptions) => boolean;
  /**
   * Stores a whole file. Doing it again after an interruption is harmless.
   * @param remember records the id of an image before the image is created
   * @throws Error with the reason
   */
  readonly keep: (given: Given, path: string, remember: (imageId: string) => Promise<void>) => Promise<void>;
  /** What is not there is no error. @throws Error with the reason */
  readonly remove: (given: Given) => Promise<void>;
}

export const TARGETS: readonly Target[] = [
  {
    storage: 'glance',
    title: 'Glance',
    isUsed: (options) => options['snapshot.glance'],
    mayHave: ({ image_id: id }) => id !== null,
    keep: ({ glance, snapshot, signal }, path, remember) => keepInGlance({ glance, snapshot, path, signal, remember, newId: randomUUID }),
    remove: async ({ glance, snapshot: { image_id: id }, signal }) => {
      if (id !== null) await deleteImage(glance, id, { signal });
    },
  },
  {
    storage: 's3',
    title: 'S3',
    isUsed: usesS3,
    mayHave: ({ storage, state }, options) => storage === 's3' || (state === 'storing' && usesS3(options)),
    keep: ({ options, now, snapshot: { uuid }, signal }, path) => withS3(options, now, (s3) => s3.putFile(keyOf(uuid), path, signal)),
    remove: ({ options, now, snapshot: { uuid }, signal }) => withS3(options, now, (s3) => s3.remove(keyOf(uuid), signal)),
  },
];
