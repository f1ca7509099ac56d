/**
 * Each request carries whether the policy of its operation has allowed it. Before, nothing is written, and no answer leaves the dispatcher:
 * an operation whose handler forgets its policy fails in every test, and never acts.
 */
import type { Conductor } from '../../conductor/conductor';
import type { Store } from '../../store/store';

export interface Permission {
  /** Of the operation; null: it is public. */
  readonly policy: string | null;
  isGranted: boolean;
}

/** @throws Error, which is answered with 500 and without details */
export function requireGranted({ policy, isGranted }: Permission): void {
  if (!isGranted) throw new Error(`no code has checked the policy ${policy} of this operation`);
}

/** The functions of tables that write nothing. What is not listed counts as a write. */
const READS: ReadonlySet<PropertyKey> = new Set([
  'find',
  'findAgent',
  'findSummaries',
  'findToken',
  'list',
  'listColumns',
  'ofNode',
  'ownedVersions',
  'versions',
]);

/** The conductor; its functions are available when the permission is granted. */
export const guardedConductor = (conductor: Conductor, permission: Permission): Conductor =>
  new Proxy(conductor, {
    get(target, name) {
      requireGranted(permission);
      return Reflect.get(target, name) as unknown;
    },
  });

/** The store; its functions that write are available when the permission is granted. */
export const guardedStore = (store: Store, permission: Permission): Store =>
  new Proxy(store, {
    get(tables, name: keyof Store) {
      if (permission.isGranted) return tables[name];
      if (name === 'transaction') requireGranted(permission);
      return new Proxy(tables[name], {
        get(table, method) {
          if (!READS.has(method)) requireGranted(permission);
          return Reflect.get(table, method) as unknown;
        },
      });
    },
  });
