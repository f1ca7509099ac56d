/** A session with a BMC from the console's side, common to both protocols: its commands, also bridged ones, and its end. */
import { BMC_ADDRESS, CONSOLE_ADDRESS, PAYLOAD, decodeLanMessage, encodeLanMessage, type LanMessage } from './codec';
import { COMMANDS, COMPLETION, IpmiError, completionText, type CommandCode } from './constants';
import type { ConsoleSockets, Route, SessionPacket } from './socket';

/** A BMC's address and the login there. */
export interface IpmiTarget {
  readonly address: string;
  /** UDP port, usually 623. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Requested maximum privilege level (IPMI 2.0 §13.17): callback, user, operator, administrator. */
  readonly privilege: 'CALLBACK' | 'USER' | 'OPERATOR' | 'ADMINISTRATOR';
  /** Absent: 2.0. */
  readonly version?: '1.5' | '2.0';
  /** RMCP+ cipher suites (IPMI 2.0 table 22-20). The first that the BMC accepts is used. */
  readonly cipherSuites: readonly number[];
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer | undefined;
  /** The controller behind that BMC, if the commands are for one. */
  readonly bridge?: Bridge | undefined;
}
/** The resources of a session. */
export interface SessionResources {
  readonly sockets: ConsoleSockets;
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Least milliseconds before a packet without a response is sent again, also used for a new BMC. */
  readonly resendMs: number;
  /** The BMC's response times. */
  readonly pace: Pace;
}
/** A BMC's response times, measured as in TCP (RFC 6298 §2), so that a slow BMC gets no repetition while it still works on the response. */
interface Pace {
  smoothed?: number;
  variation: number;
  /** Milliseconds until the next packet without a response is sent again; 0: unknown. */
  wait: number;
  /** Duration of the previous exchange if it needed several packets: it is unknown which of them was answered. */
  resent?: number | undefined;
}
export const newPace = (): Pace => ({ variation: 0, wait: 0 });
/** Times `resendMs`: after this, even a slow BMC gets a repetition. */
const MAX_WAIT = 8;

/** Learns from a response: the time since the first of `packets` packets. @internal */
export function recordResponse(pace: Pace, milliseconds: number, packets: number): void {
  const { smoothed, variation, resent } = pace;
  if (packets > 1) {
    // One such exchange is probably packet loss, two in a row mean a slow BMC. With this wait, one packet suffices and can be measured.
    if (resent !== undefined) pace.wait = 1.25 * Math.min(resent, milliseconds);
    pace.resent = milliseconds;
    return;
  }
  pace.resent = undefined;
  pace.variation = smoothed === undefined ? milliseconds / 2 : 0.75 * variation + 0.25 * Math.abs(smoothed - milliseconds);
  pace.smoothed = smoothed === undefined ? milliseconds : 0.875 * smoothed + 0.125 * milliseconds;
  pace.wait = pace.smoothed + 4 * pace.variation;
}
/** Time limit and abort signal. */
export interface Bounds {
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
}
/** An authentic payload of a session. */
interface Opened {
  readonly payloadType: number;
  readonly payload: Buffer;
  /** False: its session sequence number was received before, or is outside the window (§6.12.13). */
  readonly inOrder: boolean;
  /** Its code covers all its bytes. */
  readonly isSigned: boolean;
}
export interface Session {
  readonly route: Route;
  readonly bmcId: number;
  /** RMCP+ only. */
  readonly cipherSuite?: number;
  /** rqSeq of the last request. */
  request: number;
  /** Requests so far. */
  requests: number;
  /** A response was accepted in spite of its session sequence number. */
  odd: boolean;
  /** Makes a packet of a payload, with the next session sequence number. */
  seal(payloadType: number, payload: Buffer): Buffer;
  /** @returns undefined when the packet is not of this session, or not protected as agreed; unprotected packets also when not in order */
  open(packet: SessionPacket): Opened | undefined;
}

/** The values of rqSeq, which has 6 bits. */
const REQUEST_NUMBERS = 64;
function nextRequest(session: Session): number {
  session.requests++;
  return (session.request = (session.request + 1) % REQUEST_NUMBERS);
}
/**
 * Some BMCs number their packets in odd ways: always the same number, 0, or with jumps. As long as no rqSeq is used twice in a session, rqSeq
 * alone tells a response from the replay of an earlier one. Then each odd session must be replaced by a new one.
 */
export const isUsedUp = ({ odd, requests }: Session): boolean => odd && requests >= REQUEST_NUMBERS;

/** A controller behind the BMC (§6.13): the hops to it, beginning with the BMC's own channel. */
export interface Bridge {
  readonly hops: readonly { readonly channel: number; readonly address: number }[];
  /** Our address on those channels. */
  readonly localAddress: number;
}
export interface Command {
  readonly code: CommandCode;
  readonly data: Buffer;
  readonly lun?: number | undefined;
  readonly bridge?: Bridge | undefined;
}

/** Attempts of a bridged command that the BMC accepts and the controller behind it does not answer. */
const BRIDGED_TRIES = 4;

/**
 * Sends until `read` returns a value. After an abort it still waits for the response to the last packet, but sends no more.
 * @returns undefined after the last attempt without a response, or after the deadline
 */
