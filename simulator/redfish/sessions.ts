/** SessionService (DSP0266 §13.3.4): logins, and who a request comes from. */
import type { IncomingMessage } from 'node:http';
import { refuseNew, text, whole, refusePatch } from './checks';
import { refuse } from './messages';
import { ROOT, collectionRow, link, resource, type Row, type Service, type Session, type Shown } from './rows';

const PATH = '/SessionService/Sessions';
const MAX_SESSIONS = 64;

/** Whether who asks is known: by a session's token or by name and password. */
export function isKnown(service: Service, request: IncomingMessage): boolean {
  const token = request.headers['x-auth-token'];
  const found = typeof token === 'string' ? service.sessions.get(token) : undefined;
  if (found && service.clock.now() - found.used > service.settings.sessionSeconds * 1000) service.sessions.delete(found.token);
  else if (found) {
    found.used = service.clock.now();
    return true;
  }
  const basic = /^Basic (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  return basic !== undefined && Buffer.from(basic, 'base64').toString() === `${service.username}:${service.password}`;
}

const byId = (service: Service, id: string | undefined): Session | undefined =>
  [...service.sessions.values()].find((session) => session.id === id);
const show = (service: Service, id: string): Shown => resource(`${PATH}/${id}`, 'Session', id, 'Session', { UserName: service.username });
const serviceOf = ({ settings }: Service): Shown =>
  resource('/SessionService', 'SessionService', 'SessionService', 'Sessions', {
    ServiceEnabled: true,
    SessionTimeout: settings.sessionSeconds,
    Sessions: link(PATH),
  });

export const SESSION_ROWS: readonly Row[] = [
  {
    path: '/SessionService',
    get: ({ service }) => serviceOf(service),
    patch: ({ service }, body) => {
      const refused = refusePatch(body, { SessionTimeout: whole(30, 86_400) }, serviceOf(service));
      if (refused) return refused;
      service.settings.sessionSeconds = body['SessionTimeout'] as number;
      return undefined;
    },
  },
  {
    ...collectionRow(PATH, 'Session', ({ service }) => [...service.sessions.values()].map(({ id }) => id)),
    open: true,
    post: ({ service }, body) => {
      const refused = refuseNew(body, { UserName: text, Password: text, Context: text }, ['UserName', 'Password']);
      if (refused) return refused;
      const { sessions, random, clock } = service;
      if (body['UserName'] !== service.username || body['Password'] !== service.password) return refuse('NoValidSession');
      // The oldest goes, so that a client that forgets its sessions does not lock everyone out.
      if (sessions.size >= MAX_SESSIONS) sessions.delete(sessions.keys().next().value!);
      const [id, token] = [random(8).toString('hex'), random(16).toString('hex')];
      sessions.set(token, { id, token, used: clock.now() });
      return { status: 201, body: show(service, id), headers: { 'x-auth-token': token, location: `${ROOT}${PATH}/${id}` } };
    },
  },
  {
    path: `${PATH}/{session}`,
    get: ({ service, values: [id] }) => (byId(service, id) ? show(service, id!) : undefined),
    delete: ({ service, values: [id] }) => {
      const found = byId(service, id);
      if (!found) return refuse('ResourceMissingAtURI', id!);
      service.sessions.delete(found.token);
      return undefined;
    },
  },
];
