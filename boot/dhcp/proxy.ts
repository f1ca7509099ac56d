/**
 * The boot part for machines whose addresses another server gives (proxyDHCP): Preboot Execution Environment 2.1 §2.2, RFC 4578, UEFI 2.10
 * §24.7.3. Does no I/O. It never gives, confirms or refuses an address, and answers only firmware and iPXE that are to boot now.
 */
import { ANY_ADDRESS, BROADCAST_FLAG, MESSAGE, type DhcpPacket } from '../../wire/dhcp/dhcp';
import { refusalFor, silence, type Silence } from './clients';
import {
  BROADCAST,
  bootFieldsFor,
  circuitOf,
  CLIENT_PORT,
  clientOf,
  isOnSubnet,
  linkOf,
  notFromClient,
  reply,
  SERVER_PORT,
  type BootPolicy,
  type Outcome,
} from './dhcpv4';
import type { MachineLookup } from './machines';

/** Where firmware asks for its boot file once it has an address. */
export const PROXY_PORT = 4011;

/** A subnet in which another server gives the addresses. */
export interface ProxySubnet {
  readonly policy: BootPolicy;
  /** The interface that is in the subnet; undefined: it is reached through relays only. */
  readonly interface: string | undefined;
}

/** The tags of PXE's option 43 that are read or sent (PXE 2.1, table 2-1). */
const DISCOVERY_CONTROL = 6;
const BOOT_ITEM = 71;
/** Bit 3: the client loads the named file, without a menu and without a search for boot servers. */
const LOAD_NAMED_FILE = 0x08;

/** The subnet for a packet that arrived at the interface `name`; undefined: it is none of these. */
export function proxyFor(proxies: readonly ProxySubnet[], name: string, packet: DhcpPacket): ProxySubnet | undefined {
  const link = linkOf(packet) ?? (packet.ciaddr === ANY_ADDRESS ? undefined : packet.ciaddr);
  const direct = proxies.find((proxy) => proxy.interface === name);
  return link === undefined ? direct : (proxies.find(({ policy }) => isOnSubnet(policy, link)) ?? (linkOf(packet) ? undefined : direct));
}

const NOT_OURS = 'another server gives the addresses of this network';

/** The class of clients that boot; undefined: an operating system, whose address and options are the other server's. */
const classOf = ({ options: { vendorClass = '' } }: DhcpPacket): 'PXEClient' | 'HTTPClient' | undefined =>
  (['PXEClient', 'HTTPClient'] as const).find((each) => vendorClass.startsWith(each));

/** PXE 2.1 §2.2.3: a client that asks for an item of a menu gets its number back. */
function vendorOptions({ options: { vendorSpecific } }: DhcpPacket): Buffer {
  const item = vendorSpecific && vendorSpecific.length <= 255 ? itemIn(vendorSpecific) : undefined;
  return Buffer.concat([Buffer.from([DISCOVERY_CONTROL, 1, LOAD_NAMED_FILE]), item ?? Buffer.alloc(0), Buffer.from([255])]);
}
function itemIn(bytes: Buffer): Buffer | undefined {
  for (let at = 0; at + 1 < bytes.length && bytes[at] !== 255; at += bytes[at] === 0 ? 1 : 2 + bytes[at + 1]!)
    if (bytes[at] === BOOT_ITEM && bytes[at + 1] === 4 && at + 6 <= bytes.length) return bytes.subarray(at, at + 6);
  return undefined;
}

async function bootPart(policy: BootPolicy, lookup: MachineLookup, packet: DhcpPacket, messageType: number): Promise<DhcpPacket | Silence> {
  const named = classOf(packet);
  if (!named) return silence(NOT_OURS);
  const machine = await lookup(packet.chaddr, circuitOf(packet));
  const client = clientOf(packet.options);
  const refused = refusalFor(machine, client);
  if (refused !== undefined) return silence(refused);
  const fields = bootFieldsFor(policy, packet, machine, client);
  const base = reply(policy, packet, messageType);
  return {
    ...base,
    // iPXE takes a proxy's file only if the packet names a server too, also for a URL.
    siaddr: fields.siaddr ?? (named === 'PXEClient' ? policy.server : ANY_ADDRESS),
    file: fields.file ?? '',
    options: {
      ...base.options,
      // The client sends its next request there, so a relay must not put itself in this place (RFC 5107).
      serverIdentifier: policy.server,
      vendorClass: named,
      vendorSpecific: named === 'PXEClient' ? vendorOptions(packet) : undefined,
      ...fields.options,
    },
  };
}

/** The answer on port 67: an offer without an address, to discoveries alone. */
export async function answerDiscovery({ policy }: ProxySubnet, lookup: MachineLookup, packet: DhcpPacket): Promise<Outcome> {
  const noClient = notFromClient(packet);
  if (noClient) return noClient;
  if (packet.options.messageType !== MESSAGE.discover) return silence(NOT_OURS);
  const offer = await bootPart(policy, lookup, packet, MESSAGE.offer);
  if ('kind' in offer) return offer;
  // Without an address in the answer, a relay can reach the client by broadcast only.
  if (packet.giaddr !== ANY_ADDRESS)
    return { kind: 'answer', packet: { ...offer, flags: packet.flags | BROADCAST_FLAG }, address: packet.giaddr, port: SERVER_PORT };
  return { kind: 'answer', packet: offer, address: BROADCAST, port: CLIENT_PORT };
}

/**
 * The answer on port 4011, for firmware that asks again once it has an address (PXE 2.1 §2.2.4). It goes to the sender, which must be in
 * a subnet of ours.
 */
export async function answerBootRequest(
  proxies: readonly ProxySubnet[],
  lookup: MachineLookup,
  packet: DhcpPacket,
  from: { readonly address: string; readonly port: number },
): Promise<Outcome> {
  const noClient = notFromClient(packet);
  if (noClient) return noClient;
  const { messageType, serverIdentifier } = packet.options;
  if (messageType !== MESSAGE.request && messageType !== MESSAGE.inform) return silence('a message type that boot servers do not answer');
  const proxy = proxies.find(({ policy }) => isOnSubnet(policy, from.address));
  if (!proxy || (packet.ciaddr !== ANY_ADDRESS && packet.ciaddr !== from.address)) return silence('asks from elsewhere');
  if (serverIdentifier !== undefined && serverIdentifier !== proxy.policy.server) return silence('meant for another server');
  if (classOf(packet) !== 'PXEClient') return silence('not a PXE client');
  const answer = await bootPart(proxy.policy, lookup, packet, MESSAGE.ack);
  if ('kind' in answer) return answer;
  return { kind: 'answer', packet: { ...answer, ciaddr: packet.ciaddr }, ...from };
}
