/** How many nodes may be in some states at the same time: over all conductors, or over those of the conductor group. */
import type { ProvisionState } from '../../model/states';
import type { Context } from './context';

export interface ConcurrencyLimit {
  /** Ironic's name of the action, for the error message. */
  readonly action: string;
  readonly option: 'conductor.max_concurrent_deploy' | 'conductor.max_concurrent_clean';
  /** The nodes that count. */
  readonly states: readonly ProvisionState[];
}
export const DEPLOYMENTS: ConcurrencyLimit = {
  action: 'provisioning',
  option: 'conductor.max_concurrent_deploy',
  states: ['deploying', 'wait call-back'],
};
export const CLEANINGS: ConcurrencyLimit = {
  action: 'cleaning',
  option: 'conductor.max_concurrent_clean',
  states: ['deleting', 'cleaning', 'clean wait'],
};

/** How many nodes count towards the limit (counting stops at the limit). */
export async function countTowards(
  { store, options }: Context,
  { option, states }: ConcurrencyLimit,
): Promise<{ readonly count: number; readonly limit: number }> {
  const limit = options[option];
  const group = options['conductor.max_concurrent_per_conductor_group'] ? options['conductor.conductor_group'].toLowerCase() : undefined;
  return { count: await store.nodes.countInStates(limit, states, group), limit };
}
