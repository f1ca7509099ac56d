/**
 * [DEFAULT]auth_strategy = noauth: no authentication, and everything is allowed. Only the policies about showing secrets are evaluated
 * (policy/ineffectiveness.ts). As in Ironic, the identity of the caller is what its headers claim.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { NOBODY } from '../../policy/caller';
import type { Strategy } from '../resource/handler';

/** The most characters of a header that are read. */
const MAX_CHARACTERS = 1024;
const MAX_ROLES = 100;

/** The headers of Keystone's middleware, and their former names. The first one that is given counts. */
const HEADERS = {
  user: ['x-user-id', 'x-user'],
  userName: ['x-user-name'],
  userDomain: ['x-user-domain-id'],
  project: ['x-project-id', 'x-tenant-id', 'x-tenant'],
  projectName: ['x-project-name', 'x-tenant-name'],
  projectDomain: ['x-project-domain-id'],
  domain: ['x-domain-id'],
} as const;
const ROLES = ['x-roles', 'x-role'];
const SYSTEM = ['openstack-system-scope'];

function textOf(headers: IncomingHttpHeaders, names: readonly string[]): string | null {
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) return (Array.isArray(value) ? value[0]! : value).slice(0, MAX_CHARACTERS) || null;
  }
  return null;
}
const rolesOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((role) => role.trim().toLowerCase())
    .filter((role) => role !== '')
    .slice(0, MAX_ROLES);

export const noauth: Strategy = {
  identify: async (headers) => ({
    ...NOBODY,
    user: textOf(headers, HEADERS.user),
    userName: textOf(headers, HEADERS.userName),
    userDomain: textOf(headers, HEADERS.userDomain),
    project: textOf(headers, HEADERS.project),
    projectName: textOf(headers, HEADERS.projectName),
    projectDomain: textOf(headers, HEADERS.projectDomain),
    domain: textOf(headers, HEADERS.domain),
    roles: rolesOf(textOf(headers, ROLES) ?? ''),
    system: textOf(headers, SYSTEM) === 'all',
    exempt: true,
  }),
};
