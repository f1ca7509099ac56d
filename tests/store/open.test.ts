import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Client, types } from 'pg';
import { MIGRATIONS } from '../../migrations';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentLog } from '../../model/log';
import { toFault } from '../../store/sql/faults';
import { isoTimestamp } from '../../store/sql/connection';
import { openStore } from '../../store/postgres';
import { otherDatabase } from '../support/cluster';
import { useDatabase } from '../support/database';
import { until } from '../support/until';

const database = useDatabase();
const LATEST = MIGRATIONS.at(-1)!.name;
/** Drops all tables except those of knex, which note the migrations. */
async function dropTables(client: Client): Promise<void> {
  const ours = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'knex%'";
  const { rows } = await client.query<{ tablename: string }>(ours);
  await client.query(`DROP TABLE ${rows.map(({ tablename }) => tablename).join(', ')}`);
}
const open = (connection: string, more: { migrate?: boolean; log?: Log } = {}) =>
  openStore({ connection, poolSize: 2, clock: systemClock, log: silentLog, ...more });
const onNew = <T>(work: (connection: string) => Promise<T>): Promise<T> => database.another(work);

it.each([
  ['2026-01-02 03:04:05+00', '2026-01-02T03:04:05.000000+00:00'],
  ['2026-01-02 03:04:05.1+00', '2026-01-02T03:04:05.100000+00:00'],
  ['2026-01-02 03:04:05.000001+00', '2026-01-02T03:04:05.000001+00:00'],
])('isoTimestamp reads %s', (text, wanted) => expect(isoTimestamp(text)).toBe(wanted));

it.each<[object, string]>([
  [{ code: 'ECONNREFUSED', message: 'connect' }, 'TemporaryFailure'],
  [{ code: '57P01', message: 'terminating connection' }, 'TemporaryFailure'],
  [{ code: '53300', message: 'too many' }, 'TemporaryFailure'],
  [{ code: '53100', message: 'could not extend file: No space left on device' }, 'TemporaryFailure'],
  [{ code: '58030', message: 'could not read file: Input/output error' }, 'TemporaryFailure'],
  [{ code: '42501', message: 'could not open file: Read-only file system' }, 'TemporaryFailure'],
  [{ code: '57014', message: 'canceling statement due to statement timeout' }, 'TemporaryFailure'],
  [{ code: '40P01', message: 'deadlock detected' }, 'TemporaryFailure'],
  [{ message: 'Knex: Timeout acquiring a connection. The pool is probably full.' }, 'TemporaryFailure'],
  [{ message: 'Connection terminated unexpectedly' }, 'TemporaryFailure'],
  [{ message: 'ROLLBACK - Client has encountered a connection error and is not queryable' }, 'TemporaryFailure'],
  [{ code: '22P05', message: 'insert … - unsupported' }, 'Invalid'],
  [{ code: '23505', constraint: 'nodes_name_unique', message: 'm' }, 'DuplicateName'],
  [{ code: '23505', constraint: 'racks_name_unique', message: 'm' }, 'RecordAlreadyExists'],
])('toFault of %j', (error, name) => expect(toFault(error, { name: 'n' })).toMatchObject({ name }));

it('toFault returns other errors without the values in them', () => {
  const error = Object.assign(new Error('null value'), { code: '23502', detail: 'Failing row contains (secret)' });
  expect(toFault(error)).toBe(error);
  expect(error).not.toHaveProperty('detail');
});

it('version returns the versions of PostgreSQL and schema, and type parsers of others stay unchanged', async () => {
  const store = await open(database.connection());
  expect(await store.version()).toEqual({ postgres: expect.stringMatching(/^\d+(\.\d+)?$/) as string, schema: LATEST });
  await store.close();
  expect((types.getTypeParser as (oid: number) => (text: string) => unknown)(20)('5')).toBe('5');
});

it('openStore creates the schema once even if several start simultaneously', () =>
  onNew(async (connection) => {
    await expect(open(connection, { migrate: false })).rejects.toThrow(
      /^The database \w+ at .* cannot be used: its schema is older than this program needs \(0001_first_tables is missing\)$/,
    );
    const stores = await Promise.all(Array.from({ length: 5 }, () => open(connection)));
    await Promise.all(stores.map((store) => store.nodes.create({ uuid: randomUUID(), driver: 'x' })));
    expect(await stores[0]!.nodes.list({})).toHaveLength(5);
    await Promise.all(stores.map((store) => store.close()));
    await (await open(connection, { migrate: false })).close();
  }));

