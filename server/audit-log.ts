/** Writes the audit log ([audit]): one line of JSON for each entry, in order, without ever delaying a request. */
import { close, constants, openSync, write } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { AuditLog } from '../api/http/audit';
import type { LoadedOptions } from '../config/options';
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import { type Log, printable } from '../model/log';
import type { Metrics } from '../model/metrics';
import type { StoreContext } from './context';

interface OpenAudit extends AuditLog {
  /** Opens the file again after it was renamed. */
  reopen(): void;
  /** Writes the waiting entries, for at most STOP_TIMEOUT_MS, and closes the file. */
  stop(): Promise<void>;
}

/** Maximum of bytes that wait while the file cannot be written. Further entries are lost. */
const MAX_WAITING_BYTES = 4 * 2 ** 20;
/** Bytes of one write. */
const BATCH_BYTES = 64 * 1024;
/** Waits for the reader of a full pipe, or for space. Each wait is twice the previous one. */
const FIRST_RETRY_MS = 5;
const MAX_RETRY_MS = 200;
const STOP_TIMEOUT_MS = 2000;

/** Only the owner may read it. An existing file keeps its mode. */
const MODE = 0o600;
/** A pipe that nobody reads must not block a thread: that thread would also keep the process from ending. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
/** A pipe is opened again, so that O_NONBLOCK does not change the inherited descriptor. A socket cannot be opened, and is used as it is. */
const STANDARD_OUTPUT = '/proc/self/fd/1';

function open(path: string | null): number {
  if (path !== null) return openSync(path, FLAGS, MODE);
  try {
    return openSync(STANDARD_OUTPUT, FLAGS, MODE);
  } catch {
    return 1;
  }
}
const writeTo = promisify(write);
const closeFile = promisify(close);

/** Opens the audit log if it is enabled. Throws an Error for the operator. */
export function startAudit({ options, log, clock, metrics, stops, reloads }: StoreContext): AuditLog | undefined {
  if (!options['audit.enabled']) return undefined;
  const audit = openAudit(options, log, clock, metrics);
  stops.push(() => audit.stop());
  reloads.push(() => audit.reopen());
  return audit;
}

/**
 * Throws an Error for the operator if the file cannot be opened.
 * @internal
 */
export function openAudit(options: Pick<LoadedOptions, 'audit.log_file'>, log: Log, clock: Clock, metrics: Metrics): OpenAudit {
  const path = options['audit.log_file'];
  let file: number;
  try {
    file = open(path);
  } catch (error) {
    throw new Error(`[audit]log_file: ${(error as Error).message}`, { cause: error });
  }
  const waiting: string[] = [];
  let waitingBytes = 0;
  let lost = 0;
  let isReopening = false;
  let hasFailed = false;
  let writing: Promise<void> | undefined;

  const add = (line: string): void => {
    waiting.push(line);
    waitingBytes += Buffer.byteLength(line);
  };
  const takeBatch = (): Buffer => {
    if (lost > 0) add(`${JSON.stringify({ time: new Date(clock.now()).toISOString(), lost })}\n`);
    lost = 0;
    let bytes = 0;
    let count = 0;
    while (count < waiting.length && bytes < BATCH_BYTES) bytes += Buffer.byteLength(waiting[count++]!);
    return Buffer.from(waiting.splice(0, count).join(''));
  };
  const fail = (error: unknown): void => {
    // EAGAIN only means that the reader of the pipe is slow.
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN' || hasFailed) return;
    hasFailed = true;
    log.error('the audit log cannot be written', { error: reasonOf(error) });
  };
  async function reopen(): Promise<void> {
    isReopening = false;
    if (path === null) return;
    const before = file;
    try {
      file = open(path);
      await closeFile(before);
    } catch (error) {
      fail(error);
    }
  }
  async function writeAll(): Promise<void> {
    let batch = takeBatch();
    let done = 0;
    let retryMs = FIRST_RETRY_MS;
    while (batch.length > 0 || isReopening) {
      if (isReopening) {
        // Repeats a line that was written in part, so that the new file begins with a whole line.
        done = done === 0 ? 0 : batch.lastIndexOf('\n', done - 1) + 1;
        await reopen();
      }
      try {
        if (done < batch.length) done += (await writeTo(file, batch, done, batch.length - done, null)).bytesWritten;
        hasFailed = false;
        retryMs = FIRST_RETRY_MS;
      } catch (error) {
        fail(error);
        await delay(retryMs, undefined, { ref: false });
        retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
      }
      if (done < batch.length) continue;
      waitingBytes -= batch.length;
      batch = takeBatch();
      done = 0;
    }
    writing = undefined;
  }
  const start = (): void => {
    writing ??= writeAll();
  };
  return {
    record(entry) {
      const line = `${printable(JSON.stringify(entry))}\n`;
      if (waitingBytes + line.length <= MAX_WAITING_BYTES) add(line);
      else {
        lost++;
        metrics.count('bloomery_audit_entries_lost_total', {});
      }
      start();
    },
    reopen() {
      isReopening = true;
      start();
    },
    async stop() {
      const late = new AbortController();
      await Promise.race([writing, delay(STOP_TIMEOUT_MS, undefined, { signal: late.signal }).catch(() => {})]);
      late.abort();
      if (waitingBytes > 0) log.error('entries of the audit log are lost', { bytes: waitingBytes });
      else if (file !== 1) await closeFile(file).catch(() => {});
    },
  };
}
