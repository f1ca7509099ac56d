/** Records a finished request: its duration in the metrics, and a line in the log according to [api]log_requests. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Options } from '../../config/options';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { isRequestId, type Origin } from '../../model/origin';

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

export interface RequestSummary {
  /** The path template in openapi.yaml. */
  readonly route: string;
  /** Absent: the caller closed the connection. */
  readonly status: number | undefined;
  readonly seconds: number;
  /** The origin and the node. */
  readonly fields: object;
}
export function reportRequest(
  { log, metrics, options }: { readonly log: Log; readonly metrics: Metrics; readonly options: Options },
  { method = 'GET', url = '/' }: IncomingMessage,
  { route, status, seconds, fields }: RequestSummary,
): void {
  metrics.observe(
    'bloomery_api_request_duration_seconds',
    { method: METHODS.has(method) ? method : 'other', route, status: status ? `${Math.floor(status / 100)}xx` : 'aborted' },
    seconds,
  );
  if (LOGGED[options['api.log_requests']]!(method, status))
    log.info('request', { ...fields, method, path: url.split('?')[0], status, ms: Math.round(seconds * 1e4) / 10 });
}
