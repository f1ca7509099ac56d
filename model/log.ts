/** What every room logs through; main makes it (pino), tests collect it. Secrets are masked by whoever makes it. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
  /** The same log, with these fields on every line (node, request id, room). */
  child(fields: object): Log;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silentLog };
