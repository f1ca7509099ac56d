/** The agent's API as a driver sees it: a test sets the answers, and the requests are recorded. */
import { createServer as createHttp, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../../model/records';

export interface AgentRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body?: { readonly name: string; readonly params: JsonObject };
}
/** `hang up`: the connection ends without an answer. `say nothing`: it stays open without one. */
export type Answer =
  | { readonly status?: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | 'hang up'
  | 'say nothing';

export interface FakeAgent {
  readonly url: string;
  readonly asked: AgentRequest[];
  /** How many connections it has got. */
  connections(): number;
  close(): Promise<void>;
}

const bodyOf = async (request: IncomingMessage): Promise<AgentRequest['body']> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return chunks.length === 0 ? undefined : (JSON.parse(Buffer.concat(chunks).toString()) as AgentRequest['body']);
};

export async function startFakeAgent(
  answer: (asked: AgentRequest, times: number) => Answer,
  tls?: { readonly certificate: string; readonly privateKey: string; readonly maxVersion?: 'TLSv1.2' },
): Promise<FakeAgent> {
  const asked: AgentRequest[] = [];
  const respond: RequestListener = (request, response) => {
    void (async () => {
      const url = new URL(request.url!, 'http://agent');
      const body = await bodyOf(request);
      const one: AgentRequest = {
        method: request.method!,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        ...(body === undefined ? {} : { body }),
      };
      asked.push(one);
      const said = answer(one, asked.length);
      if (said === 'say nothing') return;
      if (said === 'hang up') {
        request.socket.destroy();
        return;
      }
      response.writeHead(said.status ?? 200, { 'content-type': 'application/json', ...said.headers });
      response.end(typeof said.body === 'string' ? said.body : JSON.stringify(said.body));
    })();
  };
  const server = tls
    ? createHttps({ cert: tls.certificate, key: tls.privateKey, ...(tls.maxVersion ? { maxVersion: tls.maxVersion } : {}) }, respond)
    : createHttp(respond);
  let connections = 0;
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A command's result as agents give it. */
export const result = (name: string, status: string, more: JsonObject = {}): JsonObject => ({
  id: `id-${name}`,
  command_name: name,
  command_status: status,
  command_error: null,
  command_result: null,
  ...more,
});
