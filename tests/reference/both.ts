/** Both servers side by side on empty databases, with the same hardware enabled and the same settings. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadOptions } from '../../config/load';
import { startServer, type Role } from '../../main';
import { silentLog } from '../../model/log';
import { startRealIronic, type Settings } from '../lab/inspection/real-ironic';
import { freePort } from '../support/free-port';

/** What both enable: the fake hardware and everything that it can be made of on both sides. */
const ENABLED: Readonly<Record<string, string>> = {
  hardware_types: 'fake-hardware,manual-management',
  bios_interfaces: 'no-bios,fake',
  boot_interfaces: 'fake,ipxe,http-ipxe',
  console_interfaces: 'no-console,fake',
  deploy_interfaces: 'fake,direct',
  firmware_interfaces: 'no-firmware,fake',
  inspect_interfaces: 'no-inspect,fake,agent',
  management_interfaces: 'fake',
  network_interfaces: 'noop',
  power_interfaces: 'fake',
  raid_interfaces: 'no-raid,fake',
  rescue_interfaces: 'no-rescue,fake',
  storage_interfaces: 'noop,fake',
  vendor_interfaces: 'no-vendor,fake',
};

/** The power synchronisation clears old errors, on each side at a moment of its own. */
const CALM = { sync_power_state_interval: '86400' };

export interface Both {
  readonly reference: string;
  readonly ours: string;
  /** What our HTTP boot service answers at, if it was asked for. */
  readonly bootUrl: string | undefined;
  /** What our introspection service answers at, if it was asked for. */
  readonly inspectorUrl: string | undefined;
  /** Where the real Ironic puts down what its machines boot. */
  readonly httpRoot: string;
  stop(): Promise<void>;
}
/** @param own of one of them alone; a section `boot` or `inspector_service` of ours starts those services */
export async function startBoth(
  settings: Settings = {},
  own: { readonly reference?: Settings; readonly ours?: Settings } = {},
): Promise<Both> {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-both-'));
  const enabled = Object.fromEntries(Object.entries(ENABLED).map(([kind, names]) => [`enabled_${kind}`, names]));
  const ironic = await startRealIronic(join(folder, 'ironic'), '127.0.0.1', await freePort(), {
    ...settings,
    DEFAULT: { ...enabled, ...settings['DEFAULT'] },
    conductor: { ...CALM, node_locked_retry_attempts: '1', ...settings['conductor'] },
    ...own.reference,
  });
  const said: Settings = {
    ...settings,
    ...own.ours,
    DEFAULT: { ...enabled, host: 'real-ironic', ...settings['DEFAULT'] },
    conductor: { ...CALM, ...settings['conductor'] },
    api: { host_ip: '127.0.0.1', port: '0', ...settings['api'] },
  };
  const variables = Object.fromEntries(
    Object.entries(said).flatMap(([section, options]) =>
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
    stop: async () => {
      await server.stop();
      await ironic.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
