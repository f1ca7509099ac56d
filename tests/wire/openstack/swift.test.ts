/** Requests to Swift: their paths and headers, the bounds of answers, and temporary URLs. */
import { Readable } from 'node:stream';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { objectTempUrl, putObject, swiftContainer, temporaryUrlKey } from '../../../wire/openstack/swift';
import type { ServiceClient } from '../../../wire/keystone/services';
import { servicesOf } from '../../support/services';

interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}
const requests: { readonly line: string; readonly headers: IncomingMessage['headers']; readonly body: string }[] = [];
let reply: (line: string) => Reply;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => void chunks.push(chunk));
  request.on('end', () => {
    const line = `${request.method} ${request.url}`;
    requests.push({ line, headers: request.headers, body: Buffer.concat(chunks).toString() });
    const { status, headers, body } = reply(line);
    response.writeHead(status, headers).end(body);
  });
});
let url: string;
let swift: ServiceClient;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  swift = servicesOf({ 'swift.auth_type': 'none', 'swift.endpoint_override': `${url}/v1/AUTH_p` }).swift;
});
beforeEach(() => {
  requests.length = 0;
  reply = () => ({ status: 201 });
});
afterAll(async () => {
  await swift.close();
  server.close();
  server.closeAllConnections();
});

const call = () => ({ signal: new AbortController().signal });
const lines = (): readonly string[] => requests.map(({ line }) => line);

it.each([
  ['c', 'o', '/v1/AUTH_p/c', '/v1/AUTH_p/c/o'],
  ['a container', 'a/b?c#d', '/v1/AUTH_p/a%20container', '/v1/AUTH_p/a%20container/a%2Fb%3Fc%23d'],
  ['ö', '../x', '/v1/AUTH_p/%C3%B6', '/v1/AUTH_p/%C3%B6/..%2Fx'],
])('putObject in container %j with the name %j creates the container first', async (container, name, containerPath, path) => {
  await putObject(swift, { container, name, data: Buffer.from('data') }, call());
  expect(lines()).toEqual([`PUT ${containerPath}`, `PUT ${path}`]);
  expect(requests[1]).toMatchObject({ body: 'data', headers: { 'content-type': 'application/octet-stream' } });
  expect(requests[1]!.headers['x-delete-after']).toBeUndefined();
});

it('putObject sets a time to live', async () => {
  await putObject(swift, { container: 'c', name: 'o', data: Buffer.from(''), secondsToLive: 60 }, call());
  expect(requests[1]!.headers['x-delete-after']).toBe('60');
});

it('putObject does not send the object if the container cannot be created', async () => {
  reply = () => ({ status: 403 });
  await expect(putObject(swift, { container: 'c', name: 'o', data: Buffer.from('') }, call())).rejects.toMatchObject({ status: 403 });
  expect(lines()).toEqual(['PUT /v1/AUTH_p/c']);
});

it('putObject opens the data only after the container exists, and closes it even after a failure', async () => {
  const opened: Readable[] = [];
  const open = async () => {
    const body = Readable.from([Buffer.from('data')]);
    opened.push(body);
    return { body, size: 4 };
  };
  await putObject(swift, { container: 'c', name: 'o', data: open }, call());
  expect(requests[1]).toMatchObject({ body: 'data', headers: { 'content-length': '4' } });
  reply = (line) => ({ status: line.endsWith('/o') ? 507 : 201 });
  await expect(putObject(swift, { container: 'c', name: 'o', data: open }, call())).rejects.toThrow('507');
  reply = () => ({ status: 403 });
  await expect(putObject(swift, { container: 'c', name: 'o', data: open }, call())).rejects.toMatchObject({ status: 403 });
  expect(opened.map(({ destroyed }) => destroyed)).toEqual([true, true]);
});

describe('swiftContainer', () => {
  it('get returns the object, or undefined if it does not exist', async () => {
    reply = (line) => (line.endsWith('/there') ? { status: 200, body: 'data' } : { status: 404, body: 'no' });
    const container = swiftContainer(swift, 'c');
    expect((await container.get('there'))?.toString()).toBe('data');
    expect(await container.get('away')).toBeUndefined();
  });
  it('get rejects an object larger than the limit', async () => {
    const piece = Buffer.alloc(1 << 20);
    reply = () => ({ status: 200, body: Buffer.concat(Array.from({ length: 65 }, () => piece)) });
    await expect(swiftContainer(swift, 'c').get('large')).rejects.toThrow(`the object is larger than ${64 << 20} bytes`);
  });
  it.each([204, 404])('remove succeeds with status %i', async (status) => {
    reply = () => ({ status });
    await swiftContainer(swift, 'c').remove('o');
    expect(lines()).toEqual(['DELETE /v1/AUTH_p/c/o']);
  });
  it.each(['get', 'remove'] as const)('%s fails with status 503', async (operation) => {
    reply = () => ({ status: 503 });
    await expect(swiftContainer(swift, 'c')[operation]('o')).rejects.toMatchObject({ kind: 'failing', status: 503 });
  });
});

describe('temporary URLs', () => {
  it.each([
    [{ 'x-account-meta-temp-url-key': 'a', 'x-account-meta-temp-url-key-2': 'b' }, 'a'],
    [{ 'x-account-meta-temp-url-key-2': 'b' }, 'b'],
    [{ 'x-account-meta-temp-url-key': '', 'x-account-meta-temp-url-key-2': 'b' }, 'b'],
    [{}, undefined],
  ])('temporaryUrlKey of an account with %j is %j', async (headers, key) => {
    reply = () => ({ status: 204, headers });
    expect(await temporaryUrlKey(swift, call())).toBe(key);
    expect(lines()).toEqual(['HEAD /v1/AUTH_p']);
  });

  it('objectTempUrl signs the path of the object including the account', async () => {
    reply = () => ({ status: 204, headers: { 'x-account-meta-temp-url-key': 'k' } });
    expect(await objectTempUrl(swift, { container: 'c', name: 'an object', expires: 1_800_000_000 }, call())).toMatch(
      new RegExp(`^${url}/v1/AUTH_p/c/an%20object\\?temp_url_sig=[\\da-f]{64}&temp_url_expires=1800000000$`),
    );
    reply = () => ({ status: 204 });
    expect(await objectTempUrl(swift, { container: 'c', name: 'o', expires: 1 }, call())).toBeUndefined();
  });
});
