/** Types and constants of the BMC's side of IPMI over LAN, common to both session types. */
import { COMPLETION } from './constants';

export interface BmcUser {
  readonly name: string;
  readonly password: string;
  /** The user's highest privilege level (PRIVILEGE). */
  readonly privilege: number;
}
export interface BmcRequest {
  readonly networkFunction: number;
  readonly command: number;
  readonly data: Buffer;
  /** The session's privilege level at this moment. */
  readonly privilege: number;
}
export interface BmcAnswer {
  readonly completionCode: number;
  readonly data?: Buffer;
  /** A message that follows: the response of a controller behind this one. */
  readonly after?: Buffer;
}
/** A controller on one of the BMC's channels (§6.13), reached by Send Message. Others may be behind it. */
export interface Satellite {
  readonly channel: number;
  readonly address: number;
  readonly satellites?: readonly Satellite[];
  command(request: BmcRequest): Promise<BmcAnswer>;
}
/** A session as commands see it. */
export interface Privileged {
  readonly id: number;
  /** The highest privilege level of the session: the level that the console requested, at most that of the user. */
  limit: number;
  privilege: number;
}
/** The machine's serial port, as wired to a BMC. */
export interface SerialPort {
  /** Delivers the machine's output until the returned function is called. */
  listen(output: (bytes: Buffer) => void): () => void;
  input(bytes: Buffer): void;
  break(): void;
}
export interface SolOptions {
  readonly serial: SerialPort;
  /** The port on which this BMC listens, for consoles. */
  readonly port: number;
  /** After this time without an acknowledgement, a packet is sent again. Default: 250. */
  readonly resendMs?: number;
}
/** How a BMC deviates from the specification, for tests of consoles. */
export interface Oddities {
  /** The session sequence number that is due → the one in the packet. */
  readonly sequence?: (due: number) => number;
  /** A response's message → those in the packets that the BMC sends. */
  readonly responses?: (message: Buffer) => readonly Buffer[];
  /** IPMI 1.5: the session ID in packets of a session is 0. */
  readonly sessionIdZero?: boolean;
  /**
   * IPMI 1.5: the BMC says that packets of a session need no authentication code, and `off`: does so; `unexpected`: its own packets have one;
   * `required`: it ignores packets without one.
   */
  readonly perMessage?: 'off' | 'unexpected' | 'required';
}
export interface BmcOptions {
  readonly users: readonly BmcUser[];
  /** Numbers of the offered cipher suites; consoles prefer the last. */
  readonly cipherSuites: readonly number[];
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer;
  /** System GUID, 16 bytes. */
  readonly guid: Buffer;
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Also offers sessions of IPMI 1.5. */
  readonly lan?: boolean;
  readonly satellites?: readonly Satellite[];
  readonly sol?: SolOptions;
  readonly oddities?: Oddities;
  /** Runs a session's command. An error becomes completion code 0xFF. */
  command(request: BmcRequest): Promise<BmcAnswer>;
}
export interface Bmc {
  /**
   * The packet to send back; undefined: none. Never throws, whatever the bytes are.
   * @param push sends a further packet to the sender of this one
   */
  answer(bytes: Buffer, push?: (packet: Buffer) => void): Promise<Buffer | undefined>;
  /** Ends all sessions without notice, as a BMC does at a restart (§20.2). Pending responses are still sent. */
  reset(): void;
}
/** A recent request of a session, for detecting repetitions. */
export interface RecentRequest {
  readonly request: Buffer;
  readonly at: number;
  readonly answer: Promise<BmcAnswer>;
}

export const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
export const ok = (...bytes: readonly number[]): BmcAnswer => ({ completionCode: COMPLETION.ok, data: Buffer.from(bytes) });

/** Concurrent sessions of a kind, including those being opened. Real BMCs allow even fewer. */
export const MAX_SESSIONS = 16;
/** Milliseconds without traffic after which a session ends: §6.12.15 demands 60 s ± 3 s. */
export const SESSION_SILENCE = 60_000;
