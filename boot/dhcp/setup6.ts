/** Derives the settings of the DHCPv6 subnets from `[boot]dhcp_subnet` and the interfaces' addresses. Unusable options stop the start. */
import type { Advertisement } from '../../wire/dhcp/router-advertisement';
import { canonicalAddress } from '../../model/idents';
import { withHost } from '../../wire/addresses';
import { formatIpv6, parseIpv6 } from '../../wire/ipv6';
import type { PoolRange } from './addresses';
import { formOf, isOnLink, type Dhcpv6Policy } from './dhcpv6';
import { MAX_POOL, type AddressForm } from './pool';
import { loadersOf, type DhcpOptions } from './setup';
import { DhcpSetupError, parseSubnet, type SubnetLine } from './subnets';

/** RFC 4861 §6.2.1, AdvDefaultLifetime of a router. */
const ROUTER_SECONDS = 1800;

interface Dhcpv6Plan {
  readonly line: SubnetLine;
  /** The interface whose messages are answered. */
  readonly interface: string;
  /** The interface is in the subnet; else machines are only reached through relays. */
  readonly direct: boolean;
  readonly policy: Omit<Dhcpv6Policy, 'duid'>;
  readonly range: PoolRange;
  readonly form: AddressForm;
  /** Unknown machines that may get an address within one lease time. */
  readonly maxUnknown: number;
}
/** The IPv6 addresses of an interface; undefined: there is none of that name. */
type AddressesOf = (name: string) => readonly string[] | undefined;

const isLinkLocal = (address: string): boolean => /^fe[89ab]/i.test(address);

function rangeOf(text: string, width: number, network: bigint): { readonly first: bigint; readonly size: number } {
  const [first, last, more] = text.split('-').map((part) => parseIpv6(part));
  if (first === undefined || last === undefined || more !== undefined)
    throw new DhcpSetupError('range must be FIRST-LAST, two IPv6 addresses');
  if (last < first) throw new DhcpSetupError('the range ends before it begins');
  if (last - first >= BigInt(MAX_POOL)) throw new DhcpSetupError(`the range has more than ${MAX_POOL} addresses`);
  for (const item of [first, last])
    if (!isOnLink({ network, width }, formatIpv6(item))) throw new DhcpSetupError(`the range is not in ${formatIpv6(network)}/${width}`);
  return { first, size: Number(last - first) + 1 };
}

function planLine(options: DhcpOptions, line: SubnetLine, addressesOf: AddressesOf): Dhcpv6Plan {
  const name = line.interface ?? options['boot.interface'];
  if (!name) throw new DhcpSetupError('[boot]interface is not set, and the subnet names none');
  const all = addressesOf(name);
  if (!all) throw new DhcpSetupError(`interface ${name}: there is no such interface`);
  const { width } = line;
  const shift = BigInt(128 - width);
  const network = (parseIpv6(line.network)! >> shift) << shift;
  const { first, size } = rangeOf(line.range, width, network);
  const own = all.filter((address) => !isLinkLocal(address));
  const near = own.filter((address) => isOnLink({ network, width }, address));
  const { 'DEFAULT.my_ip': myIp, 'DEFAULT.my_ipv6': myIpv6, 'pxe.tftp_server': tftp } = options;
  const mine = [myIpv6, myIp].map((item) => (item === null ? null : canonicalAddress(item)));
  const candidates = near.length > 0 ? near : own;
  const server = candidates.find((address) => mine.includes(canonicalAddress(address))) ?? candidates[0];
  if (server === undefined) throw new DhcpSetupError(`interface ${name}: it has only a link-local IPv6 address`);
  const form = formOf(first, size);
  const leaseSeconds = line.leaseSeconds ?? options['boot.dhcp_lease_time'];
  return {
    line,
    interface: name,
    direct: near.length > 0,
    form,
    maxUnknown: Math.ceil(size / 2),
    policy: {
      network,
      width,
      dns: line.dns,
      domain: line.domain,
      leaseSeconds,
      ...loadersOf(options),
      tftpServer: tftp === myIp ? server : tftp,
      httpUrl: withHost(options['deploy.http_url'], myIp, server),
    },
    range: {
      first: 0,
      last: size - 1,
      leaseMs: leaseSeconds * 1000,
      // RFC 4291 §2.6.1: the first address of a subnet is that of its routers.
      excluded: [formatIpv6(network), ...all].map(form.toNumber).filter((address) => address >= 0),
    },
  };
}

/**
 * The IPv6 subnets of `[boot]dhcp_subnet`.
 * @throws DhcpSetupError
 */
export function planSubnets6(options: DhcpOptions, addressesOf: AddressesOf): readonly Dhcpv6Plan[] {
  const plans = options['boot.dhcp_subnet']
    .map(parseSubnet)
    .filter(({ family }) => family === 6)
    .map((line) => {
      try {
        return planLine(options, line, addressesOf);
      } catch (error) {
        if (!(error instanceof DhcpSetupError)) throw error;
        throw new DhcpSetupError(`[boot]dhcp_subnet = ${line.text}: ${error.message}`, { cause: error });
      }
    });
  plans.forEach(({ line, form, range }, index) => {
    const other = plans.slice(0, index).find((plan) => {
      const [start, end] = [plan.form.toText(0), plan.form.toText(plan.range.last)].map(form.toNumber) as [number, number];
      return start >= 0 || end >= 0 || plan.form.toNumber(form.toText(range.first)) >= 0;
    });
    if (other) throw new DhcpSetupError(`[boot]dhcp_subnet: the ranges ${other.line.range} and ${line.range} overlap`);
  });
  return plans;
}

/** The router advertisement for the machines at an interface; `plans` are its subnets. */
export function advertisementOf(plans: readonly Dhcpv6Plan[]): Advertisement {
  return {
    dhcp: plans.length > 0,
    routerSeconds: plans.some(({ line }) => line.router) ? ROUTER_SECONDS : 0,
    prefixes: plans.map(({ policy: { network, width }, line }) => ({ network: formatIpv6(network), width, autonomous: line.slaac })),
    mtu: plans.find(({ line }) => line.mtu !== null)?.line.mtu ?? null,
    dns: [...new Set(plans.flatMap(({ line }) => line.dns))],
  };
}
