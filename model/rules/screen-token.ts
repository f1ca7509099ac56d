/** The token with which a browser may see a node's screen: in driver_internal_info, under the names that Ironic has. */
import { isSameSecret } from '../masks';
import type { NodeRecord } from '../records';

type TokenHolder = Pick<NodeRecord, 'driver_internal_info'>;

/** The node's token, and when it ends in milliseconds; undefined: it has none. */
function tokenOf(
  { driver_internal_info: internal }: TokenHolder,
  lifetimeMs: number,
): { readonly token: string; readonly ends: number } | undefined {
  const { novnc_secret_token: token, novnc_secret_token_created: created } = internal;
  if (typeof token !== 'string' || typeof created !== 'string') return undefined;
  // UTC without a zone, as Ironic writes it.
  const made = Date.parse(`${created}Z`);
  return Number.isNaN(made) ? undefined : { token, ends: made + lifetimeMs };
}
/** A time as Ironic writes it: UTC with microseconds, without a zone. */
export const tokenTime = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, -1)}000`;

/** Whether the node has a token that has not ended. */
export const hasToken = (node: TokenHolder, lifetimeMs: number, now: number): boolean =>
  (tokenOf(node, lifetimeMs)?.ends ?? -Infinity) > now;
/** Whether this is the node's token, and it has not ended. */
export function isTokenOf(node: TokenHolder, given: string, lifetimeMs: number, now: number): boolean {
  const known = tokenOf(node, lifetimeMs);
  return known !== undefined && isSameSecret(known.token, given) && known.ends > now;
}
