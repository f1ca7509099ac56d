/**
 * Burn-in of the network with a partner: one writes to the other for a time, then the roles change. The streams are those of fio(1) with the
 * engine `net`, so the partner may be ironic-python-agent: 16 TCP connections to successive ports, of which each carries data to its end.
 */
import { setMaxListeners } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { AgentError } from '../../model/agent/errors';
import { type NetworkBurnIn, type NetworkRole, readNetworkBurnIn } from '../../model/agent/burnin';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { objectOf } from '../../model/json';
import type { JsonObject } from '../../model/records';
import { timeoutSignal } from '../../wire/timeout-signal';
import type { Machine } from '../machine';
import type { ReportProgress } from '../system/progress';
import { interfaceErrors, newInterfaceErrors, timed, writeResult } from './measures';
import { findPartner } from './pairing';

/** What fio's writer sends at the end of its data (engines/net.c): a reader of fio waits for it, and reads blocks of this size until then. */
const CLOSE = Buffer.from('knil\x89\0\0\0', 'latin1');
const BLOCK = 4096;
const STREAMS = 16;
const PORTS = Array.from({ length: STREAMS }, (_, index) => 9000 + index);
/** Milliseconds. */
const RETRY_MS = 2000;
const END_MS = 60_000;

interface Direction {
  readonly seconds: number;
  readonly bytes: number;
}
interface Streams {
  readonly host: string;
  readonly seconds: number;
  /** Seconds to wait for the partner. */
  readonly patience: number;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
  readonly signal: AbortSignal;
  readonly ports?: readonly number[];
}
/** For as many listeners as there are streams. */
function forStreams(given: AbortSignal): AbortSignal {
  const signal = AbortSignal.any([given]);
  setMaxListeners(4 * STREAMS, signal);
  return signal;
}
const nowOf = (clock: Clock): number => clock.monotonic?.() ?? clock.now();

/** Accepts the partner's connection to each port, and writes to all of them for the time. @internal */
export async function writeStreams({ seconds, patience, clock, random, signal: given, ports = PORTS }: Streams): Promise<Direction> {
  const signal = forStreams(given);
  const servers: Server[] = [];
  const sockets: Socket[] = [];
  const late = forStreams(timeoutSignal(patience * 1000, signal));
  const accept = (port: number): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const server = createServer((socket) => {
        // A stream has one connection; more would be strangers.
        server.close();
        sockets.push(socket);
        resolve(socket);
      });
      servers.push(server);
      server.on('error', reject);
      late.addEventListener('abort', () => reject(new Error(`no partner came to port ${port} within ${patience} s`)));
      server.listen(port);
    });
  try {
    const connected = await Promise.all(ports.map(accept));
    const began = nowOf(clock);
    const chunk = random(64 * BLOCK);
    const counts = await Promise.all(connected.map((socket) => pour(socket, chunk, () => nowOf(clock) - began >= seconds * 1000, signal)));
    return { bytes: counts.reduce((sum, bytes) => sum + bytes, 0), seconds: (nowOf(clock) - began) / 1000 };
  } finally {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
  }
}
/** Resolves with the bytes when the partner has closed its side, or does not for a minute. */
function pour(socket: Socket, chunk: Buffer, isOver: () => boolean, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    let isEnding = false;
    const aborted = (): void => void socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', aborted);
    const more = (): void => {
      if (isOver()) {
        isEnding = true;
        socket.setTimeout(END_MS, () => socket.destroy());
        return void socket.end(CLOSE);
      }
      bytes += chunk.length;
      // Also after a write that needs no wait: another stream has its turn.
      if (socket.write(chunk)) setImmediate(more);
      else socket.once('drain', more);
    };
    socket.on('error', (error) => (isEnding ? resolve(bytes) : reject(error)));
    socket.on('close', () => {
      signal.removeEventListener('abort', aborted);
      if (isEnding) resolve(bytes);
      else reject(new Error('the partner closed a stream early'));
    });
    // What the partner sends is not expected, and not kept.
    socket.resume();
    more();
  });
}

/** A stream that ended by an error after it had data: it does not begin again. */
class BrokenStream extends Error {}

