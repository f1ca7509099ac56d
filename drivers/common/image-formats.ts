/** The format of an image, by its first bytes: an unsafe image is refused before its machine is touched. */
import { addAbortSignal } from 'node:stream';
import { Fault, reasonOf } from '../../model/errors';
import { type DiskContent, diskContent } from '../../wire/images/disk-content';
import { partIn, rangeOf } from '../../wire/images/first-bytes';
import { HEAD_LENGTH, judge, neededFor, sizeOfDisk, wrapperOf } from '../../wire/images/inspection';
import { qcow2Start } from '../../wire/images/qcow2';
import { unpackHead } from '../../wire/compression/unpack';
import type { Services } from '../../wire/keystone/services';
import { timeoutSignal, unlessAborted } from '../../wire/timeout-signal';
import type { Task } from '../interfaces';
import { readBlobPart, type OciTask } from '../oci/images';
import type { GlanceTask } from './glance-images';
import { fileSize, type ImageSource, readPart } from './images';

type InspectionTask = GlanceTask & OciTask & Pick<Task, 'log'>;

interface Inspected {
  /** Undefined: nobody knows yet. */
  readonly format: string | undefined;
  readonly refusal: string | undefined;
  /** Bytes of the disk that it needs, or all bytes of the file; undefined: nobody knows. */
  readonly size?: number | 'file' | undefined;
  /** What the disk begins with; undefined: nobody knows. */
  readonly content?: DiskContent | undefined;
}
const UNKNOWN: Inspected = { format: undefined, refusal: undefined };

async function glancePart(task: GlanceTask, id: string, offset: number, length: number): Promise<Buffer> {
  const headers = { 'accept-encoding': 'identity', range: rangeOf(offset, length) };
  // As for a web server, for the whole part: single bytes may arrive again and again.
  const signal = timeoutSignal(task.options['DEFAULT.webserver_connection_timeout'] * 1000, task.signal);
  const answer = await task.connections.services.glance.stream(`/images/${id}/file`, headers, signal);
  addAbortSignal(signal, answer.body);
  try {
    return await partIn(answer, offset, length);
  } finally {
    answer.body.on('error', () => {}).destroy();
  }
}
/** Bytes of an image; fewer at its end. Throws an Error if its server cannot send a part. */
export function imagePart(source: ImageSource, task: InspectionTask, offset: number, length: number): Promise<Buffer> {
  if (source.kind === 'glance') return glancePart(task, source.id, offset, length);
  if (source.kind === 'blob') return readBlobPart(task, source.blob, { offset, length });
  return readPart(source, { offset, length }, task);
}

async function look(source: ImageSource, declared: string | null, task: InspectionTask): Promise<Inspected> {
  const { options } = task;
  const head = await imagePart(source, task, 0, HEAD_LENGTH);
  const wrapper = wrapperOf(head);
  const permitted = options['conductor.permitted_image_formats'];
  const deep = !options['conductor.disable_deep_image_inspection'];
  if (wrapper === 'zstd' && options['conductor.disable_zstandard_decompression'])
    return { format: undefined, refusal: 'it is compressed with zstd, and [conductor]disable_zstandard_decompression is set' };
  const content = wrapper === undefined ? head : await unpackHead(head, wrapper, HEAD_LENGTH);
  // Only the agent sees the rest of what is compressed.
  const needed = wrapper === undefined && deep ? neededFor(head) : undefined;
  const whole = needed?.offset === 0 ? await imagePart(source, task, 0, needed.length) : content;
  const then = needed?.offset === 0 ? neededFor(whole) : needed;
  const more = then && (await imagePart(source, task, then.offset, then.length));
  if (wrapper !== undefined && content.length === 0) throw new Error(`the image cannot be unpacked (${wrapper})`);
  const { format, refusal } = judge(whole, { permitted, declared, deep }, more);
  // How much the file of a compressed image unpacks to, only its end may tell.
  const found = refusal === undefined ? sizeOfDisk(whole, format, declared, more) : undefined;
  const size = wrapper !== undefined && found === 'file' ? undefined : found;
  const begins =
    refusal === undefined ? await beginningOf(format, wrapper === undefined ? 'file' : 'packed', whole, source, task) : undefined;
  return { format: wrapper === undefined ? format : undefined, refusal, size, content: begins && diskContent(begins) };
}
/** Bytes that are read of a qcow2 image at a time. */
const QCOW2_WINDOW = 256 * 2 ** 10;
/** The first bytes of the disk that the image is of; undefined: nobody can say. An ISO image is a whole disk, whatever else it is. */
async function beginningOf(
  format: string,
  from: 'file' | 'packed',
  head: Buffer,
  source: ImageSource,
  task: InspectionTask,
): Promise<Buffer | undefined> {
  if (format === 'raw' || format === 'gpt') return head;
  if (format !== 'qcow2' || from === 'packed') return undefined;
  const seen = [{ start: 0, end: head.length < HEAD_LENGTH ? Infinity : head.length, bytes: head }];
  // The tables and the first cluster are usually side by side.
  const read = async (offset: number, length: number): Promise<Buffer> => {
    let part = seen.find(({ start, end }) => start <= offset && offset + length <= end);
    if (!part) {
      const bytes = await imagePart(source, task, offset, Math.max(length, QCOW2_WINDOW));
      part = { start: offset, end: offset + Math.max(length, QCOW2_WINDOW), bytes };
      seen.push(part);
    }
    return part.bytes.subarray(offset - part.start, offset - part.start + length);
  };
  return qcow2Start(head, read).catch((error: unknown) => {
    task.signal.throwIfAborted();
    task.log.info('the beginning of the disk in an image is not looked at', { reason: reasonOf(error) });
    return undefined;
  });
}

