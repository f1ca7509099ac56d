/** What the BMC's side of IPMI over LAN is made of, whichever sessions it speaks in. */
import { COMPLETION } from './constants';

export interface BmcUser {
  readonly name: string;
  readonly password: string;
  /** Highest privilege level that the user may have (PRIVILEGE). */
  readonly privilege: number;
}
export interface BmcRequest {
  readonly networkFunction: number;
  readonly command: number;
  readonly data: Buffer;
  /** Of the session at this moment. */
  readonly privilege: number;
}
export interface BmcAnswer {
  readonly completionCode: number;
  readonly data?: Buffer;
  /** A message that follows: what a controller behind this one answered. */
  readonly after?: Buffer;
}
/** A controller on one of the BMC's channels (§6.13), that Send Message reaches; others may be behind it. */
export interface Satellite {
  readonly channel: number;
  readonly address: number;
  readonly satellites?: readonly Satellite[];
  command(request: BmcRequest): Promise<BmcAnswer>;
}
/** A session as commands see it. */
export interface Privileged {
  readonly id: number;
  /** The limit that the console asked for. */
  limit: number;
  privilege: number;
}
/** The machine's serial port, as a BMC is wired to it. */
export interface SerialPort {
  /** Gets what the machine writes until the function that it returns is called. */
  listen(output: (bytes: Buffer) => void): () => void;
  input(bytes: Buffer): void;
  break(): void;
}
export interface SolOptions {
  readonly serial: SerialPort;
  /** Where this BMC listens: consoles want to hear it. */
  readonly port: number;
}
export interface BmcOptions {
  readonly users: readonly BmcUser[];
  /** Numbers of the cipher suites that are offered, the one that consoles shall prefer last. */
  readonly cipherSuites: readonly number[];
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer;
  /** System GUID, 16 bytes. */
  readonly guid: Buffer;
  readonly clock: { now(): number };
  readonly random: (bytes: number) => Buffer;
  /** Sessions of IPMI 1.5 are offered too. */
  readonly lan?: boolean;
  readonly satellites?: readonly Satellite[];
  readonly sol?: SolOptions;
  /** Runs a command of a session. What it throws becomes completion code 0xFF. */
  command(request: BmcRequest): Promise<BmcAnswer>;
}
export interface Bmc {
  /**
   * The packet to send back; undefined: silence. Never throws, whatever the bytes are.
   * @param push sends a further packet to where this one came from
   */
  answer(bytes: Buffer, push?: (packet: Buffer) => void): Promise<Buffer | undefined>;
  /** Ends all sessions without a word, as a BMC does that starts again (§20.2). Answers that are on their way still come. */
  reset(): void;
}
/** A request of a session that was run. */
export interface Recent {
  readonly request: Buffer;
  readonly at: number;
  readonly answer: Promise<BmcAnswer>;
}

export const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
export const ok = (...bytes: readonly number[]): BmcAnswer => ({ completionCode: COMPLETION.ok, data: Buffer.from(bytes) });

/** Sessions of a kind at once, opening ones included: real BMCs have fewer still. */
export const MAX_SESSIONS = 16;
/** Milliseconds: §6.12.15 asks for 60 s ± 3 s of silence. */
export const SESSION_SILENCE = 60_000;
