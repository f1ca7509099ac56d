/** The part of Keystone that validates tokens, with a token for each persona. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PERSONAS, type Persona } from './personas';

const DOMAIN = { id: 'default', name: 'Default' };
const day = (offset: number): string => new Date(Date.now() + offset * 86_400_000).toISOString().replace('Z', '000Z');

/** The body of a validated token. Its ID is the name of the persona. */
const tokenOf = ({ name, roles, project }: Persona, url: string): object => ({
  token: {
    methods: ['password'],
    user: { id: name, name, domain: DOMAIN, password_expires_at: null },
    roles: roles.map((role) => ({ id: role, name: role })),
    ...(project === undefined
      ? { system: { all: true } }
      : { project: { id: project, name: project.replace('project-', ''), domain: DOMAIN } }),
    issued_at: day(0),
    expires_at: day(1),
    audit_ids: [name],
    catalog: [
      {
        type: 'identity',
        id: 'identity',
        name: 'keystone',
        endpoints: ['public', 'internal', 'admin'].map((kind) => ({ id: kind, interface: kind, region: 'r', region_id: 'r', url })),
      },
    ],
  },
});
/** The service validates the tokens of others with a token of its own. */
const OWN: Persona = { name: 'validator', roles: ['admin'], project: 'project-validator' };

export async function startKeystone(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v3`;
    const answer = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    request.resume();
    request.on('end', () => {
      const path = request.url!.split('?')[0]!.replace(/\/$/, '');
      if (path === '/v3')
        answer(200, { version: { id: 'v3.14', status: 'stable', updated: '2020-04-07T00:00:00Z', links: [{ rel: 'self', href: url }] } });
      else if (path === '/v3/auth/tokens' && request.method === 'POST') answer(201, tokenOf(OWN, url), { 'x-subject-token': OWN.name });
      else if (path === '/v3/auth/tokens') {
        const persona = PERSONAS.find(({ name }) => name === request.headers['x-subject-token']);
        if (persona) answer(200, tokenOf(persona, url), { 'x-subject-token': persona.name });
        else answer(404, { error: { code: 404, message: 'unknown token', title: 'Not Found' } });
      } else answer(404, {});
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v3`;
  return {
    url,
    stop: () =>
      new Promise((closed) => {
        server.closeAllConnections();
        server.close(() => closed());
      }),
  };
}