it('openStore ignores the migration lock of knex that a killed process left', () =>
  onNew(async (connection) => {
    await (await open(connection)).close();
    const client = new Client({ connectionString: connection });
    await client.connect();
    await dropTables(client);
    await client.query('DELETE FROM knex_migrations; UPDATE knex_migrations_lock SET is_locked = 1');
    await client.end();
    const store = await open(connection);
    expect(await store.nodes.list({})).toEqual([]);
    await store.close();
  }));

it('openStore rejects a newer schema', () =>
  onNew(async (connection) => {
    await (await open(connection)).close();
    const client = new Client({ connectionString: connection });
    await client.connect();
    await client.query("INSERT INTO knex_migrations (name, batch, migration_time) VALUES ('0099_later', 2, now())");
    await expect(open(connection)).rejects.toThrow(
      new RegExp(`^The database \\w+ at .* cannot be used: its schema is newer \\(0099_later\\) than this program knows \\(${LATEST}\\)$`),
    );
    await client.end();
  }));

describe('openStore fails for an unusable database:', () => {
  const secret = 'hush-hush';
  const failure = (connection: string): Promise<string> =>
    open(connection).then(
      () => 'opened',
      (error: unknown) => (error as Error).message,
    );
  it.each([
    [
      'mysql+pymysql://ironic:hush-hush@db/ironic',
      '[database]connection must be a postgresql:// URL, not mysql+pymysql://; without it, the server runs its own PostgreSQL',
    ],
    ['hush-hush', '[database]connection must be a postgresql:// URL; without it, the server runs its own PostgreSQL'],
    ['postgresql://u:hush-hush@h:99999/d', '[database]connection is not a valid postgresql:// URL'],
    ['postgresql+psycopg2://u:hush-hush@127.0.0.1:1/d', 'The database d at 127.0.0.1:1 cannot be used: connect ECONNREFUSED 127.0.0.1:1'],
    ['postgresql://u:hush-hush@/d?host=/nowhere', 'The database d at /nowhere cannot be used: connect ENOENT /nowhere/.s.PGSQL.5432'],
  ])('%s', async (connection, message) => {
    expect(await failure(connection)).toBe(message);
  });

  it('a missing database or user', async () => {
    expect(await failure(otherDatabase(database.connection(), 'nothing'))).toMatch(/cannot be used: database "nothing" does not exist$/);
    const stranger = database.connection().replace(/\/\/[^@]*@/, '//stranger@');
    expect(await failure(stranger)).toMatch(/cannot be used: .*stranger/);
  });

  /** A server that answers a start-up with these bytes. */
  const answering = async (answer: (request: Buffer) => Buffer | undefined): Promise<string> => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (request) => {
        const bytes = answer(request);
        if (bytes) socket.write(bytes);
        else socket.destroy();
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    try {
      return await failure(`postgresql://u:${secret}@127.0.0.1:${(server.address() as AddressInfo).port}/d`);
    } finally {
      server.close();
    }
  };
  /** PostgreSQL's protocol 3.0: type, length with itself, body. */
  const message = (type: string, body: Buffer): Buffer => {
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const text = (...parts: readonly string[]): Buffer => Buffer.from(parts.map((part) => `${part}\0`).join(''));

  it('a refused password', async () => {
    const refusal = message('E', text('SFATAL', 'C28P01', 'Mpassword authentication failed for user "u"', ''));
    expect(await answering(() => refusal)).toMatch(/^The database d at 127\.0\.0\.1:\d+ cannot be used: wrong user or password$/);
  });
  it('a server that is not PostgreSQL', async () => {
    expect(await answering(() => undefined)).toMatch(/^The database d at 127\.0\.0\.1:\d+ cannot be used: Connection terminated/);
  });
  it('a PostgreSQL that is too old', async () => {
    const int16 = (value: number) => Buffer.from([value >> 8, value & 255]);
    const int32 = (value: number) => Buffer.concat([int16(value >> 16), int16(value & 65535)]);
    const column = (name: string, type: number) =>
      Buffer.concat([text(name), int32(0), int16(0), int32(type), int16(-1 & 65535), int32(-1), int16(0)]);
    const value = (content: string) => Buffer.concat([int32(content.length), Buffer.from(content)]);
    const ready = message('Z', Buffer.from('I'));
    const row = Buffer.concat([
      message('T', Buffer.concat([int16(2), column('number', 23), column('name', 25)])),
      message('D', Buffer.concat([int16(2), value('120022'), value('12.22')])),
      message('C', text('SELECT 1')),
      ready,
    ]);
    const greeting = Buffer.concat([message('R', int32(0)), ready]);
    // A start-up has no type: it begins with its length, whose first byte is zero.
    const answer = (request: Buffer) => (request[0] === 0 ? greeting : request[0] === 0x51 ? row : undefined);
    expect(await answering(answer)).toMatch(/cannot be used: it is PostgreSQL 12\.22; 13 or newer is needed$/);
  });
});

/** A log, and its lines. */
function linesOf(): readonly [readonly string[], Log] {
  const lines: string[] = [];
  const note = (text: string): void => void lines.push(text);
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
  return [lines, log];
}
it('a transaction fails when its connection is terminated, and the store works again afterwards', async () => {
  const [, log] = linesOf();
  const store = await open(database.connection(), { log });
  try {
    const { uuid } = await store.nodes.create({ uuid: randomUUID(), driver: 'x' });
    const cut = store.transaction(async (inner) => {
      await inner.nodes.update(uuid, { name: 'cut' });
      await database.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()',
        ['bloomery'],
      );
      await inner.nodes.update(uuid, { name: 'cut again' });
    });
    await expect(cut).rejects.toMatchObject({ name: 'TemporaryFailure', status: 503 });
    expect(await store.nodes.find(uuid)).toMatchObject({ name: null, revision: 1 });
  } finally {
    await store.close();
  }
});

