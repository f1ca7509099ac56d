/** How many nodes may be in some states at the same time: over all conductors, or over those of the conductor group. */
import { STATES, stateRow, type ProvisionState, type StateLimit } from '../../model/states';
import type { Context } from './context';

export interface ConcurrencyLimit {
  /** Ironic's name of the action, for the error message. */
  readonly action: string;
  /** Nodes count if their state has this option as its `limit` in `STATES`. */
  readonly option: StateLimit;
}
export const DEPLOYMENTS: ConcurrencyLimit = { action: 'provisioning', option: 'conductor.max_concurrent_deploy' };
export const CLEANINGS: ConcurrencyLimit = { action: 'cleaning', option: 'conductor.max_concurrent_clean' };

/** How many nodes count towards the limit (counting stops at the limit). */
export async function countTowards(
  { store, options }: Context,
  { option }: ConcurrencyLimit,
): Promise<{ readonly count: number; readonly limit: number }> {
  const limit = options[option];
  const states = (Object.keys(STATES) as ProvisionState[]).filter((state) => stateRow(state).limit === option);
  const group = options['conductor.max_concurrent_per_conductor_group'] ? options['conductor.conductor_group'].toLowerCase() : undefined;
  return { count: await store.nodes.countInStates(limit, states, group), limit };
}
