/** `/metrics` and `/healthcheck`, on the API's port and on [metrics]prometheus_port. They need no authentication. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../model/log';
import type { Scrape } from '../../model/metrics';
import { isHealthcheck, type Healthcheck } from './healthcheck';

interface ProbeAnswer {
  /** The route's name in metrics and log. */
  readonly route: string;
  readonly status: number;
  readonly type?: string;
  readonly text: string;
}
/** @param path as in the request, without the query. Returns undefined, or a promise of it, if the request is not a probe. */
export type Probes = (request: IncomingMessage, path: string) => Promise<ProbeAnswer | undefined> | undefined;

const METRICS_PATH = '/metrics';

/** Without `scrape` there is no `/metrics`, without `healthcheck` no `/healthcheck`. */
export const createProbes =
  ({ scrape, healthcheck }: { readonly scrape?: Scrape | undefined; readonly healthcheck?: Healthcheck | undefined }): Probes =>
  (request, path) => {
    const { method = 'GET' } = request;
    if (healthcheck && isHealthcheck(path)) {
      const { remoteAddress: from, localPort: port } = request.socket;
      return healthcheck({ method, headers: request.headers, from, port }).then((answer) => answer && { route: '/healthcheck', ...answer });
    }
    if (scrape && path === METRICS_PATH && (method === 'GET' || method === 'HEAD'))
      return scrape(request.headers.accept).then((scraped) => ({ route: METRICS_PATH, status: 200, ...scraped }));
    return undefined;
  };

export function sendProbe(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, text }: ProbeAnswer,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    ...(type === undefined ? {} : { 'Content-Type': type }),
    ...headers,
    // RFC 9110 §8.6: 204 has no length.
    ...(status === 204 ? {} : { 'Content-Length': String(Buffer.byteLength(text)) }),
  });
  response.end(request.method === 'HEAD' ? '' : text);
}

/** The listener of [metrics]prometheus_port. */
export const probeListener =
  (probes: Probes, log: Log) =>
  async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const answer = await probes(request, (request.url ?? '/').split('?')[0]!);
      sendProbe(request, response, answer ?? { route: '', status: 404, type: 'text/plain', text: 'Not found\n' });
    } catch (error) {
      log.error('a probe failed', { path: request.url, error });
      if (!response.headersSent)
        sendProbe(request, response, { route: '', status: 500, type: 'text/plain', text: 'Internal server error\n' });
    }
  };
