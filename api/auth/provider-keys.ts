/** A cache of the keys, or of the endpoints, of the OpenID provider. Requests with known keys never wait for the provider. */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import type { Log } from '../../model/log';
import { Unauthenticated } from '../http/errors';

/** Unknown keys cause one fetch in this time, however many tokens name them. */
const FETCH_EVERY_MS = 30_000;
/** Keys are fetched again after this time. */
const FRESH_MS = 600_000;
/** How long keys are used while the provider does not answer. */
const USABLE_MS = 86_400_000;

/** @throws Unauthenticated 503 when there are no usable keys */
interface ProviderKeys<Keys> {
  /** The keys in memory, or else fetched ones. */
  current(): Promise<Keys>;
  /** Keys that are newer than those of `current`; undefined: there are none. */
  newer(than: Keys): Promise<Keys | undefined>;
}
const unavailable = (): Unauthenticated => new Unauthenticated(503, 'The identity provider cannot be reached at the moment');

/** @param fetch answers the provider's keys, or throws */
export function createProviderKeys<Keys>(fetch: () => Promise<Keys>, clock: Clock, log: Log): ProviderKeys<Keys> {
  let latest: { readonly keys: Keys; readonly at: number } | undefined;
  let attemptedAt = -Infinity;
  let fetching: Promise<void> | undefined;
  let hasFailed = false;

  /** Never rejects: the outcome is in `latest` and `hasFailed`. */
  const refresh = async (): Promise<void> => {
    if (!fetching && clock.now() - attemptedAt < FETCH_EVERY_MS) return;
    attemptedAt = clock.now();
    fetching ??= fetch()
      .then(
        (keys) => {
          latest = { keys, at: clock.now() };
          hasFailed = false;
        },
        (error: unknown) => {
          hasFailed = true;
          log.warn('cannot fetch the keys of the identity provider', { error: reasonOf(error) });
        },
      )
      .finally(() => (fetching = undefined));
    await fetching;
  };
  const isYoungerThan = (age: number): boolean => latest !== undefined && clock.now() - latest.at < age;

  return {
    async current() {
      if (!isYoungerThan(USABLE_MS)) await refresh();
      else if (!isYoungerThan(FRESH_MS)) void refresh();
      if (!isYoungerThan(USABLE_MS)) throw unavailable();
      return latest!.keys;
    },
    async newer(than) {
      await refresh();
      if (latest && latest.keys !== than) return latest.keys;
      if (hasFailed) throw unavailable();
      return undefined;
    },
  };
}
