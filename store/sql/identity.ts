/** The identity of the database. A server checks it on each new connection, and uses only the database that it started with. */
import type { Client } from 'pg';
import type { Log } from '../../model/log';
import { OTHER_DATABASE } from './faults';

/** The name of the row of the table `secrets` with the identity, a random UUID. The first process on the database creates the row. */
export const IDENTITY_SECRET = 'database-identity';

export interface IdentityCheck {
  /** Sets the identity that later connections must find. */
  readonly expect: (identity: string) => void;
  /** Rejects if the connection leads to another database. */
  readonly check: (client: Client) => Promise<void>;
}
export function createIdentityCheck(log: Log): IdentityCheck {
  let expected: string | undefined;
  let isOther = false;
  const identityOf = async (client: Client): Promise<string | undefined> => {
    // A database without the table is another one. PostgreSQL would refuse a statement with a missing table, so this asks first.
    const { rows: tables } = await client.query<{ present: boolean }>("SELECT to_regclass('secrets') IS NOT NULL AS present");
    if (!tables[0]?.present) return undefined;
    const { rows } = await client.query<{ value: string }>('SELECT value FROM secrets WHERE name = $1', [IDENTITY_SECRET]);
    return rows[0]?.value;
  };
  return {
    expect: (identity) => {
      expected = identity;
    },
    check: async (client) => {
      if (expected === undefined) return;
      const identity = await identityOf(client);
      if (identity === expected) {
        if (isOther) log.info('the database that the server started with is back');
        isOther = false;
        return;
      }
      if (!isOther) log.error('another database is at the address of the one that the server started with: it is not used');
      isOther = true;
      throw Object.assign(new Error('another database'), { code: OTHER_DATABASE });
    },
  };
}
