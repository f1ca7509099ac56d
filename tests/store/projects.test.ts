/** Lists of one project: which rows they have, and that PostgreSQL finds them by indexes and reads no others. */
import knex, { type Knex } from 'knex';
import { Client, escapeLiteral, type QueryConfig } from 'pg';
import { systemClock } from '../../model/clock';
import { TABLES } from '../../store/tables/index';
import { useDatabase } from '../support/database';

const database = useDatabase();
const NODES = 4000;
/** Of 4000 nodes a project owns ten and leases ten, and each node has a port and a volume target. */
const FILL = `
  INSERT INTO nodes (uuid, driver, owner, lessee, created_at)
    SELECT md5(n::text)::uuid::text, 'fake-hardware', CASE WHEN n % 400 = 0 THEN 'red' ELSE 'p' || n % 100 END,
      CASE WHEN n % 400 = 7 THEN 'red' END, now() FROM generate_series(1, ${NODES}) AS n;
  INSERT INTO ports (uuid, node_uuid, address, created_at)
    SELECT uuid, uuid, 'mac ' || uuid, now() FROM nodes;
  INSERT INTO volume_targets (uuid, node_uuid, volume_type, volume_id, boot_index, created_at)
    SELECT uuid, uuid, 'iscsi', uuid, 0, now() FROM nodes;
  INSERT INTO allocations (uuid, state, owner, created_at)
    SELECT uuid, 'error', owner, now() FROM nodes;
  INSERT INTO runbooks (uuid, name, owner, public, created_at)
    SELECT uuid, 'CUSTOM_' || id, nullif(owner, 'p1'), owner = 'p1', now() FROM nodes;`;

let db: Knex;
beforeAll(async () => {
  await database.query(FILL);
  await database.query('ANALYZE');
  db = knex({ client: 'pg', connection: { connectionString: database.connection() } });
});
afterAll(() => db.destroy());

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}
const flat = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(flat)];
/** Runs it, and answers what PostgreSQL did for its last query. */
async function planOf(
  work: (on: typeof TABLES) => Promise<readonly unknown[]>,
): Promise<{ readonly count: number; readonly steps: readonly Plan[] }> {
  const sent = jest.spyOn(Client.prototype, 'query');
  const found = await work(TABLES);
  const { name, text, values = [] } = sent.mock.calls.at(-1)![0] as unknown as QueryConfig<unknown[]>;
  sent.mockRestore();
  // PostgreSQL may plan a named statement without its values.
  const { rows } = await db.transaction(async (inner) => {
    await inner.raw(`SET LOCAL plan_cache_mode = force_${name ? 'generic' : 'custom'}_plan`);
    await inner.raw(`PREPARE listed AS ${text.replaceAll('?', String.raw`\?`)}`);
    const literals = values.map((value) => escapeLiteral(String(value))).join(', ');
    const plan = await inner.raw<{ rows: readonly { 'QUERY PLAN': readonly { readonly Plan: Plan }[] }[] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE listed (${literals})`,
    );
    await inner.raw('DEALLOCATE listed');
    return plan;
  });
  return { count: found.length, steps: flat(rows[0]!['QUERY PLAN'][0]!.Plan) };
}

it.each<[string, number, (on: typeof TABLES) => Promise<readonly unknown[]>]>([
  ['nodes', 20, (on) => on.nodes(db, systemClock).ownedVersions({ project: 'red', limit: 1000 })],
  ['nodes in detail', 20, (on) => on.nodes(db, systemClock).list({ project: 'red', limit: 1000 })],
  ['ports', 20, (on) => on.ports(db, systemClock).versions({ project: 'red', limit: 1000 })],
  ['volume targets', 20, (on) => on.volumeTargets(db, systemClock).list({ nodeScope: { project: 'red' }, limit: 1000 })],
  ['allocations', 10, (on) => on.allocations(db, systemClock).list({ where: { owner: 'red' }, limit: 1000 })],
  ['runbooks', 50, (on) => on.runbooks(db, systemClock).list({ ownedOrPublic: 'red', limit: 1000 })],
])('a list of %s of a project uses indexes and reads no other rows', async (_, count, work) => {
  const plan = await planOf(work);
  expect(plan.count).toBe(count);
  const scans = plan.steps.filter((step) => step['Relation Name'] !== undefined);
  expect(scans.filter((step) => step['Node Type'] === 'Seq Scan')).toEqual([]);
  expect(scans.filter((step) => (step['Rows Removed by Filter'] ?? 0) > 0)).toEqual([]);
});

it.each<[string, string, (marker: string) => Promise<readonly unknown[]>]>([
  ['nodes', 'NodeNotFound', (marker) => TABLES.nodes(db, systemClock).ownedVersions({ project: 'red', marker })],
  ['ports', 'PortNotFound', (marker) => TABLES.ports(db, systemClock).versions({ project: 'red', marker })],
  [
    'volume targets',
    'VolumeTargetNotFound',
    (marker) => TABLES.volumeTargets(db, systemClock).list({ nodeScope: { project: 'red' }, marker }),
  ],
  ['allocations', 'AllocationNotFound', (marker) => TABLES.allocations(db, systemClock).list({ where: { owner: 'red' }, marker })],
  ['runbooks', 'RunbookNotFound', (marker) => TABLES.runbooks(db, systemClock).list({ ownedOrPublic: 'red', marker })],
])('the list of %s rejects a marker of another project', async (_, name, list) => {
  const [own, foreign] = (
    await database.query<{ uuid: string }>(
      "SELECT min(uuid) FILTER (WHERE owner = 'red') AS uuid FROM nodes UNION ALL SELECT min(uuid) FROM nodes WHERE owner = 'p2'",
    )
  ).map(({ uuid }) => uuid);
  expect(Array.isArray(await list(own!))).toBe(true);
  await expect(list(foreign!)).rejects.toMatchObject({ name });
});
