/** The secret that an agent gets at its first lookup and sends in every heartbeat. */
import type { InternalChanges } from '../internal-info';
import { isSameSecret, newSecret } from '../masks';
import type { NodeRecord } from '../records';

/** Compares in constant time, so that the response time says nothing about a guess. */
export function tokenIsRight({ driver_internal_info: info }: Pick<NodeRecord, 'driver_internal_info'>, given: string | undefined): boolean {
  const { agent_secret_token: known } = info;
  return typeof known === 'string' && known !== '' && given !== undefined && isSameSecret(known, given);
}

/** What `mergeInternalOnce` writes, so that only one of two lookups gets a valid token. The token comes first. */
export const newToken = (random: (bytes: number) => Buffer): InternalChanges & { readonly agent_secret_token: string } => ({
  agent_secret_token: newSecret(random),
  agent_secret_token_pregenerated: undefined,
});
