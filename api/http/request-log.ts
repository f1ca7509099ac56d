/** Records a finished request: its duration in the metrics, a line in the log ([api]log_requests), and one in the audit log ([audit]). */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import type { AuditEntry, AuditLog } from '../../model/audit';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { isUuid } from '../../model/idents';
import { isRequestId, originFields, type Origin } from '../../model/origin';
import { addressOf } from './source';

/** The methods of RFC 9110 and RFC 5789. Clients may send any word as the method. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
/** [api]log_requests → whether a request is logged. */
const LOGGED: Readonly<Record<string, (method: string, status: number | undefined) => boolean>> = {
  all: () => true,
  changes: (method, status) => !['GET', 'HEAD', 'OPTIONS'].includes(method) || (status ?? 500) >= 400,
  failures: (_, status) => (status ?? 500) >= 400,
  none: () => false,
};

/** A new request ID. The client's own becomes the global one. */
export function originOf({ headers }: IncomingMessage): Origin {
  const given = [headers['x-openstack-request-id']].flat().join(',');
  return {
    requestId: `req-${randomUUID()}`,
    ...(isRequestId(given) ? { globalRequestId: given } : {}),
    user: null,
    project: null,
  };
}

/** What the log, the metrics and the audit log record of a request, as far as it got. */
export interface RequestReport {
  /** The path template in openapi.yaml. */
  route: string;
  origin: Origin;
  roles?: readonly string[];
  /** A user of the server whose password was wrong. */
  claimedUser?: string | undefined;
  operation?: string;
  /** The node's identifier in the request. */
  node?: string;
  nodeUuid?: string;
  /** The parsed body. */
  body?: unknown;
  /** The vendor method. */
  vendorMethod?: unknown;
  /** The URL of a new resource. */
  created?: string | undefined;
  /** Of the response, also if the client did not wait for it. Absent: none was made. */
  status?: number;
}
export const reportFields = ({ origin, node }: RequestReport): object => ({
  ...originFields(origin),
  ...(node === undefined ? {} : { node }),
});

interface Reporting {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly options: Options;
  readonly clock: Clock;
  /** Absent: [audit]enabled is not set. */
  readonly audit?: AuditLog;
}
interface Finished {
  readonly service: AuditEntry['service'];
  readonly report: RequestReport;
  /** Absent: the caller closed the connection. */
  readonly status: number | undefined;
  readonly seconds: number;
}
export function reportRequest(parts: Reporting, request: IncomingMessage, { service, report, status, seconds }: Finished): void {
  const { log, metrics, options, clock, audit } = parts;
  const { method = 'GET', url = '/' } = request;
  const { route } = report;
  metrics.observe(
    'bloomery_api_request_duration_seconds',
    { method: METHODS.has(method) ? method : 'other', route, status: status ? `${Math.floor(status / 100)}xx` : 'aborted' },
    seconds,
  );
  const path = url.split('?')[0]!;
  if (LOGGED[options['api.log_requests']]!(method, status))
    log.info('request', { ...reportFields(report), method, path, status, ms: Math.round(seconds * 1e4) / 10 });
  if (audit && isAudited(options, method, report))
    audit.record({
      ...{ time: new Date(clock.now()).toISOString(), service, address: bounded(addressOf(request, options)) ?? null },
      ...auditFields(report, method, path),
    });
}

function isAudited(options: Options, method: string, { route, status }: RequestReport): boolean {
  if (options['audit.ignore_req_list'].some((name) => name.toUpperCase() === method)) return false;
  return status === undefined || status >= 400 || !options['audit.ignore_path_list'].includes(route);
}

/** Characters of a text, and entries of a list. */
const MOST_TEXT = 256;
const MOST_ENTRIES = 32;
/** Undefined for anything but text. */
const bounded = (value: unknown, most = MOST_TEXT): string | undefined =>
  typeof value !== 'string' || value === '' ? undefined : value.length > most ? `${value.slice(0, most)}…` : value;
const memberOf = (body: unknown, name: string): unknown =>
  typeof body === 'object' && body !== null ? (body as Readonly<Record<string, unknown>>)[name] : undefined;
/** `replace /extra/a` of a JSON patch; undefined for another body. */
function changedBy(body: unknown): readonly string[] | undefined {
  if (!Array.isArray(body)) return undefined;
  const changed = body.slice(0, MOST_ENTRIES).flatMap((entry) => {
    const [op, path] = [bounded(memberOf(entry, 'op'), 16), bounded(memberOf(entry, 'path'))];
    return op === undefined || path === undefined ? [] : [`${op} ${path}`];
  });
  return body.length > MOST_ENTRIES ? [...changed, '…'] : changed;
}

/** The rest of an entry: only what the request names, never values of its fields. */
function auditFields(report: RequestReport, method: string, path: string): Omit<AuditEntry, 'time' | 'service' | 'address'> {
  const { route, origin, roles = [], claimedUser, operation, body, vendorMethod, created, status } = report;
  const isVendor = route.includes('vendor_passthru');
  const named = memberOf(body, 'node_uuid');
  return {
    request_id: origin.requestId,
    global_request_id: origin.globalRequestId,
    user: bounded(origin.user) ?? null,
    claimed_user: bounded(claimedUser),
    project: bounded(origin.project) ?? null,
    roles: roles.length > 0 ? roles.slice(0, MOST_ENTRIES).map((role) => bounded(role) ?? '') : undefined,
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
