/** The HTTP server of the container httpd: which port serves which paths, and what it forwards. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request as call, type IncomingHttpHeaders, type Server } from 'node:http';
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpd, createTunnel, ruleOf, type Port } from '../../metal3/httpd';
import { createHttpServer, type HttpServer } from '../../wire/http/listener-tls';
import { answerUpgrades } from '../../wire/http/upgrades';

type HttpdModes = HttpdSetup['modes'];
type HttpdSetup = Parameters<typeof createHttpd>[0];
const OPEN: HttpdModes = { mediaTls: false, plainImages: true };
const CLOSED: HttpdModes = { mediaTls: true, plainImages: false };

it.each<[Port, string, HttpdModes, string]>([
  ['plain', '/images/a.qcow2', OPEN, 'image'],
  ['plain', '/images/a.qcow2', CLOSED, 'refused'],
  ['plain', '/images/', CLOSED, 'refused'],
  ['plain', '/images/ironic-python-agent.kernel', CLOSED, 'ramdisk'],
  ['plain', '/images/ironic/../a.qcow2', CLOSED, 'refused'],
  ['plain', '/redfish/x.iso', OPEN, 'media'],
  ['plain', '/redfish/x.iso', CLOSED, 'refused'],
  ['plain', '/ilo', CLOSED, 'refused'],
  ['plain', '/media/token/x.iso', CLOSED, 'refused'],
  ['plain', '/boot.ipxe', CLOSED, 'start script'],
  ['plain', '/inspector.ipxe', CLOSED, 'inspector script'],
  ['plain', '/ipxe/52-54-00-00-00-01', CLOSED, 'boot'],
  ['plain', '/boot/token/kernel', CLOSED, 'boot'],
  ['plain', '/other', CLOSED, 'file'],
  ['plain', '/.htpasswd', OPEN, 'refused'],
  ['plain', '/images/.HTaccess', OPEN, 'refused'],
  ['api', '/images/a.qcow2', CLOSED, 'image'],
  ['api', '/redfish/x.iso', CLOSED, 'api'],
  ['api', '/v1/nodes', OPEN, 'api'],
  ['api', '/', OPEN, 'api'],
  ['media', '/redfish/x.iso', CLOSED, 'media'],
  ['media', '/media/token/x.iso', CLOSED, 'media'],
  ['media', '/images/x', CLOSED, 'refused'],
  ['media', '/redfishes', CLOSED, 'refused'],
  ['media', '/', CLOSED, 'refused'],
])('the port "%s" answers %s with %j by the rule "%s"', (port, path, modes, rule) => {
  expect(ruleOf(port, path, modes)).toBe(rule);
});

const folder = mkdtempSync(join(tmpdir(), 'bloomery-httpd-'));
const servers: Server[] = [];
const upstreams: HttpServer[] = [];
const warned: string[] = [];
const log: HttpdSetup['log'] = {
  debug: () => {},
  info: () => {},
  error: () => {},
  warn: (message: string) => void warned.push(message),
  child: () => log,
};
interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly from: string | undefined;
}
const received: Received[] = [];
const setup: HttpdSetup = {
  modes: OPEN,
  root: join(folder, 'html'),
  boot: join(folder, 'boot.sock'),
  api: join(folder, 'api.sock'),
  startScript: '#!ipxe\nstart\n',
  inspectorScript: '#!ipxe\ninspect\n',
  admits: async (request, response) => {
    if (request.headers.authorization === 'Basic right') return true;
    response.writeHead(401).end();
    return false;
  },
  log,
};
const ports: Partial<Record<Port, number>> = {};
const silent = { ...setup, boot: join(folder, 'absent.sock') };
let withoutServer: number;

const listen = (server: Server): Promise<number> =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done((server.address() as AddressInfo).port)));

beforeAll(async () => {
  mkdirSync(join(folder, 'html/images'), { recursive: true });
  writeFileSync(join(folder, 'html/images/a.qcow2'), 'an image');
  writeFileSync(join(folder, 'secret'), 'secret');
  symlinkSync(join(folder, 'secret'), join(folder, 'html/out'));
  const upstream = (path: string): Promise<void> => {
    const limits = { connections: { inAll: 100, ofSource: 100 }, readTimeoutMs: 30_000 };
    const http = createHttpServer({ expectsProxyHeaders: true }, undefined, limits, log, (request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const { method, url, headers, socket } = request;
        received.push({ method, url, headers, body: Buffer.concat(pieces).toString(), from: socket.remoteAddress });
        response
          .writeHead(url?.startsWith('/ipxe/52') ? 200 : url?.startsWith('/ipxe/') ? 404 : 202, { 'x-answer': 'yes' })
          .end('answered');
      });
    });
    http.upgrade((request, socket) => {
      if (request.url === '/ui/refused') {
        socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
        return true;
      }
      const { 'sec-websocket-key': key, authorization } = request.headers;
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Key: ${key}\r\n\r\n`);
      socket.write(`${request.socket.remoteAddress} ${authorization};`);
      socket.on('data', (piece: Buffer) => socket.write(piece.toString().toUpperCase()));
      socket.on('end', () => socket.end()).on('error', () => {});
      return true;
    });
    upstreams.push(http);
    return new Promise((done) => http.server.listen(path, done));
  };
  await upstream(setup.boot);
  await upstream(setup.api as string);
  for (const port of ['plain', 'api', 'media'] as const) {
    const server = createServer(createHttpd(setup, port));
    if (port === 'api') answerUpgrades(server, 'connection', createTunnel(setup));
    servers.push(server);
    ports[port] = await listen(server);
  }
  const server = createServer(createHttpd(silent, 'plain'));
  servers.push(server);
  withoutServer = await listen(server);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  await Promise.all(upstreams.map((http) => http.close(0)));
  rmSync(folder, { recursive: true });
});
beforeEach(() => void received.splice(0));

interface Reply {
  readonly status: number | undefined;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}
/** Not `fetch`, which resolves dot segments of paths. */
const get = (port: number | undefined, path: string, headers = {}, method = 'GET', body = ''): Promise<Reply> =>
  new Promise((done, fail) => {
    const request = call({ port, path, headers, method, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.on('end', () => done({ status: response.statusCode, text, headers: response.headers }));
    });
    request.once('error', fail).end(body);
  });

