/**
 * [DEFAULT]auth_strategy = http_basic: users and bcrypt digests in an htpasswd file. [DEFAULT]http_basic_roles_file has the roles of these
 * users. Without it, each of them may do everything.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Clock } from '../../model/clock';
import { Unauthenticated } from '../http/errors';
import { NOBODY } from '../../policy/caller';
import type { Strategy } from '../resource/handler';
import { createBcrypt, type Bcrypt } from './bcrypt';
import { isPublic } from './public-paths';
import { misspeltRoles } from '../../policy/implied-roles';
import { NO_ROLES, parseUserRoles } from './user-roles';
import { watchedFile } from '../../wire/watched-file';

const BCRYPT = /^\$2[yab]\$\d\d\$[./A-Za-z0-9]{53}$/;

class HtpasswdError extends Error {}

/** @internal @throws HtpasswdError for a digest that is not bcrypt; the message does not contain the digest */
export function parseHtpasswd(text: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const line of text.split('\n').map((one) => one.trim())) {
    const colon = line.indexOf(':');
    if (colon < 0) continue;
    const [user, digest] = [line.slice(0, colon), line.slice(colon + 1)];
    if (!BCRYPT.test(digest)) throw new HtpasswdError(`Only bcrypt digested passwords are supported for ${user}`);
    // If a user has several lines, the first one counts.
    if (!users.has(user)) users.set(user, digest);
  }
  return users;
}

interface Login {
  readonly user: string;
  readonly password: string;
  readonly source: string;
}
/** @throws Unauthenticated */
function credentialsOf(header: string | undefined): Omit<Login, 'source'> {
  if (header === undefined) throw new Unauthenticated(401, 'Authorization required');
  const [, scheme, token] = /^(\S+)\s+(\S.*)$/.exec(header.trim()) ?? [];
  if (scheme === undefined || token === undefined) throw new Unauthenticated(400, 'Could not parse Authorization header');
  if (scheme.toLowerCase() !== 'basic') throw new Unauthenticated(400, `Unsupported authorization type "${scheme}"`);
  const undecodable = (): Unauthenticated => new Unauthenticated(400, 'Could not decode authorization token');
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(token)) throw undecodable();
  const pair = Buffer.from(token, 'base64');
  const colon = pair.indexOf(':');
  if (colon < 0) throw undecodable();
  try {
    const user = new TextDecoder('utf-8', { fatal: true }).decode(pair.subarray(0, colon));
    return { user, password: pair.subarray(colon + 1).toString('utf8') };
  } catch {
    throw undecodable();
  }
}

/** Time to live of a successful check. bcrypt is slow by design, and clients send many requests. */
const CACHE_TTL_MS = 60_000;
/** Entries of the cache. An expired entry stays: the login was right once, so its check goes before those of other logins. */
const CACHE_SIZE = 1024;

/** The largest file, in bytes: room for tens of thousands of users. */
const MAX_BYTES = 4 * 2 ** 20;
/** Reads the file that an option names. @throws HtpasswdError, with a line for the operator, when the file cannot be used */
function usableFile<T>(option: string, path: string, parse: (text: string) => T): () => T {
  const file = watchedFile(path, MAX_BYTES, parse);
  try {
    file();
  } catch (error) {
    throw new HtpasswdError(`[DEFAULT]${option}: cannot use ${path}: ${reasonOf(error)}`);
  }
  return file;
}

interface UserFiles {
  /** The htpasswd file. */
  readonly users: string;
  /** Null: every user may do everything. */
  readonly roles: string | null;
}
/** @throws HtpasswdError, with a line for the operator, when a file cannot be used */
export function httpBasic(files: UserFiles, log: Log, clock: Clock, bcrypt: Bcrypt = createBcrypt()): Strategy {
  const users = usableFile('http_basic_auth_user_file', files.users, parseHtpasswd);
  const roles = files.roles === null ? undefined : usableFile('http_basic_roles_file', files.roles, parseUserRoles);
  const warnOf = (user: string, warning: string): void => log.warn(`[DEFAULT]http_basic_roles_file: [${user}]: ${warning}`);
  for (const [user, granted] of roles?.() ?? []) {
    if (!users().has(user)) warnOf(user, `${files.users} has no such user`);
    for (const warning of misspeltRoles(granted.roles)) warnOf(user, warning);
  }
  let logged: unknown;
  /** A file that cannot be used now gives nobody access. */
  const current = <T>(file: () => T, what: string, sentence: string): T => {
    try {
      return file();
    } catch (error) {
      // Logged once for each version of the file: the same version throws the same error object.
      if (error !== logged) log.error(`cannot read the ${what}`, { error: reasonOf(error) });
      logged = error;
      throw new Unauthenticated(503, sentence);
    }
  };
  /**
   * Successful checks and when they expire. The key is an HMAC, so that no password is stored. The HMAC covers the digest, so that a
   * changed digest in the file invalidates the entry.
   */
  const known = new LRUCache<string, number>({ max: CACHE_SIZE });
  const key = randomBytes(32);

  /** Checks in progress. Concurrent requests with the same login share one check. */
  const checking = new Map<string, Promise<boolean>>();

  async function check(fingerprint: string, login: Login, digest: string | undefined, other: string): Promise<boolean> {
    const { password, source } = login;
    const right = (await bcrypt(password, digest ?? other, { source, wasRight: known.has(fingerprint) })) && digest !== undefined;
    known.delete(fingerprint);
    if (!right) return false;
    known.set(fingerprint, clock.now() + CACHE_TTL_MS);
    return true;
  }
  async function isRight(login: Login, all: ReadonlyMap<string, string>): Promise<boolean> {
    const { user, password } = login;
    const digest = all.get(user);
    const fingerprint = createHmac('sha256', key)
      .update(JSON.stringify([user, digest, password]))
      .digest('base64');
    const until = known.get(fingerprint);
    if (until !== undefined && until > clock.now()) return true;
    // A login of an unknown user is checked against another user's digest, so that the time does not reveal which users exist.
    const other = all.values().next().value;
    if (other === undefined) return false;
    const running = checking.get(fingerprint);
    if (running) return running;
    const result = check(fingerprint, login, digest, other).finally(() => checking.delete(fingerprint));
    checking.set(fingerprint, result);
    return result;
  }

  const exempt = roles === undefined;
  return {
    identify: async (headers, path, method, source) => {
      if (isPublic(path, method)) return exempt ? { ...NOBODY, exempt } : NOBODY;
      const { user, password } = credentialsOf(headers.authorization);
      const all = current(users, 'users', 'Problem reading auth user file');
      if (!(await isRight({ user, password, source }, all)))
        throw new Unauthenticated(401, 'Incorrect username or password', all.has(user) ? user : undefined);
      const granted = roles && current(roles, 'roles of users', 'Problem reading the file of roles').get(user);
      return { ...NO_ROLES, ...granted, user, userName: user, exempt };
    },
  };
}
