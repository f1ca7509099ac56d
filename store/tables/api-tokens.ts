/** The table `api_tokens`: tokens for callers of the API, by their hashes. */
import type { Knex } from 'knex';
import type { ApiTokenRecord } from '../../model/records';
import { batched } from '../sql/batch';
import { run } from '../sql/faults';
import { preparedOn } from '../sql/prepared';

export interface ApiTokens {
  /** False: a token of that name exists. */
  create(token: Omit<ApiTokenRecord, 'last_used_at'>, hash: string): Promise<boolean>;
  /** Sorted by name. */
  list(): Promise<readonly ApiTokenRecord[]>;
  /** Concurrent calls share one query. */
  find(hash: string): Promise<ApiTokenRecord | undefined>;
  /** Records the use of a token, unless a use within the last hour is recorded. */
  recordUse(hash: string, at: string): Promise<void>;
  /** False: there is no token of that name. */
  remove(name: string): Promise<boolean>;
}

const COLUMNS = ['name', 'user_name', 'roles', 'project', 'domain', 'system', 'created_at', 'expires_at', 'last_used_at'] as const;
const FIND = `SELECT hash, ${COLUMNS.join(', ')} FROM api_tokens WHERE hash = ANY($1)`;
const RECORD_USE = `
  UPDATE api_tokens SET last_used_at = $2 WHERE hash = $1
    AND (last_used_at IS NULL OR last_used_at <= $2::timestamptz - interval '1 hour')`;

export function apiTokensOn(db: Knex): ApiTokens {
  const prepared = preparedOn(db);
  const rows = () => db<ApiTokenRecord & { readonly hash: string }>('api_tokens');
  return {
    async create(token, hash) {
      const created = await run(
        db('api_tokens')
          .insert({ ...token, hash })
          .onConflict('name')
          .ignore()
          .returning('name'),
      );
      return created.length > 0;
    },
    list: () =>
      run(
        rows()
          .select(...COLUMNS)
          .orderBy('name'),
      ),
    find: batched(async (hashes) => {
      const found = await prepared<ApiTokenRecord & { readonly hash: string }>('api_tokens_find', FIND, [hashes]);
      const byHash = new Map(found.map(({ hash, ...token }) => [hash, token]));
      return hashes.map((hash) => byHash.get(hash));
    }),
    async recordUse(hash, at) {
      await prepared('api_tokens_record_use', RECORD_USE, [hash, at]);
    },
    remove: async (name) => (await run(rows().where({ name }).delete())) > 0,
  };
}
