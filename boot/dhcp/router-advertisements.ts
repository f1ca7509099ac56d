/**
 * Router advertisements. iPXE configures IPv6 besides IPv4, and waits about ten seconds for a router. An advertisement without prefix,
 * DHCPv6 and default route ends this wait at once. If the interface has IPv6 subnets, the advertisement names their prefixes and DHCPv6.
 */
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import { createRate, type ShareLimits } from '../../wire/shares';
import { LinkError } from '../../wire/sockets/libc';
import { IPPROTO_ICMPV6, openIcmpv6 } from '../../wire/sockets/link';
import {
  ALL_NODES,
  ALL_ROUTERS,
  routerAdvertisement,
  isRouterSolicitation,
  ROUTER_SOLICITATION,
  type Advertisement,
} from '../../wire/dhcp/router-advertisement';

/** RFC 4861 §6.2.1: the interval of unsolicited advertisements is random between Min- and MaxRtrAdvInterval. */
const INTERVAL_MS = { least: 200_000, most: 600_000 } as const;
/** RFC 4861 §10, MIN_DELAY_BETWEEN_RAS: between advertisements to all nodes. */
const MULTICAST_GAP_MS = 3000;
/** Answers to single machines in that time. Others get the advertisement to all nodes (§6.2.6), whoever else sends solicitations. */
const UNICAST: ShareLimits = { inAll: 64, ofSource: 2 };

interface Advertiser {
  readonly interface: string;
  readonly advertisement: Advertisement;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
}

/** Never fails. Without IPv6 on the interface nothing is sent, and a debug message is logged. */
export async function startRouterAdvertisements(setup: Advertiser): Promise<{ stop(): Promise<void> }> {
  const { log, clock } = setup;
  const socket = await openIcmpv6(setup.interface, ROUTER_SOLICITATION, ALL_ROUTERS).catch((error: unknown) => {
    if (!(error instanceof LinkError)) throw error;
    log.debug('no router advertisements', { interface: setup.interface, reason: error.message });
    return undefined;
  });
  if (!socket) return { stop: async () => {} };

  const message = routerAdvertisement(setup.advertisement);
  const ended = new AbortController();
  let lastToAll = -Infinity;
  const mayAnswer = createRate(UNICAST, MULTICAST_GAP_MS, () => clock.now());
  const send = (address: string): void =>
    socket.send(message, IPPROTO_ICMPV6, address, (error) => {
      // The link-local address exists only with a carrier; a later solicitation or interval tries again.
      if (error) log.debug('router advertisement not sent', { interface: setup.interface, reason: error.message });
    });
  const sendToAll = (): void => {
    if (clock.now() - lastToAll < MULTICAST_GAP_MS) return;
    lastToAll = clock.now();
    send(`${ALL_NODES}%${setup.interface}`);
  };
  socket.on('error', (error) => log.debug('router advertisements', { reason: error.message }));
  socket.on('message', (bytes, { address }) => {
    if (!isRouterSolicitation(bytes)) return;
    // A machine without an address is only reachable by multicast. Off-link addresses are ignored (RFC 4861 §6.1.1).
    if (address.startsWith('fe80:') && mayAnswer(address)) send(address);
    else if (address.startsWith('fe80:') || address.startsWith('::')) sendToAll();
  });
  const advertise = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      sendToAll();
      const part = setup.random(4).readUInt32BE() / 2 ** 32;
      await clock.sleep(INTERVAL_MS.least + part * (INTERVAL_MS.most - INTERVAL_MS.least), ended.signal);
    }
  };
  const advertising = advertise().catch(() => {});
  return {
    stop: async () => {
      ended.abort();
      await advertising;
      await new Promise<void>((done) => void socket.close(done));
    },
  };
}
