/** The DHCP options by which a machine boots from the network, for external DHCP servers. Names and order are Ironic's. */
import { Fault } from '../../model/errors';
import { BOOT_METHODS, type BootRecord } from '../../model/records';
import { urlHost } from '../../wire/addresses';
import { bootModeOf } from '../common/boot-settings';
import type { Task } from '../interfaces';
import type { DhcpOption } from './provider';

type IpVersion = DhcpOption['ip_version'];

/** RFC 2132 (60, 66, 67), RFC 5859 (150), RFC 5970 (59 of DHCPv6). */
const VENDOR_CLASS = '60';
const TFTP_SERVER_NAME = '66';
const TFTP_SERVER_ADDRESS = '150';
/** dnsmasq's name for the field siaddr. */
const SERVER_ADDRESS = '255';
const BOOT_FILE = { 4: '67', 6: '59' } as const;
/** The tags that the configuration of the DHCP server sets for requests of iPXE. */
const IPXE_TAG = { 4: 'ipxe', 6: 'ipxe6' } as const;
/** iPXE's encapsulated options: only requests of iPXE have this option. */
const IPXE_OPTIONS = '175';
/** Neutron's limit for the value of an option. */
const MAX = 64;
/** The script that the HTTP boot service has for every machine (boot/http.ts). */
const START_SCRIPT = 'boot.ipxe';

/** The boot loader by the node's architecture and boot mode. */
function loaderOf(task: Task, method: BootRecord['method']): string {
  const { options, node } = task;
  const mode = bootModeOf(task);
  const { cpu_arch: arch } = node.properties;
  const cpu = typeof arch === 'string' ? arch : '';
  const [byArch, uefi, bios] =
    BOOT_METHODS[method].loader === 'pxe'
      ? ([options['pxe.pxe_bootfile_name_by_arch'], options['pxe.uefi_pxe_bootfile_name'], options['pxe.pxe_bootfile_name']] as const)
      : ([options['pxe.ipxe_bootfile_name_by_arch'], options['pxe.uefi_ipxe_bootfile_name'], options['pxe.ipxe_bootfile_name']] as const);
  // A user may have set cpu_arch, also to the name of a property of all objects.
  const own = [`${cpu}-${mode}`, cpu].find((key) => Object.hasOwn(byArch, key));
  return (own === undefined ? undefined : byArch[own]) ?? (mode === 'uefi' ? uefi : bios);
}

/** The value of the boot file option: a URL in DHCPv6; in DHCPv4 a path on the TFTP server, or a URL for HTTP boot. */
function bootFileOf(task: Task, method: BootRecord['method'], version: IpVersion): string {
  const { options } = task;
  const loader = loaderOf(task, method);
  const server = version === 6 ? (options['DEFAULT.my_ipv6'] ?? options['pxe.tftp_server']) : options['pxe.tftp_server'];
  const file = BOOT_METHODS[method].byUrl
    ? `${options['deploy.http_url']}/${loader}`
    : version === 6
      ? `tftp://${urlHost(server)}/${loader}`
      : loader;
  if (file.length > MAX)
    throw new Fault('InvalidParameterValue', {
      message: 'The resulting boot file or URL length exceeds Neutron limitations. Please explore shorter file names or hostnames.',
    });
  return file;
}

/**
 * @param hasIpxeTag whether the DHCP server marks requests of iPXE with IPXE_TAG
 * @throws Fault InvalidParameterValue
 */
function optionsOf(task: Task, method: BootRecord['method'], hasIpxeTag: boolean, version: IpVersion): readonly DhcpOption[] {
  const { options } = task;
  const name = BOOT_FILE[version];
  const file = bootFileOf(task, method, version);
  const script = `${options['deploy.http_url']}/${START_SCRIPT}`;
  const tag = IPXE_TAG[version];
  const boot: readonly (readonly [string, string])[] =
    BOOT_METHODS[method].loader === 'pxe'
      ? [[name, file]]
      : hasIpxeTag
        ? [
            [`tag:!${tag},${name}`, file],
            [`tag:${tag},${name}`, script],
          ]
        : [
            [`!${IPXE_OPTIONS},${name}`, file],
            [name, script],
          ];
  const server = options['pxe.tftp_server'];
  const rest: readonly (readonly [string, string])[] =
    version === 6
      ? []
      : BOOT_METHODS[method].byUrl
        ? [[VENDOR_CLASS, 'HTTPClient']]
        : [
            [TFTP_SERVER_NAME, server],
            [TFTP_SERVER_ADDRESS, server],
            [SERVER_ADDRESS, server],
          ];
  return [...boot, ...rest].map(([opt_name, opt_value]) => ({ opt_name, opt_value, ip_version: version }));
}

/** The options of both IP versions. The DHCP server sends those of the version of the machine's request. */
export const bootOptions = (task: Task, method: BootRecord['method'], hasIpxeTag: boolean): readonly DhcpOption[] => [
  ...optionsOf(task, method, hasIpxeTag, 4),
  ...optionsOf(task, method, hasIpxeTag, 6),
];
