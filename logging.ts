/** The program's log: JSON lines by pino, with every value that looks like a secret masked, however deep. */
import pino from 'pino';
import type { Log } from './model/log';

const SECRET = /pass(word|wd)?$|secret|token|credential|snmp_(auth|priv)_key|configdrive|^authorization$/i;

/** A copy in which secrets are stars; cut at depth 8, since what is logged may come from the network. */
export function maskSecrets(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return { message: value.message, stack: value.stack };
  if (depth > 8) return '…';
  if (Array.isArray(value)) return value.map((item) => maskSecrets(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, SECRET.test(key) && item !== null ? '******' : maskSecrets(item, depth + 1)]),
  );
}

/** @param file where to write; absent: the standard error */
export function createLog(debug: boolean, file?: string | null): { readonly log: Log; readonly flush: () => void } {
  const destination = pino.destination({ dest: file ?? 2, sync: true, append: true });
  const root = pino({ level: debug ? 'debug' : 'info', base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  const wrap = (logger: pino.Logger): Log => ({
    debug: (message, fields = {}) => logger.debug(maskSecrets(fields), message),
    info: (message, fields = {}) => logger.info(maskSecrets(fields), message),
    warn: (message, fields = {}) => logger.warn(maskSecrets(fields), message),
    error: (message, fields = {}) => logger.error(maskSecrets(fields), message),
    child: (fields) => wrap(logger.child(maskSecrets(fields) as object)),
  });
  return { log: wrap(root), flush: () => destination.flushSync() };
}
