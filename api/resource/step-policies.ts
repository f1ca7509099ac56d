/** Steps that the operator gives a policy of their own: `baremetal:step:execute:INTERFACE.STEP`. */
import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import type { Request, ApiContext } from './handler';

interface Named {
  readonly interface: unknown;
  readonly step: unknown;
}
/** @param node whose owner and lessee the rules may ask for; absent: the steps are for no node yet */
export function checkStepPolicies(
  steps: readonly Named[],
  { caller }: Pick<Request, 'caller'>,
  { auth }: Pick<ApiContext, 'auth'>,
  node?: Pick<NodeRecord, 'owner' | 'lessee'>,
): void {
  const refused = steps.filter(
    ({ interface: owner, step }) => !auth.allowed(caller, `step:execute:${String(owner)}.${String(step)}`, node),
  );
  if (refused.length === 0) return;
  const message = refused
    .map(({ interface: owner, step }) => `insufficient privileges to execute step ${String(step)} on interface ${String(owner)}`)
    .join('; ');
  throw new Fault('StepsNotAuthorized', { message });
}
