/** DHCP on one interface: the socket, the pool with its leases in the store, and the log. boot/dhcp.ts decides the answers. */
import type { Clock } from '../model/clock';
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { silentMetrics, type Metrics } from '../model/metrics';
import type { Store } from '../store/store';
import { decode, encode, type DhcpPacket } from '../wire/dhcp/dhcp';
import { linkAddresses, openUdp } from '../wire/sockets/link';
import { answerDhcp, SERVER_PORT, type Decision } from './dhcp';
import { createLeaseWriter, waitWithinStopTimeout } from './dhcp-leases';
import { createMachineLookup, limitUnknown } from './dhcp-machines';
import { createPool } from './dhcp-pool';
import type { BootChoiceStore, PxeFilter } from './discovery';
import { planDhcp, type DhcpOptions } from './dhcp-setup';
import { startRouterAdvertisements } from './router-advertisements';

export type { DhcpOptions } from './dhcp-setup';

/** Packets that may wait for the store; further ones are dropped, and clients retry. */
const MOST_PENDING = 2048;
/** Bytes that the kernel buffers, so that a busy moment loses no packets. */
const RECEIVE_BUFFER = 4 << 20;
/** Repeated warnings are logged once in this time, with their number. */
const LOG_EVERY_MS = 60_000;
/** RFC 2132 §9.6. */
const TYPES: readonly (string | undefined)[] = [undefined, 'discover', 'offer', 'request', 'decline', 'ack', 'nak', 'release', 'inform'];
/** RFC 2132 §9.10: the size that every client accepts, including IP and UDP headers. */
const SMALLEST_MESSAGE = 576;
const LARGEST_MESSAGE = 1500;
const HEADERS = 28;

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

/** Limits warnings that traffic can cause. There are few different messages, so the memory is bounded. */
function createWarnings(log: Log, clock: Clock): (message: string, fields: object) => void {
  const kinds = new Map<string, { readonly until: number; left: number }>();
  return (message, fields) => {
    const kind = kinds.get(message);
    if (kind && kind.until > clock.now()) {
      kind.left += 1;
      return;
    }
    log.warn(message, kind?.left ? { ...fields, repeated: kind.left } : fields);
    kinds.set(message, { until: clock.now() + LOG_EVERY_MS, left: 0 });
  };
}

/**
 * Answers on [boot]interface until stopped.
 * @throws DhcpSetupError for unusable options, LinkError if the socket cannot be opened (not root, port in use)
 */
export async function startDhcp(setup: DhcpSetup): Promise<{ stop(): Promise<void> }> {
  const { options, store, filter, clock, metrics = silentMetrics } = setup;
  const name = options['boot.interface'] ?? '';
  const { policy, range, direct, maxUnknown } = planDhcp(options, name === '' ? undefined : await linkAddresses(name));
  const log = setup.log.child({ interface: name });
  const warn = createWarnings(log, clock);
  const pool = createPool<Decision>(range, await store.leases.list(), clock.now());
  const lookup = limitUnknown(createMachineLookup(store, filter), {
    max: maxUnknown,
    periodMs: range.leaseMs,
    clock,
    refused: (mac) => warn('DHCP: too many unknown machines, some get no address ([boot]dhcp_max_unknown)', { mac, max: maxUnknown }),
  });
  const writer = createLeaseWriter(store, pool, clock, warn);
  const socket = await openUdp(name, SERVER_PORT, RECEIVE_BUFFER);
  const pending = new Set<Promise<void>>();
  metrics.read('bloomery_dhcp_addresses', () => Object.entries(pool.counts(clock.now())).map(([state, count]) => [{ state }, count]));
  const count = (type: number | undefined, answered: number | string): void =>
    metrics.count('bloomery_dhcp_packets_total', {
      type: TYPES[type ?? 0] ?? 'other',
      answer: TYPES[Number(answered)] ?? String(answered),
    });

  async function handle(packet: DhcpPacket): Promise<void> {
    const outcome = await answerDhcp(policy, pool, lookup, packet, clock);
    writer.schedule();
    const about = { mac: packet.chaddr, type: packet.options.messageType };
    if (outcome.kind === 'silence') {
      count(about.type, 'none');
      if (outcome.notable) warn(`DHCP: ${outcome.reason}`, about);
      else log.debug('DHCP: no answer', { ...about, reason: outcome.reason });
      return;
    }
    const size = Math.min(Math.max(packet.options.maximumMessageSize ?? 0, SMALLEST_MESSAGE), LARGEST_MESSAGE);
    const bytes = encode(outcome.packet, size - HEADERS);
    socket.send(bytes, outcome.port, outcome.address, (error) => {
      if (error) warn('DHCP: an answer could not be sent', { ...about, to: outcome.address, reason: error.message });
    });
    const { messageType, bootFileName } = outcome.packet.options;
    count(about.type, messageType ?? 'bootp');
    log.debug('DHCP: answered', { ...about, answer: messageType, address: outcome.packet.yiaddr, file: bootFileName });
  }
  socket.on('error', (error) => warn('DHCP: the socket failed', { reason: error.message }));
  socket.on('message', (bytes, { address: from }) => {
    const packet = decode(bytes);
    if ('malformed' in packet) {
      count(undefined, 'malformed');
      warn('DHCP: malformed packet', { from, reason: packet.malformed });
      return;
    }
    if (pending.size >= MOST_PENDING) {
      count(packet.options.messageType, 'dropped');
      warn('DHCP: too many packets at once, some are dropped', { from });
      return;
    }
    const work = handle(packet)
      .catch((error: unknown) => {
        count(packet.options.messageType, 'failed');
        warn('DHCP: no answer could be made', { mac: packet.chaddr, reason: reasonOf(error) });
      })
      .finally(() => pending.delete(work));
    pending.add(work);
  });
  const advertisements = options['boot.router_advertisements']
    ? await startRouterAdvertisements({ ...setup, log, interface: name })
    : undefined;
  if (!direct) log.warn('DHCP: the interface is not in the subnet of [boot]dhcp_range: only machines behind relays are answered');
  log.info('DHCP answers', {
    server: policy.server,
    range: options['boot.dhcp_range'],
    unknown_macs: filter.discovers ? 'discover' : 'ignore',
  });

  return {
    stop: async () => {
      await advertisements?.stop();
      // Takes no new packets, and answers those in work.
      socket.removeAllListeners('message');
      await waitWithinStopTimeout(clock, Promise.allSettled(pending));
      await new Promise<void>((done) => void socket.close(done));
      await writer.stop();
    },
  };
}
