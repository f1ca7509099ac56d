/** The PROXY protocol, version 2: the two ends of a connection, which a proxy writes before the first byte that it passes on. */
import type { Server, Socket } from 'node:net';
import { isIP } from 'node:net';
import { canonicalAddress } from '../../model/idents';
import { ipv6At, addressBytes } from '../ipv6';

/** §2.2: no request of HTTP begins with these bytes. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** Signature, version and command, family and protocol, length of the rest. */
const FIXED_BYTES = 16;
/** The ends and some fields after them. §2.2 lets a receiver refuse longer headers. */
const MAX_BYTES = 536;
const HEADER_TIMEOUT_MS = 10_000;
/** Version 2, and whether the proxy connects for itself or for a client. */
const COMMANDS = { local: 0x20, proxy: 0x21 } as const;
/** Family and protocol (TCP) → bytes of an address. Unix sockets have no addresses that count here. */
const FAMILIES: Readonly<Record<number, number>> = { 0x11: 4, 0x21: 16 };

/** The two ends of a client's connection to the proxy. */
type Ends = Partial<Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>>;

const addressAt = (bytes: Buffer, at: number, length: number): string =>
  length === 4 ? [...bytes.subarray(at, at + length)].join('.') : ipv6At(bytes, at);

/** @param ends of the client's connection; without addresses, the proxy speaks for itself */
export function proxyHeader({ remoteAddress = '', localAddress = '', remotePort = 0, localPort = 0 }: Ends): Buffer {
  const fixed = Buffer.alloc(FIXED_BYTES);
  SIGNATURE.copy(fixed);
  const [from, to] = [canonicalAddress(remoteAddress), canonicalAddress(localAddress)];
  if (from === undefined || to === undefined || isIP(from) !== isIP(to)) {
    fixed[12] = COMMANDS.local;
    return fixed;
  }
  const addresses = [addressBytes(from), addressBytes(to)];
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(remotePort, 0);
  ports.writeUInt16BE(localPort, 2);
  fixed[12] = COMMANDS.proxy;
  fixed[13] = isIP(from) === 4 ? 0x11 : 0x21;
  fixed.writeUInt16BE(2 * addresses[0]!.length + ports.length, 14);
  return Buffer.concat([fixed, ...addresses, ports]);
}

/** Undefined: no such header. An empty object: it names no client. */
function endsIn(header: Buffer): Ends | undefined {
  const [command, family] = [header[12]!, header[13]!];
  if (command === COMMANDS.local) return {};
  if (command !== COMMANDS.proxy) return undefined;
  const length = FAMILIES[family];
  if (length === undefined) return {};
  const ports = FIXED_BYTES + 2 * length;
  if (header.length < ports + 4) return undefined;
  return {
    remoteAddress: addressAt(header, FIXED_BYTES, length),
    localAddress: addressAt(header, FIXED_BYTES + length, length),
    remotePort: header.readUInt16BE(ports),
    localPort: header.readUInt16BE(ports + 2),
  };
}

/** Bytes of the header, as far as the first bytes tell; undefined: this is no header. */
function lengthOf(first: Buffer): number | undefined {
  if (!first.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return undefined;
  const length = FIXED_BYTES + first.readUInt16BE(14);
  return length <= MAX_BYTES ? length : undefined;
}

/** Reads the header, and no byte after it. Closes a connection without one: a receiver never guesses (§2). */
function readHeader(socket: Socket, done: (ends: Ends) => void): void {
  const late = setTimeout(() => socket.destroy(), HEADER_TIMEOUT_MS);
  const ignore = (): void => {};
  let fixed: Buffer | undefined;
  const stop = (): void => {
    clearTimeout(late);
    socket.off('readable', read).off('close', stop);
  };
  const read = (): void => {
    fixed ??= (socket.read(FIXED_BYTES) as Buffer | null) ?? undefined;
    if (!fixed) return;
    const length = fixed.length === FIXED_BYTES ? lengthOf(fixed) : undefined;
    if (length === undefined) {
      socket.destroy();
      return;
    }
    const rest = length === FIXED_BYTES ? Buffer.alloc(0) : (socket.read(length - FIXED_BYTES) as Buffer | null);
    if (!rest) return;
    const ends = rest.length === length - FIXED_BYTES ? endsIn(Buffer.concat([fixed, rest])) : undefined;
    stop();
    if (!ends) {
      socket.destroy();
      return;
    }
    done(ends);
    socket.off('error', ignore);
  };
  socket.on('error', ignore).on('readable', read).once('close', stop);
}

/**
 * Lets the listeners of `connection` that the server has now see a connection only after its header, and with the ends that the header
 * names. Only for sockets that nobody but the proxy can connect to.
 */
export function expectProxyHeaders(server: Server): void {
  const listeners = server.listeners('connection');
  const announce = (socket: Socket): void => {
    for (const listener of listeners) Reflect.apply(listener, server, [socket]);
  };
  const read = new WeakSet<Socket>();
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    // upgrades.ts emits the event again for a connection that it returns to the server.
    if (read.has(socket)) {
      announce(socket);
      return;
    }
    readHeader(socket, (ends) => {
      read.add(socket);
      for (const [name, value] of Object.entries(ends)) Object.defineProperty(socket, name, { value, configurable: true });
      announce(socket);
    });
  });
}
