/** The audit log: who changed what. audit.ts at the root writes it, api/http/request-log.ts makes its entries. */

/** One line. Its texts are bounded, and none of its fields holds a secret. */
export interface AuditEntry {
  readonly time: string;
  readonly service: 'baremetal' | 'baremetal-introspection';
  readonly request_id: string;
  readonly global_request_id?: string | undefined;
  /** Null: not authenticated. */
  readonly user: string | null;
  /** A user of the server whose password was wrong. */
  readonly claimed_user?: string | undefined;
  readonly project: string | null;
  readonly roles?: readonly string[] | undefined;
  /** Of the client, or what the proxy says that it is. Null: a Unix socket. */
  readonly address: string | null;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** In openapi.yaml. Absent: the request was refused before its operation was known. */
  readonly operation?: string | undefined;
  /** As in the request. */
  readonly node?: string | undefined;
  readonly node_uuid?: string | undefined;
  /** The target state, or the vendor method. */
  readonly verb?: string | undefined;
  /** The operations and paths of a JSON patch, without values. */
  readonly changed?: readonly string[] | undefined;
  /** The path of a new resource. */
  readonly created?: string | undefined;
  /** Absent: the client closed the connection, so it got no response. */
  readonly status?: number | undefined;
  /** As in CADF. `unknown`: the client left before the outcome was known. */
  readonly outcome: 'success' | 'failure' | 'unknown';
}
export interface AuditLog {
  /** Never waits. Entries are lost, and counted, while they cannot be written. */
  record(entry: AuditEntry): void;
}