/** Deployments of many machines look at an image once. The agent looks again, so a stale finding does no harm. */
const FRESH_MS = 60_000;
const MAX_KNOWN = 200;
interface Known {
  readonly at: number;
  readonly found: Promise<Inspected>;
}
const knownBy = new WeakMap<Services, Map<string, Known>>();

async function inspected(source: ImageSource, declared: string | null, task: InspectionTask): Promise<Inspected> {
  const known = knownBy.get(task.connections.services) ?? new Map<string, Known>();
  knownBy.set(task.connections.services, known);
  const now = task.clock.now();
  for (const [key, { at }] of known) if (now - at > FRESH_MS) known.delete(key);
  const key = JSON.stringify([source, declared]);
  const earlier = known.get(key);
  if (earlier) {
    // Who looked first may have been interrupted.
    const shared = await unlessAborted(earlier.found, task.signal).catch(() => undefined);
    task.signal.throwIfAborted();
    if (shared) return shared;
  }
  const found = look(source, declared, task);
  if (known.size < MAX_KNOWN) known.set(key, { at: now, found });
  return found.catch((error: unknown) => {
    known.delete(key);
    throw error;
  });
}

/** Written as they are; the agent gets them as `raw`, and streams them. */
const AS_IS: readonly (string | undefined)[] = ['raw', 'gpt', 'iso'];

/**
 * Looks at the image's first bytes. An image that cannot be read here is left to the agent, unless
 * [conductor]conductor_always_validates_images is set. Throws InvalidImage.
 * @param declared what the user or Glance says
 * @returns the format for the agent; undefined: it finds out itself
 */
export async function inspectImage(source: ImageSource, declared: unknown, task: InspectionTask): Promise<string | undefined> {
  const always = task.options['conductor.conductor_always_validates_images'];
  // This program's agents made it; or the image's own registry is asked no more, since prepare has seen it.
  if (source.kind === 'snapshot' || source.kind === 'oci') return undefined;
  const given = typeof declared === 'string' && declared !== '' ? declared : null;
  const { format, refusal } = await inspected(source, given, task).catch((error: unknown) => {
    task.signal.throwIfAborted();
    if (always) throw new Fault('InvalidImage', { reason: `image_source: it cannot be inspected: ${reasonOf(error)}` }, { cause: error });
    task.log.info('the format of an image is left to the agent', { reason: reasonOf(error) });
    return UNKNOWN;
  });
  if (refusal !== undefined) throw new Fault('InvalidImage', { reason: `image_source: ${refusal}` });
  return AS_IS.includes(format) ? 'raw' : format;
}

/**
 * Bytes of a disk that the image needs; undefined: the agent will see. `inspectImage` has refused what is to be refused.
 * @param declared as in `inspectImage`
 * @param stored bytes of the file, if they are known
 */
export async function diskSizeOf(
  source: ImageSource,
  declared: unknown,
  task: InspectionTask,
  stored: number | null,
): Promise<number | undefined> {
  if (source.kind === 'snapshot') return undefined;
  const given = typeof declared === 'string' && declared !== '' ? declared : null;
  const { size } = await inspected(source, given, task).catch(() => UNKNOWN);
  task.signal.throwIfAborted();
  return size === 'file' ? (stored ?? (await fileSize(source, task))) : size;
}

/** What the disk of the image begins with; undefined: nobody knows, or nobody may look. `inspectImage` has refused what is to be refused. */
export async function contentOf(source: ImageSource, declared: unknown, task: InspectionTask): Promise<DiskContent | undefined> {
  if (source.kind === 'snapshot' || source.kind === 'oci' || task.options['conductor.disable_deep_image_inspection']) return undefined;
  const given = typeof declared === 'string' && declared !== '' ? declared : null;
  const { content } = await inspected(source, given, task).catch(() => UNKNOWN);
  task.signal.throwIfAborted();
  return content;
}
