/** IPMI 2.0 RMCP+ client: kept sessions to BMCs, one request at a time in each. */

export interface IpmiTarget {
  readonly address: string;
  /** UDP port, 623 unless told. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Requested maximum privilege level (IPMI 2.0 §13.17): callback, user, operator, administrator. */
  readonly privilege: 'CALLBACK' | 'USER' | 'OPERATOR' | 'ADMINISTRATOR';
  /** RMCP+ cipher suite (IPMI 2.0 table 22-20): 3. */
  readonly cipherSuite: number;
  /** K_g key, 20 bytes at most; absent: one-key login. */
  readonly kg?: Buffer;
}
export interface IpmiPool {
  /** Sends one command in the target's kept session (opened when there is none), resent when lost. Throws IpmiError. */
  request(
    target: IpmiTarget,
    networkFunction: number,
    command: number,
    data: Buffer,
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<Buffer>;
  close(): Promise<void>;
}
