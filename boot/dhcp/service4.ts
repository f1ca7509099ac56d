/** DHCPv4 on one interface. boot/dhcp/dhcpv4.ts decides the answers. */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { ANY_ADDRESS, decode, encode, type DhcpPacket } from '../../wire/dhcp/dhcp';
import { openUdp } from '../../wire/sockets/link';
import { answerDhcp, SERVER_PORT, subnetFor, type Subnet } from './dhcpv4';
import { startListener, type Listener, type Warn } from './listener';
import type { MachineLookup } from './machines';
import type { Decision } from './clients';
import type { Pool } from './pool';

/** RFC 2132 §9.6. */
const TYPES: readonly (string | undefined)[] = [undefined, 'discover', 'offer', 'request', 'decline', 'ack', 'nak', 'release', 'inform'];
/** RFC 2132 §9.10: the size that every client accepts, including IP and UDP headers. */
const SMALLEST_MESSAGE = 576;
const MAX_MESSAGE = 1500;
const HEADERS = 28;

interface Setup {
  readonly interface: string;
  readonly subnets: readonly Subnet[];
  /** What the store knows about machines in the subnet of a pool. */
  readonly lookupIn: (pool: Pool<Decision>) => MachineLookup;
  /** Called for each packet, since the pool may have changed. */
  readonly changed: () => void;
  readonly receiveBuffer: number;
  readonly log: Log;
  readonly warn: Warn;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** @throws LinkError if the socket cannot be opened (not root, port in use) */
export async function startDhcpv4({ subnets, lookupIn, changed, log, warn, clock, metrics, ...setup }: Setup): Promise<Listener> {
  const name = setup.interface;
  const socket = await openUdp(name, SERVER_PORT, setup.receiveBuffer);
  const count = (type: number | undefined, answered: number | string): void =>
    metrics.count('bloomery_dhcp_packets_total', {
      type: TYPES[type ?? 0] ?? 'other',
      answer: TYPES[Number(answered)] ?? String(answered),
    });

  async function handle(packet: DhcpPacket): Promise<void> {
    const { policy, pool } = subnetFor(subnets, name, packet);
    const outcome = await answerDhcp(policy, pool, lookupIn(pool), packet, clock);
    changed();
    const about = { mac: packet.chaddr, type: packet.options.messageType };
    if (outcome.kind === 'silence') {
      count(about.type, 'none');
      if (outcome.notable) warn(`DHCP: ${outcome.reason}`, about);
      else log.debug('DHCP: no answer', { ...about, reason: outcome.reason });
      return;
    }
    const size = Math.min(Math.max(packet.options.maximumMessageSize ?? 0, SMALLEST_MESSAGE), MAX_MESSAGE);
    const bytes = encode(outcome.packet, size - HEADERS);
    socket.send(bytes, outcome.port, outcome.address, (error) => {
      if (error) warn('DHCP: an answer could not be sent', { ...about, to: outcome.address, reason: error.message });
    });
    const { messageType, bootFileName } = outcome.packet.options;
    count(about.type, messageType ?? 'bootp');
    log.debug('DHCP: answered', { ...about, answer: messageType, address: outcome.packet.yiaddr, file: bootFileName });
  }
  return startListener({
    socket,
    protocol: 'DHCP',
    clock,
    warn,
    decode,
    handle,
    isExpected: (packet) => subnetFor(subnets, name, packet).pool.find(packet.chaddr, clock.now()) !== undefined,
    sourceOf: ({ giaddr, chaddr }) => (giaddr === ANY_ADDRESS ? chaddr : giaddr),
    count: (packet, answer) => count(packet?.options.messageType, answer),
  });
}
