/**
 * Consoles of machines on TCP ports of this conductor: one client at a time, connected to the machine's serial line. With a log, the line is
 * open as long as the console, and a client first gets the end of what the machine has said.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Fault, reasonOf } from '../model/errors';
import type { Log } from '../model/log';

/** An open serial line; wire/ipmi/sol.ts implements it. */
interface Line {
  write(bytes: Buffer): Promise<void>;
  sendBreak(): Promise<void>;
  readonly closed: Promise<Error | undefined>;
  close(): Promise<void>;
}
interface ConsoleSetup {
  /** The node's UUID. */
  readonly name: string;
  readonly host: string;
  /** Tried in order. */
  readonly ports: Iterable<number>;
  /** Disconnects a client after this time without traffic; 0: never. */
  readonly idleMs: number;
  /** Disconnects a client after this time; 0: never. */
  readonly limitMs: number;
  /** Bytes of output that are kept; 0: the line is open only while a client is connected. */
  readonly logBytes: number;
  /** Gets all that the machine says, also while no client is connected. */
  readonly save?: ((bytes: Buffer) => void) | undefined;
  open(deliver: (bytes: Buffer) => void, signal: AbortSignal): Promise<Line>;
}
export interface Consoles {
  /** Listens, unless the console already does. @returns the port. Throws NoFreeIPMITerminalPorts */
  open(setup: ConsoleSetup): Promise<number>;
  /** The port of a console of this process. */
  portOf(name: string): Promise<number | undefined>;
  close(name: string): Promise<void>;
  closeAll(): Promise<void>;
}
interface OpenConsole {
  readonly server: Server;
  readonly port: number;
  /** Disconnects all clients. */
  readonly hangUp: () => void;
}

/** Bytes that may wait for a client that does not read. Beyond them the client is disconnected. */
const MAX_UNREAD = 1 << 20;
const NEW_LINE: readonly number[] = [0x0a, 0x0d];
const TILDE = 0x7e;
/** Time for a client to read why it is disconnected. */
const FAREWELL_MS = 1000;
/** setTimeout fires at once for longer times. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** `~B` at the start of a line sends a break, `~.` ends the connection: the escapes of ipmitool's console. */
function escapes(): (bytes: Buffer) => { readonly text: Buffer; readonly order?: 'break' | 'end' } {
  let state: 'start' | 'tilde' | 'inside' = 'start';
  return (bytes) => {
    const text: number[] = [];
    for (const byte of bytes) {
      const was = state;
      state = NEW_LINE.includes(byte) ? 'start' : 'inside';
      if (was === 'start' && byte === TILDE) state = 'tilde';
      else if (was === 'tilde' && byte === 0x42) return { text: Buffer.from(text), order: 'break' };
      else if (was === 'tilde' && byte === 0x2e) return { text: Buffer.from(text), order: 'end' };
      else text.push(...(was === 'tilde' ? [TILDE] : []), byte);
    }
    return { text: Buffer.from(text) };
  };
}

/** Reads and drops the client's input: otherwise the socket does not notice that the client has closed the connection. */
function refuse(socket: Socket, why: string): void {
  socket.resume();
  socket.end(`${why}\r\n`);
}

/** Also disconnects a client that neither reads nor closes its side. */
function disconnect(socket: Socket, why: string): void {
  socket.end(`\r\nclosed: ${why}\r\n`);
  setTimeout(() => socket.destroy(), FAREWELL_MS).unref();
}

function endInTime(socket: Socket, limitMs: number): void {
  if (limitMs === 0) return;
  const timer = setTimeout(() => disconnect(socket, 'the session reached its time limit'), Math.min(limitMs, MAX_TIMER_MS));
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}

/** The end of what a machine has said, up to a number of bytes. */
function createConsoleLog(most: number): { readonly add: (bytes: Buffer) => void; readonly read: () => Buffer } {
  let parts: Buffer[] = [];
  let size = 0;
  return {
    add(bytes) {
      // A copy: the bytes may be part of a larger buffer.
      parts.push(Buffer.from(bytes.subarray(-most)));
      size += bytes.length;
      // Joined now and then, so that many small parts neither take more memory nor more time.
      if (size < 2 * most && parts.length < MAX_PARTS) return;
      parts = [Buffer.from(Buffer.concat(parts).subarray(-most))];
      size = parts[0]!.length;
    },
    read: () => (most === 0 ? Buffer.alloc(0) : Buffer.concat(parts).subarray(-most)),
  };
}
/** Small parts of a log that are joined at a time. */
const MAX_PARTS = 1000;

