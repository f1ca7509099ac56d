/** The policies that allow a user something, so that the page offers nothing that the API would answer with 403. */
import type { Options } from '../../config/options';
import { PAGE_POLICIES } from '../../model/rules/page-policies';
import type { Caller } from '../../policy/caller';
import type { Target } from '../../policy/vocabulary';
import type { Auth } from '../pipeline/handler';

/** With [api]project_admin_can_manage_own_nodes, these policies are enough too. */
const OF_OWN_NODES: Readonly<Record<string, string>> = {
  'node:create': 'node:create:self_owned_node',
  'node:delete': 'node:delete:self_owned_node',
};

interface Rights {
  /** The policies that are allowed for every resource, or that do not depend on a resource. */
  readonly any: readonly string[];
  /** The policies that are allowed for resources that the user's project owns. */
  readonly owned: readonly string[];
  /** The policies that are allowed for nodes that the user's project leases. */
  readonly leased: readonly string[];
}
export const NO_RIGHTS: Rights = { any: [], owned: [], leased: [] };

export function rightsOf(caller: Caller, auth: Auth, options: Options): Rights {
  const { project } = caller;
  const allowed = (target?: Target): readonly string[] =>
    PAGE_POLICIES.filter((policy) => {
      const own = options['api.project_admin_can_manage_own_nodes'] ? OF_OWN_NODES[policy] : undefined;
      return auth.allowed(caller, policy, target) || (own !== undefined && auth.allowed(caller, own, target));
    });
  return {
    any: allowed(),
    owned: project === null ? [] : allowed({ owner: project, lessee: null }),
    leased: project === null ? [] : allowed({ owner: null, lessee: project }),
  };
}
