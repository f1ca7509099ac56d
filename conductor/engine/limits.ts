/** How many nodes may be at once where an action leads. */
import type { Event, ProvisionState } from '../../model/states';
import type { Context } from '../core/context';

interface Limit {
  /** What the refusal calls it. */
  readonly action: string;
  readonly option: 'conductor.max_concurrent_deploy' | 'conductor.max_concurrent_clean';
  readonly states: readonly ProvisionState[];
}
const deploying = {
  action: 'provisioning',
  option: 'conductor.max_concurrent_deploy',
  states: ['deploying', 'wait call-back'],
} as const satisfies Limit;
const cleaning = {
  action: 'cleaning',
  option: 'conductor.max_concurrent_clean',
  states: ['deleting', 'cleaning', 'clean wait'],
} as const satisfies Limit;
/** Over all conductors, or those of the group. */
const LIMITS: Partial<Record<Event, Limit>> = {
  deploy: deploying,
  rebuild: deploying,
  clean: cleaning,
  delete: { ...cleaning, action: 'unprovisioning' },
};

/** How many there are (no more than the limit is counted); undefined: there is no limit. */
export async function underWay(
  { store, options }: Context,
  event: Event,
): Promise<{ readonly action: string; readonly count: number; readonly limit: number } | undefined> {
  const found = LIMITS[event];
  if (!found) return undefined;
  const limit = options[found.option];
  const group = options['conductor.max_concurrent_per_conductor_group'] ? options['conductor.conductor_group'].toLowerCase() : undefined;
  return { action: found.action, count: await store.nodes.countUpTo(limit, found.states, group), limit };
}
