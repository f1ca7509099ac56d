/**
 * Writes an image to a disk while it is downloaded and verified. The disk becomes bootable only when the image is correct. Without a valid
 * checksum or config drive the disk stays unchanged. Any later error (size, format, download, verification) leaves it with wiped edges.
 */
import { createHash } from 'node:crypto';
import { retry, type Clock } from '../../model/clock';
import type { JsonObject } from '../../model/records';
import type { Log } from '../../model/log';
import { AgentError } from '../../model/agent/errors';
import { reasonOf } from '../../model/errors';
import { type Pieces, pieces } from '../system/pieces';
import type { ReportProgress } from '../system/progress';
import { type Checksum, expectedChecksum } from '../../model/agent/checksum';
import { readConfigDrive } from '../../model/agent/write-arguments';
import { HEAD_LENGTH, judge } from '../../wire/images/inspection';
import { contentOf } from '../formats/content';
import { isUnchanged, writerFor } from '../formats/writers';
import { writeConfigDrive } from './configdrive';
import type { Device } from './device';
import { type Download, type Fetching, openImage, requestsFor } from './download';
import { type DriveConversion, volumeFor } from './fat-drive';
import { withDeferredHead, type ImageWriter, type Sink, wipeEdges } from './image';
import { writeBehind } from './write-behind';
import { diskIdentifier, readPartitions, repairGpt, wipeMetadata } from './partitions';

export interface WriteOptions {
  readonly image: JsonObject;
  /** base64 of the gzipped volume, its URL, or null. */
  readonly configDrive: string | null;
  readonly device: Device;
  readonly fetching: Fetching;
  readonly retries: number;
  readonly retryIntervalMs: number;
  /** Milliseconds of all attempts to download the image; 0 or absent: no limit. */
  readonly maxDurationMs?: number;
  readonly md5Allowed: boolean;
  readonly permittedFormats: readonly string[];
  /** False: [conductor]disable_deep_image_inspection. */
  readonly inspects: boolean;
  /** False: [conductor]disable_zstandard_decompression. */
  readonly allowsZstd: boolean;
  /** Makes the kernel read the partition table again. */
  readonly rescan: () => Promise<void>;
  readonly newGuid: () => string;
  readonly conversion: Omit<DriveConversion, 'now'>;
  readonly progress: ReportProgress;
  readonly clock: Clock;
  readonly log: Log;
}
interface WriteResult {
  /** `0x12345678`: the MBR's disk identifier. */
  readonly diskIdentifier: string;
}

/** Throws AgentError with the reason. */
export async function writeImage(options: WriteOptions): Promise<WriteResult> {
  const { image, device, log } = options;
  const { checksum, volume } = await prepareWriting(options);

  // Also in the partitions: an array, a volume group or an encrypted volume that was there must not appear in the new system.
  await written(() => wipeMetadata(device), options);
  try {
    await stream(options, checksum);
    await written(() => finishDisk(options, volume), options);
  } catch (error) {
    await wipeEdges(device).catch((also: unknown) => log.warn(`The edges of ${device.path} cannot be wiped: ${reasonOf(also)}`));
    throw error;
  }
  log.info(`Image ${String(image['id'])} written to device ${device.path}`);
  return { diskIdentifier: await diskIdentifier(device) };
}

interface Prepared {
  readonly checksum: Checksum;
  /** The config drive for this disk. */
  readonly volume: Buffer | null;
}
/** What is needed before the disk is touched. */
export async function prepareWriting(options: WriteOptions): Promise<Prepared> {
  const { image, fetching, device, conversion, clock } = options;
  const requests = requestsFor(image, fetching);
  const checksum = await expectedChecksum(image, options.md5Allowed, requests);
  const given = options.configDrive === null ? null : await readConfigDrive(options.configDrive, requests.fetchText);
  return { checksum, volume: given && (await volumeFor(device.sectorSize, given, { ...conversion, now: clock.now() })) };
}

/** Adapts the partition table to the disk, makes the kernel read it, and writes the config drive. */
export async function finishDisk(
  { device, rescan, newGuid }: Pick<WriteOptions, 'device' | 'rescan' | 'newGuid'>,
  volume: Buffer | null,
): Promise<void> {
  await repairGpt(device);
  const table = await readPartitions(device);
  if (!table) {
    const text =
      'Unable to find a valid partition table on the disk after writing the image. The image may be corrupted or it uses a different sector size than the device.';
    throw new AgentError('DeploymentError', text);
  }
  if (table.partitions.length === 0) {
    throw new AgentError('DeploymentError', `No partitions found on the device ${device.path} after writing the image.`);
  }
  if (volume) await writeConfigDrive(device, volume, newGuid());
  await device.flush();
  await rescan();
}

/** `until`: when all attempts must have ended, milliseconds since the epoch. */
type Limited = WriteOptions & { readonly until: number };