it('the store refuses another database at its address, until the first is back', () =>
  onNew((connection) =>
    onNew(async (other) => {
      const [lines, log] = linesOf();
      const store = await open(connection, { log });
      await (await open(other)).close();
      const [mine, theirs] = [connection, other].map((url) => /([^/]+)\?/.exec(url)![1]!);
      const aside = `${mine!}_aside`;
      /** Ends the connections to a database, and renames it. */
      const rename = async (from: string, to: string): Promise<void> => {
        await database.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [from]);
        await database.query(`ALTER DATABASE ${from} RENAME TO ${to}`);
      };
      try {
        const { uuid } = await store.nodes.create({ uuid: randomUUID(), driver: 'x' });
        await rename(mine!, aside);
        await rename(theirs!, mine!);
        const refused = {
          name: 'TemporaryFailure',
          message: 'Another database is at the address of the one that this server started with.',
        };
        await until('the refusal', async () => (await store.nodes.list({}).catch((error: unknown) => error)) instanceof Error);
        await expect(store.nodes.list({})).rejects.toMatchObject(refused);
        await expect(store.nodes.create({ uuid: randomUUID(), driver: 'x' })).rejects.toMatchObject(refused);
        expect(await store.isUp()).toBe(false);
        expect(lines.filter((line) => line.startsWith('another database'))).toHaveLength(1);
        await rename(mine!, theirs!);
        await rename(aside, mine!);
        await until('the first database', async () => (await store.nodes.list({}).catch(() => []))[0]?.uuid === uuid);
        expect(lines.at(-1)).toBe('the database that the server started with is back');
      } finally {
        await store.close();
      }
    }),
  ));

it.each<[string, string]>([
  ['53100', 'The database has no space left on its disk, please retry when there is some.'],
  ['58030', 'The database cannot read or write its files at the moment, please retry.'],
  ['57014', 'The database did not answer in time, please retry.'],
  ['57P03', 'The database cannot be reached at the moment, please retry.'],
])('toFault tells the cause (%s)', (code, message) => expect(toFault({ code, message: 'm' })).toMatchObject({ status: 503, message }));
