/** Reads of a Redfish service that change nothing: GET only, each resource once, within limits of requests, bytes and time. */
import {
  RedfishError,
  hasMessage,
  isStatus,
  linkOf,
  member,
  rootPath,
  type SendRedfishRequest,
  type RedfishAnswer,
  type RedfishPool,
  type RedfishTarget,
} from '../../wire/redfish';
import { ProbeEnd, unknown, wrong, type Outcome } from './check';

/** Bytes of all answers together. */
const MAX_BYTES = 64 << 20;
/** Milliseconds for one request. */
const REQUEST_MS = 15_000;
/** After this many requests without an answer, the service counts as gone. */
const MAX_SILENT = 3;

export interface ProbedService {
  /** @throws RedfishError; Error for another method than GET */
  readonly ask: SendRedfishRequest;
  readonly target: RedfishTarget;
  /** How the login was made. */
  readonly login: 'session' | 'basic' | 'none';
}
interface ServiceBounds {
  readonly signal: AbortSignal;
  /** Most requests. */
  readonly requests: number;
}

const refused = (target: RedfishTarget, error: Error): ProbeEnd =>
  new ProbeEnd(
    wrong(
      target.username === undefined
        ? `The service wants a login: ${error.message}`
        : `The service refused the login, which was tried once: ${error.message}`,
      'Check the account and its password. Another try with a wrong one may lock the account.',
    ),
  );
/** Reasons why no request can succeed. */
export function connectionEnd(error: unknown): ProbeEnd | undefined {
  if (!(error instanceof RedfishError)) return undefined;
  if (error.kind === 'untrusted')
    return new ProbeEnd(wrong(error.message, 'Name its authority by --ca FILE, or leave the certificate unchecked by --insecure.'));
  if (error.kind === 'unreachable' || error.kind === 'interrupted')
    return new ProbeEnd(wrong(error.message, 'Check the address, the port and the network.'));
  return undefined;
}
/** What a failed read means for a check. */
export function redfishOutcome(error: unknown): Outcome | undefined {
  if (!(error instanceof RedfishError)) return undefined;
  if (hasMessage(error, 'PasswordChangeRequired'))
    return wrong(error.message, 'The BMC wants a new password of this account first. Set one by its own page.');
  if (error.status === 403) return wrong(error.message, 'Give the account the role of an administrator.');
  return unknown(error.message);
}

/** Some services answer with the page of their login when a session has ended. */
const isPage = (error: unknown): boolean =>
  error instanceof RedfishError && error.kind === 'protocol' && /not valid JSON/.test(error.message);
/** A function that requests each resource once. @param basic used from the first session on that ends in a page */
function boundedReads(
  pool: RedfishPool,
  target: RedfishTarget,
  { signal, requests }: ServiceBounds,
  basic: RedfishTarget | undefined,
): SendRedfishRequest {
  let used = target;
  const answers = new Map<string, Promise<RedfishAnswer>>();
  let bytes = 0;
  let silent = 0;
  const read = async (path: string): Promise<RedfishAnswer> => {
    try {
      const answer = await pool.request(used, 'GET', path, { timeoutMs: REQUEST_MS, signal }).catch((error: unknown) => {
        if (!basic || !isPage(error)) throw error;
        used = basic;
        return pool.request(basic, 'GET', path, { timeoutMs: REQUEST_MS, signal });
      });
      // As it is in memory: a packed body is larger than it was on the network.
      bytes += JSON.stringify(answer.body ?? null).length;
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      // A session that ends at once would be opened again for each resource.
      if (isStatus(error, 401)) throw refused(target, error);
      const end = connectionEnd(error);
      if (end && ++silent >= MAX_SILENT) throw end;
      throw error;
    }
  };
  return (method, path) => {
    if (method !== 'GET') return Promise.reject(new Error(`a probe sends no ${method}`));
    const known = answers.get(path);
    if (known) return known;
    if (answers.size >= requests) return Promise.reject(new RedfishError('protocol', `more than ${requests} resources are not read`));
    if (bytes > MAX_BYTES) return Promise.reject(new RedfishError('protocol', `more than ${MAX_BYTES} bytes are not read`));
    const answer = read(path);
    answers.set(path, answer);
    return answer;
  };
}

/** Whether the root links to sessions. Without a link their place would be a guess, and a wrong one looks like a refused login. */
async function offersSessions(pool: RedfishPool, target: RedfishTarget, { signal }: ServiceBounds): Promise<boolean> {
  const open = { ...target, username: undefined, password: undefined };
  const root = await pool.request(open, 'GET', rootPath(target), { timeoutMs: REQUEST_MS, signal }).catch((error: unknown) => {
    if (isStatus(error)) return undefined;
    throw error;
  });
  return root === undefined || linkOf(member(root.body, 'Links', 'Sessions')) !== undefined;
}
/** The answers that mean that sessions are not offered there. Any other may be about the password, which is not tried twice then. */
const NO_SESSIONS = [404, 405, 501];
/**
 * Logs in, with one attempt.
 * @param target with `auto`, basic authentication is used where the service has no sessions
 * @throws ProbeEnd
 */
export async function openService(pool: RedfishPool, target: RedfishTarget, bounds: ServiceBounds): Promise<ProbedService> {
  const attempt = async (authType: 'basic' | 'session'): Promise<ProbedService> => {
    const used = { ...target, authType };
    const basic = { ...target, authType: 'basic' } as const;
    const ask = boundedReads(pool, used, bounds, target.authType === 'auto' ? basic : undefined);
    await ask('GET', rootPath(used));
    return { ask, target: used, login: target.username === undefined ? 'none' : authType };
  };
  try {
    if (target.authType === 'basic' || target.username === undefined) return await attempt('basic');
    if (target.authType === 'auto' && !(await offersSessions(pool, target, bounds))) return await attempt('basic');
    return await attempt('session').catch((error: unknown) => {
      const hasNone = isStatus(error, ...NO_SESSIONS) || (error instanceof RedfishError && error.kind === 'protocol');
      if (target.authType === 'session' || !hasNone) throw error;
      return attempt('basic');
    });
  } catch (error) {
    bounds.signal.throwIfAborted();
    const end = connectionEnd(error);
    if (end) throw end;
    if (isStatus(error, 400, 401, 403)) throw refused(target, error);
    if (error instanceof RedfishError) throw new ProbeEnd(wrong(error.message, 'Check that a Redfish service is at this address.'));
    throw error;
  }
}
