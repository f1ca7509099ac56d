/** Derives the settings of the DHCP service from the options and the interface's addresses. Unusable options stop the start. */
import { isIPv4 } from 'node:net';
import type { Options } from '../../config/options';
import { withHost } from '../../wire/addresses';
import { addressToNumber, numberToAddress } from '../../wire/dhcp/dhcp';
import type { LinkAddress } from '../../wire/sockets/link';
import { isOnSubnet, type BootPolicy, type DhcpPolicy } from './dhcpv4';
import type { PoolRange } from './addresses';
import { MAX_POOL } from './pool';
import { DhcpSetupError, parseSubnet, type SubnetLine } from './subnets';

/** The options (section.name) that the DHCP service reads. */
export type DhcpOptions = Pick<
  Options,
  | 'DEFAULT.my_ip'
  | 'DEFAULT.my_ipv6'
  | 'deploy.http_url'
  | 'pxe.tftp_server'
  | 'pxe.pxe_bootfile_name'
  | 'pxe.uefi_pxe_bootfile_name'
  | 'pxe.pxe_bootfile_name_by_arch'
  | 'pxe.ipxe_bootfile_name'
  | 'pxe.uefi_ipxe_bootfile_name'
  | 'pxe.ipxe_bootfile_name_by_arch'
  | 'boot.interface'
  | 'boot.dhcp_range'
  | 'boot.dhcp_netmask'
  | 'boot.dhcp_gateway'
  | 'boot.dhcp_dns'
  | 'boot.dhcp_subnet'
  | 'boot.dhcp_lease_time'
  | 'boot.dhcp_max_unknown'
  | 'boot.router_advertisements'
>;

function ipv4(option: string, value: string): string {
  if (!isIPv4(value)) throw new DhcpSetupError(`${option} = ${value} is not an IPv4 address`);
  return value;
}
/** Parses a netmask: ones, then zeros. */
function mask(value: string): number {
  const bits = addressToNumber(ipv4('[boot]dhcp_netmask', value));
  const zeros = ~bits >>> 0;
  if (bits === 0 || (zeros & (zeros + 1)) !== 0) throw new DhcpSetupError(`[boot]dhcp_netmask = ${value} is not a netmask`);
  return bits;
}
const networkOf = (address: number, bits: number): number => (address & bits) >>> 0;

function rangeOf(text: string | null): { readonly first: number; readonly last: number } {
  const parts = (text ?? '').split('-').map((part) => part.trim());
  if (parts.length !== 2 || !parts.every(isIPv4))
    throw new DhcpSetupError(`[boot]dhcp_range = ${text ?? ''}: it must be FIRST-LAST, two IPv4 addresses`);
  const [first, last] = parts.map(addressToNumber) as [number, number];
  if (last < first) throw new DhcpSetupError(`[boot]dhcp_range = ${text!} ends before it begins`);
  if (last - first >= MAX_POOL) throw new DhcpSetupError(`[boot]dhcp_range = ${text!} has more than ${MAX_POOL} addresses`);
  return { first, last };
}

/** The names of boot loaders. */
export const loadersOf = (options: DhcpOptions): Pick<DhcpPolicy, 'ipxeLoaders' | 'pxeLoaders'> => ({
  ipxeLoaders: {
    bios: options['pxe.ipxe_bootfile_name'],
    uefi: options['pxe.uefi_ipxe_bootfile_name'],
    byArch: options['pxe.ipxe_bootfile_name_by_arch'],
  },
  pxeLoaders: {
    bios: options['pxe.pxe_bootfile_name'],
    uefi: options['pxe.uefi_pxe_bootfile_name'],
    byArch: options['pxe.pxe_bootfile_name_by_arch'],
  },
});

interface DhcpPlan {
  /** The interface whose packets are answered. */
  readonly interface: string;
  /** The range, for the log. */
  readonly written: string;
  readonly policy: DhcpPolicy;
  readonly range: PoolRange;
  /** The interface is in the subnet of the range; else machines are only reached through relays. */
  readonly direct: boolean;
  /** Unknown machines that may get an address within one lease time. */
  readonly maxUnknown: number;
}

/** @param addresses of the interface; undefined: the interface does not exist */
function usableInterface(
  name: string | null,
  addresses: readonly LinkAddress[] | undefined,
): { readonly name: string; readonly addresses: readonly LinkAddress[] } {
  if (!name) throw new DhcpSetupError('[boot]interface is not set: the DHCP service needs an interface');
  if (!addresses) throw new DhcpSetupError(`[boot]interface = ${name}: there is no such interface`);
  if (addresses.length === 0) throw new DhcpSetupError(`[boot]interface = ${name}: it has no IPv4 address`);
  return { name, addresses };
}
/** The address of this host for a subnet: my_ip if it is there, or on the interface if the subnet is behind relays. */
const serverAddress = (
  myIp: string,
  addresses: readonly LinkAddress[],
  home: LinkAddress | undefined,
  isInSubnet: (address: string) => boolean,
): string => (addresses.find(({ address }) => address === myIp && (!home || isInSubnet(address))) ?? home ?? addresses[0]!).address;

