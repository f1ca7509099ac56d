/**
 * Decides the answer to a DHCP packet from the packet, the store's data about its MAC address, and the pool. Does no I/O. Clauses are of
 * RFC 2131 unless another document is named. docs/decisions/0004-dhcp.md says which machines get an answer.
 */
import { BOOT_METHODS } from '../../model/records';
import {
  addressToNumber,
  ANY_ADDRESS,
  BOOT_REPLY,
  BOOT_REQUEST,
  BROADCAST_FLAG,
  MESSAGE,
  numberToAddress,
  relayAddress,
  type DhcpPacket,
  type OptionValues,
  type Route,
} from '../../wire/dhcp/dhcp';
import { scriptUrl } from '../ipxe';
import {
  DECISION_MS,
  loaderFor,
  refusalFor,
  silence,
  usesUrl,
  type Client,
  type Decision,
  type Loaders,
  type Machine,
  type Silence,
} from './clients';
import type { MachineLookup } from './machines';
import type { Pool } from './pool';

export const SERVER_PORT = 67;
export const CLIENT_PORT = 68;
export const BROADCAST = '255.255.255.255';
const ETHERNET = 1;

/** What machines of a subnet boot. */
export interface BootPolicy {
  /** Our address on the interface, which is the server identifier. */
  readonly server: string;
  readonly network: number;
  readonly netmask: string;
  readonly tftpServer: string;
  /** Without a trailing slash. */
  readonly httpUrl: string;
  readonly ipxeLoaders: Loaders;
  /** For machines that boot with PXELINUX or GRUB. */
  readonly pxeLoaders: Loaders;
}
export interface DhcpPolicy extends BootPolicy {
  /** If it is null, machines get no gateway. */
  readonly gateway: string | null;
  readonly dns: readonly string[];
  readonly domain: string | null;
  readonly mtu: number | null;
  /** Routes besides the default route. */
  readonly routes: readonly Route[];
  readonly leaseSeconds: number;
}
export type Outcome = { readonly kind: 'answer'; readonly packet: DhcpPacket; readonly address: string; readonly port: number } | Silence;

/** iPXE's encapsulated options (175): its features, and settings that the server sends. */
const IPXE_FEATURE_HTTP = 19;
const IPXE_NO_PXEDHCP = 176;

export function clientOf(options: OptionValues): Client {
  const vendorClass = options.vendorClass ?? '';
  // RFC 3004 requires length-prefixed strings; iPXE sends the bare word.
  const isIpxe = options.ipxe !== undefined || (options.userClass?.includes('iPXE') ?? false);
  // iPXE in a ROM may lack HTTP. It then loads our iPXE, which has it.
  if (isIpxe && (options.ipxe?.has(IPXE_FEATURE_HTTP) ?? true)) return 'ipxe';
  if (isIpxe || vendorClass.startsWith('PXEClient')) return 'pxe';
  return vendorClass.startsWith('HTTPClient') ? 'http' : 'system';
}

interface BootFields {
  readonly siaddr?: string;
  readonly file?: string | undefined;
  readonly options: OptionValues;
}
/** The field `file` holds 127 characters (§2). A longer name is sent in option 67 only. */
const named = (bootFileName: string): { readonly file?: string; readonly options: OptionValues } =>
  bootFileName.length <= 127 ? { file: bootFileName, options: { bootFileName } } : { options: { bootFileName } };

function byTftp({ tftpServer: server }: BootPolicy, loader: string): BootFields {
  const { file, options } = named(loader);
  return {
    siaddr: server,
    file,
    options: { ...options, tftpServerName: server, tftpServerAddresses: [server] },
  };
}

/** UEFI 2.10 §24.7.3.1: the firmware accepts an offer only if its vendor class is HTTPClient. */
function byHttp({ httpUrl }: BootPolicy, loader: string): BootFields {
  const { file, options } = named(`${httpUrl}/${loader}`);
  return { file, options: { ...options, vendorClass: 'HTTPClient' } };
}

