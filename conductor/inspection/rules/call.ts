/** The HTTP request of the action `api-call`: a GET with retries for temporary errors. */
import { ProxyAgent, type Dispatcher } from 'undici';
import { retry, type Clock } from '../../../model/clock';
import { agentOptions, createAgent, request } from '../../../wire/http-agent';
import { webServerTls, type WebServerOptions } from '../../../wire/web-servers';
import type { ApiCall } from './actions';

const LATER: readonly number[] = [429, 500, 502, 503, 504];
/** Seconds; urllib3 has the same limit. */
const MAX_PAUSE = 120;

interface Calling {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly options: WebServerOptions;
}
/** Throws if the last response is an error, or if there is none. */
export async function callApi(
  { url, headers, proxies, timeoutSeconds, retries, backoffFactor }: ApiCall,
  { clock, signal, options }: Calling,
): Promise<void> {
  const { protocol } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`${protocol} is neither http: nor https:`);
  const proxy = proxies[protocol.slice(0, -1)];
  const milliseconds = timeoutSeconds * 1000;
  const tls = await webServerTls(options);
  const bounds = {
    connect: { timeout: milliseconds, ...tls },
    bodyBytes: 'streamed',
    headersMs: milliseconds,
    bodyMs: milliseconds,
  } as const;
  const dispatcher: Dispatcher =
    proxy === undefined ? createAgent(bounds) : new ProxyAgent({ uri: proxy, ...agentOptions(bounds), requestTls: tls });
  try {
    const call = async (): Promise<void> => {
      const { statusCode, body } = await request(url, { dispatcher, headers, signal });
      // The response body is discarded.
      await body.dump({ limit: 1 << 20, signal });
      if (statusCode >= 400) throw new ErrorResponse(statusCode);
    };
    await retry({ clock, signal }, call, (error, attempt) => {
      const isFinal = error instanceof ErrorResponse && !LATER.includes(error.status);
      return isFinal || attempt > retries || signal.aborted ? undefined : Math.min(backoffFactor * 2 ** (attempt - 1), MAX_PAUSE) * 1000;
    });
  } finally {
    await dispatcher.destroy();
  }
}
class ErrorResponse extends Error {
  constructor(readonly status: number) {
    super(`it answered ${status}`);
  }
}
