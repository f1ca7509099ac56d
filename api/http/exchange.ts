/** What both services do with every request and its response: the ID, the report, CORS headers, the caller, and the log of errors. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Options } from '../../config/options';
import { withoutEventKey } from '../../model/rules/bmc-events';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Origin } from '../../model/origin';
import type { AuditEntry } from './audit';
import { createCors } from './cors';
import { Unauthenticated } from './errors';
import { originOf, reportRequest } from './request-log';
import { reportFields, type RequestReport } from './request-report';
import { targetOf, type Target } from './target';

/** What is known of a request from its beginning on. */
export interface Exchange {
  readonly report: RequestReport;
  readonly target: Target;
  /** Writes the log and the metrics. Call it once, after the response is sent or a stream has begun. */
  readonly finish: () => void;
}
/** @param route in metrics and log if no operation is found */
export function beginExchange(
  parts: Parameters<typeof reportRequest>[0],
  service: AuditEntry['service'],
  route: string,
  request: IncomingMessage,
  response: ServerResponse,
): Exchange {
  const took = parts.metrics.timer();
  const report: RequestReport = { route, origin: originOf(request) };
  const finish = (): void => {
    const status = response.headersSent ? response.statusCode : undefined;
    reportRequest(parts, request, { service, report, status, seconds: took() });
  };
  return { report, target: targetOf(request.url ?? '/'), finish };
}

export function createCorsHeaders(options: Options): (request: IncomingMessage, response: ServerResponse) => void {
  const cors = createCors(options);
  return (request, response) => {
    if (request.headers.origin !== undefined)
      for (const [name, value] of Object.entries(cors(request.method, request.headers))) response.setHeader(name, value);
  };
}

/** @param rights of the caller that the conductor must know */
export function noteCaller(
  report: RequestReport,
  { user, project, roles, tokenName }: Pick<Origin, 'user' | 'project'> & Pick<RequestReport, 'roles' | 'tokenName'>,
  rights: Pick<Origin, 'admin' | 'service'> = {},
): void {
  // Object.assign: a literal that spreads several objects takes ten times as long.
  report.origin = Object.assign({}, report.origin, { user, project }, rights);
  report.roles = roles ?? [];
  report.tokenName = tokenName;
}

/**
 * Reports the status of the answer to an error, and logs an unexpected one. An unknown error on a closed connection means that the client
 * left while its request was read.
 */
export function noteError(
  error: unknown,
  { status, known }: { readonly status: number; readonly known: boolean },
  request: IncomingMessage,
  { report, target }: Exchange,
  log: Log,
): void {
  if (error instanceof Unauthenticated) report.claimedUser = error.claimedUser;
  if (!known && request.socket.destroyed) return;
  report.status = status;
  if (known) return;
  log.error('request failed', {
    ...reportFields(report),
    method: request.method,
    path: withoutEventKey(target.path),
    error: reasonOf(error),
    stack: error instanceof Error ? error.stack : undefined,
  });
}
