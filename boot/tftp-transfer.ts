/**
 * One file to one client: windows of DATA packets (RFC 7440; a window of 1 is RFC 1350), each window acknowledged, resent when lost.
 * Loss shows in two ways: an acknowledgment that repeats itself (only with windows), and time.
 */
import type { Socket } from 'node:dgram';
import type { Clock } from '../model/clock';
import { decodeTftp, encodeTftp, type TftpOptions } from '../wire/tftp';
import type { Blocks } from './tftp-blocks';
import { createRetransmissionTimer } from './retransmission-timer';

export interface NegotiatedOptions {
  /** Octets of data in a packet. */
  readonly blockSize: number;
  /** Packets in a window. */
  readonly window: number;
  readonly timeoutSeconds?: number;
  /** What the OACK says; empty: there is none. */
  readonly granted: TftpOptions;
}
export interface Transfer {
  /** Connected to the client. */
  readonly socket: Socket;
  readonly blocks: Blocks;
  readonly agreed: NegotiatedOptions;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called when the client has spoken. */
  readonly answered: () => void;
}
export interface TransferResult {
  /** `done`, `silent` (the client answers no more), or why client or server ended it. */
  readonly end: string;
  /** DATA packets that were sent more than once. */
  readonly resent: number;
}

/** Milliseconds after which a client that never answered, or that answers no more, is given up. */
const NEVER_ANSWERED = 7000;
const ANSWERS_NO_MORE = 30000;
/** Before the OACK is acknowledged, `base` has this value. */
const NEGOTIATING = -1;

/** Resolves when the transfer is over, well or not; rejects only when the file cannot be read. The caller closes the socket. */
export async function sendFile({ socket, blocks, agreed, clock, signal, answered }: Transfer): Promise<TransferResult> {
  const timeout = agreed.timeoutSeconds === undefined ? undefined : agreed.timeoutSeconds * 1000;
  const patience = Math.max(ANSWERS_NO_MORE, 3 * (timeout ?? 0));
  const pace = createRetransmissionTimer(timeout);
  /** The sleep of the loop below, and when it ends. */
  let nap = new AbortController();
  let napEnds = 0;
  let ended: string | undefined;
  let failure: Error | undefined;
  const end = (why: string): void => {
    ended ??= why;
    nap.abort();
  };

  /** The last block that is acknowledged, and the last that was sent. */
  let base = agreed.granted.size > 0 ? NEGOTIATING : 0;
  let sent = base;
  let resent = 0;
  /** The window of `base` was sent more than once; and so because the client repeated itself. */
  let again = false;
  let repeated = false;
  let heard = clock.now();
  let everHeard = false;
  let sentAt = heard;
  let deadline = heard;
  let round = 0;

  const stamp = (): void => {
    sentAt = clock.now();
    const wait = pace.timeout();
    deadline = sentAt + wait;
    // Waits became much shorter than the one that is slept through.
    if (napEnds > deadline + wait) nap.abort();
  };
  /** Sends what follows `base`. */
  const sendWindow = (): void => {
    const mine = ++round;
    stamp();
    if (base === NEGOTIATING) {
      socket.send(encodeTftp({ kind: 'oack', options: agreed.granted }));
      return;
    }
    const first = base + 1;
    const last = Math.min(base + agreed.window, blocks.count);
    const go = (packets: readonly Buffer[]): void => {
      // While the file was read, the client may have gone on.
      if (mine !== round || ended !== undefined) return;
      for (const packet of packets) socket.send(packet);
      resent += Math.max(Math.min(sent, last) - first + 1, 0);
      sent = Math.max(sent, last);
      stamp();
    };
    const packets = blocks.packets(first, last);
    if (!(packets instanceof Promise)) {
      go(packets);
      return;
    }
    packets.then(go).catch((error: unknown) => {
      failure = error instanceof Error ? error : new Error(String(error));
      socket.send(encodeTftp({ kind: 'error', code: 0, message: 'The file cannot be read' }));
      end(failure.message);
    });
  };

  const onAck = (block: number): void => {
    if (base === NEGOTIATING ? block !== 0 : false) return;
    const ahead = base === NEGOTIATING ? 1 : (block - base) & 0xffff;
    if (ahead === 0) {
      // With windows, so the client tells of a gap (RFC 7440 §4); once for each window, since some clients do it for every packet
      // after the gap. Without, it must not be answered, or each packet is sent twice to the end (RFC 1123 §4.2.3.1).
      if (agreed.window === 1 || repeated || sent === base) return;
      repeated = true;
      again = true;
      sendWindow();
      return;
    }
    if (base !== NEGOTIATING && ahead > sent - base) return;
    base += ahead;
    if (!again) pace.measured(clock.now() - sentAt);
    pace.acknowledged();
    again = false;
    repeated = false;
    if (base === blocks.count) end('done');
    else sendWindow();
  };

  socket.on('error', (error: NodeJS.ErrnoException) => {
    // Its port is closed: after the last block that is how some clients end.
    end(error.code === 'ECONNREFUSED' && sent === blocks.count ? 'done' : error.message);
  });
  socket.on('message', (bytes) => {
    const packet = decodeTftp(bytes);
    if (ended !== undefined) return;
    if (packet?.kind === 'error') end(`error ${packet.code} ${packet.message}`);
    if (packet?.kind !== 'ack') return;
    heard = clock.now();
    everHeard = true;
    answered();
    onAck(packet.block);
  });
  const stopped = (): void => end('the server stops');
  signal.addEventListener('abort', stopped, { once: true });
  if (signal.aborted) stopped();
  else sendWindow();
  while (ended === undefined) {
    // As the deadline moves on, the sleep is renewed when it ends; a timer for each packet would cost more than the packet.
    nap = new AbortController();
    napEnds = Math.max(deadline, clock.now() + 1);
    await clock.sleep(napEnds - clock.now(), nap.signal).catch(() => {});
    const now = clock.now();
    if (now < deadline || ended !== undefined) continue;
    if (now - heard > (everHeard ? patience : NEVER_ANSWERED)) {
      end('silent');
    } else {
      pace.expired();
      again = true;
      sendWindow();
    }
  }
  signal.removeEventListener('abort', stopped);
  if (failure) throw failure;
  return { end: ended, resent };
}
