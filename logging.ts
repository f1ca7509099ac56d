/** The program's log by pino: lines of JSON, or of text as oslo.log writes them; every value that looks like a secret masked, however deep. */
import { join } from 'node:path';
import pino from 'pino';
import type { Options } from './config/options';
import type { Log } from './model/log';

const SECRET = /pass(word|wd)?$|secret|token|credential|snmp_(auth|priv)_key|configdrive|^authorization$/i;

/** A copy in which secrets are stars; cut at depth 8, since what is logged may come from the network. */
export function maskSecrets(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return { message: value.message, stack: value.stack };
  if (depth > 8) return '…';
  if (Array.isArray(value)) return value.map((item) => maskSecrets(item, depth + 1));
  // Most fields of most lines are plain and harmless: those are not copied.
  if (Object.entries(value).every(([key, item]) => (typeof item !== 'object' || item === null) && !SECRET.test(key))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, SECRET.test(key) && item !== null ? '******' : maskSecrets(item, depth + 1)]),
  );
}

export type LogOptions = Pick<
  Options,
  'DEFAULT.debug' | 'DEFAULT.log_file' | 'DEFAULT.log_dir' | 'DEFAULT.use_json' | 'DEFAULT.default_log_levels'
>;
export interface OpenLog {
  readonly log: Log;
  /** Writes what waits to be written. */
  readonly flush: () => void;
  /** Goes on in a new file of the same name, when the old one was moved away. */
  readonly reopen: () => void;
}

/** Lines below `warn` wait for each other this long, in milliseconds, or until they are so many bytes: a write for each costs more than all else. */
const GATHER_MS = 250;
const GATHER_BYTES = 4096;
/** Bytes that wait while nothing can be written (a full disk); later lines are lost. */
const MOST_WAITING = 1 << 20;

const LEVELS: Readonly<Record<string, pino.Level>> = {
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'fatal',
};
/** oslo's `name=LEVEL`; the names that mean something here are those of rooms. */
function levelsOf(pairs: readonly string[]): ReadonlyMap<string, pino.Level> {
  return new Map(
    pairs.map((pair) => {
      const [name = '', level = ''] = pair.split('=').map((part) => part.trim());
      const known = LEVELS[level.toUpperCase()];
      if (name === '' || !known)
        throw new Error(`[DEFAULT]default_log_levels: "${pair}" is not name=LEVEL with one of ${Object.keys(LEVELS).join(', ')}`);
      return [name, known];
    }),
  );
}

type Line = Readonly<Partial<Record<'room' | 'request_id' | 'global_request_id' | 'user' | 'project', string>>> & {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
};
const NAMES: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO', 40: 'WARNING', 50: 'ERROR', 60: 'CRITICAL' };
const shown = (value: unknown): string => (typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value));
/** Words may come from machines: a line stays a line, and a terminal is not spoken to. */
// eslint-disable-next-line no-control-regex
const plain = (text: string): string => text.replace(/[\x00-\x1f\x7f]+/g, ' ');
/** oslo.log's order: time, process, level, who logs, on whose behalf, the words; and then the fields that have no place of their own. */
export function toText(json: string): string {
  const { level, time, msg, room, request_id: id, global_request_id: global, user, project, ...fields } = JSON.parse(json) as Line;
  const asked = id === undefined ? '-' : [global, id, user, project].map((part) => part ?? '-').join(' ');
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${shown(value)}`);
  const when = time.replace('T', ' ').replace('Z', '');
  return `${when} ${process.pid} ${NAMES[level] ?? level} ${room ?? 'bloomery'} [${asked}] ${plain(msg)}${rest.join('')}\n`;
}

/** As oslo.log: a relative file lies in the folder; a folder alone has the program's own file; neither: the standard error. */
export function logPath({ 'DEFAULT.log_file': file, 'DEFAULT.log_dir': folder }: LogOptions): string | undefined {
  if (folder !== null && !file?.startsWith('/')) return join(folder, file ?? 'bloomery.log');
  return file ?? undefined;
}

/** Collects lines, and hands them on together. */
function gather(write: (lines: string) => void): { readonly write: (line: string) => void; readonly flush: () => void } {
  let waiting = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const lines = waiting;
    waiting = '';
    if (lines !== '') write(lines);
  };
  return {
    flush,
    write: (line) => {
      waiting += line;
      if (waiting.length >= GATHER_BYTES) flush();
      else timer ??= setTimeout(flush, GATHER_MS).unref();
    },
  };
}

/** Throws an Error for the operator when the file cannot be written. */
export function createLog(options: LogOptions): OpenLog {
  const path = logPath(options);
  const destination = pino.destination({ dest: path ?? 2, sync: true, append: true, maxLength: MOST_WAITING });
  // A full disk ends the log, not the service; what waits is written when there is room again.
  destination.on('error', () => {});
  const { write, flush } = gather((lines) => void destination.write(lines));
  const writer = options['DEFAULT.use_json'] ? { write } : { write: (line: string) => write(toText(line)) };
  const levels = levelsOf(options['DEFAULT.default_log_levels']);
  const level = options['DEFAULT.debug'] ? 'debug' : 'info';
  const root = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, writer);
  const wrap = (logger: pino.Logger): Log => ({
    debug: (message, fields = {}) => logger.debug(maskSecrets(fields), message),
    info: (message, fields = {}) => logger.info(maskSecrets(fields), message),
    warn: (message, fields = {}) => {
      logger.warn(maskSecrets(fields), message);
      flush();
    },
    error: (message, fields = {}) => {
      logger.error(maskSecrets(fields), message);
      flush();
    },
    child: (fields) => {
      const own = 'room' in fields ? levels.get(String(fields.room)) : undefined;
      return wrap(logger.child(maskSecrets(fields) as object, own ? { level: own } : {}));
    },
  });
  return {
    log: wrap(root),
    flush,
    reopen: () => {
      flush();
      if (path === undefined) return;
      try {
        destination.reopen();
      } catch (error) {
        console.error(`bloomery: the log ${path} cannot be opened again: ${(error as Error).message}`);
      }
    },
  };
}
