/** Options of the DHCP service, for tests. */
import type { DhcpOptions } from '../../../boot/dhcp/setup';

export const DHCP_OPTIONS: DhcpOptions = {
  'DEFAULT.my_ipv6': null,
  'DEFAULT.my_ip': '10.0.0.1',
  'deploy.http_url': 'http://10.0.0.1:8080',
  'pxe.tftp_server': '10.0.0.1',
  'pxe.pxe_bootfile_name': 'pxelinux.0',
  'pxe.uefi_pxe_bootfile_name': 'bootx64.efi',
  'pxe.pxe_bootfile_name_by_arch': {},
  'pxe.ipxe_bootfile_name': 'undionly.kpxe',
  'pxe.uefi_ipxe_bootfile_name': 'snponly.efi',
  'pxe.ipxe_bootfile_name_by_arch': {},
  'boot.interface': 'eth1',
  'boot.dhcp_range': '10.0.0.100-10.0.0.200',
  'boot.dhcp_netmask': null,
  'boot.dhcp_gateway': null,
  'boot.dhcp_dns': [],
  'boot.dhcp_subnet': [],
  'boot.dhcp_lease_time': 3600,
  'boot.dhcp_max_unknown': null,
  'boot.router_advertisements': true,
};
