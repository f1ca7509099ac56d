/**
 * A stand-in of OpenBMC's web server, as far as a screen needs it: Redfish with sessions, and the WebSocket /kvm/0, which carries the bytes of
 * a VNC server (features/kvm/kvm_websocket.hpp of bmcweb): four sessions, 50 KiB to the browser, at most 1 KiB from it.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type NetConnectOpts } from 'node:net';
import { WebSocketServer } from 'ws';

export interface Bmcweb {
  readonly url: string;
  /** Open WebSockets. */
  readonly sessions: () => number;
  /** Valid tokens. */
  readonly tokens: Set<string>;
  /** The resource at a path, which a test may change. */
  readonly resources: Record<string, Record<string, unknown>>;
  close(): Promise<void>;
}
const MAX_SESSIONS = 4;
const MAX_INPUT = 1024;
const SESSIONS = '/redfish/v1/SessionService/Sessions';
const link = (path: string): object => ({ '@odata.id': path });

export async function startBmcweb(vnc: NetConnectOpts, user = 'root', password = '0penBmc'): Promise<Bmcweb> {
  const tokens = new Set<string>();
  const resources: Record<string, Record<string, unknown>> = {
    '/redfish/v1/': { Systems: link('/redfish/v1/Systems'), Managers: link('/redfish/v1/Managers'), Links: { Sessions: link(SESSIONS) } },
    '/redfish/v1/Systems': { Members: [link('/redfish/v1/Systems/system')] },
    '/redfish/v1/Systems/system': {
      ...link('/redfish/v1/Systems/system'),
      PowerState: 'On',
      Links: { ManagedBy: [link('/redfish/v1/Managers/bmc')] },
    },
    '/redfish/v1/Managers/bmc': {
      ...link('/redfish/v1/Managers/bmc'),
      Name: 'OpenBmc Manager',
      Model: 'OpenBmc',
      GraphicalConsole: { ServiceEnabled: true, MaxConcurrentSessions: MAX_SESSIONS, ConnectTypesSupported: ['KVMIP'] },
    },
  };
  const isKnown = ({ headers }: IncomingMessage): boolean =>
    tokens.has(String(headers['x-auth-token'])) ||
    headers.authorization === `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const answer = (status: number, body?: object, headers: Record<string, string> = {}): void => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers });
        response.end(body === undefined ? '' : JSON.stringify(body));
      };
      const { method = 'GET', url = '/' } = request;
      if (method === 'POST' && url === SESSIONS) {
        const given = JSON.parse(Buffer.concat(chunks).toString()) as { readonly UserName?: string; readonly Password?: string };
        if (given.UserName !== user || given.Password !== password) {
          answer(401);
          return;
        }
        const token = randomBytes(10).toString('hex');
        tokens.add(token);
        answer(201, link(`${SESSIONS}/${token}`), { 'X-Auth-Token': token, Location: `${SESSIONS}/${token}` });
      } else if (url !== '/redfish/v1/' && !isKnown(request)) answer(401);
      else if (method === 'DELETE' && url.startsWith(SESSIONS)) {
        tokens.delete(url.slice(SESSIONS.length + 1));
        answer(200);
      } else if (resources[url]) answer(200, resources[url]);
      else answer(404);
    });
  });
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    if (request.url !== '/kvm/0' || !isKnown(request)) {
      socket.end(`HTTP/1.1 ${request.url === '/kvm/0' ? '401 Unauthorized' : '404 Not Found'}\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      if (sockets.clients.size > MAX_SESSIONS) {
        client.close(1000, 'Max sessions are already connected');
        return;
      }
      const host = connect(vnc);
      host.on('error', () => client.close(1000, 'Error in connecting to KVM port'));
      host.on('close', () => client.close());
      host.on('data', (bytes) => {
        for (let at = 0; at < bytes.length; at += 50 * 1024) client.send(bytes.subarray(at, at + 50 * 1024));
      });
      client.on('message', (data: Buffer) => {
        if (data.length > MAX_INPUT) client.close(1000, 'Buffer overrun');
        else host.write(data);
      });
      client.on('close', () => host.destroy());
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessions: () => sockets.clients.size,
    tokens,
    resources,
    close: () =>
      new Promise((done) => {
        for (const client of sockets.clients) client.terminate();
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
