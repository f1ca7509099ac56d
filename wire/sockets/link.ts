/**
 * Sockets bound to one network interface, which node:dgram cannot open: SO_BINDTODEVICE must precede bind(2), and raw sockets are not
 * supported. libc creates the descriptor, and node:dgram then uses it as its own. Linux only.
 */
import { createSocket, type Socket } from 'node:dgram';
import { ipv6At } from '../ipv6';
import { LinkError, openLibc, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_RAW, type SocketCalls } from './libc';

/** Numbers of the Linux ABI (asm-generic; the same on x86-64 and arm64). */
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOL_SOCKET = 1;
const SO_BROADCAST = 6;
const SO_BINDTODEVICE = 25;
const SO_RCVBUF = 8;
const SO_RCVBUFFORCE = 33;
export const IPPROTO_ICMPV6 = 58;
const ICMP6_FILTER = 1;
const IPPROTO_IPV6 = 41;
const IPV6_UNICAST_HOPS = 16;
const IPV6_MULTICAST_HOPS = 18;
const IPV6_MULTICAST_LOOP = 19;
const IPV6_V6ONLY = 26;

interface Sockaddr {
  readonly family: number;
  readonly address: readonly number[];
}
interface Libc extends SocketCalls {
  readonly dup2: (from: number, to: number) => number;
  /** getifaddrs(3): every interface by name, with its addresses. */
  readonly interfaces: () => ReadonlyMap<string, Link>;
  /** The error for the operator: what failed, and the system's reason. */
  readonly refusal: (what: string) => LinkError;
}

async function libc(): Promise<Libc> {
  const { koffi, own, calls } = await openLibc('sockets of one interface');
  const { EPERM, EACCES, ENODEV, EADDRINUSE } = koffi.os.errno;
  const capabilities = 'not permitted: run as root, or with the capabilities NET_BIND_SERVICE and NET_RAW';
  const reasons = new Map([
    [EPERM, capabilities],
    [EACCES, capabilities],
    [ENODEV, 'there is no such interface'],
    [EADDRINUSE, 'the port is in use'],
  ]);
  const getifaddrs = own.func('int getifaddrs(_Out_ void **)') as (list: [unknown]) => number;
  const freeifaddrs = own.func('void freeifaddrs(void *)') as (list: unknown) => void;
  // The members of struct ifaddrs that are read; sockaddr_in: family in host order, port, address.
  const entry = koffi.struct({ next: 'void *', name: 'const char *', flags: 'unsigned int', address: 'void *', netmask: 'void *' });
  const ipv4 = koffi.struct({ family: 'uint16', port: 'uint16', address: koffi.array('uint8', 4, 'Array') });
  const ipv6 = koffi.struct({ family: 'uint16', port: 'uint16', flow: 'uint32', address: koffi.array('uint8', 16, 'Array') });
  return {
    ...calls,
    dup2: own.func('int dup2(int, int)') as Libc['dup2'],
    interfaces: () => {
      const list: [unknown] = [null];
      if (getifaddrs(list) < 0) throw new LinkError(`cannot read the interfaces: error ${koffi.errno()}`);
      const found = new Map<string, { ipv4: LinkAddress[]; ipv6: string[] }>();
      for (let at = list[0]; at !== null;) {
        const { next, name, address, netmask } = koffi.decode(at, entry) as Record<'next' | 'address' | 'netmask', unknown> & {
          name: string;
        };
        const read = (pointer: unknown): Sockaddr | undefined => (pointer === null ? undefined : (koffi.decode(pointer, ipv4) as Sockaddr));
        const [one, mask] = [read(address), read(netmask)];
        const addresses = found.get(name) ?? { ipv4: [], ipv6: [] };
        found.set(name, addresses);
        if (one?.family === AF_INET && mask) addresses.ipv4.push({ address: one.address.join('.'), netmask: mask.address.join('.') });
        if (one?.family === AF_INET6) addresses.ipv6.push(ipv6At(Buffer.from((koffi.decode(address, ipv6) as Sockaddr).address)));
        at = next;
      }
      freeifaddrs(list[0]);
      return found;
    },
    refusal: (what) => {
      const code = koffi.errno();
      return new LinkError(`${what}: ${reasons.get(code) ?? `error ${code}`}`);
    },
  };
}

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  new Int32Array(bytes.buffer, bytes.byteOffset, 1)[0] = value;
  return bytes;
};

/** A descriptor of a socket that sends and receives on this interface only. */
function descriptor(c: Libc, family: number, type: number, protocol: number, name: string): number {
  const fd = c.socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  if (fd < 0) throw c.refusal('cannot make a socket');
  const device = Buffer.from(`${name}\0`);
  if (c.setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, device.length) < 0) {
    const error = c.refusal(`cannot bind a socket to interface ${name}`);
    c.close(fd);
    throw error;
  }
  return fd;
}

/** sockaddr_in / sockaddr_in6 of the wildcard address; the family is in host order, the port in network order. */
function wildcard(family: number, port: number): Buffer {
  const address = Buffer.alloc(family === AF_INET ? 16 : 28);
  new Uint16Array(address.buffer, address.byteOffset, 1)[0] = family;
  address.writeUInt16BE(port, 2);
  return address;
}

