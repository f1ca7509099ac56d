/** The roles of a server process: which parts of the server run in it. */
import type { LoadedOptions } from '../config/options';
import { StartError } from './settings';

export const ROLES = ['api', 'conductor', 'boot', 'inspector'] as const;
export type Role = (typeof ROLES)[number];

/** The roles that were named. Without names: all, but the introspection service only if it is enabled. */
export const rolesOf = (named: readonly Role[] | undefined, options: LoadedOptions): readonly Role[] =>
  named ?? ROLES.filter((role) => role !== 'inspector' || options['inspector_service.enabled']);

/** Whether this process calls conductors. */
export const callsConductors = (roles: readonly Role[]): boolean => roles.includes('api') || roles.includes('inspector');

/** Throws StartError if the API and the conductor run in different processes that cannot reach each other. */
export function checkRoles(roles: readonly Role[], databaseUrl: string | undefined, sharesDatabase: boolean): void {
  if (callsConductors(roles) === roles.includes('conductor') || sharesDatabase) return;
  const caller = roles.includes('inspector') && !roles.includes('api') ? 'inspector' : 'api';
  throw new StartError(
    `with ${databaseUrl ? '[DEFAULT]rpc_transport = none' : 'the embedded database'}, the roles ${caller} and conductor must run in one ` +
      `process: name both or neither, or ${databaseUrl ? 'set [DEFAULT]rpc_transport = json-rpc' : 'name a PostgreSQL server in [database]connection'}`,
  );
}
