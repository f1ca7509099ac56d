/** Prepared statements on a connection: what they send, what they return, and what stays usable after a failure. */
import fc from 'fast-check';
import type { Client } from 'pg';
import { silentLog } from '../../model/log';
import { isStorable } from '../../model/text';
import { connect, TYPE_PARSERS } from '../../store/sql/connection';
import { execute } from '../../store/sql/statement';
import { anyText } from '../support/any-text';
import { useDatabase } from '../support/database';

const database = useDatabase();

/** Runs `work` on one connection, with the kinds of messages that it receives. */
async function onConnection(
  work: (
    run: (name: string | undefined, text: string, values?: readonly unknown[]) => Promise<readonly object[]>,
    received: string[],
  ) => Promise<void>,
): Promise<void> {
  const { db } = await connect({ connection: database.connection(), poolSize: 1, log: silentLog });
  const pool = db.client as { acquireConnection(): Promise<Client>; releaseConnection(client: Client): Promise<void> };
  const client = await pool.acquireConnection();
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
  const received: string[] = [];
  for (const kind of ['parseComplete', 'rowDescription', 'dataRow']) connection.on(kind, () => received.push(kind));
  try {
    await work((name, text, values = []) => execute(client, TYPE_PARSERS, name, text, values), received);
  } finally {
    await pool.releaseConnection(client);
    await db.destroy();
  }
}

it('asks for the columns of a named statement once for each connection', () =>
  onConnection(async (run, received) => {
    const text = `SELECT $1::bigint AS number, '{"a": [1]}'::json AS object, NULL AS nothing, true AS truth`;
    const row = { number: 7, object: { a: [1] }, nothing: null, truth: true };
    expect(await run('columns', text, [7])).toEqual([row]);
    expect(received.splice(0)).toEqual(['parseComplete', 'rowDescription', 'dataRow']);
    expect(await run('columns', text, [8])).toEqual([{ ...row, number: 8 }]);
    expect(received.splice(0)).toEqual(['dataRow']);
    // Without a name, the next statement may have other columns.
    for (const number of [1, 2]) expect(await run(undefined, `SELECT 1 AS column${number}`)).toEqual([{ [`column${number}`]: 1 }]);
    expect(received.splice(0)).toEqual(Array(2).fill(['parseComplete', 'rowDescription', 'dataRow']).flat());
  }));

it('runs statements without rows, and those without columns', () =>
  onConnection(async (run) => {
    for (const _ of [1, 2]) {
      expect(await run('no_rows', 'SELECT 1 AS one WHERE false')).toEqual([]);
      expect(await run('no_columns', 'SET work_mem = 4096')).toEqual([]);
    }
  }));

it('works again after a failure: of the statement, of its values, and of its text', () =>
  onConnection(async (run) => {
    for (const _ of [1, 2]) {
      await expect(run('divides', 'SELECT 1 / $1::integer AS whole', [0])).rejects.toMatchObject({ code: '22012' });
      await expect(run('divides', 'SELECT 1 / $1::integer AS whole', ['x'])).rejects.toMatchObject({ code: '22P02' });
      await expect(run('wrong', 'SELEC 1')).rejects.toMatchObject({ code: '42601' });
      await expect(run('divides', 'SELECT 1 / $1::integer AS whole', [{}])).rejects.toThrow('an object among its values');
    }
    expect(await run('divides', 'SELECT 1 / $1::integer AS whole', [1])).toEqual([{ whole: 1 }]);
  }));

it('sends every text, also in arrays', () =>
  onConnection((run) =>
    fc.assert(
      fc.asyncProperty(fc.array(anyText.filter(isStorable)), async (texts) => {
        const [first = ''] = texts;
        const found = await run('texts', 'SELECT $1::text AS first, $2::text[] AS all, $3::text[] AS nested, $4::integer[] AS numbers', [
          first,
          texts,
          [
            [first, null],
            ['NULL', first],
          ],
          [1, null, -2],
        ]);
        expect(found).toEqual([
          {
            first,
            all: texts,
            nested: [
              [first, null],
              ['NULL', first],
            ],
            numbers: [1, null, -2],
          },
        ]);
      }),
      { numRuns: 200 },
    ),
  ));
