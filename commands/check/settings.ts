/** Checks of the options: those of the start, with the files that they name, and the addresses that result. */
import { readInspectionFiles } from '../../conductor/index';
import { SETTING_CHECKS } from '../../server/setting-checks';
import { bootHostsOf, sharesDatabaseOf } from '../../server/settings';
import { refusalsOf, type HostCheck, type Result } from './check-row';

/** The checks of the start. */
export const settingChecks: readonly HostCheck[] = SETTING_CHECKS.map(({ what, check }): HostCheck => ({
  what,
  check: ({ options, resolved, roles, databaseUrl, stateDir }) => {
    const found: Result[] = [];
    const warn = (message: string): void => void found.push(['warning', message]);
    try {
      check({ options, resolved, roles, hasRpc: sharesDatabaseOf(options, databaseUrl), stateDir }, warn)?.forEach(warn);
    } catch (error) {
      found.push(...refusalsOf(error));
    }
    return found;
  },
}));

export const addresses: HostCheck = {
  what: 'addresses',
  roles: ['boot', 'conductor'],
  check: ({ options, resolved }) => [
    [
      'note',
      `machines use ${resolved['service_catalog.endpoint_override']} and ${resolved['deploy.http_url']}` +
        (options['DEFAULT.my_ip'] === null ? `; [DEFAULT]my_ip is not set: ${resolved['DEFAULT.my_ip']} is the address of this host` : ''),
    ],
  ],
};

export const inspectionFiles: HostCheck = {
  what: 'inspection',
  roles: ['conductor'],
  check: async ({ resolved }) => {
    // Its options are checked above; this reads the files.
    await readInspectionFiles(resolved);
    return [];
  },
};

export const bootAddresses: HostCheck = {
  what: 'boot services',
  roles: ['boot'],
  check: ({ resolved }) => {
    bootHostsOf(resolved, 'boot.http_host');
    if (resolved['boot.tftp']) bootHostsOf(resolved, 'boot.tftp_host');
    return [];
  },
};
