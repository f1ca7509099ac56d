/**
 * The log (pino): lines in oslo.log's text format on terminals, else in JSON. Values that look like secrets are masked at every depth, and
 * URLs lose their credentials.
 */
import { accessSync, constants, existsSync, fstatSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isatty } from 'node:tty';
import pino from 'pino';
import type { Options } from '../config/options';
import { type Log, printable } from '../model/log';
import { withoutUrlCredentials } from '../model/urls';

const SECRET = /pass(word|wd)?$|secret|token|credential|snmp_(auth|priv)_key|configdrive|^authorization$/i;

/** Returns a copy with masked secrets. Stops at depth 8, because logged values may come from the network. @internal */
export function maskSecrets(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return { message: value.message, stack: value.stack };
  if (depth > 8) return '…';
  if (Array.isArray(value)) return value.map((item) => maskSecrets(item, depth + 1));
  // Most lines contain no nested fields and no secrets; they are not copied.
  if (Object.entries(value).every(([key, item]) => (typeof item !== 'object' || item === null) && !SECRET.test(key))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, SECRET.test(key) && item !== null ? '******' : maskSecrets(item, depth + 1)]),
  );
}

type LogOptions = Pick<
  Options,
  'DEFAULT.debug' | 'DEFAULT.log_file' | 'DEFAULT.log_dir' | 'DEFAULT.use_json' | 'DEFAULT.default_log_levels'
>;
interface OpenLog {
  readonly log: Log;
  /** Writes buffered lines. */
  readonly flush: () => void;
  /** Opens the log file again after it was renamed. */
  readonly reopen: () => void;
}

/** Lines below `warn` are buffered for this many milliseconds, or until this many bytes: a write per line is expensive. */
const BUFFER_MS = 250;
const BUFFER_BYTES = 4096;
/** Bytes that are buffered while the file cannot be written (full disk). Later lines are lost. */
const MAX_BUFFERED_BYTES = 1 << 20;

const LEVELS: Readonly<Record<string, pino.Level>> = {
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'fatal',
};
/** oslo.log's names, in both formats. */
const NAMES: Readonly<Record<string, string>> = { debug: 'DEBUG', info: 'INFO', warn: 'WARNING', error: 'ERROR', fatal: 'CRITICAL' };
/** Parses oslo's `name=LEVEL`. Names are those of components: api, boot, conductor, database, … */
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

type Line = Readonly<Partial<Record<'component' | 'request_id' | 'global_request_id' | 'user' | 'project', string>>> & {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
};
const shown = (value: unknown): string => (typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value));
/** oslo.log's order: time, process, level, component, request, message; then the remaining fields. */
function toText(line: Line): string {
  const { level, time, msg, component, request_id: id, global_request_id: global, user, project, ...fields } = line;
  const asked = id === undefined ? '-' : [global, id, user, project].map((part) => part ?? '-').join(' ');
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${shown(value)}`);
  const when = time.replace('T', ' ').replace('Z', '');
  return `${when} ${process.pid} ${level} ${component ?? 'bloomery'} [${asked}] ${msg}${rest.join('')}`;
}

/** Level → the prefix of the journal's priority (sd-daemon(3)). */
const PRIORITIES: Readonly<Record<string, string>> = { DEBUG: '<7>', INFO: '<6>', WARNING: '<4>', ERROR: '<3>', CRITICAL: '<2>' };

/**
 * A line as it is written. Texts come from machines and users too: they must not break lines or control a terminal.
 * @param json a line of pino
 * @internal
 */
export function lineOf(json: string, format: LogFormat): string {
  if (format === 'json') return `${printable(json.trimEnd())}\n`;
  const line = JSON.parse(json) as Line;
  const priority = format === 'journal' ? (PRIORITIES[line.level] ?? '') : '';
  return `${priority}${printable(toText(line))}\n`;
}

/** As in oslo.log: a relative log_file is in log_dir; log_dir alone uses bloomery.log; without both, standard error is used. @internal */
export function logPath({ 'DEFAULT.log_file': file, 'DEFAULT.log_dir': folder }: LogOptions): string | undefined {
  if (folder !== null && !file?.startsWith('/')) return join(folder, file ?? 'bloomery.log');
  return file ?? undefined;
}

/** The log file cannot be written. The message is for the operator. */
class LogFileError extends Error {}
/** @throws LogFileError if the log file cannot be written. Nothing is created. */
export function checkLogFile(options: LogOptions): void {
  const path = logPath(options);
  if (path === undefined) return;
  const option = options['DEFAULT.log_dir'] !== null && path !== options['DEFAULT.log_file'] ? 'log_dir' : 'log_file';
  try {
    accessSync(existsSync(path) ? path : dirname(path), constants.W_OK);
    if (existsSync(path) && statSync(path).isDirectory()) throw new Error('it is a folder');
  } catch (error) {
    throw new LogFileError(
      `[DEFAULT]${option}: cannot write ${path}: ${(error as Error).message}: create the folder for the user of the server, ` +
        'or remove the option to log to standard error',
    );
  }
}

/** Buffers lines and writes them together. */
function createBuffer(write: (lines: string) => void): { readonly write: (line: string) => void; readonly flush: () => void } {
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
      if (waiting.length >= BUFFER_BYTES) flush();
      else timer ??= setTimeout(flush, BUFFER_MS).unref();
    },
  };
}

/** Whether standard error is the journal of systemd, which names its device and inode (systemd.exec(5), JOURNAL_STREAM). */
function isJournal(environment: NodeJS.ProcessEnv): boolean {
  const stream = environment['JOURNAL_STREAM'];
  if (stream === undefined) return false;
  const { dev, ino } = fstatSync(process.stderr.fd, { bigint: true });
  return stream === `${dev}:${ino}`;
}
/** How lines are written: as JSON, as text, or as text for the journal. */
type LogFormat = 'json' | 'text' | 'journal';
/** Without [DEFAULT]use_json, people on a terminal or in the journal get text, and files and other programs get JSON. */
function formatOf(useJson: boolean | null, path: string | undefined): LogFormat {
  const journal = path === undefined && isJournal(process.env);
  if (useJson ?? !(path === undefined && (journal || isatty(process.stderr.fd)))) return 'json';
  return journal ? 'journal' : 'text';
}

/** Throws an Error for the operator if the file cannot be opened. */
export function createLog(options: LogOptions): OpenLog {
  checkLogFile(options);
  const path = logPath(options);
  const destination = pino.destination({ dest: path ?? 2, sync: true, append: true, maxLength: MAX_BUFFERED_BYTES });
  // A full disk must not stop the service; buffered lines are written when there is space again.
  destination.on('error', () => {});
  const { write, flush } = createBuffer((lines) => void destination.write(lines));
  const format = formatOf(options['DEFAULT.use_json'], path);
  const writer = { write: (line: string) => write(lineOf(withoutUrlCredentials(line), format)) };
  const levels = levelsOf(options['DEFAULT.default_log_levels']);
  const level = options['DEFAULT.debug'] ? 'debug' : 'info';
  const formatters = { level: (label: string) => ({ level: NAMES[label] ?? label }) };
  const root = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters }, writer);
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
      const own = 'component' in fields ? levels.get(String(fields.component)) : undefined;
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
        console.error(`bloomery: the log ${path} cannot be reopened: ${(error as Error).message}`);
      }
    },
  };
}
