/** [DEFAULT]auth_strategy = noauth: no authentication; everything is allowed. Identity headers are trusted. */
import { NOBODY } from '../../policy/caller';
import type { Strategy } from '../resource/handler';

const first = (value: string | string[] | undefined): string | null => (Array.isArray(value) ? value[0] : value) || null;

export const noauth: Strategy = {
  enforces: false,
  identify: async (headers) => ({
    ...NOBODY,
    user: first(headers['x-user-id']),
    project: first(headers['x-project-id']),
    roles: (first(headers['x-roles']) ?? '')
      .split(',')
      .map((role) => role.trim().toLowerCase())
      .filter(Boolean),
    system: first(headers['openstack-system-scope']) === 'all',
  }),
};
