/** The user's rights by the server's policies (api/ui/rights.ts). Pure. */
export interface Rights {
  readonly any: readonly string[];
  readonly owned: readonly string[];
  readonly leased: readonly string[];
}
/** The projects to which a resource belongs. Absent: to none. */
export interface Owned {
  readonly owner?: string | null;
  readonly lessee?: string | null;
}
/** @param project the user's project */
export function isAllowed(rights: Rights, project: string | null, policy: string, { owner = null, lessee = null }: Owned = {}): boolean {
  const isOf = (policies: readonly string[], own: string | null): boolean =>
    project !== null && own === project && policies.includes(policy);
  return rights.any.includes(policy) || isOf(rights.owned, owner) || isOf(rights.leased, lessee);
}
