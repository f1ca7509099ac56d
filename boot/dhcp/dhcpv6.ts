/**
 * Decides the answer to a DHCPv6 message from the message, the store's data about its machine, and the pool. Does no I/O. Clauses are of
 * RFC 8415 unless another document is named. The same machines get an answer as with DHCPv4 (docs/decisions/0004-dhcp.md).
 */
import { BOOT_METHODS } from '../../model/records';
import { urlHost } from '../../wire/addresses';
import {
  codeOf,
  macOfDuid,
  macOfLinkLayer,
  MESSAGE6,
  NO_ASSOCIATIONS,
  STATUS6,
  type Association,
  type Dhcpv6Message,
  type Dhcpv6Packet,
  type LeasedAddress,
  type Option6Values,
} from '../../wire/dhcp/dhcpv6';
import { formatIpv6, macOfAddress, parseIpv6 } from '../../wire/ipv6';
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
import type { AddressForm, Pool } from './pool';

export interface Dhcpv6Policy {
  /** Our DUID. */
  readonly duid: Buffer;
  /** Address or name of the TFTP service. */
  readonly tftpServer: string;
  readonly network: bigint;
  /** Length of the prefix. */
  readonly width: number;
  readonly dns: readonly string[];
  readonly domain: string | null;
  readonly leaseSeconds: number;
  /** Without a trailing slash. */
  readonly httpUrl: string;
  readonly ipxeLoaders: Loaders;
  readonly pxeLoaders: Loaders;
}
export interface Subnet6 {
  readonly policy: Dhcpv6Policy;
  readonly pool: Pool<Decision>;
  readonly form: AddressForm;
  /** The interface that is in the subnet; undefined: it is reached through relays only. */
  readonly interface: string | undefined;
}

export const isOnLink = ({ network, width }: Pick<Dhcpv6Policy, 'network' | 'width'>, address: string): boolean => {
  const value = parseIpv6(address);
  return value !== undefined && value >> BigInt(128 - width) === network >> BigInt(128 - width);
};

/** §13.1: the link of the relay nearest to the client that names one, else that of the interface. Undefined: the link has no pool. */
export function subnetFor6(subnets: readonly Subnet6[], name: string, { relays }: Dhcpv6Packet): Subnet6 | undefined {
  const link = relays.findLast((relay) => relay.link !== '::')?.link;
  return link === undefined ? subnets.find((subnet) => subnet.interface === name) : subnets.find(({ policy }) => isOnLink(policy, link));
}

/** How a client is identified. */
interface Identity {
  readonly mac: string;
  /** Names the client in the pool. */
  readonly key: string;
}
/**
 * Finds the MAC address of the client's interface in a relay's option, its link-local address, or its DUID. All interfaces of a machine may
 * have the same DUID, so the key then has the IAID too. Undefined: the client shows no MAC address.
 * @param from the address that the packet came from
 */
export function identify({ relays, message }: Dhcpv6Packet, from: string): Identity | undefined {
  const nearest = relays.at(-1);
  const linkLayer = nearest?.options.clientLinkLayer;
  const mac = (linkLayer && macOfLinkLayer(linkLayer)) ?? macOfAddress(nearest?.peer ?? from.replace(/%.*/, ''));
  if (mac !== undefined) return { mac, key: mac };
  const { clientIdentifier: duid } = message.options;
  const ofDuid = duid && macOfDuid(duid);
  if (ofDuid === undefined) return undefined;
  const iaid = message.associations.addresses[0]?.iaid ?? 0;
  return { mac: ofDuid, key: `${ofDuid}/${iaid.toString(16).padStart(8, '0')}` };
}

/** The relay nearest to the client and its interface, if the relay names one (RFC 8415 §21.18). */
function circuitOf({ relays }: Dhcpv6Packet): string | undefined {
  const { link, options } = relays.at(-1) ?? {};
  return options?.interfaceIdentifier && `${link!} ${options.interfaceIdentifier.toString('hex')}`;
}

/** Intel's IANA enterprise number, which PXE clients have in their vendor class (RFC 5970 leaves it open; UEFI 2.10 §24.3, §24.7). */
const PXE_ENTERPRISE = 343;

