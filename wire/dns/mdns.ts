/**
 * Multicast DNS over IPv4 (RFC 6762) for services of `_openstack._tcp.local`: names, sockets and lookup. Responses are not authenticated.
 * Announcing: wire/dns/mdns-responder.ts.
 */
import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { urlHost } from '../addresses';
import { decodeDns, encodeDns, message, RECORD_TYPE, type DnsMessage, type DnsRecord, type Question } from './dns';
import { isLoopback } from '../../model/idents';

export const MDNS_ADDRESS = '224.0.0.251';
export const MDNS_PORT = 5353;
export const SERVICE_TYPE = '_openstack._tcp.local';
export const instanceName = (service: string): string => `${service}.${SERVICE_TYPE}`.toLowerCase();
const HOPS = 255;

export interface MdnsInterface {
  readonly address: string;
  readonly netmask: string;
}
/** The host's IPv4 addresses on interfaces with these names or addresses; without names: all but the loopback. */
export const mdnsInterfaces = (named: readonly string[] = []): readonly MdnsInterface[] =>
  Object.entries(networkInterfaces()).flatMap(([name, all = []]) =>
    all.filter(
      ({ family, internal, address }) =>
        family === 'IPv4' && (named.length === 0 ? !internal : named.includes(name) || named.includes(address)),
    ),
  );

/** A socket for one interface. With `group` it receives all multicast DNS there, otherwise only unicast responses. */
export async function mdnsSocket({ address }: MdnsInterface, group: boolean): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', reuseAddr: group });
  try {
    await new Promise<void>((done, fail) => {
      socket.once('error', fail);
      socket.bind({ port: group ? MDNS_PORT : 0, ...(group ? {} : { address }) }, () => {
        socket.off('error', fail);
        done();
      });
    });
    if (group) socket.addMembership(MDNS_ADDRESS, address);
    socket.setMulticastInterface(address);
    socket.setMulticastTTL(HOPS);
    socket.setMulticastLoopback(true);
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}

const number = (address: string): number => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
/** RFC 6762 §11: packets from outside the link are ignored. */
export const isOnLink = ({ address, netmask }: MdnsInterface, from: string): boolean =>
  ((number(address) ^ number(from)) & number(netmask)) === 0;

export interface DiscoveredService {
  readonly addresses: readonly string[];
  /** Undefined: only known in multicast DNS. */
  readonly hostname?: string | undefined;
  readonly port: number;
  readonly params: Readonly<Record<string, string>>;
}

/** The service in the records; undefined: they are incomplete. @internal */
export function serviceIn(service: string, records: readonly DnsRecord[]): DiscoveredService | undefined {
  const name = instanceName(service);
  const of = <T extends DnsRecord['type']>(type: T, owner: string): readonly (DnsRecord & { readonly type: T })[] =>
    records.filter((record): record is DnsRecord & { readonly type: T } => record.type === type && record.name === owner && record.ttl > 0);
  const [srv] = of(RECORD_TYPE.SRV, name);
  const [txt] = of(RECORD_TYPE.TXT, name);
  if (!srv || !txt || srv.type !== RECORD_TYPE.SRV || txt.type !== RECORD_TYPE.TXT) return undefined;
  const isLocal = srv.target.endsWith('.local');
  const addresses = [...of(RECORD_TYPE.A, srv.target), ...of(RECORD_TYPE.AAAA, srv.target)].flatMap((item) =>
    'address' in item ? [item.address] : [],
  );
  if (isLocal && addresses.length === 0) return undefined;
  return { addresses, port: srv.port, params: txt.text, hostname: isLocal ? undefined : srv.target };
}

/** The URL of a service, by OpenStack's guideline for discovery: `protocol` is present unless the port implies it. */
export function urlOf(
  { addresses, hostname, port, params }: DiscoveredService,
  usable: (address: string) => boolean = () => true,
): string | undefined {
  const candidates = addresses.filter((address) => !isLoopback(address));
  const host = hostname ?? candidates.find(usable) ?? candidates[0];
  if (host === undefined) return undefined;
  const protocol = params['protocol'] ?? (port === 80 ? 'http' : 'https');
  if (protocol !== 'http' && protocol !== 'https') return undefined;
  return `${protocol}://${urlHost(host)}:${port}${params['path'] ?? ''}`.replace(/(?<!\/)\/+$/, '');
}

const MAX_RECORDS = 256;
interface LookupSetup {
  readonly interfaces: readonly MdnsInterface[];
  /** Number of queries, and the time to wait for a response to each. */
  readonly attempts: number;
  readonly waitMs: number;
  readonly clock: { sleep(milliseconds: number, signal?: AbortSignal): Promise<void> };
  readonly signal: AbortSignal;
  /** How the socket of an interface is opened; for tests. */
  readonly open?: typeof mdnsSocket;
}
/** Queries from its own port, so that responses are unicast (§6.7). Undefined: no valid response. */
export async function findService(
  service: string,
  { interfaces, attempts, waitMs, clock, signal, open = mdnsSocket }: LookupSetup,
): Promise<DiscoveredService | undefined> {
  const sockets = await Promise.all(interfaces.map((item) => open(item, false)));
  const records: DnsRecord[] = [];
  const enough = new AbortController();
  const name = instanceName(service);
  sockets.forEach((socket, index) => {
    socket.on('error', () => {});
    socket.on('message', (bytes, { address: from, port }) => {
      const answer: DnsMessage | undefined = port === MDNS_PORT && isOnLink(interfaces[index]!, from) ? decodeDns(bytes) : undefined;
      if (!answer?.response || records.length >= MAX_RECORDS) return;
      records.push(...[...answer.answers, ...answer.additionals].slice(0, MAX_RECORDS));
      if (serviceIn(service, records)) enough.abort();
    });
  });
  try {
    for (let attempt = 0; attempt < attempts && !enough.signal.aborted; attempt++) {
      const target = records.find((record) => record.type === RECORD_TYPE.SRV && record.name === name);
      const hosts: readonly Question[] =
        target && 'port' in target
          ? [
              { name: target.target, type: RECORD_TYPE.A },
              { name: target.target, type: RECORD_TYPE.AAAA },
            ]
          : [];
      const query = encodeDns(message({ questions: [{ name, type: RECORD_TYPE.SRV }, { name, type: RECORD_TYPE.TXT }, ...hosts] }));
      for (const socket of sockets) socket.send(query, MDNS_PORT, MDNS_ADDRESS, () => {});
      await clock.sleep(waitMs, AbortSignal.any([signal, enough.signal])).catch(() => {});
      signal.throwIfAborted();
    }
    return serviceIn(service, records);
  } finally {
    for (const socket of sockets) socket.close();
  }
}