/** The line of a console with a log: open until the console is closed, and opened again when the BMC ends it. */
function keepLine(setup: ConsoleSetup, log: Log, signal: AbortSignal): Pick<ConsoleSetup, 'open'> {
  const said = createConsoleLog(setup.logBytes);
  let line: Line | undefined;
  let listener: ((bytes: Buffer) => void) | undefined;
  let why = new Error('the console is not connected to the machine yet');
  /** Resolves when the line that a client uses ends. */
  let ended: (error: Error | undefined) => void = () => {};
  const take = (bytes: Buffer): void => {
    if (setup.logBytes > 0) said.add(bytes);
    setup.save?.(bytes);
    listener?.(bytes);
  };
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        line = await setup.open(take, signal);
        if (signal.aborted) await line.close();
        why = (await line.closed) ?? new Error('the machine ended the connection');
      } catch (error) {
        why = error as Error;
        if (!signal.aborted) log.warn('A console cannot be connected', { node: setup.name, reason: reasonOf(error) });
      }
      line = undefined;
      ended(why);
      await delay(REOPEN_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  signal.addEventListener('abort', () => void line?.close().catch(() => {}), { once: true });
  void follow();
  return {
    open: async (deliver) => {
      const before = said.read();
      if (before.length > 0) deliver(before);
      if (!line) throw why;
      const now = line;
      listener = deliver;
      return {
        write: (bytes) => now.write(bytes),
        sendBreak: () => now.sendBreak(),
        closed: new Promise((done) => (ended = done)),
        // The line stays open for the log.
        close: async () => {
          listener = undefined;
        },
      };
    },
  };
}
/** Milliseconds until the line is opened again after the BMC has ended it. */
const REOPEN_MS = 10_000;

async function serve(socket: Socket, setup: ConsoleSetup, log: Log): Promise<void> {
  const gone = new AbortController();
  socket.once('close', () => gone.abort(new Error('the client has gone')));
  socket.setNoDelay(true);
  if (setup.idleMs > 0) socket.setTimeout(setup.idleMs, () => disconnect(socket, 'no traffic for too long'));
  endInTime(socket, setup.limitMs);
  let line: Line;
  try {
    line = await setup.open((bytes) => {
      if (socket.writableLength > MAX_UNREAD) socket.destroy();
      else if (socket.writable) socket.write(bytes);
    }, gone.signal);
  } catch (error) {
    log.warn('A console cannot be connected', { node: setup.name, reason: reasonOf(error) });
    refuse(socket, reasonOf(error));
    return;
  }
  log.info('A console was connected', { node: setup.name });
  const read = escapes();
  let pending = Promise.resolve();
  socket.on('data', (bytes) => {
    const { text, order } = read(bytes);
    socket.pause();
    pending = pending
      .then(async () => {
        if (text.length > 0) await line.write(text);
        if (order === 'break') await line.sendBreak();
        if (order === 'end') socket.end();
        socket.resume();
      })
      .catch(() => void socket.destroy());
  });
  const ended = await Promise.race([
    line.closed,
    new Promise<undefined>((done) => gone.signal.addEventListener('abort', () => done(undefined))),
  ]);
  if (ended) socket.end(`\r\n${ended.message}\r\n`);
  await line.close();
  log.info('A console was disconnected', { node: setup.name, ...(ended ? { reason: ended.message } : {}) });
}

export function createConsoles(log: Log): Consoles {
  const open = new Map<string, Promise<OpenConsole>>();

  const listenOn = (setup: ConsoleSetup, port: number): Promise<OpenConsole | undefined> =>
    new Promise((done, fail) => {
      const server = createServer();
      const closing = new AbortController();
      const sockets = new Set<Socket>();
      let busy = false;
      server.on('connection', (socket) => {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.once('close', () => sockets.delete(socket));
        if (busy) {
          refuse(socket, 'the console is in use');
          return;
        }
        busy = true;
        void serve(socket, kept ? { ...setup, ...kept } : setup, log).finally(() => (busy = false));
      });
      server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? done(undefined) : fail(error)));
      let kept: Pick<ConsoleSetup, 'open'> | undefined;
      const hangUp = (): void => {
        closing.abort(new Error('the console is closed'));
        for (const socket of sockets) socket.destroy();
      };
      server.listen({ port, host: setup.host }, () => {
        if (setup.logBytes > 0 || setup.save) kept = keepLine(setup, log, closing.signal);
        done({ server, port, hangUp });
      });
    });
  const start = async (setup: ConsoleSetup): Promise<OpenConsole> => {
    for (const port of setup.ports) {
      const it = await listenOn(setup, port);
      if (it) return it;
    }
    throw new Fault('NoFreeIPMITerminalPorts', { host: setup.host });
  };
  const close = async (name: string): Promise<void> => {
    const it = await open.get(name)?.catch(() => undefined);
    open.delete(name);
    if (!it) return;
    const closed = new Promise((done) => it.server.close(done));
    it.hangUp();
    await closed;
  };
  return {
    open: async (setup) => {
      const known = open.get(setup.name);
      const it = known ?? start(setup);
      if (!known) open.set(setup.name, it);
      try {
        return (await it).port;
      } catch (error) {
        open.delete(setup.name);
        throw error;
      }
    },
    portOf: async (name) => (await open.get(name)?.catch(() => undefined))?.port,
    close,
    closeAll: async () => {
      await Promise.all([...open.keys()].map(close));
    },
  };
}