const vendorClassOf = ({ vendorClass }: Option6Values): string => vendorClass?.data[0]?.toString('latin1') ?? '';
function clientOf(options: Option6Values): Client {
  const vendorClass = vendorClassOf(options);
  if (options.userClass?.some((candidate) => candidate.includes('iPXE'))) return 'ipxe';
  if (vendorClass.startsWith('PXEClient')) return 'pxe';
  return vendorClass.startsWith('HTTPClient') ? 'http' : 'system';
}

/** RFC 5970 §3.1. HTTP boot accepts an answer only with the vendor class HTTPClient (UEFI 2.10 §24.7.3.2). */
function bootOptionsFor(policy: Dhcpv6Policy, options: Option6Values, { boots }: Machine, client: Client, mac: string): Option6Values {
  const asked = { vendorClass: vendorClassOf(options), clientArchitectures: options.clientArchitectures };
  const tftp = (loaders: Loaders): Option6Values => ({ bootFileUrl: `tftp://${urlHost(policy.tftpServer)}/${loaderFor(loaders, asked)}` });
  if (client === 'system' || boots === undefined) return {};
  const http = (loaders: Loaders): Option6Values => ({
    bootFileUrl: `${policy.httpUrl}/${loaderFor(loaders, asked)}`,
    vendorClass: { enterprise: PXE_ENTERPRISE, data: [Buffer.from('HTTPClient')] },
  });
  if (BOOT_METHODS[boots].loader === 'pxe') return (usesUrl(boots, client) ? http : tftp)(policy.pxeLoaders);
  if (client === 'ipxe') return { bootFileUrl: scriptUrl(policy.httpUrl, mac) };
  return (client === 'pxe' ? tftp : http)(policy.ipxeLoaders);
}

type Outcome6 = { readonly kind: 'answer'; readonly message: Dhcpv6Message } | Silence;

/** §18.2.1: a client that receives preference 255 chooses this server at once. */
const HIGHEST_PREFERENCE = 255;
const STATUS_TEXT = {
  noAddresses: 'no addresses are left',
  noBinding: 'this address is not yours',
  noPrefixes: 'no prefixes are given here',
  notOnLink: 'not an address of this link',
  success: 'done',
} as const;
const status = (name: keyof typeof STATUS_TEXT) => ({ code: STATUS6[name], message: STATUS_TEXT[name] });

/** A message, and what its answer depends on. */
interface Exchange {
  readonly subnet: Subnet6;
  readonly identity: Identity;
  readonly machine: Machine;
  readonly message: Dhcpv6Message;
  readonly now: number;
}
const EMPTY = { t1: 0, t2: 0, addresses: [] } as const;

/** §14.2, §21.4: T1 and T2 are 0.5 and 0.8 of the lease time. */
function associationWith({ iaid }: Association, { policy: { leaseSeconds } }: Subnet6, address: string): Association {
  return {
    iaid,
    t1: Math.floor(leaseSeconds / 2),
    t2: Math.floor(leaseSeconds * 0.8),
    addresses: [{ address, preferred: leaseSeconds, valid: leaseSeconds }],
  };
}
const requestedOf = (form: AddressForm, { addresses }: Association): number => (addresses[0] ? form.toNumber(addresses[0].address) : -1);

/** Only the first IA_NA gets an address: a client normally has one IA_NA for each interface. */
function eachAssociation(
  { message: { associations } }: Exchange,
  first: (asked: Association) => Association,
): Dhcpv6Message['associations'] {
  const { addresses, temporary, prefixes } = associations;
  return {
    addresses: addresses.map((address, index) =>
      index === 0 ? first(address) : { ...EMPTY, iaid: address.iaid, status: status('noAddresses') },
    ),
    temporary: temporary.map(({ iaid }) => ({ ...EMPTY, iaid, status: status('noAddresses') })),
    prefixes: prefixes.map(({ iaid }) => ({ ...EMPTY, iaid, status: status('noPrefixes') })),
  };
}

