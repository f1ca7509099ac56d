/** Tokens of `bloomery token`. */
import { LRUCache } from 'lru-cache';
import { apiTokenHash, API_TOKEN_KEY, API_TOKEN_PREFIX, isApiToken } from '../../policy/api-tokens';
import type { ApiTokenRecord } from '../../model/records';
import { timestamp, type Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { NOBODY } from '../../policy/caller';
import type { Store } from '../../store/store';
import { invalidToken, type TokenKind } from './accept-tokens';

/** How long an answer of the database is cached. A revoked token may be accepted during this time. */
const CACHE_TTL_MS = 3000;
const CACHE_SIZE = 4096;
/** The database also records at most one use of a token in an hour. */
const USE_EVERY_MS = 3_600_000;

interface ApiTokenParts {
  readonly store: Pick<Store, 'apiTokens' | 'secrets'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (bytes: number) => Buffer;
}
export function apiTokens({ store, clock, log, random }: ApiTokenParts): TokenKind {
  /** The answers of the database and when they expire. */
  const known = new LRUCache<string, { readonly record: ApiTokenRecord | undefined; readonly until: number }>({ max: CACHE_SIZE });
  let key: Promise<string> | undefined;
  const currentKey = (): Promise<string> => {
    key ??= store.secrets
      .shared(API_TOKEN_KEY, () => random(32).toString('hex'))
      .catch((error: unknown) => {
        key = undefined;
        throw error;
      });
    return key;
  };

  async function find(token: string): Promise<ApiTokenRecord | undefined> {
    const hash = apiTokenHash(token);
    const now = clock.now();
    const cached = known.get(hash);
    if (cached && cached.until > now) return cached.record;
    if (!isApiToken(token, await currentKey())) return undefined;
    const record = await store.apiTokens.find(hash);
    known.set(hash, { record, until: now + CACHE_TTL_MS });
    if (record && isLive(record) && now - Date.parse(record.last_used_at ?? '1970-01-01') >= USE_EVERY_MS)
      store.apiTokens
        .recordUse(hash, timestamp(now))
        .catch((error: unknown) => log.warn('the use of a token is not recorded', { token: record.name, error: reasonOf(error) }));
    return record;
  }
  const isLive = ({ expires_at: end }: ApiTokenRecord): boolean => end === null || Date.parse(end) > clock.now();

  return {
    matches: ({ token }) => token.startsWith(API_TOKEN_PREFIX),
    async identify(token) {
      const record = await find(token);
      if (!record || !isLive(record)) throw invalidToken();
      const { user_name: user, roles, project, domain, system } = record;
      return { ...NOBODY, user, userName: user, roles, project, domain, system, tokenName: record.name };
    },
  };
}