it('serves files of the shared folder, and none outside it', async () => {
  expect(await get(ports.plain, '/images/a.qcow2')).toMatchObject({ status: 200, text: 'an image' });
  expect(await get(ports.plain, '/images/a.qcow2', { range: 'bytes=3-4' })).toMatchObject({ status: 206, text: 'im' });
  expect(await get(ports.plain, '/images/a.qcow2', {}, 'HEAD')).toMatchObject({ status: 200, text: '' });
  for (const path of ['/out', '/../secret', '/%2e%2e/secret', '/images', '/absent'])
    expect(await get(ports.plain, path)).toMatchObject({ status: 404 });
  expect(await get(ports.plain, '/%')).toMatchObject({ status: 400 });
  expect(await get(ports.plain, '/images/a.qcow2', {}, 'PUT')).toMatchObject({ status: 405 });
});

it('serves the boot scripts, and the inspector script to machines that the server does not know', async () => {
  expect(await get(ports.plain, '/boot.ipxe')).toMatchObject({ status: 200, text: setup.startScript });
  expect(await get(ports.plain, '/inspector.ipxe')).toMatchObject({ status: 200, text: setup.inspectorScript });
  expect(await get(ports.plain, '/ipxe/52-54-00-00-00-01')).toMatchObject({ status: 200, text: 'answered' });
  expect(await get(ports.plain, '/ipxe/00-00-00-00-00-01')).toMatchObject({ status: 200, text: setup.inspectorScript });
  expect(received.map(({ url }) => url)).toEqual(['/ipxe/52-54-00-00-00-01', '/ipxe/00-00-00-00-00-01']);
});

