/** Both servers side by side on empty databases, with the same hardware enabled and the same settings. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../../config/load';
import type { Role } from '../../server/roles';
import { startServer } from '../../server/server';
import { silentLog } from '../../model/log';
import { startRealIronic, type Settings } from '../lab/inspection/real-ironic';
import { freePort } from '../support/free-port';

/** What both enable: the fake hardware and everything that it can be made of on both sides. */
export const ENABLED: Readonly<Record<string, string>> = {
  enabled_hardware_types: 'fake-hardware,manual-management',
  enabled_bios_interfaces: 'no-bios,fake',
  enabled_boot_interfaces: 'fake,ipxe,http-ipxe',
  enabled_console_interfaces: 'no-console,fake',
  enabled_deploy_interfaces: 'fake,direct',
  enabled_firmware_interfaces: 'no-firmware,fake',
  enabled_inspect_interfaces: 'no-inspect,fake,agent',
  enabled_management_interfaces: 'fake',
  enabled_network_interfaces: 'noop',
  enabled_power_interfaces: 'fake',
  enabled_raid_interfaces: 'no-raid,fake',
  enabled_rescue_interfaces: 'no-rescue,fake',
  enabled_storage_interfaces: 'noop,fake',
  enabled_vendor_interfaces: 'no-vendor,fake',
};

/** The power synchronisation clears old errors, on each side at a moment of its own. */
const CALM = { sync_power_state_interval: '86400' };

export interface Both {
  readonly reference: string;
  readonly ours: string;
  /** The URL of our HTTP boot service, if it was requested. */
  readonly bootUrl: string | undefined;
  /** The URL of our introspection service, if it was requested. */
  readonly inspectorUrl: string | undefined;
  /** The folders in which the real Ironic puts the files that its machines boot over HTTP and TFTP. */
  readonly httpRoot: string;
  readonly tftpRoot: string;
  stop(): Promise<void>;
}
/** @param own settings of one of them alone; a section `boot` or `inspector_service` of ours starts those services */
export async function startBoth(
  settings: Settings = {},
  own: { readonly reference?: Settings; readonly ours?: Settings } = {},
): Promise<Both> {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-both-'));
  const ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', await freePort(), {
    ...settings,
    DEFAULT: { ...ENABLED, ...settings['DEFAULT'] },
    conductor: { ...CALM, node_locked_retry_attempts: '1', ...settings['conductor'] },
    ...own.reference,
  });
  const ourSettings: Settings = {
    ...settings,
    ...own.ours,
    DEFAULT: { ...ENABLED, host: 'real-ironic', ...settings['DEFAULT'] },
    conductor: { ...CALM, ...settings['conductor'] },
    api: { host_ip: '127.0.0.1', port: '0', ...settings['api'] },
  };
  const variables = Object.fromEntries(
    Object.entries(ourSettings).flatMap(([section, options]) =>
      Object.entries(options).map(([name, value]) => [`OS_${section.toUpperCase()}__${name.toUpperCase()}`, value]),
    ),
  );
  const { options } = loadOptions([], variables);
  const roles: readonly Role[] = [
    'api',
    'conductor',
    ...(own.ours?.['boot'] ? (['boot'] as const) : []),
    ...(own.ours?.['inspector_service'] ? (['inspector'] as const) : []),
  ];
  const server = await startServer({ options, roles, stateDir: join(folder, 'state'), log: silentLog });
  return {
    reference: ironic.url,
    ours: server.apiUrl!,
    bootUrl: server.bootUrl,
    inspectorUrl: server.inspectorUrl,
    httpRoot: ironic.httpRoot,
    tftpRoot: ironic.tftpRoot,
    stop: async () => {
      await server.stop();
      await ironic.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
