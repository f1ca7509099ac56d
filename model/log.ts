/** The log. logging.ts implements it and masks secrets; tests collect the lines. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
  /** The same log with these fields on every line, such as node, request id and component. */
  child(fields: object): Log;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silentLog };
