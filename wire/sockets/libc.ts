/** The C library of the process, for sockets that Node does not make: descriptors, and what the kernel is told of them. Linux only. */

/** The socket cannot be had; the message is for the operator. */
export class LinkError extends Error {}

/** Numbers of the Linux ABI (asm-generic; the same on x86-64 and arm64). */
export const SOCK_RAW = 3;
export const SOCK_NONBLOCK = 0o4000;
export const SOCK_CLOEXEC = 0o2000000;

/** Each answers a negative number when the system refuses. */
export interface SocketCalls {
  readonly socket: (family: number, type: number, protocol: number) => number;
  readonly setsockopt: (fd: number, level: number, name: number, value: Buffer, length: number) => number;
  readonly bind: (fd: number, address: Buffer, length: number) => number;
  readonly close: (fd: number) => number;
}

/**
 * The calls that all sockets need, and the library itself for further ones. koffi is an ES module to TypeScript, hence the import at run
 * time; who opens no such socket then never loads it.
 * @param what is to be opened, for the refusal elsewhere than on Linux
 * @throws LinkError
 */
export async function openLibc(what: string) {
  if (process.platform !== 'linux') throw new LinkError(`${what} need Linux`);
  const { default: koffi } = await import('koffi');
  // The program's own symbols: whichever C library Node runs on.
  const own = koffi.load(null);
  const calls: SocketCalls = {
    socket: own.func('int socket(int, int, int)') as SocketCalls['socket'],
    setsockopt: own.func('int setsockopt(int, int, int, const void *, uint32_t)') as SocketCalls['setsockopt'],
    bind: own.func('int bind(int, const void *, uint32_t)') as SocketCalls['bind'],
    close: own.func('int close(int)') as SocketCalls['close'],
  };
  return { koffi, own, calls };
}
