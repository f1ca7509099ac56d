/**
 * Sends a file to a client in windows of DATA packets (RFC 7440; a window of 1 is RFC 1350). Each window is acknowledged, and sent again
 * after a loss. A loss shows as a repeated acknowledgment (with windows only) or as a timeout.
 */
import type { Socket } from 'node:dgram';
import type { Clock } from '../model/clock';
import { decodeTftp, encodeTftp, type TftpOptions } from '../wire/tftp';
import type { Blocks } from './tftp-blocks';
import { createRetransmissionTimer, type RetransmissionTimer } from './retransmission-timer';

export interface NegotiatedOptions {
  /** Octets of data in a packet. */
  readonly blockSize: number;
  /** Packets in a window. */
  readonly window: number;
  readonly timeoutSeconds?: number;
  /** The options in the OACK; empty: no OACK is sent. */
  readonly granted: TftpOptions;
}
interface Transfer {
  /** Connected to the client. */
  readonly socket: Socket;
  readonly blocks: Blocks;
  readonly negotiated: NegotiatedOptions;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called when the client sent a packet. */
  readonly answered: () => void;
}
interface TransferResult {
  /** `done`, `silent` (the client stopped answering), or the reason why client or server ended the transfer. */
  readonly end: string;
  /** DATA packets that were sent more than once. */
  readonly resent: number;
}

/** Milliseconds until the transfer ends with a client that never answered, or that stopped answering. */
const NO_ANSWER_MS = 7000;
const SILENCE_MS = 30_000;
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
    sinceSent: (): number => clock.now() - sentAt,
    interrupt: (): void => sleep.abort(),
    /** Renews the sleep when it ends, because a timer per packet would cost more than the packet. Returns whether the deadline passed. */
    passes: async (): Promise<boolean> => {
      sleep = new AbortController();
      sleepEnds = Math.max(deadline, clock.now() + 1);
      await clock.sleep(sleepEnds - clock.now(), sleep.signal).catch(() => {});
      return clock.now() >= deadline;
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
  acknowledge(block: number): void;
  isLastSent(): boolean;
  resent(): number;
}
/** @param end called with the result when all blocks are acknowledged, or with the error of the file */
function createWindow(
  { socket, blocks, negotiated }: Transfer,
  timer: RetransmissionTimer,
  deadline: Deadline,
  { hasEnded, end }: { readonly hasEnded: () => boolean; readonly end: (result: 'done' | Error) => void },
): Window {
  /** The last acknowledged block, and the last block sent. */
  let base = negotiated.granted.size > 0 ? NEGOTIATING : 0;
  let sent = base;
  let resent = 0;
  /** Whether the window of `base` was sent again, and whether a repeated acknowledgment caused that. */
  let again = false;
  let repeated = false;
  let round = 0;

  const send = (): void => {
    const ownRound = ++round;
    deadline.restart();
    if (base === NEGOTIATING) {
      socket.send(encodeTftp({ kind: 'oack', options: negotiated.granted }));
      return;
    }
    const first = base + 1;
    const last = Math.min(base + negotiated.window, blocks.count);
    const sendPackets = (packets: readonly Buffer[]): void => {
      // The client may have acknowledged more while the file was read.
      if (ownRound !== round || hasEnded()) return;
      for (const packet of packets) socket.send(packet);
      resent += Math.max(Math.min(sent, last) - first + 1, 0);
      sent = Math.max(sent, last);
      deadline.restart();
    };
    const packets = blocks.packets(first, last);
    if (!(packets instanceof Promise)) {
      sendPackets(packets);
      return;
    }
    packets.then(sendPackets).catch((error: unknown) => {
      socket.send(encodeTftp({ kind: 'error', code: 0, message: 'The file cannot be read' }));
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
      if (base === NEGOTIATING && block !== 0) return;
      const ahead = base === NEGOTIATING ? 1 : (block - base) & 0xffff;
      if (ahead === 0) {
        // With windows, a repeated acknowledgment reports a gap (RFC 7440 §4). It counts once per window, because some clients send one
        // for every packet after the gap. Without windows it must be ignored, or every later packet is sent twice (RFC 1123 §4.2.3.1).
        if (negotiated.window === 1 || repeated || sent === base) return;
        repeated = true;
        sendAgain();
        return;
      }
      if (base !== NEGOTIATING && ahead > sent - base) return;
      base += ahead;
      if (!again) timer.measured(deadline.sinceSent());
      timer.acknowledged();
      again = false;
      repeated = false;
      if (base === blocks.count) end('done');
      else send();
    },
  };
}

/**
 * Resolves at the end of the transfer, successful or not. Rejects only if the file cannot be read. The caller closes the socket.
 */
export async function sendFile(transfer: Transfer): Promise<TransferResult> {
  const { socket, negotiated, clock, signal, answered } = transfer;
  const timeout = negotiated.timeoutSeconds === undefined ? undefined : negotiated.timeoutSeconds * 1000;
  const maxSilence = Math.max(SILENCE_MS, 3 * (timeout ?? 0));
  const timer = createRetransmissionTimer(timeout);
  const deadline = createDeadline(clock, timer);
  let ended: string | undefined;
  let failure: Error | undefined;
  const end = (reason: string): void => {
    ended ??= reason;
    deadline.interrupt();
  };
  const window = createWindow(transfer, timer, deadline, {
    hasEnded: () => ended !== undefined,
    end: (result) => {
      if (result instanceof Error) failure = result;
      end(result instanceof Error ? result.message : result);
    },
  });
  let lastHeard = clock.now();
  let everHeard = false;

  socket.on('error', (error: NodeJS.ErrnoException) => {
    // The client closed its port; some clients do that after the last block.
    end(error.code === 'ECONNREFUSED' && window.isLastSent() ? 'done' : error.message);
  });
  socket.on('message', (bytes) => {
    const packet = decodeTftp(bytes);
    if (ended !== undefined) return;
    if (packet?.kind === 'error') end(`error ${packet.code} ${packet.message}`);
    if (packet?.kind !== 'ack') return;
    lastHeard = clock.now();
    everHeard = true;
    answered();
    window.acknowledge(packet.block);
  });
  const stopped = (): void => end('the server stops');
  signal.addEventListener('abort', stopped, { once: true });
  if (signal.aborted) stopped();
  else window.send();
  while (ended === undefined) {
    const isOver = await deadline.passes();
    if (!isOver || (ended as string | undefined) !== undefined) continue;
    if (clock.now() - lastHeard > (everHeard ? maxSilence : NO_ANSWER_MS)) {
      end('silent');
    } else {
      timer.expired();
      window.sendAgain();
    }
  }
  signal.removeEventListener('abort', stopped);
  if (failure) throw failure;
  return { end: ended, resent: window.resent() };
}
