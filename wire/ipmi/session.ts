/** A session with a BMC from the console's side, whichever protocol opened it: commands in it, through bridges too, and its end. */
import { BMC_ADDRESS, CONSOLE_ADDRESS, PAYLOAD, decodeLanMessage, encodeLanMessage, type LanMessage } from './codec';
import { COMMANDS, COMPLETION, IpmiError, completionText } from './constants';
import type { ConsoleSockets, Route, SessionPacket } from './socket';

/** Where a BMC is, and who logs in there. */
export interface IpmiTarget {
  readonly address: string;
  /** UDP port, 623 unless told. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Requested maximum privilege level (IPMI 2.0 §13.17): callback, user, operator, administrator. */
  readonly privilege: 'CALLBACK' | 'USER' | 'OPERATOR' | 'ADMINISTRATOR';
  /** Absent: 2.0. */
  readonly version?: '1.5' | '2.0';
  /** RMCP+ cipher suites (IPMI 2.0 table 22-20): the first that the BMC takes. */
  readonly cipherSuites: readonly number[];
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer;
  /** The controller behind that BMC which is meant. */
  readonly bridge?: Bridge;
}
/** What a session needs of the world. */
export interface Link {
  readonly sockets: ConsoleSockets;
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Milliseconds until a packet without an answer is sent again, of a BMC that nothing is known of, and at least. */
  readonly resendMs: number;
  /** Of the BMC that is spoken to. */
  readonly pace: Pace;
}
/** How long a BMC takes to answer, as TCP has it (RFC 6298 §2): one that is slow is not asked again while it still works on the answer. */
export interface Pace {
  smoothed?: number;
  variation: number;
  /** Milliseconds until the next packet without an answer is sent again; 0: nothing is known. */
  wait: number;
  /** What the exchange before took from its first packet on, when more than one was sent: which of them was answered cannot be told. */
  resent?: number | undefined;
}
export const newPace = (): Pace => ({ variation: 0, wait: 0 });
/** Of `resendMs`: a BMC that takes longer than that is asked again meanwhile. */
const LONGEST_WAIT = 8;

/** Learns from an answer: how long after the first of how many packets it came. */
export function answered(pace: Pace, milliseconds: number, packets: number): void {
  const { smoothed, variation, resent } = pace;
  if (packets > 1) {
    // Once it was a loss, most likely. Twice it takes that long, so that the next, sent once, can be measured.
    if (resent !== undefined) pace.wait = 1.25 * Math.min(resent, milliseconds);
    pace.resent = milliseconds;
    return;
  }
  pace.resent = undefined;
  pace.variation = smoothed === undefined ? milliseconds / 2 : 0.75 * variation + 0.25 * Math.abs(smoothed - milliseconds);
  pace.smoothed = smoothed === undefined ? milliseconds : 0.875 * smoothed + 0.125 * milliseconds;
  pace.wait = pace.smoothed + 4 * pace.variation;
}
/** How long something may take. */
export interface Bounds {
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
}
export interface Session {
  readonly route: Route;
  readonly bmcId: number;
  /** Of RMCP+. */
  readonly cipherSuite?: number;
  /** Of the request sent last. */
  request: number;
  /** A payload as a packet, each time with a session sequence number of its own. */
  seal(payloadType: number, payload: Buffer): Buffer;
  /** @returns undefined when the packet is not of this session, not protected as agreed, or came before */
  open(packet: SessionPacket): { readonly payloadType: number; readonly payload: Buffer } | undefined;
}

/** A controller behind the BMC (§6.13): the way to it, the BMC's own channel first. */
export interface Bridge {
  readonly hops: readonly { readonly channel: number; readonly address: number }[];
  /** Our address on those channels. */
  readonly localAddress: number;
}
export interface Command {
  /** [network function, command] */
  readonly words: readonly [number, number];
  readonly data: Buffer;
  readonly lun?: number | undefined;
  readonly bridge?: Bridge | undefined;
}

/** Tries of a bridged command that the BMC took, and that the controller behind it does not answer. */
const BRIDGED_TRIES = 4;

/**
 * Sends until `read` makes something of an answer; at the signal it still waits for that to the packet that was sent, and sends no more.
 * @returns undefined after so many tries, or when the time is over
 */
export async function exchange<T>(
  link: Link,
  route: Route,
  make: () => Buffer,
  read: (packet: SessionPacket) => T | undefined,
  tries: number,
  { deadline, signal }: Bounds,
): Promise<{ readonly answer: T; readonly resent: boolean } | undefined> {
  const { clock, sockets, pace, resendMs } = link;
  const first = Math.min(Math.max(pace.wait, resendMs), LONGEST_WAIT * resendMs);
  const began = clock.now();
  for (let n = 0; n < tries; n++) {
    signal?.throwIfAborted();
    const left = deadline - clock.now();
    if (left <= 0) return undefined;
    const wait = Math.max(first, Math.min(first * 2 ** n, 4 * resendMs));
    const answer = await sockets.ask(route, make(), read, Math.min(left, wait));
    if (answer === undefined) continue;
    answered(pace, clock.now() - began, n + 1);
    return { answer, resent: n > 0 };
  }
  return undefined;
}

