/**
 * Sends a file to a client in windows of DATA packets (RFC 7440; a window of 1 is RFC 1350). Each window is acknowledged, and sent again
 * after a loss. A loss shows as a repeated acknowledgment (with windows only) or as a timeout.
 */
import type { Socket } from 'node:dgram';
import type { Clock } from '../model/clock';
import { decodeTftp, encodeTftp, type TftpOptions } from '../wire/tftp';
import type { Blocks } from './tftp-blocks';
import { createRetransmissionTimer, type RetransmissionTimer } from './retransmission-timer';
import type { Place } from './tftp-transfers';

export interface NegotiatedOptions {
  /** Octets of data in a packet. */
  readonly blockSize: number;
  /** Packets in a window. */
  readonly window: number;
  readonly timeoutSeconds?: number | undefined;
  /** The options in the OACK; empty: no OACK is sent. */
  readonly granted: TftpOptions;
}
interface Transfer {
  /** Connected to the client. */
  readonly socket: Socket;
  readonly blocks: Blocks;
  readonly negotiated: NegotiatedOptions;
  readonly clock: Clock;
  /** Octets of the request. */
  readonly requestOctets: number;
  /** The place of the transfer among the others. */
  readonly place: Place;
}
interface TransferResult {
  /** `done`, `silent` (the client stopped answering), or the reason why client or server ended the transfer. */
  readonly end: string;
  /** DATA packets that were sent more than once. */
  readonly resent: number;
}

/**
 * Milliseconds until the transfer ends with a client that never answered, or that stopped acknowledging new blocks. Clients repeat a
 * request after 1 to 5 s.
 */
const NO_ANSWER_MS = 3000;
const SILENCE_MS = 30_000;
/**
 * The source of a request may be forged. Until it acknowledges a packet, it gets one packet for each request, which is a block at most.
 * That packet is sent again only while the total stays below a multiple of what came, as in QUIC (RFC 9000 §8.1). Clients repeat their
 * requests themselves (RFC 1350 §2).
 */
const AMPLIFICATION = 3;
/** Requests that are repeated faster than this have crossed our packet. */
const REPEAT_MS = 200;
/** The value of `base` before the OACK is acknowledged. */
const NEGOTIATING = -1;

/** When the last window is to be sent again. */
function createDeadline(clock: Clock, timer: RetransmissionTimer) {
  let sentAt = clock.now();
  let deadline = sentAt;
  let sleep = new AbortController();
  let sleepEnds = 0;
  return {
    /** A window was sent. */
    restart: (): void => {
      sentAt = clock.now();
      const timeout = timer.timeout();
      deadline = sentAt + timeout;
      // The timeout became much shorter than the current sleep.
      if (sleepEnds > deadline + timeout) sleep.abort();
    },
    /** Nothing was sent: only the deadline moves. */
    extend: (): void => void (deadline = clock.now() + timer.timeout()),
    sinceSent: (): number => clock.now() - sentAt,
    interrupt: (): void => sleep.abort(),
    /**
     * Renews the sleep when it ends, because a timer per packet would cost more than the packet. Returns whether the deadline passed.
     * @param latest the deadline is not later
     */
    passes: async (latest: () => number): Promise<boolean> => {
      sleep = new AbortController();
      sleepEnds = Math.max(Math.min(deadline, latest()), clock.now() + 1);
      await clock.sleep(sleepEnds - clock.now(), sleep.signal).catch(() => {});
      return clock.now() >= Math.min(deadline, latest());
    },
  };
}
type Deadline = ReturnType<typeof createDeadline>;

