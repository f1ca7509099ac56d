/** Redfish client (DSP0266) over undici: kept connections, session or basic authentication, errors as values. */

export interface RedfishTarget {
  /** scheme://host[:port][/prefix] */
  readonly address: string;
  readonly username?: string;
  readonly password?: string;
  readonly authType: 'basic' | 'session' | 'auto';
  /** false: any certificate; true: the system's authorities; a path: these. */
  readonly verifyCa: boolean | string;
}
export interface RedfishAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON; undefined for an empty answer. */
  readonly body: unknown;
}
export interface RedfishPool {
  /** Throws RedfishError for an unreachable service or a status ≥ 400 (with the message of its ExtendedInfo). */
  request(
    target: RedfishTarget,
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    options: { body?: unknown; headers?: Readonly<Record<string, string>>; timeoutMs: number; signal?: AbortSignal },
  ): Promise<RedfishAnswer>;
  close(): Promise<void>;
}
