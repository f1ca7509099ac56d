/** The DHCP services of all subnets: their pools with the leases in the store, and what the store knows about machines. */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics, type Metrics } from '../../model/metrics';
import type { LeaseRecord } from '../../model/records';
import type { Store } from '../../store/store';
import { readLinks } from '../../wire/sockets/link';
import type { BootChoiceStore, PxeFilter } from '../discovery';
import type { BindingState, PoolRange } from './addresses';
import type { Decision } from './dhcpv4';
import { createLeaseWriter } from './leases';
import { createWarnings, type Listener } from './listener';
import { createMachineLookup, limitUnknown } from './machines';
import { createLeaseChanges, createPool, IPV4, type AddressForm, type Pool } from './pool';
import { startRouterAdvertisements } from './router-advertisements';
import { startDhcpv4 } from './service4';
import { planSubnets, type DhcpOptions } from './setup';

export type { DhcpOptions } from './setup';

/** Bytes that the kernel buffers, so that a busy moment loses no packets. */
const RECEIVE_BUFFER = 4 << 20;

export interface DhcpSetup {
  readonly options: DhcpOptions;
  readonly store: BootChoiceStore & Pick<Store, 'leases' | 'transaction'>;
  readonly filter: PxeFilter;
  readonly log: Log;
  readonly clock: Clock;
  /** Absent: no metrics. */
  readonly metrics?: Metrics;
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

/**
 * Answers on the interfaces of the subnets until stopped.
 * @throws DhcpSetupError for unusable options, LinkError if a socket cannot be opened (not root, port in use)
 */
export async function startDhcp(setup: DhcpSetup): Promise<Listener> {
  const { options, store, filter, clock, metrics = silentMetrics } = setup;
  const links = await readLinks();
  const plans = planSubnets(options, (name) => links.get(name));
  const log = setup.log.child({ interface: options['boot.interface'] ?? plans[0]?.interface ?? '' });
  const warn = createWarnings(log, clock);
  const leases = await store.leases.list();
  const changes = createLeaseChanges();
  const pools: Pool<Decision>[] = [];
  /** Leases of an earlier run that are in no pool go with the first pool's, which drops them. */
  const poolOf = (
    range: PoolRange,
    form: AddressForm,
    others: readonly { readonly range: PoolRange; readonly form: AddressForm }[],
  ): Pool<Decision> => {
    const isIn = (lease: LeaseRecord, one: PoolRange, { toNumber }: AddressForm): boolean => {
      const address = toNumber(lease.address);
      return address >= one.first && address <= one.last;
    };
    const isFirst = others[0]?.range === range;
    const own = leases.filter(
      (lease) =>
        isIn(lease, range, form) || (isFirst && form.isOfFamily(lease.address) && !others.some((one) => isIn(lease, one.range, one.form))),
    );
    const pool = createPool<Decision>(range, own, clock.now(), changes, form);
    pools.push(pool);
    return pool;
  };
  const ranges = plans.map(({ range }) => ({ range, form: IPV4 }));
  const subnets = plans.map(({ policy, range, direct, interface: name }) => ({
    policy,
    pool: poolOf(range, IPV4, ranges),
    interface: direct ? name : undefined,
  }));
  const maxUnknown = options['boot.dhcp_max_unknown'] ?? plans.reduce((sum, plan) => sum + plan.maxUnknown, 0);
  const lookup = limitUnknown(createMachineLookup(store, filter), {
    max: maxUnknown,
    periodMs: Math.max(...plans.map(({ range }) => range.leaseMs)),
    clock,
    refused: (mac) => warn('DHCP: too many unknown machines, some get no address ([boot]dhcp_max_unknown)', { mac, max: maxUnknown }),
  });
  const writer = createLeaseWriter(store, changes, clock, warn);
  metrics.read('bloomery_dhcp_addresses', () => sumOf(pools, clock.now()).map(([state, count]) => [{ state }, count]));

  const started: Listener[] = [];
  const stop = async (): Promise<void> => {
    for (const one of started.reverse()) await one.stop();
    await writer.stop();
  };
  const common = { lookup, changed: () => writer.schedule(), receiveBuffer: RECEIVE_BUFFER, warn, clock, metrics };
  try {
    for (const name of new Set(plans.map((plan) => plan.interface)))
      started.push(await startDhcpv4({ ...common, interface: name, subnets, log: log.child({ interface: name }) }));
    if (options['boot.router_advertisements'])
      for (const name of new Set(plans.map((plan) => plan.interface)))
        started.push(await startRouterAdvertisements({ ...setup, log, interface: name }));
  } catch (error) {
    await stop();
    throw error;
  }
  for (const { policy, written, direct, interface: name } of plans) {
    if (!direct) log.warn('DHCP: the interface is not in the subnet of [boot]dhcp_range: only machines behind relays are answered');
    log.info('DHCP answers', {
      ...{ interface: name, server: policy.server, range: written },
      unknown_macs: filter.discovers ? 'discover' : 'ignore',
    });
  }
  return { stop };
}
