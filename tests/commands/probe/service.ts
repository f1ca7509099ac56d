/** BMCs for the tests of probes: one that answers as a table says, and a proxy that notes what is asked. */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TestService {
  readonly url: string;
  /** Method and path of each request. */
  readonly asked: string[];
  close(): Promise<void>;
}
export async function testService(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<TestService> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method!} ${request.url!}`);
    handle(request, response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
}
/** Passes everything on to the service at this URL. */
export const proxyOf = (target: string): Promise<TestService> =>
  testService((request, response) => {
    const passed = forward(`${target}${request.url!}`, { method: request.method, headers: request.headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => request.socket.destroy());
    request.pipe(passed);
  });

type Body = Readonly<Record<string, unknown>>;
export const send = (response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
/** A service of basic authentication whose resources are a table of paths. */
export const tableService = (table: Readonly<Record<string, Body>>): Promise<TestService> =>
  testService((request, response) => {
    const body = table[request.url!.replace(/\/$/, '')];
    if (body) send(response, 200, body);
    else send(response, 404, {});
  });
