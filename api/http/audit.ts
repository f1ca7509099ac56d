/** The audit log ([audit]): which requests it records, and the entries. server/audit-log.ts writes them. */
import type { Options } from '../../config/options';
import { isUuid } from '../../model/idents';
import { isObject } from '../../model/json';
import type { RequestReport } from './request-report';

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
  /** The name of the token of `bloomery token` that the user sent. */
  readonly token_name?: string | undefined;
  readonly project: string | null;
  readonly roles?: readonly string[] | undefined;
  /** The address of the client, or the one that a proxy reports. Null: a Unix socket. */
  readonly address: string | null;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The operationId in openapi.yaml. Absent: the request was refused before its operation was known. */
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
  /** A screen whose viewer only looks. */
  readonly view_only?: boolean | undefined;
  /** How long a screen was open, and why it was closed. */
  readonly seconds?: number | undefined;
  readonly reason?: string | undefined;
  /** As in CADF. `unknown`: the client left before the outcome was known. */
  readonly outcome: 'success' | 'failure' | 'unknown';
}
export interface AuditLog {
  /** Never waits. Entries are lost, and counted, while they cannot be written. */
  record(entry: AuditEntry): void;
}

/** Whether the options of [audit] select the request. */
export function isAudited(options: Options, method: string, { route, status }: RequestReport): boolean {
  if (options['audit.ignore_req_list'].some((name) => name.toUpperCase() === method)) return false;
  return status === undefined || status >= 400 || !options['audit.ignore_path_list'].includes(route);
}

/** The most characters of a text, and the most entries of a list. */
const MAX_TEXT = 256;
const MAX_ENTRIES = 32;
/** Undefined for anything but text. */
const bounded = (value: unknown, most = MAX_TEXT): string | undefined =>
  typeof value !== 'string' || value === '' ? undefined : value.length > most ? `${value.slice(0, most)}…` : value;
const memberOf = (body: unknown, name: string): unknown => (isObject(body) ? body[name] : undefined);
/** `replace /extra/a` of a JSON patch; undefined for another body. */
function changedBy(body: unknown): readonly string[] | undefined {
  if (!Array.isArray(body)) return undefined;
  const changed = body.slice(0, MAX_ENTRIES).flatMap((entry) => {
    const [op, path] = [bounded(memberOf(entry, 'op'), 16), bounded(memberOf(entry, 'path'))];
    return op === undefined || path === undefined ? [] : [`${op} ${path}`];
  });
  return body.length > MAX_ENTRIES ? [...changed, '…'] : changed;
}

interface AuditedRequest extends Pick<AuditEntry, 'time' | 'service' | 'method' | 'path'> {
  /** Empty: a Unix socket. */
  readonly address: string;
  readonly report: RequestReport;
}
/** The entry has the names of what the request is about, and never values of its fields. */
export function auditEntry({ time, service, address, method, path, report }: AuditedRequest): AuditEntry {
  const { route, origin, roles = [], claimedUser, operation, body, vendorMethod, created, status } = report;
  const isVendor = route.includes('vendor_passthru');
  const named = memberOf(body, 'node_uuid');
  return {
    time,
    service,
    address: bounded(address) ?? null,
    request_id: origin.requestId,
    global_request_id: origin.globalRequestId,
    user: bounded(origin.user) ?? null,
    claimed_user: bounded(claimedUser),
    token_name: bounded(report.tokenName),
    project: bounded(origin.project) ?? null,
    roles: roles.length > 0 ? roles.slice(0, MAX_ENTRIES).map((role) => bounded(role) ?? '') : undefined,
    method: bounded(method) ?? '',
    path: bounded(path) ?? '',
    operation,
    node: bounded(report.node),
    node_uuid: report.nodeUuid ?? (isUuid(named) ? named : undefined),
    verb: bounded(isVendor ? vendorMethod : route.includes('/states/') ? memberOf(body, 'target') : undefined),
    changed: isVendor ? undefined : changedBy(body),
    created: bounded(created),
    status,
    outcome: status === undefined ? 'unknown' : status < 400 ? 'success' : 'failure',
  };
}
