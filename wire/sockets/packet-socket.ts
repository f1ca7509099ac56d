/**
 * Ethernet frames of one protocol, as they arrive at network interfaces. Node has no packet sockets (packet(7)): libc opens the
 * descriptors, and poll(2) waits for them in a thread. Linux only; CAP_NET_RAW.
 */
import { endianness } from 'node:os';
import { openLibc, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_RAW, type SocketCalls } from './libc';

/** Numbers of the Linux ABI. */
const AF_PACKET = 17;
const SOL_PACKET = 263;
const PACKET_ADD_MEMBERSHIP = 1;
const PACKET_MR_PROMISC = 1;
const POLLIN = 1;
/** More than a frame on usual links. Larger frames are truncated. */
const MAX = 9216;
/** Longest wait of one poll(2): then an abort is noticed. */
const SLICE_MS = 500;

interface Libc extends SocketCalls {
  readonly recv: (fd: number, into: Buffer, length: number, flags: number) => number;
  /** Index by name; 0: there is none. */
  readonly index: (name: string) => number;
  readonly poll: (descriptors: Buffer, count: number, milliseconds: number) => Promise<void>;
}

type Poll = (descriptors: Buffer, count: number, milliseconds: number, done: (error: Error | null) => void) => void;

async function libc(): Promise<Libc> {
  const { own, calls } = await openLibc('packet sockets');
  const poll = own.func('int poll(_Inout_ void *, unsigned long, int)') as unknown as { readonly async: Poll };
  return {
    ...calls,
    recv: own.func('long recv(int, _Out_ void *, size_t, int)') as Libc['recv'],
    index: own.func('unsigned int if_nametoindex(const char *)') as Libc['index'],
    // The result is not used: recv(2) finds what has arrived. A signal only ends the wait early.
    poll: (descriptors, count, milliseconds) =>
      new Promise((resolve, reject) => poll.async(descriptors, count, milliseconds, (error) => (error ? reject(error) : resolve()))),
  };
}

/** Integers in the machine's byte order, as in the kernel's structures. */
const LITTLE = endianness() === 'LE';
const host32 = (bytes: Buffer, value: number, at: number): number =>
  LITTLE ? bytes.writeInt32LE(value, at) : bytes.writeInt32BE(value, at);
const host16 = (bytes: Buffer, value: number, at: number): number =>
  LITTLE ? bytes.writeInt16LE(value, at) : bytes.writeInt16BE(value, at);

/** A descriptor for the interface's frames of that protocol, to any address. Undefined: it cannot be opened. */
function openSocket(c: Libc, name: string, etherType: number): number | undefined {
  const index = c.index(name);
  // The protocol is in network order, also as an argument.
  const protocol = LITTLE ? ((etherType & 0xff) << 8) | (etherType >> 8) : etherType;
  const fd = index === 0 ? -1 : c.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
  if (fd < 0) return undefined;
  const address = Buffer.alloc(20); // struct sockaddr_ll
  host16(address, AF_PACKET, 0);
  address.writeUInt16BE(etherType, 2);
  host32(address, index, 4);
  const membership = Buffer.alloc(16); // struct packet_mreq; it ends with the socket
  host32(membership, index, 0);
  host16(membership, PACKET_MR_PROMISC, 4);
  if (c.bind(fd, address, address.length) < 0 || c.setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership, membership.length) < 0) {
    c.close(fd);
    return undefined;
  }
  return fd;
}

/**
 * The first frame of that protocol at each interface, including headers. Ends when each has one or after `timeoutMs`. An interface
 * whose socket cannot be opened has none. Throws LinkError where there are no packet sockets.
 */
export async function firstFrames(
  interfaces: readonly string[],
  etherType: number,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Buffer>> {
  const c = await libc();
  const found = new Map<string, Buffer>();
  const opened = interfaces.flatMap((name) => {
    const fd = openSocket(c, name, etherType);
    return fd === undefined ? [] : [{ name, fd }];
  });
  const end = performance.now() + timeoutMs;
  try {
    for (;;) {
      const waiting = opened.filter(({ name }) => !found.has(name));
      const left = end - performance.now();
      if (waiting.length === 0 || left <= 0 || signal.aborted) return found;
      const descriptors = Buffer.alloc(8 * waiting.length); // struct pollfd
      waiting.forEach(({ fd }, at) => {
        host32(descriptors, fd, 8 * at);
        host16(descriptors, POLLIN, 8 * at + 4);
      });
      await c.poll(descriptors, waiting.length, Math.ceil(Math.min(left, SLICE_MS)));
      for (const { name, fd } of waiting) {
        const frame = Buffer.alloc(MAX);
        const length = c.recv(fd, frame, MAX, 0);
        if (length > 0) found.set(name, frame.subarray(0, length));
      }
    }
  } finally {
    for (const { fd } of opened) c.close(fd);
  }
}
