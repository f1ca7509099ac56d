/** The agent's requests to the bare metal API: version, lookup, heartbeat, inspection data. */
import type { Inventory, JsonObject } from '../model/records';
import { AgentError } from '../model/agent/errors';
import { isObject } from '../model/json';
import { ask, type HttpAnswer, type HttpRequest, type Trust } from './system/http';

/** The newest minor version whose features the agent uses (agent_verify_ca). */
const NEWEST_KNOWN = 68;
/** The minor version that the agent assumes if the server does not report its versions. */
const OLDEST_KNOWN = 31;
const SINCE = { agent_version: 36, agent_token: 62, agent_verify_ca: 68 } as const;

export interface LookupAnswer {
  readonly node: JsonObject & { readonly uuid: string };
  readonly config: JsonObject & { readonly heartbeat_timeout?: number; readonly agent_token?: string };
}
interface HeartbeatBody {
  readonly callbackUrl: string;
  readonly token: string | null;
  readonly version: string;
  /** PEM of the agent's own certificate. */
  readonly verifyCa: string | null;
}
export interface Api {
  /** Minor version to use, and the server's clock (milliseconds) if known. Never rejects. */
  negotiate(): Promise<{ readonly minor: number; readonly serverTime: number | null; readonly url: string }>;
  /** Rejects with the server's message while it does not know the machine. */
  lookup(minor: number, macs: readonly string[], nodeUuid: string | null): Promise<LookupAnswer>;
  heartbeat(minor: number, nodeUuid: string, beat: HeartbeatBody): Promise<void>;
  /** Returns the node's UUID; null: the answer has none. Rejects with the response's `httpStatus`, if there was a response. */
  continueInspection(data: InspectionData): Promise<string | null>;
}
export type InspectionData = JsonObject & { readonly inventory?: Inventory; readonly error: string | null };

class ApiRefusal extends AgentError {
  constructor(
    type: 'LookupNodeError' | 'HeartbeatError' | 'InspectionError',
    readonly httpStatus: number,
    text: string,
  ) {
    super(type, `Error ${httpStatus}: ${text}`);
  }
}

interface ApiOptions {
  readonly apiUrls: readonly string[];
  readonly inspectionUrls: readonly string[];
  readonly timeoutMs: number;
  readonly trust: Trust;
  readonly globalRequestId: string | null;
  readonly signal: AbortSignal;
}

export function api(options: ApiOptions): Api {
  const headers = (minor?: number): Record<string, string> => ({
    accept: 'application/json',
    'content-type': 'application/json',
    ...(minor === undefined ? {} : { 'x-openstack-ironic-api-version': `1.${minor}` }),
    ...(options.globalRequestId === null ? {} : { 'x-openstack-request-id': options.globalRequestId }),
  });
  const call = (urls: readonly string[], path: string, more: Pick<HttpRequest, 'method' | 'body' | 'headers'>): Promise<Located> =>
    firstAnswer(urls, (url) =>
      ask({
        ...more,
        url: url.replace(/(?<!\/)\/+$/, '') + path,
        timeoutMs: options.timeoutMs,
        trust: options.trust,
        signal: options.signal,
      }),
    );

  return {
    async negotiate() {
      const unknown = { minor: OLDEST_KNOWN, serverTime: null, url: options.apiUrls[0] ?? '' };
      const answer = await call(options.apiUrls, '/', { method: 'GET', headers: headers() }).catch(() => undefined);
      if (!answer) return unknown;
      const version = /^1\.(\d+)$/.exec(String((json(answer.text)?.['default_version'] as JsonObject | undefined)?.['version']));
      const date = Date.parse(answer.headers.date ?? '');
      return {
        minor: version ? Math.min(Number(version[1]), NEWEST_KNOWN) : OLDEST_KNOWN,
        serverTime: Number.isNaN(date) ? null : date,
        url: answer.url,
      };
    },
    async lookup(minor, macs, nodeUuid) {
      const query = new URLSearchParams({ addresses: macs.join(','), ...(nodeUuid === null ? {} : { node_uuid: nodeUuid }) });
      const answer = await call(options.apiUrls, `/v1/lookup?${query.toString()}`, { method: 'GET', headers: headers(minor) });
      const found = answer.status === 200 ? (json(answer.text) as Partial<LookupAnswer> | undefined) : undefined;
      if (typeof found?.node?.uuid !== 'string') throw new ApiRefusal('LookupNodeError', answer.status, wordsOf(answer));
      return { node: found.node, config: found.config ?? {} };
    },
    async heartbeat(minor, nodeUuid, beat) {
      const body = JSON.stringify({
        callback_url: beat.callbackUrl,
        ...(minor >= SINCE.agent_version ? { agent_version: beat.version } : {}),
        ...(minor >= SINCE.agent_token && beat.token !== null ? { agent_token: beat.token } : {}),
        ...(minor >= SINCE.agent_verify_ca && beat.verifyCa !== null ? { agent_verify_ca: beat.verifyCa } : {}),
      });
      const path = `/v1/heartbeat/${encodeURIComponent(nodeUuid)}`;
      const answer = await call(options.apiUrls, path, { method: 'POST', headers: headers(minor), body });
      if (answer.status !== 202) throw new ApiRefusal('HeartbeatError', answer.status, wordsOf(answer));
    },
    async continueInspection(data) {
      const answer = await call(options.inspectionUrls, '', { method: 'POST', headers: headers(), body: JSON.stringify(data) });
      if (answer.status >= 400) throw new ApiRefusal('InspectionError', answer.status, wordsOf(answer));
      const uuid = json(answer.text)?.['uuid'];
      return typeof uuid === 'string' ? uuid : null;
    },
  };
}

type Located = HttpAnswer & { readonly url: string };
/** The response of the first URL that answers, whatever its status. Rejects with the last error if none answers. */
async function firstAnswer(urls: readonly string[], call: (url: string) => Promise<HttpAnswer>): Promise<Located> {
  let last: unknown = new Error('No URL of the bare metal API is known');
  for (const url of urls) {
    try {
      return { ...(await call(url)), url };
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

function json(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The message of an error response: error_message may be an object, or JSON in a string. */
function wordsOf(answer: HttpAnswer): string {
  const message = json(answer.text)?.['error_message'];
  const inner = typeof message === 'string' ? (json(message) ?? { faultstring: message }) : (message as JsonObject | undefined);
  const words = inner?.['faultstring'] ?? inner?.['title'];
  return (typeof words === 'string' ? words : answer.text).slice(0, 1000);
}
