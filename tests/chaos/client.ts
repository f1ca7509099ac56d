/** A client behind a load balancer: any server that takes the connection; an answer, or none, which leaves open what happened. */
import type { Chance } from './chance';
import type { Journal } from './journal';
import { timeoutSignal } from '../../wire/timeout-signal';

export type Body = Readonly<Record<string, unknown>>;
export interface Answer {
  /** 0: there was no answer, or one that says that the server does not know (5xx). 1: nobody was there to ask. */
  readonly status: number;
  readonly body: Body;
}
export interface Api {
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  /** The same of every server that answers. */
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
    // 503 is what a server without a database or without a free worker says; anything else is a defect.
    if (response.status !== 503) journal.find(`answer ${response.status}`, { method, path, text: text.slice(0, 500) });
    return { status: 0, body: read };
  };
  const noAnswer = (error: unknown): Answer => {
    if ((error as Error).name === 'TimeoutError') journal.find('a request without an answer for a minute', String(error));
    return { status: 0, body: {} };
  };
  /** Nobody listened: nothing was sent. */
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
