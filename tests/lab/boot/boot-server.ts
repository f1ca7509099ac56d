/**
 * The boot services alone, for the lab: `node boot-server.js '<JSON>'` with {address, interface, folder, boots, loaders}. DHCP, TFTP and
 * HTTP on that address, for the machines of these boot rows. Prints `ready`, logs to the standard error, ends on SIGTERM.
 */
import { randomBytes } from 'node:crypto';
import { startDhcp } from '../../../boot/dhcp/service';
import { startHttpBoot } from '../../../boot/http';
import { startTftp } from '../../../boot/tftp';
import { systemClock } from '../../../model/clock';
import type { Log } from '../../../model/log';
import type { ServedBoot } from '../../../model/records';
import type { Store } from '../../../store/store';
import { dhcpStore } from '../../support/fakes/dhcp-store';
import { optionsOf } from '../../support/options';
import { servicesOf } from '../../support/services';
import { urlHost } from '../../../wire/addresses';
import { filterWith } from '../../support/pxe-filter';

const write = (message: string, fields?: object) => void process.stderr.write(`${JSON.stringify({ message, ...fields })}\n`);
const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };

export interface BootServerSetup {
  readonly address: string;
  readonly interface: string;
  readonly folder: string;
  readonly boots: readonly ServedBoot[];
  /** Name → path of boot loaders besides iPXE. */
  readonly loaders?: Readonly<Record<string, string>>;
  /** Subnets ([boot]dhcp_subnet) in place of the range. */
  readonly subnets?: readonly string[];
}

async function main(): Promise<void> {
  const { address, interface: bridge, folder, boots, loaders: more = {}, subnets } = JSON.parse(process.argv[2]!) as BootServerSetup;
  const macs = boots.flatMap((boot) => boot.macs);
  const find = { forMac: async (mac: string) => boots.find((boot) => boot.macs.includes(mac)) };
  const byToken = async (token: string): Promise<ServedBoot | undefined> => boots.find((boot) => boot.token === token);
  const methods = Object.fromEntries(boots.flatMap((boot) => boot.macs.map((mac) => [mac, boot.method])));
  const known = dhcpStore({ ports: macs, boots: macs, methods }).store;
  const store = { ...known, boots: { ...find, byToken } } as unknown as Store;
  const common = { store, filter: filterWith(), log, clock: systemClock, glance: servicesOf().glance, random: randomBytes };
  const loaders = { 'undionly.kpxe': '/usr/lib/ipxe/undionly.kpxe', 'snponly.efi': '/usr/lib/ipxe/snponly.efi', ...more };
  const url = { 'deploy.http_url': `http://${urlHost(address)}:8080` };
  const http = await startHttpBoot({
    ...common,
    hosts: [address],
    options: {
      ...optionsOf(),
      ...url,
      'DEFAULT.my_ip': address,
      'boot.http_port': 8080,
      'boot.https_port': null,
      'boot.http_unix_socket': null,
      'boot.http_max_connections': 4096,
      'boot.http_max_connections_per_source': null,
      'deploy.http_root': folder,
      'pxe.loader_file_paths': loaders,
      'pxe.image_cache_size': 100,
      'DEFAULT.webserver_verify_ca': 'True',
      'DEFAULT.webserver_tls_minimum_version': '1.3',
      'agent.api_ca_file': null,
      'boot.cache_root': `${folder}/cache`,
      'files.own': [],
      'files.boot': new Set<string>(),
    },
  });
  const tftp = await startTftp({
    ...common,
    boots: http.files,
    hosts: [address],
    options: { 'boot.tftp_port': 69, 'pxe.tftp_root': folder, 'files.own': [], 'pxe.loader_file_paths': loaders },
  });
  const dhcp = await startDhcp({
    ...common,
    options: {
      ...url,
      'DEFAULT.my_ipv6': null,
      'DEFAULT.my_ip': address,
      'pxe.tftp_server': address,
      'pxe.pxe_bootfile_name': 'pxelinux.0',
      'pxe.uefi_pxe_bootfile_name': 'bootx64.efi',
      'pxe.pxe_bootfile_name_by_arch': {},
      'pxe.ipxe_bootfile_name': 'undionly.kpxe',
      'pxe.uefi_ipxe_bootfile_name': 'snponly.efi',
      'pxe.ipxe_bootfile_name_by_arch': {},
      'boot.interface': bridge,
      'boot.dhcp_range': subnets ? null : address.replace(/\d+$/, '100-').concat(address.replace(/\d+$/, '150')),
      'boot.dhcp_netmask': null,
      'boot.dhcp_gateway': null,
      'boot.dhcp_dns': [],
      'boot.dhcp_subnet': subnets ?? [],
      'boot.dhcp_lease_time': 600,
      'boot.dhcp_max_unknown': null,
      'boot.router_advertisements': true,
    },
  });
  process.stdout.write('ready\n');
  process.once('SIGTERM', () => {
    void Promise.all([dhcp.stop(), tftp.stop(), http.stop()]).then(() => process.exit(0));
  });
}
main().catch((error: unknown) => {
  write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