/** Reserves an address. */
function offer(exchange: Exchange): Dhcpv6Message['associations'] {
  const { subnet, identity, machine, now } = exchange;
  return eachAssociation(exchange, (asked) => {
    const offered = subnet.pool.offer(identity.key, requestedOf(subnet.form, asked), now, { machine, at: now }, machine.known);
    return offered
      ? associationWith(asked, subnet, subnet.form.toText(offered.address))
      : { ...EMPTY, iaid: asked.iaid, status: status('noAddresses') };
  });
}

/** Binds the address that the client names, else the one that it has, else a new one. */
function bind(exchange: Exchange): Dhcpv6Message['associations'] {
  const { subnet, identity, machine, now } = exchange;
  const { pool, form } = subnet;
  return eachAssociation(exchange, (asked) => {
    const candidates = [requestedOf(form, asked), pool.offer(identity.key, -1, now, { machine, at: now }, machine.known)?.address];
    const bound = candidates.find((address) => address !== undefined && address >= 0 && pool.bind(identity.key, address, now));
    return bound === undefined
      ? { ...EMPTY, iaid: asked.iaid, status: status('noAddresses') }
      : associationWith(asked, subnet, form.toText(bound));
  });
}

/** §18.3.4, §18.3.5: addresses that the client may not use any more get lifetimes of 0. */
function extend(exchange: Exchange): Dhcpv6Message['associations'] {
  const { subnet, identity, now } = exchange;
  const { pool, form } = subnet;
  return eachAssociation(exchange, (asked) => {
    const bound = asked.addresses.find((candidate) => {
      const address = form.toNumber(candidate.address);
      return address >= 0 && pool.bind(identity.key, address, now);
    });
    const ended = (value: LeasedAddress): LeasedAddress => ({ address: value.address, preferred: 0, valid: 0 });
    if (!bound) return { ...EMPTY, iaid: asked.iaid, addresses: asked.addresses.map(ended), status: status('noBinding') };
    const extended = associationWith(asked, subnet, bound.address);
    return { ...extended, addresses: [...extended.addresses, ...asked.addresses.filter((address) => address !== bound).map(ended)] };
  });
}

/** Gives up each address that the message names and that is the client's. */
function giveUp({ subnet, identity, message, now }: Exchange, action: 'release' | 'decline'): Partial<Dhcpv6Message> {
  for (const { address } of message.associations.addresses.flatMap((item) => item.addresses))
    subnet.pool[action](identity.key, subnet.form.toNumber(address), now);
  return { options: { status: status('success') } };
}

/** How a type of message is answered, and which identifiers it must have (§16). */
interface Rule {
  /** A client identifier is required. */
  readonly client: boolean;
  /** The server identifier. `any`: none or ours. */
  readonly server: 'ours' | 'none' | 'any';
  /** The answer; undefined: none. */
  readonly answer: (exchange: Exchange) => Partial<Dhcpv6Message> | undefined;
  /** Absent: the machine is not looked up, and the answer has no configuration and boot options. */
  readonly looksUp?: true;
}
const advertised = (exchange: Exchange): Partial<Dhcpv6Message> => {
  const associations = offer(exchange);
  // §18.3.9: if no address can be given, the message itself has a status too.
  const isEmpty = associations.addresses.length > 0 && associations.addresses.every(({ addresses }) => addresses.length === 0);
  const { machine } = exchange;
  return {
    type: MESSAGE6.advertise,
    associations,
    options: isEmpty ? { status: status('noAddresses') } : machine.known ? { preference: HIGHEST_PREFERENCE } : {},
  };
};
const RULES: Readonly<Record<number, Rule>> = {
  [MESSAGE6.solicit]: {
    client: true,
    server: 'none',
    looksUp: true,
    answer: (exchange) =>
      exchange.message.options.rapidCommit ? { associations: bind(exchange), options: { rapidCommit: true } } : advertised(exchange),
  },
  [MESSAGE6.request]: { client: true, server: 'ours', looksUp: true, answer: (exchange) => ({ associations: bind(exchange) }) },
  [MESSAGE6.renew]: { client: true, server: 'ours', looksUp: true, answer: (exchange) => ({ associations: extend(exchange) }) },
  [MESSAGE6.rebind]: { client: true, server: 'none', looksUp: true, answer: (exchange) => ({ associations: extend(exchange) }) },
  [MESSAGE6.informationRequest]: { client: false, server: 'any', looksUp: true, answer: () => ({}) },
  // §18.3.3: the answer says only whether the addresses are of this link.
  [MESSAGE6.confirm]: {
    client: true,
    server: 'none',
    looksUp: true,
    answer: ({ subnet: { policy }, message }) => {
      const addresses = message.associations.addresses.flatMap((address) => address.addresses);
      if (addresses.length === 0) return undefined;
      return { options: { status: status(addresses.every(({ address }) => isOnLink(policy, address)) ? 'success' : 'notOnLink') } };
    },
  },
  [MESSAGE6.release]: { client: true, server: 'ours', answer: (exchange) => giveUp(exchange, 'release') },
  [MESSAGE6.decline]: { client: true, server: 'ours', answer: (exchange) => giveUp(exchange, 'decline') },
};

