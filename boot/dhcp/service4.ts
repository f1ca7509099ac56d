/** DHCPv4 on one interface. boot/dhcp/dhcpv4.ts and boot/dhcp/proxy.ts decide the answers. */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { ANY_ADDRESS, decode, encode, type DhcpPacket } from '../../wire/dhcp/dhcp';
import { openUdp } from '../../wire/sockets/link';
import { answerDhcp, mayAnswerRelay, SERVER_PORT, subnetFor, type Outcome, type Subnet } from './dhcpv4';
import { startListener, type Listener, type Warn } from './listener';
import type { MachineLookup } from './machines';
import { silence, type Decision } from './clients';
import { answerBootRequest, answerDiscovery, PROXY_PORT, proxyFor, type ProxySubnet } from './proxy';
import type { Pool } from './pool';

/** RFC 2132 §9.6. */
const TYPES: readonly (string | undefined)[] = [undefined, 'discover', 'offer', 'request', 'decline', 'ack', 'nak', 'release', 'inform'];
/** RFC 2132 §9.10: the size that every client accepts, including IP and UDP headers. */
const SMALLEST_MESSAGE = 576;
const MAX_MESSAGE = 1500;
const HEADERS = 28;

interface Common {
  readonly interface: string;
  readonly receiveBuffer: number;
  readonly log: Log;
  readonly warn: Warn;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The subnets whose addresses another server gives, and what the store knows about their machines. */
  readonly proxies: readonly ProxySubnet[];
  readonly lookup: MachineLookup;
}
interface Setup extends Common {
  readonly subnets: readonly Subnet[];
  /** What the store knows about machines in the subnet of a pool. */
  readonly lookupIn: (pool: Pool<Decision>) => MachineLookup;
  /** Called for each packet, since the pool may have changed. */
  readonly changed: () => void;
}

/**
 * Answers packets at one port of the interface.
 * @throws LinkError if the socket cannot be opened (not root, port in use)
 */
async function startPort(
  port: number,
  { log, warn, clock, metrics, ...setup }: Common,
  answer: (packet: DhcpPacket, from: { readonly address: string; readonly port: number }) => Promise<Outcome>,
  isExpected: (packet: DhcpPacket) => boolean,
): Promise<Listener> {
  const socket = await openUdp(setup.interface, port, setup.receiveBuffer);
  const count = (type: number | undefined, answered: number | string): void =>
    metrics.count('bloomery_dhcp_packets_total', {
      type: TYPES[type ?? 0] ?? 'other',
      answer: TYPES[Number(answered)] ?? String(answered),
    });

  async function handle(packet: DhcpPacket, address: string, fromPort: number): Promise<void> {
    const outcome = await answer(packet, { address, port: fromPort });
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
    isExpected,
    sourceOf: ({ giaddr, chaddr }) => (giaddr === ANY_ADDRESS ? chaddr : giaddr),
    count: (packet, answered) => count(packet?.options.messageType, answered),
  });
}

/** @throws LinkError if the socket cannot be opened (not root, port in use) */
export function startDhcpv4({ subnets, lookupIn, changed, ...common }: Setup): Promise<Listener> {
  const { interface: name, proxies, lookup, clock } = common;
  const policies = [...proxies, ...subnets].map(({ policy }) => policy);
  const answer = async (packet: DhcpPacket, { address }: { readonly address: string }): Promise<Outcome> => {
    if (!mayAnswerRelay(policies, packet, address)) return silence('the link selection of a relay that did not send the packet');
    const proxy = proxyFor(proxies, name, packet);
    if (proxy) return answerDiscovery(proxy, lookup, packet);
    const subnet = subnetFor(subnets, name, packet);
    if (!subnet) return silence('no addresses for this subnet');
    const outcome = await answerDhcp(subnet.policy, subnet.pool, lookupIn(subnet.pool), packet, clock);
    changed();
    return outcome;
  };
  const isExpected = (packet: DhcpPacket): boolean =>
    !proxyFor(proxies, name, packet) && subnetFor(subnets, name, packet)?.pool.find(packet.chaddr, clock.now()) !== undefined;
  return startPort(SERVER_PORT, common, answer, isExpected);
}

/**
 * The boot server on port 4011, for firmware whose address another server gave.
 * @throws LinkError if the socket cannot be opened (port in use)
 */
export const startBootServer = (common: Common): Promise<Listener> =>
  startPort(
    PROXY_PORT,
    common,
    (packet, from) => answerBootRequest(common.proxies, common.lookup, packet, from),
    () => true,
  );