export const unreachable = ({ address, port }: { readonly address: string; readonly port: number }): IpmiError =>
  new IpmiError('unreachable', `the BMC at ${address} port ${port} does not answer`);

/** A request in as many Send Message commands as it has hops (§22.10): each is tracked, so that the BMC hands the answer back. */
function bridged({ words, data, lun = 0, bridge }: Command, sequence: number): Buffer {
  const [networkFunction, command] = words;
  const hops = bridge?.hops ?? [];
  const at = (hop: number): Pick<LanMessage, 'responder' | 'requester' | 'sequence'> => ({
    responder: hop < 0 ? BMC_ADDRESS : hops[hop]!.address,
    requester: hop < 0 ? CONSOLE_ADDRESS : bridge!.localAddress,
    sequence,
  });
  const inner = encodeLanMessage({ ...at(hops.length - 1), networkFunction, command, lun, data });
  return hops.reduceRight((message, { channel }, hop) => {
    const [send, order] = COMMANDS.sendMessage;
    const wrapped = Buffer.concat([Buffer.from([TRACKED | channel]), message]);
    return encodeLanMessage({ ...at(hop - 1), networkFunction: send, command: order, lun: 0, data: wrapped });
  }, inner);
}
const TRACKED = 0x40;

/** What a packet says about a request: its answer, that a BMC on the way passed it on, or that one could not. */
type Heard = { readonly answer: Buffer } | { readonly refused: Buffer } | 'passed on' | undefined;
/** The answer comes as a message of its own (§6.13.2), or, from some BMCs, within the answers to the Send Messages. */
export function heard({ words, bridge }: Command, sequence: number, payload: Buffer): Heard {
  const [networkFunction, command] = words;
  let message = decodeLanMessage(payload);
  for (let hop = 0; hop < (bridge?.hops.length ?? 0); hop++) {
    const [send, order] = COMMANDS.sendMessage;
    if (message?.networkFunction !== send + 1 || message.command !== order || message.sequence !== sequence) break;
    if (message.data[0] !== COMPLETION.ok) return { refused: message.data };
    if (message.data.length === 1) return 'passed on';
    message = decodeLanMessage(message.data.subarray(1));
  }
  if (message?.networkFunction !== networkFunction + 1 || message.command !== command || message.sequence !== sequence) return undefined;
  return { answer: Buffer.from(message.data) };
}

/**
 * One command and its answer. A resent request keeps its rqSeq, by which the BMC may know it, and gets a new session sequence number,
 * without which it would be dropped as a duplicate (§6.12.13); answers to earlier requests, and doubled ones, are dropped.
 * @returns completion code and data; undefined when no answer came. Throws when the BMC answers, and the controller behind it does not.
 */
export async function sendCommand(
  link: Link,
  session: Session,
  command: Command,
  tries: number,
  bounds: Bounds,
): Promise<Buffer | undefined> {
  const sequence = (session.request = (session.request + 1) & 0x3f);
  const message = bridged(command, sequence);
  let passedOn = false;
  const read = (came: SessionPacket): Exclude<Heard, string> => {
    const opened = session.open(came);
    const said = opened?.payloadType === PAYLOAD.ipmi ? heard(command, sequence, opened.payload) : undefined;
    if (said !== 'passed on') return said;
    passedOn = true;
    return undefined;
  };
  const most = command.bridge ? Math.min(tries, BRIDGED_TRIES) : tries;
  const got = await exchange(link, session.route, () => session.seal(PAYLOAD.ipmi, message), read, most, bounds);
  const said = got?.answer;
  if (said && 'answer' in said) return said.answer;
  if (!said && !passedOn) return undefined;
  const { channel, address } = command.bridge!.hops.at(-1)!;
  const where = `0x${address.toString(16).padStart(2, '0')} on channel ${channel}`;
  if (!said) throw new IpmiError('unreachable', `the BMC passes messages on, but nothing answers at ${where}`);
  const completionCode = said.refused[0]!;
  const text = completionText(completionCode, COMMANDS.sendMessage);
  throw new IpmiError('completion', `the BMC cannot pass messages on to ${where}: ${text}`, { completionCode });
}

/** Tells the BMC to free the session (§22.19), once: an answer would change nothing, and a BMC that missed it ends the session by itself. */
export async function closeSession(link: Link, session: Session): Promise<void> {
  const id = Buffer.alloc(4);
  id.writeUInt32LE(session.bmcId);
  const sequence = (session.request = (session.request + 1) & 0x3f);
  await link.sockets.send(session.route.peer, session.seal(PAYLOAD.ipmi, bridged({ words: COMMANDS.closeSession, data: id }, sequence)));
}