/** Passes a bound descriptor to node:dgram. */
async function adopt(c: Libc, type: 'udp4' | 'udp6', fd: number, onListening?: () => void): Promise<Socket> {
  const socket = createSocket(type);
  await new Promise<void>((done, fail) => {
    socket.once('error', (error) => {
      c.close(fd);
      fail(new LinkError(`cannot use the socket: ${error.message}`));
    });
    socket.once('listening', () => {
      onListening?.();
      done();
    });
    socket.bind({ fd, exclusive: true });
  });
  socket.removeAllListeners('error');
  return socket;
}

export interface LinkAddress {
  readonly address: string;
  readonly netmask: string;
}
interface Link {
  readonly ipv4: readonly LinkAddress[];
  /** Includes link-local addresses. */
  readonly ipv6: readonly string[];
}
/**
 * Every interface by name with its addresses, also those without carrier, which node:os leaves out.
 * @throws LinkError when the system refuses
 */
export const readLinks = async (): Promise<ReadonlyMap<string, Link>> => (await libc()).interfaces();

/**
 * A UDP socket on 0.0.0.0:port that sends and receives on this interface alone, including broadcasts, without any address or route.
 * Another socket on this port of the interface (or of all interfaces) is an error; one on another interface is not.
 * @param receiveBuffer bytes of the kernel's buffer, limited by the kernel
 * @throws LinkError
 */
export async function openUdp(name: string, port: number, receiveBuffer: number): Promise<Socket> {
  const c = await libc();
  const fd = descriptor(c, AF_INET, SOCK_DGRAM, 0, name);
  c.setsockopt(fd, SOL_SOCKET, SO_BROADCAST, int32(1), 4);
  return bindUdp(c, fd, AF_INET, { name, port, receiveBuffer });
}

/**
 * A UDP socket on [::]:port of this interface, which also receives what is sent to the groups.
 * @throws LinkError also where the interface has no IPv6
 */
export async function openUdp6(name: string, port: number, receiveBuffer: number, groups: readonly string[]): Promise<Socket> {
  const c = await libc();
  const fd = descriptor(c, AF_INET6, SOCK_DGRAM, 0, name);
  c.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, int32(1), 4);
  const socket = await bindUdp(c, fd, AF_INET6, { name, port, receiveBuffer });
  try {
    for (const group of groups) socket.addMembership(group, `::%${name}`);
    return socket;
  } catch (error) {
    socket.close();
    throw new LinkError(`cannot receive multicasts on interface ${name}: ${(error as Error).message}`);
  }
}

function bindUdp(
  c: Libc,
  fd: number,
  family: number,
  { name, port, receiveBuffer }: { readonly name: string; readonly port: number; readonly receiveBuffer: number },
): Promise<Socket> {
  // SO_RCVBUFFORCE may exceed net.core.rmem_max, and needs the capability NET_ADMIN.
  const forced = c.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, int32(receiveBuffer), 4);
  if (forced < 0) c.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, int32(receiveBuffer), 4);
  const address = wildcard(family, port);
  // Bound before node:dgram sets SO_REUSEADDR, with which two servers could share the port.
  if (c.bind(fd, address, address.length) < 0) {
    const error = c.refusal(`cannot listen on port ${port} of interface ${name}`);
    c.close(fd);
    throw error;
  }
  return adopt(c, family === AF_INET ? 'udp4' : 'udp6', fd);
}

/**
 * A raw ICMPv6 socket on this interface that receives one type of message, also when sent to `group`. Send with port IPPROTO_ICMPV6
 * (Linux uses the port in a raw socket's address as its protocol). The kernel adds the checksum.
 * @throws LinkError also where the interface has no IPv6
 */
export async function openIcmpv6(name: string, messageType: number, group: string): Promise<Socket> {
  const c = await libc();
  const raw = descriptor(c, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, name);
  // RFC 3542 §3.2: 256 bits in host words; a set bit blocks that type.
  const filter = Buffer.alloc(32, 0xff);
  const words = new Uint32Array(filter.buffer, filter.byteOffset, 8);
  words[messageType >> 5]! &= ~(1 << (messageType & 31));
  c.setsockopt(raw, IPPROTO_ICMPV6, ICMP6_FILTER, filter, filter.length);
  // RFC 4861 §4.2: neighbour discovery requires hop limit 255.
  c.setsockopt(raw, IPPROTO_IPV6, IPV6_UNICAST_HOPS, int32(255), 4);
  c.setsockopt(raw, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, int32(255), 4);
  c.setsockopt(raw, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, int32(0), 4);
  // node:dgram accepts only UDP descriptors. It gets one, which the raw socket replaces before the event loop polls it.
  let socket: Socket | undefined;
  try {
    const placeholder = descriptor(c, AF_INET6, SOCK_DGRAM, 0, name);
    const address = wildcard(AF_INET6, 0);
    c.bind(placeholder, address, address.length);
    socket = await adopt(c, 'udp6', placeholder, () => c.dup2(raw, placeholder));
    socket.addMembership(group, `::%${name}`);
    return socket;
  } catch (error) {
    socket?.close();
    throw new LinkError(`cannot listen for ICMPv6 on interface ${name}: ${(error as Error).message}`);
  } finally {
    c.close(raw);
  }
}
