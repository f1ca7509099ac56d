/** Requests to the API, with the latest microversion and the CSRF token of the session. */
import type { Rights } from './rights';

class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}
export interface Session {
  readonly strategy: string;
  readonly log_ins: readonly string[];
  readonly caller: { readonly user: string | null; readonly project: string | null; readonly roles: readonly string[] } | null;
  readonly csrf: string | null;
  /** Whether the server was started for a demonstration, with simulated machines. */
  readonly has_demo_machines: boolean;
  readonly may: Rights;
}
export interface Api {
  get<T>(path: string): Promise<T>;
  send<T>(method: string, path: string, body?: unknown): Promise<T>;
}

interface ErrorBody {
  readonly faultstring?: string;
  readonly description?: string;
  readonly title?: string;
  readonly error?: { readonly message?: string };
}
/** The message in the body of an API error, which has one of several forms. @internal */
export function messageIn(text: string): string {
  try {
    let body = JSON.parse(text) as Record<string, unknown>;
    const wrapped = body['error_message'];
    if (typeof wrapped === 'string') {
      if (!wrapped.startsWith('{')) return wrapped;
      body = JSON.parse(wrapped) as Record<string, unknown>;
    }
    const { faultstring, description, title, error } = body as ErrorBody;
    const words = faultstring ?? description ?? error?.message ?? title;
    return words === undefined || words === '' ? text : words;
  } catch {
    return text;
  }
}

const TIMEOUT_MS = 60_000;
/** @param lost called when the session is over */
export function createApi(csrf: () => string | null, lost: () => void): Api {
  async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const limit = new AbortController();
    const late = setTimeout(() => limit.abort(new Error('The server does not answer.')), TIMEOUT_MS);
    const response = await fetch(path, {
      method,
      headers: {
        Accept: 'application/json',
        'X-OpenStack-Ironic-API-Version': 'latest',
        ...(method === 'GET' ? {} : { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf() ?? '' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: limit.signal,
    });
    const text = await response.text().finally(() => clearTimeout(late));
    if (response.status === 401 && path !== 'ui/session') lost();
    if (!response.ok) throw new ApiError(response.status, messageIn(text) || `HTTP status ${response.status}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
  return { send, get: (path) => send('GET', path) };
}
