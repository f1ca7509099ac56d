/** The S3 server of snapshots, by the options of [snapshot]. */
import type { Options } from '../../config/options';
import { invalidParameter } from '../../model/errors';
import { createAgent } from '../../wire/http-agent';
import { createS3, type S3 } from '../../wire/http/s3';
import { webServerConnector, type WebServerOptions } from '../../wire/web-servers';

export type S3Options = WebServerOptions &
  Pick<Options, 'snapshot.s3_access_key' | 'snapshot.s3_bucket' | 'snapshot.s3_endpoint' | 'snapshot.s3_region' | 'snapshot.s3_secret_key'>;

const CONNECT_TIMEOUT_MS = 10_000;
/** The answers of S3 are short. */
const MAX_ANSWER = 64 * 1024;

export const keyOf = (uuid: string): string => `${uuid}.qcow2`;
export const usesS3 = (options: S3Options): boolean => options['snapshot.s3_endpoint'] !== null;

/** Runs work with a client, and closes its connections. Throws InvalidParameterValue without the options that it needs. */
export async function withS3<Result>(options: S3Options, now: () => number, work: (s3: S3) => Promise<Result>): Promise<Result> {
  const {
    'snapshot.s3_endpoint': endpoint,
    'snapshot.s3_access_key': accessKey,
    'snapshot.s3_secret_key': secretKey,
    'snapshot.s3_bucket': bucket,
    'snapshot.s3_region': region,
  } = options;
  if (endpoint === null || accessKey === null || secretKey === null)
    throw invalidParameter('Snapshots in S3 need [snapshot]s3_endpoint, s3_access_key and s3_secret_key.');
  const agent = createAgent({ connect: webServerConnector(options, CONNECT_TIMEOUT_MS), bodyBytes: MAX_ANSWER });
  try {
    return await work(createS3({ endpoint, bucket, region, accessKey, secretKey, agent, now }));
  } finally {
    await agent.destroy();
  }
}
