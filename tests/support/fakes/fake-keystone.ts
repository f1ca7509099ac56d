/**
 * The part of the Identity API v3 that validations need, for failures that a real Keystone does not show on request (tests/openstack has a
 * real one).
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Validation {
  readonly token: string;
  readonly query: string;
}
interface FakeReply {
  readonly status: number;
  readonly body: unknown;
}
export interface FakeKeystone {
  /** Without a version. */
  readonly url: string;
  /** Bodies of requests for a token. */
  readonly logins: unknown[];
  readonly validations: Validation[];
  /** Replaces the response to a login or a validation; undefined: the usual one. */
  reply: (request: IncomingMessage) => Promise<FakeReply | undefined>;
  /** Seconds that its own tokens live. */
  lifetime: number;
  close(): Promise<void>;
}

/** A token of a user in a project. */
export const tokenBody = (more: object = {}): { readonly token: object } => ({
  token: {
    expires_at: '2100-01-01T00:00:00.000000Z',
    user: { id: 'u1', name: 'user', domain: { id: 'default', name: 'Default' } },
    project: { id: 'p1', name: 'tenant', domain: { id: 'default', name: 'Default' } },
    roles: [{ id: 'r1', name: 'Member' }],
    ...more,
  },
});

/** @param tokens valid tokens of callers */
export async function startFakeKeystone(tokens: Readonly<Record<string, unknown>>): Promise<FakeKeystone> {
  let count = 0;
  let current = '';
  const send = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const replaced = await fake.reply(request);
    if (request.method === 'POST') fake.logins.push(JSON.parse(Buffer.concat(chunks).toString()));
    else fake.validations.push({ token: String(request.headers['x-subject-token']), query: request.url!.split('?')[1] ?? '' });
    if (replaced) {
      send(response, replaced.status, replaced.body);
      return;
    }
    if (request.method === 'POST') {
      const now = Date.now();
      const times = { issued_at: new Date(now).toISOString(), expires_at: new Date(now + fake.lifetime * 1000).toISOString() };
      const endpoints = [{ interface: 'internal', region: 'one', url: `${fake.url}/v3` }];
      const catalog = [{ type: 'identity', name: 'keystone', endpoints }];
      current = `own-${++count}`;
      send(response, 201, { token: { ...times, catalog } }, { 'x-subject-token': current });
      return;
    }
    if (request.headers['x-auth-token'] !== current) {
      send(response, 401, { error: { message: 'not this one' } });
      return;
    }
    const token = tokens[String(request.headers['x-subject-token'])];
    if (token === undefined) send(response, 404, { error: { message: 'Could not find token' } });
    else send(response, 200, token);
  };
  const server = createServer((request, response) => {
    // The client has closed the connection.
    answer(request, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake: FakeKeystone = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    logins: [],
    validations: [],
    reply: async () => undefined,
    lifetime: 3600,
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return fake;
}