/** The window in transit. */
interface Window {
  /** Sends the window after the last acknowledged block. */
  send(): void;
  /** The timeout expired: sends the window again. */
  sendAgain(): void;
  /** @returns whether the packet was not acknowledged before */
  acknowledge(block: number): boolean;
  isLastSent(): boolean;
  resent(): number;
}
interface WindowSetup extends Pick<Transfer, 'blocks' | 'negotiated'> {
  readonly send: (packet: Buffer) => void;
  readonly timer: RetransmissionTimer;
  readonly deadline: Deadline;
  readonly hasEnded: () => boolean;
  /** Called with the result when all blocks are acknowledged, or with the error of the file. */
  readonly end: (result: 'done' | Error) => void;
}
function createWindow({ blocks, negotiated, send: sendPacket, timer, deadline, hasEnded, end }: WindowSetup): Window {
  /** The last acknowledged block, and the last block sent. */
  let base = negotiated.granted.size > 0 ? NEGOTIATING : 0;
  let sent = base;
  let resent = 0;
  /** Whether the window of `base` was sent again, and whether a repeated acknowledgment caused that. */
  let again = false;
  let repeated = false;
  let round = 0;
  /** The value of `base` while its window is read from the file. */
  let reading: number | undefined;

  const send = (): void => {
    deadline.restart();
    // A slow disk, and not a loss: the window is sent once it was read. To begin anew each time would never send it.
    if (reading === base) return;
    const ownRound = ++round;
    reading = undefined;
    if (base === NEGOTIATING) {
      sendPacket(encodeTftp({ kind: 'oack', options: negotiated.granted }));
      return;
    }
    const first = base + 1;
    const sendPackets = (packets: readonly Buffer[]): void => {
      // The client may have acknowledged more while the file was read.
      if (ownRound !== round) return;
      reading = undefined;
      if (hasEnded()) return;
      for (const packet of packets) sendPacket(packet);
      const last = base + packets.length;
      resent += Math.max(Math.min(sent, last) - first + 1, 0);
      sent = Math.max(sent, last);
      deadline.restart();
    };
    const packets = blocks.packets(first, Math.min(base + negotiated.window, blocks.count));
    if (!(packets instanceof Promise)) {
      sendPackets(packets);
      return;
    }
    reading = base;
    packets.then(sendPackets).catch((error: unknown) => {
      sendPacket(encodeTftp({ kind: 'error', code: 0, message: 'The file cannot be read' }));
      end(error instanceof Error ? error : new Error(String(error)));
    });
  };
  const sendAgain = (): void => {
    again = true;
    send();
  };

  return {
    send,
    sendAgain,
    isLastSent: () => sent === blocks.count,
    resent: () => resent,
    acknowledge: (block) => {
      if (base === NEGOTIATING && block !== 0) return false;
      const ahead = base === NEGOTIATING ? 1 : (block - base) & 0xffff;
      if (ahead === 0) {
        // With windows, a repeated acknowledgment reports a gap (RFC 7440 §4). It counts once per window, because some clients send one
        // for every packet after the gap. Without windows it must be ignored, or every later packet is sent twice (RFC 1123 §4.2.3.1).
        if (negotiated.window === 1 || repeated || sent === base) return false;
        repeated = true;
        sendAgain();
        return false;
      }
      if (base !== NEGOTIATING && ahead > sent - base) return false;
      base += ahead;
      if (!again) timer.measured(deadline.sinceSent());
      timer.acknowledged();
      again = false;
      repeated = false;
      if (base === blocks.count) end('done');
      else send();
      return true;
    },
  };
}

/** Counts the octets to a client that has not acknowledged a packet, and says whether the first packet may be sent again. */
function createFirstPacket(requestOctets: number) {
  let allowed = AMPLIFICATION * requestOctets;
  let sent = 0;
  let size = 0;
  return {
    sent(packet: Buffer): void {
      size = packet.length;
      sent += size;
    },
    /** The client repeated its request. */
    repeated: (): void => void (allowed += AMPLIFICATION * requestOctets),
    mayRepeat: (): boolean => sent + size <= allowed,
  };
}

/**
 * Resolves at the end of the transfer, successful or not. Rejects only if the file cannot be read. The caller closes the socket.
 */
export async function sendFile({ socket, blocks, negotiated, clock, requestOctets, place }: Transfer): Promise<TransferResult> {
  const timeout = negotiated.timeoutSeconds === undefined ? undefined : negotiated.timeoutSeconds * 1000;
  const timer = createRetransmissionTimer(timeout);
  const deadline = createDeadline(clock, timer);
  const first = createFirstPacket(requestOctets);
  let ended: string | undefined;
  let failure: Error | undefined;
  let progressAt = clock.now();
  let isConfirmed = false;
  const end = (reason: string): void => {
    ended ??= reason;
    deadline.interrupt();
  };
  const window = createWindow({
    blocks,
    negotiated,
    timer,
    deadline,
    hasEnded: () => ended !== undefined,
    send: (packet) => {
      if (!isConfirmed) first.sent(packet);
      socket.send(packet);
    },
    end: (result) => {
      if (result instanceof Error) failure = result;
      end(result instanceof Error ? result.message : result);
    },
  });

  socket.on('error', (error: NodeJS.ErrnoException) => {
    // The client closed its port; some clients do that after the last block.
    end(error.code === 'ECONNREFUSED' && window.isLastSent() ? 'done' : error.message);
  });
  socket.on('message', (bytes) => {
    const packet = decodeTftp(bytes);
    if (ended !== undefined) return;
    if (packet?.kind === 'error') end(`error ${packet.code} ${packet.message}`);
    if (packet?.kind !== 'ack' || !window.acknowledge(packet.block)) return;
    progressAt = clock.now();
    isConfirmed = true;
    place.progressed();
  });
  const stopped = (): void => end('the server ends it');
  place.signal.addEventListener('abort', stopped, { once: true });
  if (place.signal.aborted) stopped();
  else {
    place.sending(() => {
      progressAt = clock.now();
      first.repeated();
      if (ended === undefined && !isConfirmed && deadline.sinceSent() >= REPEAT_MS) window.sendAgain();
    });
    window.send();
  }
  const silentAt = (): number => progressAt + (isConfirmed ? SILENCE_MS : NO_ANSWER_MS);
  while (ended === undefined) {
    const isOver = await deadline.passes(silentAt);
    if (!isOver || (ended as string | undefined) !== undefined) continue;
    if (clock.now() >= silentAt()) {
      end('silent');
      continue;
    }
    timer.expired();
    if (isConfirmed || first.mayRepeat()) window.sendAgain();
    else deadline.extend();
  }
  place.signal.removeEventListener('abort', stopped);
  if (failure) throw failure;
  return { end: ended, resent: window.resent() };
}