/**
 * @param found the addresses of the interface; undefined: the interface does not exist
 * @throws DhcpSetupError
 * @internal
 */
export function planDhcp(options: DhcpOptions, found: readonly LinkAddress[] | undefined): DhcpPlan {
  const { name, addresses } = usableInterface(options['boot.interface'], found);
  const range = rangeOf(options['boot.dhcp_range']);
  const given = options['boot.dhcp_netmask'];

  // The address whose subnet contains the range. If a netmask is given there may be none; then all machines are behind relays.
  const home = addresses.find(({ address, netmask }) => {
    const bits = mask(given ?? netmask);
    return networkOf(addressToNumber(address), bits) === networkOf(range.first, bits);
  });
  const netmask = given ?? home?.netmask;
  if (netmask === undefined)
    throw new DhcpSetupError(`[boot]dhcp_range = ${options['boot.dhcp_range']!} is in no subnet of interface ${name}`);
  const bits = mask(netmask);
  const network = networkOf(range.first, bits);
  if (networkOf(range.last, bits) !== network)
    throw new DhcpSetupError(`[boot]dhcp_range = ${options['boot.dhcp_range']!} is not within one subnet (netmask ${netmask})`);

  const gateway = options['boot.dhcp_gateway'];
  if (gateway !== null && networkOf(addressToNumber(ipv4('[boot]dhcp_gateway', gateway)), bits) !== network)
    throw new DhcpSetupError(`[boot]dhcp_gateway = ${gateway} is not in the subnet of [boot]dhcp_range`);
  const isInSubnet = (address: string): boolean => networkOf(addressToNumber(address), bits) === network;
  const server = serverAddress(options['DEFAULT.my_ip'], addresses, home, isInSubnet);
  const leaseSeconds = options['boot.dhcp_lease_time'];
  return {
    interface: name,
    written: options['boot.dhcp_range']!,
    direct: home !== undefined,
    maxUnknown: options['boot.dhcp_max_unknown'] ?? Math.ceil((range.last - range.first + 1) / 2),
    policy: {
      server,
      network,
      netmask: numberToAddress(bits),
      gateway,
      dns: options['boot.dhcp_dns'].map((each) => ipv4('[boot]dhcp_dns', each)),
      domain: null,
      mtu: null,
      routes: [],
      leaseSeconds,
      tftpServer: ipv4('[pxe]tftp_server', options['pxe.tftp_server']),
      httpUrl: options['deploy.http_url'],
      ...loadersOf(options),
    },
    range: {
      ...range,
      leaseMs: leaseSeconds * 1000,
      excluded: [
        network,
        (network | ~bits) >>> 0,
        ...addresses.map(({ address }) => addressToNumber(address)),
        ...(gateway === null ? [] : [addressToNumber(gateway)]),
      ],
    },
  };
}

const netmaskOf = (width: number): string => numberToAddress((0xffffffff << (32 - width)) >>> 0);

/** Plans a line like the options of a single subnet, and adds the settings that only lines have. */
function planLine(options: DhcpOptions, line: SubnetLine, addressesOf: AddressesOf): DhcpPlan {
  const name = line.interface ?? options['boot.interface'];
  try {
    const plan = planDhcp(
      {
        ...options,
        'boot.interface': name,
        'boot.dhcp_range': line.range,
        'boot.dhcp_netmask': netmaskOf(line.width),
        'boot.dhcp_gateway': line.gateway,
        'boot.dhcp_dns': line.dns,
        'boot.dhcp_lease_time': line.leaseSeconds ?? options['boot.dhcp_lease_time'],
        'boot.dhcp_max_unknown': null,
      },
      name ? addressesOf(name) : undefined,
    );
    if (networkOf(addressToNumber(line.network), addressToNumber(netmaskOf(line.width))) !== plan.policy.network)
      throw new DhcpSetupError(`the range is not in ${line.network}/${line.width}`);
    const reachable = plan.direct ? reachableAt(plan.policy.server, options) : {};
    return { ...plan, policy: { ...plan.policy, ...reachable, domain: line.domain, mtu: line.mtu, routes: line.routes } };
  } catch (error) {
    throw aboutLine(line, error);
  }
}
/** Machines in a subnet of this host can reach its address there, but perhaps none of its other addresses. */
function reachableAt(server: string, options: DhcpOptions): Pick<BootPolicy, 'tftpServer' | 'httpUrl'> {
  const { 'DEFAULT.my_ip': myIp, 'pxe.tftp_server': tftpServer, 'deploy.http_url': httpUrl } = options;
  return { tftpServer: tftpServer === myIp ? server : tftpServer, httpUrl: withHost(httpUrl, myIp, server) };
}
const aboutLine = (line: SubnetLine, error: unknown): unknown =>
  error instanceof DhcpSetupError ? new DhcpSetupError(`[boot]dhcp_subnet = ${line.text}: ${error.message}`, { cause: error }) : error;

