/**
 * The roles of the embedded PostgreSQL. initdb makes a superuser, who can read files and run programs. The server works as another role,
 * which owns the schema and has no such rights.
 */
import { Client } from 'pg';

/** The superuser. Only the start of the server connects as this role. */
const SUPERUSER = 'bloomery';
/** Not a superuser. */
const ROLE = 'bloomery_server';

const connectionAs = (role: string, sockets: string): string =>
  `postgresql://${role}@/postgres?host=${encodeURIComponent(sockets)}&sslmode=disable`;
/** The connection of the server. @param sockets the folder of the Unix socket */
export const connectionTo = (sockets: string): string => connectionAs(ROLE, sockets);
export const superuserConnectionTo = (sockets: string): string => connectionAs(SUPERUSER, sockets);

/**
 * Earlier versions worked as the superuser, whose tables change their owner here. Sequences of columns follow their table, so that each
 * kind is read after the change of the one before.
 */
const SET_UP = `
DO $$
DECLARE
  own oid;
  kinds text;
  one record;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${ROLE}') THEN
    CREATE ROLE ${ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
  END IF;
  own := '${ROLE}'::regrole;
  IF (SELECT nspowner FROM pg_namespace WHERE nspname = 'public') <> own THEN
    ALTER SCHEMA public OWNER TO ${ROLE};
  END IF;
  FOREACH kinds IN ARRAY ARRAY['rp', 'S', 'vm'] LOOP
    FOR one IN SELECT oid::regclass AS name FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND strpos(kinds, relkind::text) > 0 AND relowner <> own LOOP
      EXECUTE format('ALTER TABLE %s OWNER TO ${ROLE}', one.name);
    END LOOP;
  END LOOP;
  FOR one IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner <> own LOOP
    EXECUTE format('ALTER ROUTINE %s OWNER TO ${ROLE}', one.name);
  END LOOP;
END $$`;
const TIMEOUT_MS = 30_000;

/** Creates the role of the server, and gives it the tables, unless that was done before. */
export async function setUpRole(sockets: string): Promise<void> {
  const client = new Client({
    connectionString: superuserConnectionTo(sockets),
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(SET_UP);
  } finally {
    await client.end().catch(() => {});
  }
}