/** Options that a client gets if it asks for them. */
const configuration = ({ dns, domain }: Dhcpv6Policy, { optionRequest = [] }: Option6Values): Option6Values => ({
  ...(dns.length > 0 && optionRequest.includes(codeOf('dnsServers')) ? { dnsServers: dns } : {}),
  ...(domain !== null && optionRequest.includes(codeOf('domainList')) ? { domainList: [domain] } : {}),
});

/**
 * Returns the answer, or the reason for none. Updates the pool accordingly.
 * @param lookup what the store knows about a MAC address; undefined without a subnet
 * @param from the address that the packet came from
 */
export async function answerDhcpv6(
  subnet: Subnet6 | undefined,
  lookup: MachineLookup | undefined,
  packet: Dhcpv6Packet,
  from: string,
  clock: { now(): number },
): Promise<Outcome6> {
  const { message } = packet;
  const { options } = message;
  const rule = RULES[message.type];
  if (!rule) return silence('a message type that servers do not answer');
  if (!subnet || !lookup) return silence('no addresses for the link of this relay');
  const { policy, pool } = subnet;
  if (rule.client && options.clientIdentifier === undefined) return silence('no client identifier');
  const named = options.serverIdentifier;
  if (rule.server === 'none' && named !== undefined) return silence('a server identifier in a message that must not have one');
  if (rule.server === 'ours' && named === undefined) return silence('no server identifier');
  if (named !== undefined && !named.equals(policy.duid)) return silence('meant for another server');
  const identity = identify(packet, from);
  if (!identity) return silence('the client shows no MAC address');

  const decided = message.type === MESSAGE6.request ? pool.find(identity.key, clock.now())?.note : undefined;
  const fresh = decided !== undefined && clock.now() - decided.at < DECISION_MS;
  const machine: Machine = fresh ? decided.machine : rule.looksUp ? await lookup(identity.mac, circuitOf(packet)) : { known: false };
  // The query took time, so the clock is read again.
  const now = clock.now();
  const client = clientOf(options);
  const refused = rule.looksUp ? refusalFor(machine, client) : undefined;
  if (refused !== undefined) return silence(refused);
  const answer = rule.answer({ subnet, identity, machine, message, now });
  if (!answer) return silence('nothing to confirm');
  return {
    kind: 'answer',
    message: {
      type: MESSAGE6.reply,
      xid: message.xid,
      associations: NO_ASSOCIATIONS,
      ...answer,
      options: {
        clientIdentifier: options.clientIdentifier,
        serverIdentifier: policy.duid,
        ...answer.options,
        ...(rule.looksUp ? { ...configuration(policy, options), ...bootOptionsFor(policy, options, machine, client, identity.mac) } : {}),
      },
    },
  };
}

/** Numbers the addresses of a pool's range: the first one is 0. `toNumber` returns -1 for other addresses. */
export const formOf = (first: bigint, size: number): AddressForm => ({
  toNumber: (address) => {
    const value = parseIpv6(address);
    return value === undefined || value < first || value >= first + BigInt(size) ? -1 : Number(value - first);
  },
  toText: (value) => formatIpv6(first + BigInt(value)),
  isOfFamily: (address) => address.includes(':'),
});
