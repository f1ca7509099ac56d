/** DHCPv6 on one interface. boot/dhcp/dhcpv6.ts decides the answers. */
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { decode6, duidOfMac, encode6, MESSAGE6, type Dhcpv6Packet } from '../../wire/dhcp/dhcpv6';
import { openUdp6 } from '../../wire/sockets/link';
import { answerDhcpv6, identify, subnetFor6, type Dhcpv6Policy, type Subnet6 } from './dhcpv6';
import { startListener, type Listener, type Warn } from './listener';
import type { MachineLookup } from './machines';
import type { Decision } from './clients';
import type { Pool } from './pool';

/** RFC 8415 §7.1, §7.2. */
const GROUPS = ['ff02::1:2', 'ff05::1:3'] as const;
const SERVER_PORT = 547;
const CLIENT_PORT = 546;
const NAMES: ReadonlyMap<number, string> = new Map(Object.entries(MESSAGE6).map(([name, type]) => [type, name]));

interface Setup {
  readonly interface: string;
  /** The subnets of all interfaces, since a relay may ask for any of them. */
  readonly subnets: readonly (Omit<Subnet6, 'policy'> & { readonly policy: Omit<Dhcpv6Policy, 'duid'> })[];
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

/** @throws LinkError if the socket cannot be opened (not root, port in use, no IPv6) */
export async function startDhcpv6({ lookupIn, changed, log, warn, clock, metrics, ...setup }: Setup): Promise<Listener> {
  const name = setup.interface;
  const socket = await openUdp6(name, SERVER_PORT, setup.receiveBuffer, GROUPS);
  // This DUID is the same after each start, and differs for each interface and host.
  const duid = duidOfMac((await readFile(`/sys/class/net/${name}/address`, 'latin1')).trim());
  const subnets = setup.subnets.map((subnet) => ({ ...subnet, policy: { ...subnet.policy, duid } }));
  const count = (packet: Dhcpv6Packet | undefined, answer: string): void =>
    metrics.count('bloomery_dhcp_packets_total', { type: NAMES.get(packet?.message.type ?? 0) ?? 'other', answer });

  async function handle(packet: Dhcpv6Packet, from: string): Promise<void> {
    const subnet = subnetFor6(subnets, name, packet);
    const outcome = await answerDhcpv6(subnet, subnet && lookupIn(subnet.pool), packet, from, clock);
    changed();
    const about = { from, type: NAMES.get(packet.message.type), duid: packet.message.options.clientIdentifier?.toString('hex') };
    if (outcome.kind === 'silence') {
      count(packet, 'none');
      if (outcome.notable) warn(`DHCPv6: ${outcome.reason}`, about);
      else log.debug('DHCPv6: no answer', { ...about, reason: outcome.reason });
      return;
    }
    const { message } = outcome;
    // RFC 8415 §19.3: relays get back their Interface-Id option, and no other option.
    const relays = packet.relays.map(({ options: { interfaceIdentifier }, ...relay }) => ({ ...relay, options: { interfaceIdentifier } }));
    const port = relays.length > 0 ? SERVER_PORT : CLIENT_PORT;
    socket.send(encode6({ relays, message }), port, from, (error) => {
      if (error) warn('DHCPv6: an answer could not be sent', { ...about, reason: error.message });
    });
    count(packet, NAMES.get(message.type) ?? 'other');
    const address = message.associations.addresses[0]?.addresses[0]?.address;
    log.debug('DHCPv6: answered', { ...about, answer: NAMES.get(message.type), address, file: message.options.bootFileUrl });
  }
  return startListener({
    socket,
    protocol: 'DHCPv6',
    clock,
    warn,
    handle,
    count,
    decode: decode6,
    sourceOf: (_, from) => from,
    isExpected: (packet, from) => {
      const identity = identify(packet, from);
      return identity !== undefined && subnetFor6(subnets, name, packet)?.pool.find(identity.key, clock.now()) !== undefined;
    },
  });
}
