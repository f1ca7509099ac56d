/**
 * A client behind a load balancer: it asks any server that accepts the connection. Without an answer, the effect of a request is unknown.
 */
import type { Chance } from './chance';
import type { Journal } from './journal';
import { timeoutSignal } from '../../wire/timeout-signal';

export type Body = Readonly<Record<string, unknown>>;
export interface Answer {
  /** 0: no answer, or a 5xx, so the effect is unknown. 1: no server accepted the connection. */
  readonly status: number;
  readonly body: Body;
}
export interface Api {
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  /** A GET to every server. */
  everywhere(path: string): Promise<readonly Answer[]>;
}

const TIMEOUT_MS = 60_000;
const accepted = ({ status }: Answer): boolean => status >= 200 && status < 300;
export { accepted };

/** @param urls of all servers, the dead ones too */
export function createApi(urls: readonly string[], chance: Chance, journal: Journal): Api {
  const ask = async (base: string, method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: timeoutSignal(TIMEOUT_MS),
    });
    const text = await response.text();
    const read = text === '' ? {} : (JSON.parse(text) as Body);
    if (response.status < 500) return { status: response.status, body: read };
    journal.count(`answers ${response.status}`);
    // A server without a database or without a free worker answers 503; any other 5xx is a defect.
    if (response.status !== 503) journal.find(`answer ${response.status}`, { method, path, text: text.slice(0, 500) });
    return { status: 0, body: read };
  };
  const noAnswer = (error: unknown): Answer => {
    if ((error as Error).name === 'TimeoutError') journal.find('a request without an answer for a minute', String(error));
    return { status: 0, body: {} };
  };
  /** No server listened: nothing was sent. */
  const refused = (error: unknown): boolean => (error as { cause?: { code?: string } }).cause?.code === 'ECONNREFUSED';
  return {
    call: async (method, path, body) => {
      const first = chance.between(0, urls.length - 1);
      for (let tried = 0; tried < urls.length; tried++) {
        try {
          return await ask(urls[(first + tried) % urls.length]!, method, path, body);
        } catch (error) {
          if (!refused(error)) return noAnswer(error);
        }
      }
      return { status: 1, body: {} };
    },
    everywhere: (path) => Promise.all(urls.map((url) => ask(url, 'GET', path).catch(noAnswer))),
  };
}
