/** Policies of single steps: `baremetal:step:execute:INTERFACE.STEP`. */
import { Fault } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import type { Request, ApiContext } from './handler';

interface StepName {
  readonly interface: unknown;
  readonly step: unknown;
}
/** @param node whose owner and lessee the rules may use; absent: the steps belong to no node yet */
export function checkStepPolicies(
  steps: readonly StepName[],
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
