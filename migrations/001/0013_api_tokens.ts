import type { Knex } from 'knex';

/** Tokens for callers of the API. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE api_tokens (
      name text COLLATE "C" CONSTRAINT api_tokens_pkey PRIMARY KEY,
      hash text COLLATE "C" NOT NULL CONSTRAINT api_tokens_hash_unique UNIQUE,
      user_name text COLLATE "C" NOT NULL,
      roles text[] NOT NULL,
      project text COLLATE "C",
      domain text COLLATE "C",
      system boolean NOT NULL,
      created_at timestamptz NOT NULL,
      expires_at timestamptz,
      last_used_at timestamptz
    );
  `);
}
