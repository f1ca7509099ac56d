/** The elements of the lists of requests. */
import { loadDocument } from '../../../api/schema/document';

export interface Sent {
  readonly method: string;
  readonly path: string;
  /** Value of X-OpenStack-Ironic-API-Version; null: no header. */
  readonly version: string | null;
  /** JSON; text is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Only undoes what the request before may have done; the answer is not compared. */
  readonly quiet?: true;
}
/** A pause until the node rests, after a request whose work continues. */
interface Settle {
  readonly settle: string;
  /** The state in which the node must rest, if the next requests depend on it. */
  readonly state?: string;
}
/** A pause until each allocation has a result. */
interface SettleAllocations {
  readonly settleAllocations: true;
}
export type Step = Sent | Settle | SettleAllocations;

export const document = loadDocument();
export const MAX = document.max;

export const at = (minor: number): string => `1.${minor}`;
export const get = (path: string, minor = MAX): Sent => ({ method: 'GET', path, version: at(minor) });
export const send = (method: string, path: string, body: unknown, minor = MAX): Sent => ({ method, path, version: at(minor), body });
export const quietly = (step: Sent): Sent => ({ ...step, quiet: true });
/** The versions at which something that came with `since` shows: before, at, newest. */
export const around = (since: number): number[] => [...new Set([Math.max(1, since - 1), since, MAX])];