it('authenticates a request before it forwards it, and does not forward the credentials', async () => {
  expect(await get(ports.api, '/v1/nodes')).toMatchObject({ status: 401 });
  expect(received).toEqual([]);
  const headers = { authorization: 'Basic right', 'x-openstack-ironic-api-version': '1.90', connection: 'x-hop', upgrade: 'h2c' };
  const answer = await get(ports.api, '/v1/nodes?a=%20b', headers, 'POST', '{"a": 1}');
  expect(answer).toMatchObject({ status: 202, text: 'answered', headers: { 'x-answer': 'yes' } });
  expect(received).toMatchObject([
    { method: 'POST', url: '/v1/nodes?a=%20b', body: '{"a": 1}', headers: { 'x-openstack-ironic-api-version': '1.90' } },
  ]);
  expect(received[0]!.headers).not.toHaveProperty('authorization');
  expect(received[0]!.headers).not.toHaveProperty('upgrade');
});

it('answers 503 while the server in the other container does not answer', async () => {
  expect(await get(withoutServer, '/ipxe/52-54-00-00-00-01')).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
  expect(warned).toEqual(['HTTP: the server in the other container does not answer']);
  expect(await get(withoutServer, '/boot.ipxe')).toMatchObject({ status: 200 });
});

it('names the client to the server, whatever the client says', async () => {
  const forged = { authorization: 'Basic right', 'x-forwarded-for': '203.0.113.1', forwarded: 'for=203.0.113.1' };
  await get(ports.api, '/v1/nodes', forged);
  await get(ports.plain, '/ipxe/52-54-00-00-00-01', forged);
  expect(received.map(({ from }) => from)).toEqual(['127.0.0.1', '127.0.0.1']);
});

it('tells a server on a port that there is a client, which then is unknown there', async () => {
  const target = createServer(({ headers }, response) => response.end(JSON.stringify(headers)));
  const api = await listen(target);
  const server = createServer(createHttpd({ ...setup, api }, 'api'));
  servers.push(target, server);
  const port = await listen(server);
  const asked = async (headers: object): Promise<unknown> =>
    (JSON.parse((await get(port, '/v1/nodes', { authorization: 'Basic right', ...headers })).text) as IncomingHttpHeaders)[
      'x-forwarded-for'
    ];
  expect(await asked({})).toBe('127.0.0.1');
  expect(await asked({ 'x-forwarded-for': '203.0.113.1' })).toBe('203.0.113.1, 127.0.0.1');
});

describe('WebSockets', () => {
  const opened: Socket[] = [];
  afterEach(() => opened.splice(0).forEach((socket) => socket.destroy()));
  /** Everything that the server sends up to a text. */
  async function open(path: string, authorization: string, until: RegExp, first = ''): Promise<{ socket: Socket; text: string }> {
    const socket = connect(ports.api!, '127.0.0.1');
    opened.push(socket);
    const lines = ['Host: a', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: k', `Authorization: ${authorization}`];
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${first}`);
    return { socket, text: await read(socket, until) };
  }
  async function read(socket: Socket, until: RegExp): Promise<string> {
    for (let text = ''; ;) {
      const [piece] = (await once(socket, 'data')) as [Buffer];
      text += piece.toString();
      if (until.test(text)) return text;
    }
  }

  it('joins the client and the server, which knows the client and not the password', async () => {
    const { socket, text } = await open('/ui/console/a', 'Basic right', /;FIRST$/, 'first');
    expect(text).toMatch(/^HTTP\/1\.1 101 [^]*X-Key: k\r\n\r\n127\.0\.0\.1 undefined;/);
    socket.write('more');
    expect(await read(socket, /MORE/)).toBe('MORE');
    socket.end();
    await once(socket, 'close');
  });
  it('refuses a wrong password itself', async () => {
    const { socket, text } = await open('/ui/console/a', 'Basic wrong', /\r\n\r\n/);
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    if (!socket.destroyed) await once(socket, 'close');
  });
  it('passes the refusal of the server on', async () => {
    const { socket, text } = await open('/ui/refused', 'Basic right', /\r\n\r\n/);
    expect(text).toMatch(/^HTTP\/1\.1 403 /);
    if (!socket.destroyed) await once(socket, 'close');
  });
});
