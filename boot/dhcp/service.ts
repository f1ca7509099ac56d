/** The DHCP services of all subnets: their pools with the leases in the store, and what the store knows about machines. */
import type { Clock } from '../../model/clock';
import { createBoundedLog, ONE_LINE, type Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import type { LeaseRecord } from '../../model/records';
import type { Store } from '../../store/store';
import { readLinks } from '../../wire/sockets/link';
import type { BootChoiceStore, PxeFilter } from '../discovery';
import type { BootRequestLog } from '../requests';
import type { BindingState, PoolRange } from './addresses';
import type { Decision } from './clients';
import { isOnSubnet } from './dhcpv4';
import { createLeaseWriter } from './leases';
import type { Listener, Warn } from './listener';
import { createMachineLookup, limitUnknownMachines, type MachineLookup } from './machines';
import { createLeaseChanges, createPool, IPV4, type AddressForm, type Pool } from './pool';
import { reserveAddresses } from './reservations';
import { startRouterAdvertisements } from './router-advertisements';
import { startBootServer, startDhcpv4 } from './service4';
import { startDhcpv6 } from './service6';
import { planProxies, planSubnets, type DhcpOptions } from './setup';
import { advertisementOf, planSubnets6 } from './setup6';

/** Bytes of the kernel's receive buffer; enough that a burst of packets loses none. */
const RECEIVE_BUFFER = 4 << 20;

export interface DhcpSetup {
  readonly options: DhcpOptions;
  readonly store: BootChoiceStore & Pick<Store, 'leases' | 'transaction'>;
  readonly filter: PxeFilter;
  /** Absent: the requests are not recorded. */
  readonly requests?: Pick<BootRequestLog, 'note'>;
  readonly log: Log;
  readonly clock: Clock;
  /** Absent: no metrics. */
  readonly metrics?: Metrics;
  /** Addresses that only these machines get. An IPv4 address may be outside the ranges. */
  readonly reservations?: readonly { readonly mac: string; readonly address: string }[];
  /** Returns this many random bytes. */
  readonly random: (bytes: number) => Buffer;
}

const sumOf = (pools: readonly Pool<Decision>[], now: number): readonly (readonly [BindingState, number])[] => {
  const sums = new Map<BindingState, number>();
  for (const pool of pools)
    for (const [state, count] of Object.entries(pool.counts(now)) as [BindingState, number][])
      sums.set(state, (sums.get(state) ?? 0) + count);
  return [...sums];
};

interface RangeForm {
  readonly range: PoolRange;
  readonly form: AddressForm;
}
/** The leases of an earlier run in this range. Leases outside all ranges go to the first range of their family, whose pool drops them. */
function leasesOf(item: RangeForm, all: readonly RangeForm[], leases: readonly LeaseRecord[]): readonly LeaseRecord[] {
  const isIn = ({ address }: LeaseRecord, { range, form }: RangeForm): boolean => {
    const value = form.toNumber(address);
    return value >= range.first && value <= range.last;
  };
  return leases.filter((lease) => {
    const family = all.filter(({ form }) => form.isOfFamily(lease.address));
    return isIn(lease, item) || (family[0] === item && !family.some((other) => isIn(lease, other)));
  });
}

interface Plans {
  readonly plans: ReturnType<typeof planSubnets>;
  readonly proxyPlans: ReturnType<typeof planProxies>;
  readonly plans6: ReturnType<typeof planSubnets6>;
}
function logPlans(log: Log, { plans, proxyPlans, plans6 }: Plans, discovers: boolean): void {
  const written = [
    ...plans.map((plan) => ({ ...plan, protocol: 'DHCP', server: plan.policy.server, range: plan.written })),
    ...proxyPlans.map((plan) => ({ ...plan, protocol: 'proxyDHCP', server: plan.policy.server, range: plan.written })),
    ...plans6.map((plan) => ({ ...plan, protocol: 'DHCPv6', server: plan.policy.httpUrl, range: plan.line.range })),
  ];
  for (const { protocol, direct, interface: name, server, range } of written) {
    if (!direct)
      log.warn(`${protocol}: the interface is in no subnet of the range: only machines behind relays are answered`, {
        interface: name,
        range,
      });
    log.info(`${protocol} answers`, { interface: name, server, range, unknown_macs: discovers ? 'discover' : 'ignore' });
  }
}

/**
 * Answers on the interfaces of the subnets until stopped.
 * @throws DhcpSetupError for unusable options, LinkError if a socket cannot be opened (not root, port in use)
 */
export async function startDhcp(setup: DhcpSetup): Promise<Listener> {
  const { options, store, filter, clock, metrics = silentMetrics } = setup;
  const links = await readLinks();
  const plans = planSubnets(options, (name) => links.get(name)?.ipv4);
  const proxyPlans = planProxies(options, plans, (name) => links.get(name)?.ipv4);
  const plans6 = planSubnets6(options, (name) => links.get(name)?.ipv6);
  const { log } = setup;
  const limited = createBoundedLog(log, clock, ONE_LINE);
  const warn: Warn = (message, fields) => limited.warn(message, fields);
  const changes = createLeaseChanges();
  const leases = await store.leases.list();
  const withReservations = ({ range, form }: RangeForm, isOwn: (address: string) => boolean): RangeForm => {
    const own = (setup.reservations ?? []).filter(({ address }) => form.isOfFamily(address) && isOwn(address));
    return { form, range: { ...range, reserved: new Map(own.map(({ mac, address }) => [mac, form.toNumber(address)])) } };
  };
  const ranges = [
    ...plans.map(({ range, policy }) => withReservations({ range, form: IPV4 }, (address) => isOnSubnet(policy, address))),
    ...plans6.map((plan) => withReservations(plan, (address) => plan.form.toNumber(address) >= 0)),
  ];
  const pools = ranges.map((range) => {
    const pool = createPool<Decision>(range.range, leasesOf(range, ranges, leases), clock.now(), changes, range.form);
    return reserveAddresses(pool, range.range.reserved!, range.range.leaseMs);
  });
  const subnets = plans.map(({ policy, direct, interface: name }, index) => ({
    policy,
    pool: pools[index]!,
    interface: direct ? name : undefined,
  }));
  const proxies = proxyPlans.map(({ policy, direct, interface: name }) => ({ policy, interface: direct ? name : undefined }));
  const subnets6 = plans6.map(({ policy, form, direct, interface: name }, index) => ({
    policy,
    form,
    pool: pools[plans.length + index]!,
    interface: direct ? name : undefined,
  }));
  const limitIn = (of: readonly Pool<Decision>[], max: number, periodMs: number, inner: MachineLookup): MachineLookup =>
    limitUnknownMachines(inner, {
      max,
      periodMs,
      clock,
      hasLease: (mac) => of.some((pool) => pool.hasLease(mac, clock.now())),
      evict: (mac) => of.forEach((pool) => pool.evict(mac, clock.now())),
      refused: (mac) => warn('DHCP: too many unknown machines, some get no address ([boot]dhcp_max_unknown)', { mac, max }),
    });
  const most = options['boot.dhcp_max_unknown'];
  const unlimited = createMachineLookup(store, filter, setup.requests);
  const longest = Math.max(...ranges.map(({ range }) => range.leaseMs));
  const inAll = most === null ? unlimited : limitIn(pools, most, longest, unlimited);
  // Each range has a limit of its own, so that the machines of a node get an address in each, whatever unknown machines do there.
  const lookups = new Map(
    pools.map((pool, index) => {
      const usable = Object.values(pool.counts(clock.now())).reduce((sum, count) => sum + count, 0) - ranges[index]!.range.reserved!.size;
      const own = most === null ? [...plans, ...plans6][index]!.maxUnknown : most;
      return [pool, limitIn([pool], Math.min(own, usable), ranges[index]!.range.leaseMs, inAll)] as const;
    }),
  );
  const writer = createLeaseWriter(store, changes, clock, warn);
  metrics.read('bloomery_dhcp_addresses', () => sumOf(pools, clock.now()).map(([state, count]) => [{ state }, count]));

  const started: Listener[] = [];
  const stop = async (): Promise<void> => {
    for (const item of started.reverse()) await item.stop();
    await writer.stop();
    limited.stop();
  };
  const common = {
    lookupIn: (pool: Pool<Decision>) => lookups.get(pool)!,
    changed: () => writer.schedule(),
    receiveBuffer: RECEIVE_BUFFER,
    warn,
    clock,
    metrics,
  };
  const interfaces = (of: readonly { readonly interface: string }[]): readonly string[] => [...new Set(of.map((plan) => plan.interface))];
  try {
    for (const name of interfaces([...plans, ...proxyPlans]))
      started.push(
        await startDhcpv4({ ...common, interface: name, subnets, proxies, lookup: unlimited, log: log.child({ interface: name }) }),
      );
    for (const name of interfaces(proxyPlans))
      started.push(await startBootServer({ ...common, interface: name, proxies, lookup: unlimited, log: log.child({ interface: name }) }));
    for (const name of interfaces(plans6))
      started.push(await startDhcpv6({ ...common, interface: name, subnets: subnets6, log: log.child({ interface: name }) }));
    if (options['boot.router_advertisements'])
      for (const name of interfaces([...plans, ...plans6])) {
        const advertisement = advertisementOf(plans6.filter((plan) => plan.direct && plan.interface === name));
        started.push(await startRouterAdvertisements({ ...setup, log, interface: name, advertisement }));
      }
  } catch (error) {
    await stop();
    throw error;
  }
  logPlans(log, { plans, proxyPlans, plans6 }, filter.discovers);
  return { stop };
}
