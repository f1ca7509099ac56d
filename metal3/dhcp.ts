/** The container `dnsmasq`: translates its DHCP variables, in dnsmasq's notation, to the options of our DHCP and TFTP services. */
import { isIP, isIPv4 } from 'node:net';
import type { LoadedOptions } from '../config/options';
import { netmaskLength, parseNetwork } from '../model/idents';
import { formatIpv6, parseIpv6 } from '../wire/ipv6';
import { Metal3Error, type ContainerContext } from './container-context';

/** A machine of DHCP_HOSTS. */
interface DhcpHost {
  readonly mac: string;
  /** Its fixed address. */
  readonly address?: string | undefined;
  readonly ignored: boolean;
}
interface DhcpPlan {
  readonly subnets: readonly string[];
  readonly hosts: readonly DhcpHost[];
  /** Only machines of DHCP_HOSTS are answered. */
  readonly onlyHosts: boolean;
}

const items = (text: string, separator: string): readonly string[] =>
  text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== '');
const refuse = (name: string, item: string, why: string): never => {
  throw new Metal3Error(`${name}: "${item}": ${why}`);
};

/** dnsmasq's names and numbers of DHCP options → keys of [boot]dhcp_subnet. */
const OPTIONS: Readonly<Record<string, 'gateway' | 'dns' | 'domain' | 'mtu'>> = {
  'option:router': 'gateway',
  '3': 'gateway',
  'option:dns-server': 'dns',
  '6': 'dns',
  'option6:dns-server': 'dns',
  'option:domain-name': 'domain',
  '15': 'domain',
  'option:mtu': 'mtu',
  '26': 'mtu',
};
type Keys = Readonly<Partial<Record<'gateway' | 'dns' | 'domain' | 'mtu', readonly string[]>>>;
interface OptionLine {
  /** Absent: the line applies to all ranges. */
  readonly tag?: string | undefined;
  readonly keys: Keys;
}
function optionLine(item: string): OptionLine {
  const [first = '', ...rest] = item.split(',').map((word) => word.trim());
  const tag = /^tag:(.+)$/.exec(first)?.[1];
  const [name = '', ...values] = tag === undefined ? [first, ...rest] : rest;
  const key = Object.hasOwn(OPTIONS, name) ? OPTIONS[name]! : refuse('DHCP_OPTIONS', item, `the option ${name} cannot be sent`);
  return { tag, keys: { [key]: values.map((value) => value.replace(/^\[|\]$/g, '')) } };
}

const DURATIONS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
/** dnsmasq's lease time → seconds; undefined: not a lease time. */
function leaseTime(text: string): number | undefined {
  if (text === 'infinite') return 100_000_000;
  const [, number, unit] = /^(\d{1,9})([smhdw]?)$/.exec(text) ?? [];
  return number === undefined ? undefined : Math.min(Math.max(Number(number) * DURATIONS[unit!]!, 60), 100_000_000);
}

interface Range {
  readonly tag?: string | undefined;
  readonly first: string;
  readonly last: string;
  readonly width: number;
  readonly lease?: number | undefined;
}
function rangeOf(item: string): Range {
  const words = item.split(',').map((word) => word.trim());
  const tag = /^set:(.+)$/.exec(words[0] ?? '')?.[1];
  const [first = '', last = '', mask = '', ...more] = tag === undefined ? words : words.slice(1);
  const family = isIP(first);
  if (family === 0 || isIP(last) !== family) refuse('DHCP_RANGE', item, 'it is not FIRST,LAST,MASK');
  const width = family === 4 ? (isIPv4(mask) ? netmaskLength(mask) || 0 : 0) : /^\d{1,3}$/.test(mask) ? Number(mask) : 0;
  if (width === 0 || width > 128) refuse('DHCP_RANGE', item, 'it needs a netmask, or the length of the prefix for IPv6, as its third part');
  const lease = more[0] === undefined ? undefined : (leaseTime(more[0]) ?? refuse('DHCP_RANGE', item, `${more[0]} is not a lease time`));
  return { first, last, width, tag, lease };
}

/** The first address of the network. */
function networkOf(address: string, width: number): string {
  if (isIPv4(address)) {
    const bits = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
    const network = bits - (bits % 2 ** (32 - width));
    return [24, 16, 8, 0].map((shift) => Math.floor(network / 2 ** shift) % 256).join('.');
  }
  const hostBits = BigInt(128 - width);
  return formatIpv6(((parseIpv6(address) ?? 0n) >> hostBits) << hostBits);
}
const contains = (network: string, width: number, address: string): boolean =>
  parseNetwork(`${network}/${width}`)?.contains(address) === true;

