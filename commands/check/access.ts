/** Checks of who reaches the API: authentication, users, policies and Keystone. */
import { systemClock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { withoutUrlCredentials } from '../../model/urls';
import { startEnforcer } from '../../policy/live';
import { checkUsers, warningLog } from '../../server/setting-checks';
import { createKeystoneSession } from '../../wire/keystone/session';
import { keystoneSettings } from '../../wire/keystone/settings';
import { timeoutSignal } from '../../wire/timeout-signal';
import { REQUEST_TIMEOUT_MS, type HostCheck } from './check-row';

export const authentication: HostCheck = {
  what: 'authentication',
  roles: ['api', 'inspector'],
  check: ({ options }) =>
    options['DEFAULT.auth_strategy'] === null
      ? [['note', '[DEFAULT]auth_strategy is not set: only this host reaches the API (docs/install.md, Authentication)']]
      : [],
};

export const users: HostCheck = {
  what: 'users',
  roles: ['api', 'inspector'],
  check: ({ options }) => {
    const warnings: string[] = [];
    checkUsers(
      options,
      warningLog((message) => warnings.push(message)),
    );
    return warnings.map((message) => ['warning', message] as const);
  },
};

export const policies: HostCheck = {
  what: 'policies',
  roles: ['api', 'inspector'],
  check: async ({ options }) => {
    const warnings: string[] = [];
    const live = await startEnforcer(
      options,
      warningLog((message) => warnings.push(message)),
    );
    await live.stop();
    return options['DEFAULT.auth_strategy'] === null ? [] : warnings.map((message) => ['warning', message] as const);
  },
};

export const keystone: HostCheck = {
  what: 'Keystone',
  roles: ['api', 'inspector'],
  check: async ({ options }) => {
    if (options['DEFAULT.auth_strategy'] !== 'keystone') return [];
    const settings = keystoneSettings(options, 'keystone_authtoken');
    const signal = timeoutSignal(REQUEST_TIMEOUT_MS);
    const never = { retries: 0 };
    const retries = { attemptTimeoutMs: REQUEST_TIMEOUT_MS, connect: never, status: never, statuses: [] };
    const session = createKeystoneSession(settings, { clock: systemClock, retries, signal });
    try {
      await session.projectId();
      return [['ok', `${withoutUrlCredentials(settings.authUrl)} accepts this program`]];
    } catch (error) {
      return [['warning', reasonOf(error)]];
    } finally {
      await session.close();
    }
  },
};
