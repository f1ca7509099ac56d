/** What the user may do, by the policies of the server (api/ui/rights.ts). Pure. */
export interface Rights {
  readonly any: readonly string[];
  readonly owned: readonly string[];
  readonly leased: readonly string[];
}
/** The projects of a resource. Absent: it has none. */
export interface Owned {
  readonly owner?: string | null;
  readonly lessee?: string | null;
}
/** @param project of the user */
export function isAllowed(rights: Rights, project: string | null, policy: string, { owner = null, lessee = null }: Owned = {}): boolean {
  const isOf = (policies: readonly string[], own: string | null): boolean =>
    project !== null && own === project && policies.includes(policy);
  return rights.any.includes(policy) || isOf(rights.owned, owner) || isOf(rights.leased, lessee);
}