/** Connects to each port of the partner, as soon as it listens there, and reads all streams to their end. @internal */
export async function readStreams({ host, seconds, patience, clock, signal: given, ports = PORTS }: Streams): Promise<Direction> {
  const signal = forStreams(given);
  const asked = nowOf(clock);
  let began: number | undefined;
  let isDone = false;
  const sockets = new Set<Socket>();
  const read = (port: number): Promise<number> =>
    new Promise((resolve, reject) => {
      let bytes = 0;
      const socket = connect({ host, port });
      sockets.add(socket);
      const aborted = (): void => void socket.destroy(signal.reason as Error);
      signal.addEventListener('abort', aborted);
      // A partner that hangs sends nothing for this time. One that waits for its other streams sends nothing, too.
      socket.setTimeout(Math.max(END_MS, patience * 1000), () => socket.destroy(new Error(`port ${port} of the partner is silent`)));
      socket.on('data', (part) => {
        began ??= nowOf(clock);
        bytes += part.length;
        if (nowOf(clock) - began > (2 * seconds + 600) * 1000)
          socket.destroy(new Error('the partner writes much longer than this machine would'));
      });
      // The partner's last answer may be a reset.
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (bytes === 0) reject(error);
        else if (error.code === 'ECONNRESET') resolve(bytes);
        else reject(new BrokenStream(error.message, { cause: error }));
      });
      socket.on('end', () => socket.end());
      socket.on('close', () => {
        sockets.delete(socket);
        signal.removeEventListener('abort', aborted);
        if (bytes > 0) resolve(bytes - (bytes % BLOCK === CLOSE.length ? CLOSE.length : 0));
        else reject(new Error(`port ${port} of the partner closed without data`));
      });
    });
  const stream = async (port: number): Promise<number> => {
    for (;;) {
      try {
        return await read(port);
      } catch (error) {
        const isLate = nowOf(clock) - asked >= patience * 1000;
        if (isLate || isDone || signal.aborted || error instanceof BrokenStream) throw error;
        await clock.sleep(RETRY_MS, signal);
      }
    }
  };
  try {
    const counts = await Promise.all(ports.map(stream));
    return { bytes: counts.reduce((sum, bytes) => sum + bytes, 0), seconds: (nowOf(clock) - (began ?? asked)) / 1000 };
  } finally {
    isDone = true;
    for (const socket of sockets) socket.destroy();
  }
}

const shown = ({ bytes, seconds }: Direction): JsonObject => ({
  bytes,
  seconds: Math.round(seconds),
  mbit_per_second: Math.round((bytes * 8) / Math.max(seconds, 0.001) / 1e6),
});

/** Throws CleaningError if no partner can be known, CommandExecutionError if one of the directions fails. */
export async function burnInNetwork(machine: Machine, progress: ReportProgress): Promise<JsonObject> {
  const wanted = readNetworkBurnIn(objectOf(machine.state.node['driver_info']));
  const { role, host } = await partnerOf(machine, wanted);
  const { clock, random, fetching, log, tree } = machine;
  log.info(`Burn-in (network): partner ${host}, role is ${role}`);
  const streams: Streams = { host, seconds: wanted.seconds, patience: wanted.patience, clock, random, signal: fetching.signal };
  const before = interfaceErrors(tree);
  const other = { writer: 'reader', reader: 'writer' } as const satisfies Record<NetworkRole, NetworkRole>;
  const sides: Record<NetworkRole, JsonObject> = { writer: {}, reader: {} };
  try {
    await timed(machine, 2 * wanted.seconds, progress, async () => {
      for (const side of [role, other[role]]) {
        sides[side] = shown(await (side === 'writer' ? writeStreams(streams) : readStreams(streams)));
        if (wanted.outputFile !== undefined) await writeResult(machine, `${wanted.outputFile}.${side}`, sides[side]);
      }
    });
  } catch (error) {
    throw new AgentError('CommandExecutionError', `Burn-in (network) failed with error ${reasonOf(error)}`, { cause: error });
  }
  const result = {
    partner: host,
    written: sides.writer,
    read: sides.reader,
    interface_errors: newInterfaceErrors(before, interfaceErrors(tree)),
  };
  log.info(`Burn-in (network): ${JSON.stringify(result)}`);
  return result;
}
async function partnerOf(
  machine: Machine,
  { partner, patience }: NetworkBurnIn,
): Promise<{ readonly role: NetworkRole; readonly host: string }> {
  if ('role' in partner) return partner;
  return findPartner(machine, partner, patience);
}
