/** The policies of the introspection service's operations, with ironic-inspector's names. They depend on the caller alone. */
import { Fault } from '../../model/errors';
import type { Caller } from '../../policy/caller';
import type { Enforcer } from '../../policy/enforcer';

const POLICY_OF: ReadonlyMap<string, string> = new Map([
  ['listIntrospections', 'introspection:status'],
  ['showIntrospection', 'introspection:status'],
  ['startIntrospection', 'introspection:start'],
  ['abortIntrospection', 'introspection:abort'],
  ['showData', 'introspection:data'],
  ['showUnprocessed', 'introspection:data'],
  ['reapply', 'introspection:reapply'],
  ['listRules', 'introspection:rule:get'],
  ['showRule', 'introspection:rule:get'],
  ['createRule', 'introspection:rule:create'],
  ['removeRules', 'introspection:rule:delete'],
  ['removeRule', 'introspection:rule:delete'],
]);

/** @throws Fault HTTPForbidden, also for an operation without a policy */
export function checkOperation(operationId: string, caller: Caller, auth: Enforcer): void {
  const policy = POLICY_OF.get(operationId) ?? operationId;
  if (!auth.allowed(caller, policy)) throw new Fault('HTTPForbidden', { resource: policy });
}
