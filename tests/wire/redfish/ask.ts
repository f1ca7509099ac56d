/** A service of a few answers, without HTTP, for the helpers of wire/redfish. */
import { RedfishError, type RedfishAnswer, type SendRedfishRequest } from '../../../wire/redfish';

export interface AskedOf {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface AskRecord {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
/** @param otherwise the answer for a path without a resource; default: 404 */
export function askOf(
  resources: Readonly<Record<string, AskedOf>>,
  otherwise: (asked: AskRecord) => AskedOf = () => ({ status: 404 }),
): { readonly ask: SendRedfishRequest; readonly asked: AskRecord[] } {
  const asked: AskRecord[] = [];
  const ask: SendRedfishRequest = async (method, path, more = {}): Promise<RedfishAnswer> => {
    const record = { method, path, ...more };
    asked.push(record);
    const { status = 200, body, headers = {} } = resources[path] ?? otherwise(record);
    if (status >= 400) throw new RedfishError('status', `HTTP ${method} ${path} returned code ${status}`, { status });
    return { status, headers, body };
  };
  return { ask, asked };
}
export function clockOf(): {
  readonly clock: { now(): number; sleep(milliseconds: number): Promise<void> };
  readonly slept: number[];
} {
  const slept: number[] = [];
  let now = 0;
  const sleep = async (milliseconds: number): Promise<void> => {
    slept.push(milliseconds);
    now += milliseconds;
  };
  return { clock: { now: () => now, sleep }, slept };
}