const BOOT_FIELDS: Readonly<Record<Client, (policy: BootPolicy, packet: DhcpPacket) => BootFields>> = {
  pxe: (policy, packet) => byTftp(policy, loaderFor(policy.ipxeLoaders, packet.options)),
  http: (policy, packet) => byHttp(policy, loaderFor(policy.ipxeLoaders, packet.options)),
  // no-pxedhcp: without it iPXE waits two seconds for a proxyDHCP server.
  ipxe: (policy, packet) => {
    const { file, options } = named(scriptUrl(policy.httpUrl, packet.chaddr));
    return { file, options: { ...options, ipxe: new Map([[IPXE_NO_PXEDHCP, Buffer.from([1])]]) } };
  },
  system: () => ({ options: {} }),
};

/** Clients load PXELINUX and GRUB by their own protocol. iPXE in a ROM does so as other firmware of the boot interface does. */
export function bootFieldsFor(policy: BootPolicy, packet: DhcpPacket, { boots }: Machine, client: Client): BootFields {
  if (boots === undefined || client === 'system' || BOOT_METHODS[boots].loader === 'ipxe') return BOOT_FIELDS[client](policy, packet);
  const loader = loaderFor(policy.pxeLoaders, packet.options);
  return usesUrl(boots, client) ? byHttp(policy, loader) : byTftp(policy, loader);
}

/** The address whose subnet a relay asks for (RFC 3527 §3: link selection precedes giaddr); undefined: the packet came without a relay. */
export const linkOf = ({ options, giaddr }: DhcpPacket): string | undefined =>
  giaddr === ANY_ADDRESS ? undefined : (relayAddress(options, 'linkSelection') ?? giaddr);
/**
 * Whether an answer may go to giaddr. Without link selection, giaddr is in the subnet that answers. With it, giaddr may be anywhere: then it
 * must be the sender of the packet, or in a subnet of ours, so that nobody makes this server send to others.
 */
export const mayAnswerRelay = (
  policies: readonly Pick<BootPolicy, 'netmask' | 'network'>[],
  packet: DhcpPacket,
  sender: string,
): boolean => {
  const link = linkOf(packet);
  const { giaddr } = packet;
  return link === undefined || link === giaddr || giaddr === sender || policies.some((policy) => isOnSubnet(policy, giaddr));
};
/** The relay and its port that the packet came through, if the relay names one (RFC 3046 §3.1). */
export const circuitOf = ({ options: { relayAgentInformation: port }, giaddr }: DhcpPacket): string | undefined =>
  giaddr === ANY_ADDRESS ? undefined : port && `${giaddr} ${port.toString('hex')}`;
/** The server identifier of the answer. RFC 5107 §4: a relay may override it, so that clients send their renewals to the relay. */
const serverOf = (policy: BootPolicy, { options, giaddr }: DhcpPacket): string =>
  (giaddr === ANY_ADDRESS ? undefined : relayAddress(options, 'serverIdentifier')) ?? policy.server;

export const isOnSubnet = ({ netmask, network }: Pick<BootPolicy, 'netmask' | 'network'>, address: string): boolean =>
  (addressToNumber(address) & addressToNumber(netmask)) >>> 0 === network;

/** A subnet with its pool. */
export interface Subnet {
  readonly policy: DhcpPolicy;
  readonly pool: Pool<Decision>;
  /** The interface that is in the subnet; undefined: it is reached through relays only. */
  readonly interface: string | undefined;
}
/**
 * The subnet for a packet that arrived at the interface `name`. Without a match, it is the first one: `answerDhcp` checks the link.
 * Undefined: there is none.
 */
