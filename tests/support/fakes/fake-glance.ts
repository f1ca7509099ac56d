/** The part of the Image API v2 that snapshots and deployments use, with faults that a real Glance does not show on request. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface FakeImage {
  readonly fields: Record<string, unknown>;
  data: Buffer | undefined;
}
/** In place of an answer: a status, or `cut` after the first bytes of a body. */
type Fault = number | 'cut' | 'damaged' | undefined;
export interface FakeGlance {
  readonly url: string;
  readonly images: Map<string, FakeImage>;
  /** METHOD and path of each request. */
  readonly requests: string[];
  /** Asked at each request. */
  fault: (method: string, path: string) => Fault | Promise<Fault>;
  close(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export async function startFakeGlance(): Promise<FakeGlance> {
  const used = new Set<string>();
  const send = (response: ServerResponse, status: number, body?: unknown): ServerResponse =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(body === undefined ? '' : JSON.stringify(body));
  const create = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const fields = JSON.parse((await bodyOf(request)).toString()) as Record<string, unknown>;
    const id = String(fields['id']);
    // The id of an image that was deleted cannot be used again.
    if (used.has(id)) return send(response, 409);
    used.add(id);
    fake.images.set(id, { fields: { ...fields, status: 'queued', size: null }, data: undefined });
    return send(response, 201, fake.images.get(id)!.fields);
  };
  const put = async (request: IncomingMessage, response: ServerResponse, image: FakeImage, fault: Fault): Promise<unknown> => {
    if (image.fields['status'] !== 'queued') return send(response, 409);
    if (fault === 'cut') {
      image.fields['status'] = 'saving';
      await once(request, 'data');
      return request.destroy();
    }
    const bytes = await bodyOf(request);
    const stored = fault === 'damaged' ? Buffer.concat([bytes.subarray(1), Buffer.from('x')]) : bytes;
    image.data = stored;
    const hash = createHash('sha512').update(stored).digest('hex');
    const checksum = createHash('md5').update(stored).digest('hex');
    Object.assign(image.fields, { status: 'active', size: stored.length, os_hash_algo: 'sha512', os_hash_value: hash, checksum });
    return send(response, 204);
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const { method = '', url = '' } = request;
    fake.requests.push(`${method} ${url}`);
    const fault = await fake.fault(method, url);
    if (typeof fault === 'number') {
      request.resume();
      return send(response, fault, { message: 'as the test says' });
    }
    // What clients made with openstacksdk ask first.
    if (method === 'GET' && url === '/') {
      const links = [{ rel: 'self', href: `${fake.url}/v2/` }];
      return send(response, 300, { versions: [{ id: 'v2.9', status: 'CURRENT', links }] });
    }
    if (method === 'POST' && url === '/v2/images') return create(request, response);
    const [, id = '', file] = /^\/v2\/images\/([^/]+)(\/file)?$/.exec(url) ?? [];
    const image = fake.images.get(id);
    if (!image) return send(response, 404);
    if (file !== undefined && method === 'PUT') return put(request, response, image, fault);
    if (file !== undefined) {
      return response.writeHead(200, { 'content-length': String(image.data?.length ?? 0) }).end(image.data);
    }
    if (method !== 'DELETE') return send(response, 200, image.fields);
    fake.images.delete(id);
    return send(response, 204);
  };
  const server = createServer((request, response) => {
    // The client has closed the connection.
    answer(request, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake: FakeGlance = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    images: new Map(),
    requests: [],
    fault: () => undefined,
    close: async () => {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
  return fake;
}
