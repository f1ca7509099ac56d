/** Checks of policies. Resources that the caller may not see are answered as missing; visible ones that it may not use, with 403. */
import { Fault } from '../../model/errors';
import type { Target } from '../../policy/vocabulary';
import type { ApiContext, Request } from './handler';

type WithCaller = Pick<Request, 'caller'>;
type WithAuth = Pick<ApiContext, 'auth'>;

/** Policies that depend on the caller alone. The dispatcher checks them; handlers check all others, with the resource. */
const WITHOUT_TARGET =
  /^(?:chassis|driver|conductor|shards|deploy_template|inspection_rule|events):|^(?:runbook:create|node:ipa_heartbeat)$/;
export const hasNoTarget = (policy: string): boolean => WITHOUT_TARGET.test(policy);

const forbidden = (policy: string): Fault => new Fault('HTTPForbidden', { resource: `baremetal:${policy}` });

/**
 * @param target the projects of the resource; absent: the policy depends on the caller alone
 * @throws Fault HTTPForbidden
 */
export function checkPolicy({ caller }: WithCaller, { auth }: WithAuth, policy: string, target?: Target): void {
  if (!auth.allowed(caller, policy, target)) throw forbidden(policy);
}

/**
 * The project that a list is limited to; undefined: the list shows all.
 * @param kind of the policies `KIND:list_all` and `KIND:list`
 * @param named the project that the request names
 * @throws Fault HTTPForbidden
 */
export function projectOfList(request: WithCaller, context: WithAuth, kind: string, named?: string | boolean | null): string | undefined {
  const { caller } = request;
  if (context.auth.allowed(caller, `${kind}:list_all`)) return undefined;
  if (!caller.project || (named && named !== caller.project)) throw forbidden(`${kind}:list_all`);
  checkPolicy(request, context, `${kind}:list`);
  return caller.project;
}
