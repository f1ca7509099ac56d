/** A small Redfish service that a test can change: resources as JSON, a record of its requests, and answers that precede the resources. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface RedfishRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}
export interface RedfishReply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface RedfishService {
  readonly url: string;
  readonly asked: RedfishRequest[];
  /** Path → resource. */
  readonly resources: Record<string, unknown>;
  /** Answers before the resources do; undefined: the resource answers. `hang`: no answer. */
  reply: (asked: RedfishRequest, response: ServerResponse) => RedfishReply | 'hang' | undefined;
  close(): Promise<void>;
}

export const SYSTEM = '/redfish/v1/Systems/1';
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
export const redfishError = (message: string): unknown => ({
  error: {
    code: 'Base.1.0.GeneralError',
    message: 'general',
    '@Message.ExtendedInfo': [{ MessageId: 'Base.1.0.ActionParameterNotSupported', Message: message }],
  },
});

/** One system that is on, whose power and boot settings can be changed. @param tls certificate and key */
export async function redfishService(tls?: { readonly cert: string; readonly key: string }): Promise<RedfishService> {
  const system: Record<string, unknown> & { Boot: Record<string, unknown> } = {
    '@odata.id': SYSTEM,
    '@odata.etag': 'W/"1"',
    PowerState: 'On',
    Boot: { BootSourceOverrideEnabled: 'Disabled', BootSourceOverrideTarget: 'None', BootSourceOverrideMode: 'UEFI' },
    Actions: { '#ComputerSystem.Reset': { target: RESET } },
  };
  const asked: RedfishRequest[] = [];
  const resources: Record<string, unknown> = {
    '/redfish/v1/': {
      Systems: { '@odata.id': '/redfish/v1/Systems' },
      Links: { Sessions: { '@odata.id': '/redfish/v1/SessionService/Sessions' } },
    },
    '/redfish/v1/Systems': { Members: [{ '@odata.id': SYSTEM }] },
    [SYSTEM]: system,
  };
  const answer = ({ method, path, body }: RedfishRequest): RedfishReply => {
    if (method === 'POST' && path === RESET) {
      system['PowerState'] = /Off|Shutdown/.test((body as { ResetType: string }).ResetType) ? 'Off' : 'On';
      return { status: 204 };
    }
    if (!(path in resources)) return { status: 404, body: redfishError('no such resource') };
    if (method === 'PATCH') Object.assign(system.Boot, (body as { Boot?: object }).Boot);
    return { status: 200, body: resources[path] };
  };
  const it: RedfishService = { url: '', asked, resources, reply: () => undefined, close: async () => {} };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString();
      const one: RedfishRequest = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      };
      asked.push(one);
      const said = it.reply(one, response) ?? answer(one);
      if (said === 'hang' || response.headersSent) return;
      response.writeHead(said.status, { 'content-type': 'application/json', ...said.headers });
      response.end(said.body === undefined ? undefined : JSON.stringify(said.body));
    });
  };
  const server: Server = tls ? createTlsServer(tls, handle) : createServer(handle);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return Object.assign(it, {
    url: `http${tls ? 's' : ''}://127.0.0.1:${port}`,
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  });
}
