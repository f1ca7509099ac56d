/** HTTP listeners. Ports are opened early, so that a port in use stops the start. Requests are answered once a handler is set. */
import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartError } from './settings';

export interface HttpListener {
  readonly port: number;
  /** Before this, every request is answered with 503. */
  answer(listener: RequestListener): void;
  /** Waits two seconds for running responses. May be called again. */
  close(): Promise<void>;
}
const CLOSE_TIMEOUT_MS = 2000;

/**
 * @param what the purpose and the option of the port, for the error message
 * @throws StartError
 */
export async function listenHttp(options: ServerOptions, host: string, port: number, what: string): Promise<HttpListener> {
  let listener: RequestListener = (_, response) => void response.writeHead(503).end();
  const server = createServer(options, (request, response) => listener(request, response));
  await new Promise<void>((done, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      fail(
        new StartError(
          `cannot listen on ${host} port ${port} (${what}): ${error.code === 'EADDRINUSE' ? 'the port is in use' : error.message}`,
        ),
      ),
    );
    server.listen(port, host, done);
  });
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((done) => server.close(() => done()));
    server.closeIdleConnections();
    const late = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT_MS);
    await closed;
    clearTimeout(late);
  };
  let closing: Promise<void> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    answer: (given) => {
      listener = given;
    },
    close: () => (closing ??= close()),
  };
}
