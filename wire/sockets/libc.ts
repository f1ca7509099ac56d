/** The process's C library, for sockets that Node cannot open: descriptors and socket options. Linux only. */

/** The socket cannot be opened; the message is for the operator. */
export class LinkError extends Error {}

/** Numbers of the Linux ABI (asm-generic; the same on x86-64 and arm64). */
export const SOCK_RAW = 3;
export const SOCK_NONBLOCK = 0o4000;
export const SOCK_CLOEXEC = 0o2000000;

/** Each returns a negative number on failure. */
export interface SocketCalls {
  readonly socket: (family: number, type: number, protocol: number) => number;
  readonly setsockopt: (fd: number, level: number, name: number, value: Buffer, length: number) => number;
  readonly bind: (fd: number, address: Buffer, length: number) => number;
  readonly close: (fd: number) => number;
}

/**
 * The calls that all sockets need, and the library itself for further ones. koffi is an ES module for TypeScript, hence the import at run
 * time. Processes without such sockets never load it.
 * @param what is opened, for the error on other systems than Linux
 * @throws LinkError
 */
export async function openLibc(what: string) {
  if (process.platform !== 'linux') throw new LinkError(`${what} need Linux`);
  const { default: koffi } = await import('koffi');
  // The symbols of this process: whichever C library Node uses.
  const own = koffi.load(null);
  const calls: SocketCalls = {
    socket: own.func('int socket(int, int, int)') as SocketCalls['socket'],
    setsockopt: own.func('int setsockopt(int, int, int, const void *, uint32_t)') as SocketCalls['setsockopt'],
    bind: own.func('int bind(int, const void *, uint32_t)') as SocketCalls['bind'],
    close: own.func('int close(int)') as SocketCalls['close'],
  };
  return { koffi, own, calls };
}