export function subnetFor(subnets: readonly Subnet[], name: string, packet: DhcpPacket): Subnet | undefined {
  const link = linkOf(packet) ?? (packet.ciaddr === ANY_ADDRESS ? undefined : packet.ciaddr);
  const asked = link === undefined ? undefined : subnets.find(({ policy }) => isOnSubnet(policy, link));
  const own = subnets.find((subnet) => subnet.interface === name);
  // Only subnets behind relays use this interface. A direct packet is in none of them, and one of another interface must not answer it.
  return asked ?? own ?? subnets.find((subnet) => subnet.interface === undefined) ?? subnets[0];
}

/** Why the packet gets no answer, whatever its message is; undefined: it is a client's. */
export function notFromClient({ op, htype, chaddr }: DhcpPacket): Silence | undefined {
  if (op !== BOOT_REQUEST) return silence('not a request');
  return htype === ETHERNET && chaddr.length === 17 ? undefined : silence('not an Ethernet address');
}

/**
 * Returns the answer, or the reason for none. Updates the pool accordingly.
 * @param lookup what the store knows about a MAC address
 */
export async function answerDhcp(
  policy: DhcpPolicy,
  pool: Pool<Decision>,
  lookup: MachineLookup,
  packet: DhcpPacket,
  clock: { now(): number },
): Promise<Outcome> {
  const { chaddr: mac, options, ciaddr } = packet;
  const noClient = notFromClient(packet);
  if (noClient) return noClient;
  const type = options.messageType;
  const onSubnet = (address: string): boolean => isOnSubnet(policy, address);
  // §4.3.1: the subnet is that of the relay's address, else of the receiving interface. A machine behind a relay renews without it.
  const direct = onSubnet(policy.server) ? policy.server : ciaddr;
  if (!onSubnet(linkOf(packet) ?? direct)) return silence('no addresses for the subnet of this relay');
  const named = options.serverIdentifier;
  const requested = options.requestedAddress ?? ANY_ADDRESS;

  if (named !== undefined && named !== policy.server && named !== serverOf(policy, packet)) {
    // §3.1.4: the machine chose another server.
    if (type === MESSAGE.request) pool.withdraw(mac, clock.now());
    return silence('meant for another server');
  }
  if (type === MESSAGE.release) {
    pool.release(mac, addressToNumber(ciaddr), clock.now());
    return silence('released');
  }
  if (type === MESSAGE.decline) {
    const declined = pool.decline(mac, addressToNumber(requested), clock.now());
    return declined
      ? { kind: 'silence', reason: 'an address that was given is in use by another machine', notable: true }
      : silence('not its address');
  }
  if (type !== MESSAGE.discover && type !== MESSAGE.request && type !== MESSAGE.inform)
    return silence('a message type that servers do not answer');

  const decided = type === MESSAGE.request ? pool.find(mac, clock.now())?.note : undefined;
  const fresh = decided !== undefined && clock.now() - decided.at < DECISION_MS;
  const machine = fresh ? decided.machine : await lookup(mac, circuitOf(packet));
  // The query took time, so the clock is read again.
  const now = clock.now();
  const client = clientOf(options);
  const refused = refusalFor(machine, client);
  if (refused !== undefined) return silence(refused);
  const fields = bootFieldsFor(policy, packet, machine, client);

  if (type === MESSAGE.discover) {
    const wanted = addressToNumber(requested);
    const offered = pool.offer(mac, wanted, now, { machine, at: now }, machine.known);
    if (!offered) return { kind: 'silence', reason: POOL_EXHAUSTED, notable: true };
    return grant(policy, packet, fields, MESSAGE.offer, numberToAddress(offered.address));
  }
  if (type === MESSAGE.inform) {
    // §4.3.5: the answer goes to the client's address, which must be in the subnet.
    return onSubnet(ciaddr) ? grant(policy, packet, fields, MESSAGE.ack, ANY_ADDRESS) : silence('informs from elsewhere');
  }
  // §4.3.2: selecting and init-reboot name the address in option 50, renewing and rebinding in ciaddr.
  const address = ciaddr === ANY_ADDRESS ? requested : ciaddr;
  if (address === ANY_ADDRESS) return silence('a request for no address');
  if (pool.bind(mac, addressToNumber(address), now)) return grant(policy, packet, fields, MESSAGE.ack, address);
  return nak(policy, packet);
}
const POOL_EXHAUSTED = 'no address is left in the range of the subnet';