interface ProxyPlan extends Pick<DhcpPlan, 'interface' | 'direct'> {
  /** The subnet, for the log. */
  readonly written: string;
  readonly policy: BootPolicy;
}
function planProxy(options: DhcpOptions, line: SubnetLine, addressesOf: AddressesOf): ProxyPlan {
  const given = line.interface ?? options['boot.interface'];
  try {
    const { name, addresses } = usableInterface(given, given ? addressesOf(given) : undefined);
    const netmask = netmaskOf(line.width);
    const network = networkOf(addressToNumber(line.network), addressToNumber(netmask));
    const isInSubnet = (address: string): boolean => isOnSubnet({ netmask, network }, address);
    const home = addresses.find(({ address }) => isInSubnet(address));
    const server = serverAddress(options['DEFAULT.my_ip'], addresses, home, isInSubnet);
    const { tftpServer, httpUrl } = home
      ? reachableAt(server, options)
      : { tftpServer: options['pxe.tftp_server'], httpUrl: options['deploy.http_url'] };
    return {
      interface: name,
      direct: home !== undefined,
      written: `${line.network}/${line.width}`,
      policy: { server, network, netmask, tftpServer: ipv4('[pxe]tftp_server', tftpServer), httpUrl, ...loadersOf(options) },
    };
  } catch (error) {
    throw aboutLine(line, error);
  }
}

/** The IPv4 addresses of an interface; undefined: there is none of that name. */
type AddressesOf = (name: string) => readonly LinkAddress[] | undefined;

/**
 * The IPv4 subnets: that of `[boot]dhcp_range`, then those of `[boot]dhcp_subnet`.
 * @throws DhcpSetupError
 */
export function planSubnets(options: DhcpOptions, addressesOf: AddressesOf): readonly DhcpPlan[] {
  const lines = options['boot.dhcp_subnet'].map(parseSubnet);
  const name = options['boot.interface'];
  // If another server gives all addresses, there is no range.
  const main = options['boot.dhcp_range'] !== null || lines.length === 0;
  const plans = [
    ...(main ? [planDhcp(options, name ? addressesOf(name) : undefined)] : []),
    ...lines.filter(({ family, proxy }) => family === 4 && !proxy).map((line) => planLine(options, line, addressesOf)),
  ];
  plans.forEach(({ range }, index) => {
    const other = plans.slice(0, index).find((plan) => plan.range.first <= range.last && range.first <= plan.range.last);
    if (other) throw new DhcpSetupError(`[boot]dhcp_subnet: the ranges ${other.written} and ${plans[index]!.written} overlap`);
  });
  return plans;
}

/** Whether two subnets have addresses in common. */
const overlap = (one: BootPolicy, other: BootPolicy): boolean => {
  const bits = (addressToNumber(one.netmask) & addressToNumber(other.netmask)) >>> 0;
  return networkOf(one.network, bits) === networkOf(other.network, bits);
};

/**
 * The subnets of `[boot]dhcp_subnet` in which another server gives the addresses. A machine never gets an address from both.
 * @param plans the subnets with ranges
 * @throws DhcpSetupError
 */
export function planProxies(options: DhcpOptions, plans: readonly DhcpPlan[], addressesOf: AddressesOf): readonly ProxyPlan[] {
  const proxies: ProxyPlan[] = [];
  for (const line of options['boot.dhcp_subnet'].map(parseSubnet).filter(({ proxy }) => proxy)) {
    const proxy = planProxy(options, line, addressesOf);
    const refuse = (why: string): never => {
      throw new DhcpSetupError(`[boot]dhcp_subnet = ${line.text}: ${why}`);
    };
    const given = plans.find(({ policy }) => overlap(policy, proxy.policy));
    if (given) refuse(`this server gives addresses of the subnet, from the range ${given.written}: remove the range or proxy=true`);
    const beside = plans.find((plan) => proxy.direct && plan.direct && plan.interface === proxy.interface);
    if (beside) refuse(`machines at ${proxy.interface} get addresses from the range ${beside.written}: two servers would answer them`);
    const twice = proxies.find((other) => overlap(other.policy, proxy.policy));
    if (twice) refuse(`it overlaps with ${twice.written}`);
    proxies.push(proxy);
  }
  return proxies;
}
