/**
 * The DHCP service alone, for the lab: `node dhcp-server.js '<JSON>'`, where the JSON holds options by section.name and, with `rows`, the
 * MAC addresses of ports and boot rows. With DHCP_STATE_DIR it runs on the embedded database in that folder instead. Prints `ready`, logs
 * to the standard error (with DHCP_DEBUG every answer), ends on SIGTERM.
 */
import { randomBytes } from 'node:crypto';
import { startDhcp, type DhcpSetup } from '../../../boot/dhcp/service';
import type { DhcpOptions } from '../../../boot/dhcp/setup';
import { pxeFilter } from '../../../boot/discovery';
import { systemClock } from '../../../model/clock';
import type { Log } from '../../../model/log';
import { startEmbedded } from '../../../store/embedded/embedded';
import { openStore } from '../../../store/postgres';
import { dhcpStore, type DhcpRows } from '../../support/fakes/dhcp-store';
import { FILTER_DEFAULTS, type FilterOptions } from '../../support/pxe-filter';

export type ServerOptions = DhcpOptions & FilterOptions;

const write = (level: string) => (message: string, fields?: object) =>
  void process.stderr.write(`${JSON.stringify({ level, message, ...fields })}\n`);
const log: Log = {
  debug: process.env['DHCP_DEBUG'] ? write('debug') : () => {},
  info: write('info'),
  warn: write('warn'),
  error: write('error'),
  child: () => log,
};
const DEFAULTS: ServerOptions = {
  ...FILTER_DEFAULTS,
  'DEFAULT.my_ipv6': null,
  'DEFAULT.my_ip': '127.0.0.1',
  'deploy.http_url': 'http://127.0.0.1:8080',
  'pxe.tftp_server': '127.0.0.1',
  'pxe.pxe_bootfile_name': 'pxelinux.0',
  'pxe.uefi_pxe_bootfile_name': 'bootx64.efi',
  'pxe.pxe_bootfile_name_by_arch': {},
  'pxe.ipxe_bootfile_name': 'undionly.kpxe',
  'pxe.uefi_ipxe_bootfile_name': 'snponly.efi',
  'pxe.ipxe_bootfile_name_by_arch': {},
  'boot.interface': null,
  'boot.dhcp_range': null,
  'boot.dhcp_netmask': null,
  'boot.dhcp_gateway': null,
  'boot.dhcp_dns': [],
  'boot.dhcp_subnet': [],
  'boot.dhcp_lease_time': 3600,
  'boot.dhcp_max_unknown': null,
  'boot.router_advertisements': true,
};

async function main(): Promise<void> {
  const { rows, ...given } = JSON.parse(process.argv[2] ?? '{}') as Partial<ServerOptions> & { rows?: DhcpRows };
  const stateDir = process.env['DHCP_STATE_DIR'];
  const database = stateDir === undefined ? undefined : await startEmbedded({ stateDir, log, clock: systemClock });
  const opened = database && (await openStore({ connection: database.connection, poolSize: 10, log, clock: systemClock }));
  const store: DhcpSetup['store'] = opened ?? dhcpStore(rows ?? { ports: [], boots: [] }).store;
  const options = { ...DEFAULTS, ...given };
  const dhcp = await startDhcp({ options, store, filter: pxeFilter(options), log, clock: systemClock, random: randomBytes });
  process.stdout.write('ready\n');
  process.once('SIGTERM', () => {
    void dhcp
      .stop()
      .then(async () => opened?.close())
      .then(async () => database?.stop())
      .then(() => process.exit(0));
  });
}
main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
