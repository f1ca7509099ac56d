/** The log-in of the page with a password of Keystone. The session has the token that Keystone issues, and ends with it. */
import type { Options } from '../../config/options';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { createPasswordLogin } from '../../wire/keystone/password';
import { keystoneSettings } from '../../wire/keystone/settings';
import { Unauthenticated } from '../http/errors';
import { createFairTurns } from '../http/fair-turns';
import type { Login } from './sessions';

const SECTION = 'keystone_authtoken';
const RUNNING = { inAll: 16, ofSource: 4 };
const WAITING = { inAll: 256, ofSource: 32 };
const unavailable = (): Unauthenticated => new Unauthenticated(503, 'The Keystone service is temporarily unavailable.');

interface LoginParts {
  readonly options: Options;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborted when the server stops. */
  readonly signal: AbortSignal;
}
interface KeystoneUser {
  readonly user: string;
  readonly password: string;
  /** The name of the domain of the user and of the project. */
  readonly domain: string;
  /** Null: the scope is the system. */
  readonly project: string | null;
}
/** @throws Unauthenticated */
type KeystoneLogin = (user: KeystoneUser, source: string) => Promise<Login>;

export function createKeystoneLogin({ options, clock, log, signal }: LoginParts): KeystoneLogin {
  const timeoutMs = options['keystone_authtoken.http_connect_timeout'] * 1000;
  const logIn = createPasswordLogin(keystoneSettings(options, SECTION), {
    clock,
    signal,
    retries: { attemptTimeoutMs: timeoutMs, timeoutMs, connect: { retries: 0 }, status: { retries: 0 }, statuses: [] },
  });
  const turn = createFairTurns({ running: RUNNING, waiting: WAITING, refusal: unavailable });
  return async ({ user, password, domain: name, project }, source) => {
    const domain = { name };
    const scope = project === null ? { system: true as const } : { project: { name: project, domain } };
    const token = await turn(source, () => logIn({ user: { name: user, domain }, password, scope })).catch((error: unknown) => {
      if (error instanceof Unauthenticated) throw error;
      log.error('cannot log in at Keystone', { error: reasonOf(error) });
      throw unavailable();
    });
    if (token === undefined) throw new Unauthenticated(401, 'Keystone refuses this user, password, domain or project.');
    return { credentials: { 'x-auth-token': token } };
  };
}
