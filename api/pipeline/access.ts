/** Checks of policies. Resources that the caller may not see are answered as missing; visible ones that it may not use, with 403. */
import { Fault } from '../../model/errors';
import type { Caller } from '../../policy/caller';
import { isPolicy } from '../../policy/enforcer';
import type { Target } from '../../policy/vocabulary';
import type { Document } from '../schema/document';
import type { ApiContext, Request } from './handler';

type Checked = Pick<Request, 'caller' | 'permission'>;
type WithAuth = { readonly auth: Pick<ApiContext['auth'], 'allowed'> };

/**
 * The operations without a policy: everybody who is authenticated may use them, and some of them need no authentication (public-paths.ts).
 *
 * @internal
 */
export const PUBLIC_OPERATIONS: readonly string[] = ['showRoot', 'showVersion', 'showDocument', 'showDocsPage', 'showDocsAsset'];

/** Policies that depend on the projects of a resource: handlers check them, with the resource. The dispatcher checks all others. */
const OF_RESOURCES = /^(?:node|port|portgroup|volume|allocation|runbook|snapshot|erasure):/;
/** Those of them that depend on the caller alone. */
const OF_CALLERS: readonly string[] = [
  'node:ipa_heartbeat',
  'node:hardware:push',
  'node:hardware:register',
  'node:resident_agent:register',
  'node:redfish_events',
  'runbook:create',
  'snapshot:write',
];
export const isOfResource = (policy: string): boolean => OF_RESOURCES.test(policy) && !OF_CALLERS.includes(policy);

/** Throws an Error for an operation without a policy that is not listed as public, and for a policy that does not exist. */
export function checkOperations({ paths }: Pick<Document, 'paths'>, publicOperations = PUBLIC_OPERATIONS): void {
  const operations = paths.flatMap((path) => [...path.operations.values()]);
  const open = operations.filter(({ policy, operationId }) => (policy === null) !== publicOperations.includes(operationId));
  const unknown = operations.filter(({ policy }) => policy !== null && !isPolicy(policy));
  const wrong = [...new Set([...open, ...unknown])].map(({ operationId }) => operationId);
  if (wrong.length > 0) throw new Error(`operations need a policy that exists (x-policy), or are public: ${wrong.join(', ')}`);
}

const forbidden = (policy: string): Fault => new Fault('HTTPForbidden', { resource: `baremetal:${policy}` });

/**
 * @param target the projects of the resource; absent: the policy depends on the caller alone
 * @throws Fault HTTPForbidden
 */
export function requirePolicy(caller: Caller, { auth }: WithAuth, policy: string, target?: Target): void {
  if (!auth.allowed(caller, policy, target)) throw forbidden(policy);
}

function grant({ permission }: Checked, policy: string): void {
  if (permission.policy === policy) permission.isGranted = true;
}

/** As requirePolicy. If the policy is that of the operation, the request may write and be answered. @throws Fault HTTPForbidden */
export function checkPolicy(request: Checked, context: WithAuth, policy: string, target?: Target): void {
  requirePolicy(request.caller, context, policy, target);
  grant(request, policy);
}

/**
 * Checks these policies in place of the operation's one.
 * @param policies empty for a resource that is open to everybody
 * @throws Fault HTTPForbidden
 */
export function checkInPlaceOf(policy: string, policies: Iterable<string>, request: Checked, context: WithAuth, target?: Target): void {
  for (const item of policies) requirePolicy(request.caller, context, item, target);
  grant(request, policy);
}

/**
 * The project that a list is limited to; undefined: the list shows all.
 * @param kind of the policies `KIND:list_all` and `KIND:list`
 * @param named the project that the request names
 * @throws Fault HTTPForbidden
 */
export function projectOfList(request: Checked, context: WithAuth, kind: string, named?: string | boolean | null): string | undefined {
  const { caller } = request;
  const all = `${kind}:list_all`;
  if (context.auth.allowed(caller, all)) {
    grant(request, all);
    return undefined;
  }
  if (!caller.project || (named && named !== caller.project)) throw forbidden(all);
  checkInPlaceOf(all, [`${kind}:list`], request, context);
  return caller.project;
}