export async function exchange<T>(
  resources: SessionResources,
  route: Route,
  make: () => Buffer,
  read: (packet: SessionPacket) => T | undefined,
  tries: number,
  { deadline, signal }: Bounds,
): Promise<{ readonly answer: T; readonly resent: boolean } | undefined> {
  const { clock, sockets, pace, resendMs } = resources;
  const first = Math.min(Math.max(pace.wait, resendMs), MAX_WAIT * resendMs);
  const began = clock.now();
  for (let n = 0; n < tries; n++) {
    signal?.throwIfAborted();
    const left = deadline - clock.now();
    if (left <= 0) return undefined;
    const wait = Math.max(first, Math.min(first * 2 ** n, 4 * resendMs));
    const answer = await sockets.ask(route, make(), read, Math.min(left, wait));
    if (answer === undefined) continue;
    recordResponse(pace, clock.now() - began, n + 1);
    return { answer, resent: n > 0 };
  }
  return undefined;
}

export const unreachable = ({ address, port }: { readonly address: string; readonly port: number }): IpmiError =>
  new IpmiError('unreachable', `the BMC at ${address} port ${port} does not answer`);

/** Wraps a request into one Send Message command for each hop (§22.10). Each is tracked, so that the BMC returns the response. */
function bridged({ code, data, lun = 0, bridge }: Command, sequence: number): Buffer {
  const [networkFunction, command] = code;
  const hops = bridge?.hops ?? [];
  const at = (hop: number): Pick<LanMessage, 'responder' | 'requester' | 'sequence'> => ({
    responder: hop < 0 ? BMC_ADDRESS : hops[hop]!.address,
    requester: hop < 0 ? CONSOLE_ADDRESS : bridge!.localAddress,
    sequence,
  });
  const inner = encodeLanMessage({ ...at(hops.length - 1), networkFunction, command, lun, data });
  return hops.reduceRight((message, { channel }, hop) => {
    const [send, sendMessage] = COMMANDS.sendMessage;
    const wrapped = Buffer.concat([Buffer.from([TRACKED | channel]), message]);
    return encodeLanMessage({ ...at(hop - 1), networkFunction: send, command: sendMessage, lun: 0, data: wrapped });
  }, inner);
}
const TRACKED = 0x40;

/** A packet's meaning for a request: its response, a forwarding that succeeded, or one that failed. */
type BridgedReply = { readonly answer: Buffer } | { readonly refused: Buffer } | 'passed on' | undefined;
/** The response is a separate message (§6.13.2) or, from some BMCs, inside the responses to Send Message. @internal */
export function replyTo({ code, bridge }: Command, sequence: number, payload: Buffer, isSigned = false): BridgedReply {
  const [networkFunction, command] = code;
  // A packet's code says more than the checksums inside, which some BMCs compute wrongly.
  let message = decodeLanMessage(payload, !isSigned);
  for (let hop = 0; hop < (bridge?.hops.length ?? 0); hop++) {
    const [send, sendMessage] = COMMANDS.sendMessage;
    if (message?.networkFunction !== send + 1 || message.command !== sendMessage || message.sequence !== sequence) break;
    if (message.data[0] !== COMPLETION.ok) return { refused: message.data };
    if (message.data.length === 1) return 'passed on';
    message = decodeLanMessage(message.data.subarray(1), !isSigned);
  }
  if (message?.networkFunction !== networkFunction + 1 || message.command !== command || message.sequence !== sequence) return undefined;
  return { answer: Buffer.from(message.data) };
}

/**
 * Sends one command and waits for its response. A repeated request keeps its rqSeq, by which the BMC may recognize it. It gets a new
 * session sequence number: the BMC drops duplicates (§6.12.13). Responses to earlier requests are dropped. The response's own session
 * sequence number matters only once rqSeq repeats (`isUsedUp`).
 * @returns completion code and data; undefined without a response. Throws when the BMC answers, but not the controller behind it.
 */
export async function sendCommand(
  resources: SessionResources,
  session: Session,
  command: Command,
  tries: number,
  bounds: Bounds,
): Promise<Buffer | undefined> {
  const sequence = nextRequest(session);
  const isFirstUse = session.requests <= REQUEST_NUMBERS;
  const message = bridged(command, sequence);
  let passedOn = false;
  const read = (packet: SessionPacket): Exclude<BridgedReply, string> => {
    const opened = session.open(packet);
    if (opened?.payloadType !== PAYLOAD.ipmi || !(opened.inOrder || isFirstUse)) return undefined;
    const reply = replyTo(command, sequence, opened.payload, opened.isSigned);
    if (reply !== undefined && !opened.inOrder) session.odd = true;
    if (reply !== 'passed on') return reply;
    passedOn = true;
    return undefined;
  };
  const most = command.bridge ? Math.min(tries, BRIDGED_TRIES) : tries;
  const result = await exchange(resources, session.route, () => session.seal(PAYLOAD.ipmi, message), read, most, bounds);
  const reply = result?.answer;
  if (reply && 'answer' in reply) return reply.answer;
  if (!reply && !passedOn) return undefined;
  const { channel, address } = command.bridge!.hops.at(-1)!;
  const where = `0x${address.toString(16).padStart(2, '0')} on channel ${channel}`;
  if (!reply) throw new IpmiError('unreachable', `the BMC passes messages on, but nothing answers at ${where}`);
  const completionCode = reply.refused[0]!;
  const text = completionText(completionCode, COMMANDS.sendMessage);
  throw new IpmiError('completion', `the BMC cannot pass messages on to ${where}: ${text}`, {
    completionCode,
    command: COMMANDS.sendMessage,
  });
}

/** Requests the end of the session (§22.19), once: a BMC that misses the request ends the session after its timeout. */
export async function closeSession(resources: SessionResources, session: Session): Promise<void> {
  const id = Buffer.alloc(4);
  id.writeUInt32LE(session.bmcId);
  const sequence = nextRequest(session);
  await resources.sockets.send(
    session.route.peer,
    session.seal(PAYLOAD.ipmi, bridged({ code: COMMANDS.closeSession, data: id }, sequence)),
  );
}
