/** A small introspection service: it records its requests, and a test sets its answers. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ServiceReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text as it is; anything else as JSON. */
  readonly body?: unknown;
}
/** `hang`: nothing is answered; `cut`: the connection ends in the midst of the answer. */
export type Reply = ServiceReply | Promise<ServiceReply> | 'hang' | 'cut';
export interface IntrospectionService {
  readonly url: string;
  /** In order: `start UUID`, `status UUID`, `abort UUID`, `data UUID`. */
  readonly asked: string[];
  /** Headers of the last request. */
  readonly heard: { headers: Readonly<Record<string, unknown>> };
  /** `start`, `status UUID`, … → the answer; the more specific key first. */
  readonly answers: Map<string, Reply>;
  /** The largest number of simultaneous requests. */
  most(): number;
  /** Stops listening on its port, until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
}

const DEFAULTS: Readonly<Record<string, Reply>> = {
  start: { status: 202, body: '' },
  abort: { status: 202, body: '' },
  status: { body: { finished: false, error: null } },
  data: { status: 404, body: { error: { message: 'Inspector is not configured to store data.' } } },
};

function reply(response: ServerResponse, said: Awaited<Reply>): void {
  if (said === 'hang') return;
  if (said === 'cut') {
    response.writeHead(200, { 'content-length': 1000 });
    response.write('{"finished"');
    setImmediate(() => response.destroy());
    return;
  }
  const { status = 200, headers = {}, body = '' } = said;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** The service is closed after the tests of the file. */
export async function startIntrospectionService(): Promise<IntrospectionService> {
  const asked: string[] = [];
  const answers = new Map<string, Reply>();
  let [now, most] = [0, 0];
  const heard: IntrospectionService['heard'] = { headers: {} };
  const server = createServer((request, response) => {
    const [, node = '', rest = ''] = /^\/v1\/introspection\/([^/]+)(?:\/(\w+))?$/.exec(request.url!) ?? [];
    const verb = rest === '' ? (request.method === 'POST' ? 'start' : 'status') : rest;
    asked.push(`${verb} ${node}`);
    heard.headers = request.headers;
    most = Math.max(most, ++now);
    response.once('close', () => now--);
    request.resume();
    const said = answers.get(`${verb} ${node}`) ?? answers.get(verb) ?? DEFAULTS[verb] ?? { status: 404 };
    void Promise.resolve(said).then((now) => reply(response, now));
  });
  const listen = (port: number): Promise<void> => new Promise((done) => server.listen(port, '127.0.0.1', done));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const shut = async (): Promise<void> => {
    const closed = new Promise<void>((done) => server.close(() => done()));
    server.closeAllConnections();
    await closed;
  };
  return { url: `http://127.0.0.1:${port}/v1`, asked, answers, heard, most: () => most, shut, open: () => listen(port) };
}