/**
 * Fields that every answer copies. RFC 6842: client identifier; RFC 4578 §2.3: client machine identifier; RFC 3046 §2.2: relay agent
 * information.
 */
export function reply(policy: BootPolicy, packet: DhcpPacket, messageType: number): DhcpPacket {
  const { clientIdentifier, clientMachineIdentifier, relayAgentInformation } = packet.options;
  return {
    ...packet,
    op: BOOT_REPLY,
    hops: 0,
    secs: 0,
    ciaddr: ANY_ADDRESS,
    yiaddr: ANY_ADDRESS,
    siaddr: ANY_ADDRESS,
    sname: '',
    file: '',
    options: { messageType, serverIdentifier: serverOf(policy, packet), clientIdentifier, clientMachineIdentifier, relayAgentInformation },
    unknown: new Map(),
  };
}

const DEFAULT_ROUTE = { destination: ANY_ADDRESS, width: 0 } as const;

function grant(policy: DhcpPolicy, packet: DhcpPacket, boot: BootFields, messageType: number, yiaddr: string): Outcome {
  const base = reply(policy, packet, messageType);
  const { leaseSeconds, netmask, gateway, dns, network, domain, mtu, routes } = policy;
  // §4.3.5: not in an answer to an INFORM. §4.4.5: the times T1 and T2.
  const lease =
    yiaddr === ANY_ADDRESS
      ? {}
      : { leaseTime: leaseSeconds, renewalTime: Math.floor(leaseSeconds / 2), rebindingTime: Math.floor((leaseSeconds * 7) / 8) };
  const answered: DhcpPacket = {
    ...base,
    ciaddr: messageType === MESSAGE.ack ? packet.ciaddr : ANY_ADDRESS,
    yiaddr,
    siaddr: boot.siaddr ?? ANY_ADDRESS,
    file: boot.file ?? '',
    options: {
      ...base.options,
      ...lease,
      subnetMask: netmask,
      broadcastAddress: numberToAddress((network | ~addressToNumber(netmask)) >>> 0),
      routers: gateway === null ? undefined : [gateway],
      domainNameServers: dns.length === 0 ? undefined : dns,
      domainName: domain ?? undefined,
      interfaceMtu: mtu ?? undefined,
      // RFC 3442: a client that knows this option ignores the gateway's.
      classlessRoutes: routes.length === 0 ? undefined : gateway === null ? routes : [{ ...DEFAULT_ROUTE, router: gateway }, ...routes],
      ...boot.options,
    },
  };
  // §4.1. A machine without an address cannot answer ARP, so a UDP socket reaches it by broadcast only, whatever its broadcast flag is.
  if (packet.giaddr !== ANY_ADDRESS) return { kind: 'answer', packet: answered, address: packet.giaddr, port: SERVER_PORT };
  return { kind: 'answer', packet: answered, address: packet.ciaddr === ANY_ADDRESS ? BROADCAST : packet.ciaddr, port: CLIENT_PORT };
}

/** §4.3.2: broadcast, also by the relay. Only machines that we would answer get a NAK, because another server may serve the others. */
function nak(policy: DhcpPolicy, packet: DhcpPacket): Outcome {
  const base = reply(policy, packet, MESSAGE.nak);
  const refused = { ...base, options: { ...base.options, message: 'This address is not yours' } };
  if (packet.giaddr === ANY_ADDRESS) return { kind: 'answer', packet: refused, address: BROADCAST, port: CLIENT_PORT };
  return { kind: 'answer', packet: { ...refused, flags: packet.flags | BROADCAST_FLAG }, address: packet.giaddr, port: SERVER_PORT };
}