/** After these errors the download is repeated: a network or a server may have had a fault. */
const REPEATED: readonly string[] = ['ImageDownloadError', 'ImageChecksumError'];
/** Repeats the whole download, and that of a checksum file, in which the server may meanwhile list another version of the image. */
export async function stream(given: WriteOptions, known: Checksum): Promise<void> {
  const options: Limited = { ...given, until: given.maxDurationMs ? given.clock.now() + given.maxDurationMs : Infinity };
  let checksum = known;
  const attempt = async (number: number): Promise<void> => {
    const memory = pieces();
    const behind = writeBehind(options.device, (bytes) => memory.give(bytes));
    const sink = withDeferredHead(behind);
    if (number > 1) checksum = await expectedChecksum(options.image, options.md5Allowed, requestsFor(options.image, options.fetching));
    try {
      await streamOnce(options, sink, checksum, memory);
      await written(() => sink.commit(), options);
    } finally {
      // Nothing may be written after the edges are wiped, or by the attempt before.
      await behind.abandon();
    }
  };
  await retry({ clock: options.clock, signal: options.fetching.signal }, attempt, (error, number) => {
    const isFinal = number > options.retries || options.clock.now() >= options.until;
    if (!(error instanceof AgentError && REPEATED.includes(error.type)) || isFinal) return undefined;
    options.log.warn(`${reasonOf(error)}; attempt ${number} of ${options.retries + 1}`);
    return options.retryIntervalMs;
  });
}

async function streamOnce(options: Limited, sink: Sink, checksum: Checksum, memory: Pieces): Promise<void> {
  let writer: ImageWriter | undefined;
  for (;;) {
    const download = await openImage(options.image, options.fetching, memory);
    try {
      writer = await pass(options, sink, checksum, download, writer);
      if ((await written(() => writer!.end(), options)) === 'done') return;
    } finally {
      download.close();
    }
  }
}

/** Content of a compressed image, as a multiple of the disk's size: a format may have some bytes more than the disk. */
const MOST_CONTENT = 2;
/** Passes the file's bytes to the writer, and verifies the checksum at the end. Creates the writer once the format is known. */
async function pass(options: Limited, sink: Sink, checksum: Checksum, download: Download, known?: ImageWriter): Promise<ImageWriter> {
  const hash = createHash(checksum.algorithm);
  let writer = known;
  let head: Buffer = Buffer.alloc(0);
  let size = 0;
  const give = (chunk: Buffer): Promise<void> => written(() => writer!.take(chunk), options);
  async function* hashed(): AsyncGenerator<Buffer> {
    for await (const chunk of arriving(download, options)) {
      hash.update(chunk);
      size += chunk.length;
      yield chunk;
    }
  }
  const { wrapper, chunks } = await contentOf(hashed(), {
    allowsZstd: options.allowsZstd,
    most: MOST_CONTENT * options.device.size + HEAD_LENGTH,
  });
  const begin = async (): Promise<void> => {
    writer = chooseWriter(options, sink, head, wrapper === undefined ? download.length : null);
    await give(head);
  };
  for await (const chunk of chunks) {
    if (writer) await give(chunk);
    else {
      head = Buffer.concat([head, chunk]);
      if (head.length >= HEAD_LENGTH) await begin();
    }
    if (download.length !== null) options.progress((100 * size) / download.length, { done: size, of: download.length });
  }
  if (!writer) await begin();
  const digest = hash.digest('hex');
  if (digest !== checksum.value) {
    const text = `Image failed to verify against checksum. location: ${options.device.path}; image ID: ${String(options.image['id'])}; image checksum: ${checksum.value}; verification checksum: ${digest}`;
    throw new AgentError('ImageChecksumError', text);
  }
  return writer!;
}

async function* arriving(download: Download, { image, clock, until, maxDurationMs = 0 }: Limited): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const chunk of download.chunks) {
      size += chunk.length;
      if (clock.now() >= until) throw new Error(`it takes longer than ${maxDurationMs / 1000} s`);
      yield chunk;
    }
  } catch (error) {
    throw new AgentError(
      'ImageDownloadError',
      `Download of image ${String(image['id'])} from ${download.url} broke off after ${size} bytes: ${reasonOf(error)}`,
      { cause: error },
    );
  }
  if (download.length !== null && size !== download.length) {
    throw new AgentError(
      'ImageDownloadError',
      `Download of image ${String(image['id'])} from ${download.url} ended after ${size} of ${download.length} bytes`,
    );
  }
}

/** Throws, before any byte is written, for an image that is refused, that cannot be written, or that is larger than the disk. */
function chooseWriter(options: WriteOptions, sink: Sink, head: Buffer, length: number | null): ImageWriter {
  const { image, permittedFormats, inspects, device } = options;
  const declared = typeof image['disk_format'] === 'string' ? image['disk_format'] : null;
  const { format, refusal } = judge(head, { permitted: permittedFormats, declared, deep: inspects });
  // A declared raw image is never interpreted.
  const writer = writerFor(sink, declared === 'raw' ? 'raw' : format, declared);
  if (refusal !== undefined || !writer) throw new AgentError('InvalidImage', refusal ?? `Images of the format ${format} cannot be written`);
  if (length !== null && length > device.size && isUnchanged(format, declared)) {
    throw new AgentError('ImageWriteError', `the image of ${length} bytes is larger than the disk ${device.path} of ${device.size} bytes`);
  }
  return writer;
}

/** Errors name the disk. */
export async function written<T>(work: () => Promise<T>, { device }: Pick<WriteOptions, 'device'>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError('ImageWriteError', `Writing image to device ${device.path} failed: ${reasonOf(error)}`, { cause: error });
  }
}