/** One line of [boot]dhcp_subnet. */
function subnetLine(range: Range, options: readonly OptionLine[], { get, ip, interface: name }: ContainerContext): string {
  const v4 = isIPv4(range.first);
  const network = networkOf(range.first, range.width);
  const dns = get('DNS_IP') === 'provisioning' ? ip : get('DNS_IP').replace(/^\[|\]$/g, '');
  const isOfFamily = (address: string): boolean => address !== '' && isIPv4(address) === v4;
  const keys: Record<string, readonly string[]> = {
    gateway: [get('GATEWAY_IP')].filter((address) => v4 && isOfFamily(address)),
    dns: [dns].filter(isOfFamily),
  };
  // Lines with the range's tag replace lines without a tag, so they come last.
  const applying = [
    ...options.filter(({ tag }) => tag === undefined),
    ...options.filter(({ tag }) => tag !== undefined && tag === range.tag),
  ];
  for (const line of applying) Object.assign(keys, line.keys);
  const direct = contains(network, range.width, ip);
  return [
    `${network}/${range.width}`,
    `range=${range.first}-${range.last}`,
    ...(direct && name !== undefined ? [`interface=${name}`] : []),
    ...(range.lease === undefined ? [] : [`lease=${range.lease}`]),
    ...Object.entries(keys).flatMap(([key, values]) => values.map((value) => `${key}=${value}`)),
  ].join(' ');
}

const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/;
function hostOf(item: string): DhcpHost {
  const words = item
    .toLowerCase()
    .split(',')
    .map((word) => word.trim());
  const [mac = ''] = words;
  if (!MAC.test(mac)) refuse('DHCP_HOSTS', item, 'it does not begin with a MAC address');
  const rest = words.slice(1).map((word) => word.replace(/^\[|\]$/g, ''));
  const address = rest.find((word) => isIP(word) !== 0);
  return { mac, address, ignored: rest.includes('ignore') };
}

/** @throws Metal3Error */
export function dhcpPlan(context: ContainerContext): DhcpPlan {
  const { get } = context;
  const ranges = items(get('DHCP_RANGE'), ';').map(rangeOf);
  const options = items(get('DHCP_OPTIONS'), ';').map(optionLine);
  const hosts = items(get('DHCP_HOSTS'), ';').map(hostOf);
  const strange = hosts.find(
    ({ address }) => address && !ranges.some(({ first, width }) => contains(networkOf(first, width), width, address)),
  );
  if (strange) throw new Metal3Error(`DHCP_HOSTS: ${strange.address!} is in no subnet of DHCP_RANGE`);
  const ignored = items(get('DHCP_IGNORE'), ',');
  const other = ignored.find((tag) => !/^(?:tag:)?!known$/.test(tag));
  if (other !== undefined)
    throw new Metal3Error(`DHCP_IGNORE: "${other}" is not supported: tag:!known is, which answers the machines of DHCP_HOSTS only`);
  return { subnets: ranges.map((range) => subnetLine(range, options, context)), hosts, onlyHosts: ignored.length > 0 };
}

/** Names of boot loaders → files of the image, or of the folder with the operator's own boot loaders. */
function loaders({ get, exists }: ContainerContext): Readonly<Record<string, string>> {
  const name = get('SNP_BASENAME', 'snponly');
  const own = get('IPXE_CUSTOM_FIRMWARE_DIR', '/shared/custom_ipxe_firmware');
  const files: Readonly<Record<string, string>> = {
    'undionly.kpxe': '/usr/lib/ipxe/undionly.kpxe',
    [`${name}-x86_64.efi`]: '/usr/lib/ipxe/snponly.efi',
    [`${name}-arm64.efi`]: '/usr/lib/ipxe/snponly-arm64.efi',
  };
  const found = Object.entries(files).map(([file, path]) => [file, exists(`${own}/${file}`) ? `${own}/${file}` : path] as const);
  return Object.fromEntries(found.filter(([, path]) => exists(path)));
}

/** The options of the services that differ from their defaults. */
export function dhcpOptions(context: ContainerContext, { subnets }: DhcpPlan, httpUrl: string): Partial<LoadedOptions> {
  const { ip, interface: name = null, get } = context;
  const snp = get('SNP_BASENAME', 'snponly');
  return {
    'DEFAULT.my_ip': ip,
    ...(ip.includes(':') ? { 'DEFAULT.my_ipv6': ip } : {}),
    'deploy.http_url': httpUrl,
    'dhcp.dhcp_provider': subnets.length > 0 ? 'builtin' : 'none',
    'boot.interface': name,
    'boot.dhcp_subnet': subnets,
    'boot.dhcp_max_unknown': MAX_UNKNOWN,
    'pxe.ipxe_bootfile_name': 'undionly.kpxe',
    'pxe.uefi_ipxe_bootfile_name': `${snp}-x86_64.efi`,
    'pxe.ipxe_bootfile_name_by_arch': { aarch64: `${snp}-arm64.efi` },
    'pxe.loader_file_paths': loaders(context),
  };
}
/** This container knows no nodes, so that all addresses may go to unknown machines. */
const MAX_UNKNOWN = 1 << 20;
