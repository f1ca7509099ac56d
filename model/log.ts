/** The log, the bounded log, and what makes texts of machines, users and servers printable. */
import type { Clock } from './clock';

/** server/logging.ts implements it, masks secrets and escapes texts; tests collect the lines. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
  /** The same log with these fields on every line, such as node, request id and component. */
  child(fields: object): Log;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silentLog };

/**
 * Characters that control a terminal, break a line or change the order of a text: C0, DEL and C1; marks, embeddings and isolates of the
 * bidirectional algorithm (UAX #9); separators of lines; lone surrogates.
 */
const UNSAFE = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const escaped = (unit: string): string => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One line, with escapes of JSON: JSON without line breaks keeps its value. */
export const printable = (text: string): string => text.replace(UNSAFE, escaped);
/** Lines that the program itself made: their line breaks and tabs stay. JSON keeps its value. */
export const printableText = (text: string): string =>
  text.replace(UNSAFE, (unit) => (unit === '\n' || unit === '\t' ? unit : escaped(unit)));
/** One line for people, as a part of a message: a blank stands for unsafe characters. */
export const oneLine = (text: string): string => text.replace(UNSAFE, ' ').replace(/ {2,}/g, ' ').trim();

type Level = 'info' | 'warn' | 'error';
/** Lines of one message in a period. */
type LineLimits = Readonly<Record<Level, number>>;
const LINES: LineLimits = { info: 6000, warn: 20, error: 20 };
/** For messages of which one line says everything. */
export const ONE_LINE: LineLimits = { info: 6000, warn: 1, error: 1 };
const PERIOD_MS = 60_000;

export interface BoundedLog extends Log {
  /** Reports the lines that were left out so far, and ends the wait for the period's end. */
  stop(): void;
}

/**
 * A log for what anybody can cause by sending packets: the number of its lines does not depend on the number of packets. It leaves out a
 * message's further lines in a period of a minute. At its end, one line has the fields of the last one and `repeated`, the
 * number of lines that were left out. The code has few different messages, so the memory is bounded. `debug` is not limited.
 */
export function createBoundedLog(log: Log, clock: Pick<Clock, 'now' | 'sleep'>, most: LineLimits = LINES): BoundedLog {
  const ended = new AbortController();
  const lines = new Map<string, { count: number; report?: () => void }>();
  let periodEnds = -Infinity;
  let isWaiting = false;

  const endPeriod = (): void => {
    for (const { report } of lines.values()) report?.();
    lines.clear();
  };
  /** A timer runs only in a period that left out lines. */
  const waitForEnd = (now: number): void => {
    if (isWaiting || ended.signal.aborted) return;
    isWaiting = true;
    clock
      .sleep(periodEnds - now, ended.signal)
      .then(endPeriod, () => {})
      .finally(() => (isWaiting = false));
  };
  const bounded = (target: Log): Log => {
    const at =
      (level: Level) =>
      (message: string, fields: object = {}): void => {
        const now = clock.now();
        if (now >= periodEnds) {
          endPeriod();
          periodEnds = now + PERIOD_MS;
        }
        const line = lines.get(message) ?? { count: 0 };
        lines.set(message, line);
        line.count += 1;
        const repeated = line.count - most[level];
        if (repeated <= 0) {
          target[level](message, fields);
          return;
        }
        line.report = () => target[level](message, { ...fields, repeated });
        waitForEnd(now);
      };
    return {
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      debug: (message, fields) => target.debug(message, fields),
      child: (fields) => bounded(target.child(fields)),
    };
  };
  return {
    ...bounded(log),
    stop: () => {
      ended.abort();
      endPeriod();
    },
  };
}
