/** Records a finished request: its duration in the metrics, a line in the log ([api]log_requests), and one in the audit log ([audit]). */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import { withoutEventKey } from '../../model/rules/bmc-events';
import type { Clock } from '../../model/clock';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { isRequestId, type Origin } from '../../model/origin';
import { auditEntry, isAudited, type AuditEntry, type AuditLog } from './audit';
import { reportFields, type RequestReport } from './request-report';
import { addressOf } from './source';

/** The methods of RFC 9110 and RFC 5789. Clients may send any word as the method. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
/** [api]log_requests → whether a request is logged. */
const LOGGED: Readonly<Record<string, (asked: { readonly method: string; readonly route: string; readonly failed: boolean }) => boolean>> =
  {
    all: () => true,
    // Agents send a heartbeat every few minutes, which changes only its own time.
    changes: ({ method, route, failed }) => failed || (!['GET', 'HEAD', 'OPTIONS'].includes(method) && !route.startsWith('/v1/heartbeat')),
    failures: ({ failed }) => failed,
    none: () => false,
  };

/** A new request ID. The client's own becomes the global one. */
export function originOf({ headers }: IncomingMessage): Origin {
  const given = headers['x-openstack-request-id'];
  const requestId = `req-${randomUUID()}`;
  return typeof given === 'string' && isRequestId(given)
    ? { requestId, globalRequestId: given, user: null, project: null }
    : { requestId, user: null, project: null };
}

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
  const path = withoutEventKey(url.split('?')[0]!);
  if (LOGGED[options['api.log_requests']]!({ method, route, failed: (status ?? 500) >= 400 }))
    log.info('request', { ...reportFields(report), method, path, status, ms: Math.round(seconds * 1e4) / 10 });
  if (audit && isAudited(options, method, report)) {
    const time = new Date(clock.now()).toISOString();
    audit.record(auditEntry({ time, service, address: addressOf(request, options), method, path, report }));
  }
}
