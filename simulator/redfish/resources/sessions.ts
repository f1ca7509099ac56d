/** SessionService (DSP0266 §13.3.4): sessions, and the authentication of a request. */
import type { IncomingMessage } from 'node:http';
import { refuseNew, text, integer, refusePatch } from '../protocol/checks';
import { accountFor, accountsOf, type Account } from './accounts';
import { refuse } from '../protocol/messages';
import { ROOT, collectionRoute, link, resource, type Route, type Service, type Session, type ResourceBody } from '../protocol/routes';

const PATH = '/SessionService/Sessions';
const MAX_SESSIONS = 64;

/** The account of a request, by a session's token or by basic authentication. Undefined: neither is valid. */
export function authenticate(service: Service, request: Pick<IncomingMessage, 'headers'>): Account | undefined {
  const token = request.headers['x-auth-token'];
  const found = typeof token === 'string' ? service.sessions.get(token) : undefined;
  if (found && service.clock.now() - found.used > service.settings.sessionSeconds * 1000) service.sessions.delete(found.token);
  else if (found) {
    found.used = service.clock.now();
    return accountsOf(service).find(({ name, enabled }) => name === found.user && enabled);
  }
  const basic = /^Basic (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (basic === undefined) return undefined;
  const [, name, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(basic, 'base64').toString()) ?? [];
  return accountFor(service, name, password);
}

const byId = (service: Service, id: string | undefined): Session | undefined =>
  [...service.sessions.values()].find((session) => session.id === id);
const show = ({ id, user }: Session): ResourceBody =>
  resource(`${PATH}/${id}`, 'Session', id, 'Session', { UserName: user, Password: null });
const serviceOf = ({ settings }: Service): ResourceBody =>
  resource('/SessionService', 'SessionService', 'SessionService', 'Sessions', {
    ServiceEnabled: true,
    SessionTimeout: settings.sessionSeconds,
    Sessions: link(PATH),
  });

export const SESSION_ROUTES: readonly Route[] = [
  {
    path: '/SessionService',
    get: ({ service }) => serviceOf(service),
    patch: ({ service }, body) => {
      const refused = refusePatch(body, { SessionTimeout: integer(30, 86_400) }, serviceOf(service));
      if (refused) return refused;
      service.settings.sessionSeconds = body['SessionTimeout'] as number;
      return undefined;
    },
  },
  {
    ...collectionRoute(PATH, 'Session', ({ service }) => [...service.sessions.values()].map(({ id }) => id)),
    open: true,
    post: ({ service }, body) => {
      const refused = refuseNew(body, { UserName: text, Password: text, Context: text }, ['UserName', 'Password']);
      if (refused) return refused;
      const { sessions, random, clock } = service;
      const account = accountFor(service, body['UserName'], body['Password']);
      if (!account) return refuse('NoValidSession');
      // A new session displaces the oldest, so that a client that never logs out does not lock out all others.
      if (sessions.size >= MAX_SESSIONS) sessions.delete(sessions.keys().next().value!);
      const [id, token] = [random(8).toString('hex'), random(16).toString('hex')];
      const session: Session = { id, token, user: account.name, used: clock.now() };
      sessions.set(token, session);
      return { status: 201, body: show(session), headers: { 'x-auth-token': token, location: `${ROOT}${PATH}/${id}` } };
    },
  },
  {
    path: `${PATH}/{session}`,
    needs: 'ConfigureSelf',
    get: ({ service, values: [id] }) => {
      const found = byId(service, id);
      return found && show(found);
    },
    delete: ({ service, values: [id] }) => {
      const found = byId(service, id);
      if (!found) return refuse('ResourceMissingAtURI', id!);
      service.sessions.delete(found.token);
      return undefined;
    },
  },
];
