/** Validates tokens at Keystone: each once in [keystone_authtoken]token_cache_time, and few at the same time. */
import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import type { Metrics } from '../../model/metrics';
import { KeystoneError } from '../../wire/keystone/session';
import type { TokenContents } from '../../wire/keystone/tokens';
import { Unauthenticated } from '../http/errors';
import { createFairTurns } from '../http/fair-turns';

interface TokenUse {
  readonly source: string;
  /** A token that has expired is valid too. */
  readonly allowExpired: boolean;
}
interface ValidatedTokens<Contents> {
  /**
   * @returns undefined: the token is not valid
   * @throws Unauthenticated when Keystone cannot be asked
   */
  (token: string, use: TokenUse): Promise<Contents | undefined>;
}
interface Parts<Contents> {
  /** Asks Keystone. Throws if Keystone does not answer whether the token is valid. */
  readonly validate: (token: string, allowExpired: boolean) => Promise<Contents | undefined>;
  readonly cacheMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Real tokens have some hundred characters. Other texts reach neither the cache nor Keystone, whose web server may refuse long headers. */
const TOKEN = /^[\x21-\x7e]{1,2048}$/;
/** Entries of each cache: of valid tokens, of rejected tokens, of failures. */
const CACHE_SIZE = 4096;
/** How long a rejection is cached. Short, because a token that one process of Keystone cannot verify yet may be valid soon. */
const REJECTED_MS = 10_000;
/** After a failure, every validation fails at once for this time. If the token may have caused the failure, only its own validations do. */
const PAUSE_MS = 1000;
const RUNNING = { inAll: 16, ofSource: 8 };
const WAITING = { inAll: 512, ofSource: 128 };

const UNAVAILABLE = 'The Keystone service is temporarily unavailable.';
const unavailable = (): Unauthenticated =>
  new Unauthenticated(503, UNAVAILABLE, undefined, {
    body: {
      message: `The server is currently unavailable. Please try again at a later time.<br /><br />\n${UNAVAILABLE}\n\n`,
      code: '503 Service Unavailable',
      title: 'Service Unavailable',
    },
  });

export function createValidatedTokens<Contents extends Pick<TokenContents, 'expiresAt'>>(
  parts: Parts<Contents>,
): ValidatedTokens<Contents> {
  const { validate, cacheMs, clock, log, metrics } = parts;
  /** An expired entry stays: it shows that the token was valid, so that its validation goes before those of unknown tokens. */
  const valid = new LRUCache<string, { readonly contents: Contents; readonly until: number }>({ max: CACHE_SIZE });
  const rejected = new LRUCache<string, number>({ max: CACHE_SIZE });
  const failed = new LRUCache<string, number>({ max: CACHE_SIZE });
  const running = new Map<string, Promise<Contents | undefined>>();
  const turn = createFairTurns({ running: RUNNING, waiting: WAITING, refusal: unavailable });
  /** Keys are HMACs, so that no token is stored. */
  const secret = randomBytes(32);
  let pausedUntil = -Infinity;
  /** The log has at most one line about failures in PAUSE_MS. */
  let loggedUntil = -Infinity;

  async function ask(token: string, useKey: string, allowExpired: boolean): Promise<Contents | undefined> {
    if (pausedUntil > clock.now()) throw unavailable();
    const took = metrics.timer();
    let outcome = 'failed';
    try {
      const contents = await validate(token, allowExpired);
      outcome = contents ? 'valid' : 'rejected';
      return contents;
    } catch (error) {
      const until = clock.now() + PAUSE_MS;
      if (error instanceof KeystoneError && error.kind === 'failing') failed.set(useKey, until);
      else pausedUntil = until;
      if (loggedUntil <= clock.now()) {
        loggedUntil = until;
        log.error('cannot validate tokens', { error: reasonOf(error) });
      }
      throw unavailable();
    } finally {
      metrics.observe('bloomery_token_validation_duration_seconds', { outcome }, took());
    }
  }
  async function validated(token: string, key: string, { source, allowExpired }: TokenUse): Promise<Contents | undefined> {
    const useKey = keyOfUse(key, allowExpired);
    const contents = await turn(source, () => ask(token, useKey, allowExpired), valid.has(key));
    if (!contents) {
      valid.delete(key);
      rejected.set(useKey, clock.now() + REJECTED_MS);
    } else if (cacheMs > 0) valid.set(key, { contents, until: clock.now() + cacheMs });
    return contents;
  }
  /** The key of a result that depends on `allowExpired`: Keystone's answer differs for a token that has expired. */
  const keyOfUse = (key: string, allowExpired: boolean): string => (allowExpired ? `${key} expired` : key);

  return async (given, use) => {
    const token = given.trim();
    if (!TOKEN.test(token)) return undefined;
    const usable = (contents: Contents | undefined): Contents | undefined =>
      contents && (use.allowExpired || contents.expiresAt > clock.now()) ? contents : undefined;
    const key = createHmac('sha256', secret).update(token).digest('base64');
    const entry = valid.get(key);
    if (entry && entry.until > clock.now()) return usable(entry.contents);
    const useKey = keyOfUse(key, use.allowExpired);
    if ((rejected.get(useKey) ?? -Infinity) > clock.now()) return undefined;
    if ((failed.get(useKey) ?? -Infinity) > clock.now()) throw unavailable();
    let validation = running.get(useKey);
    if (!validation) {
      validation = validated(token, key, use).finally(() => running.delete(useKey));
      running.set(useKey, validation);
    }
    return usable(await validation);
  };
}
