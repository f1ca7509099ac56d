import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { EventRecord } from '../../../model/events';
import type { NewNode, NodeChanges } from '../../../model/records';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const nodes = () => database.store().nodes;
const events = () => database.store().events;
const make = (more: Partial<NewNode> = {}) => nodes().create({ uuid: randomUUID(), driver: 'ipmi', name: 'one', owner: 'o', ...more });
/**
 * The events after a position. Transactions of other tests on the same server delay new events: all have arrived once the last row is
 * visible.
 */
async function since(position: string): Promise<readonly EventRecord[]> {
  await database.query(`INSERT INTO events (at, node_uuid, kind, payload) VALUES (now(), 'n', 'last', '{}')`);
  for (;;) {
    const told = (await events().read(position, 100)).events;
    if ((told.at(-1)?.kind as string | undefined) === 'last') {
      await database.query(`DELETE FROM events WHERE kind = 'last'`);
      return told.slice(0, -1);
    }
    await delay(20);
  }
}
/** @returns the current position, after all events so far */
const now = async (): Promise<string> => {
  await database.query(`INSERT INTO events (at, node_uuid, kind, payload) VALUES (now(), 'n', 'first', '{}')`);
  const { position } = (await since('0-0')).at(-1)!;
  await database.query(`DELETE FROM events WHERE kind = 'first'`);
  return position;
};
beforeEach(() => database.clear());

const running = { interface: 'deploy', step: 'write', priority: 80, args: { password: 'hush' } };
const list = { deploy_steps: [running, running], deploy_step_index: 1 };
/** The node before; what is written (columns, keys of driver_internal_info); the resulting events. */
const TOLD: readonly (readonly [
  string,
  Partial<NewNode>,
  NodeChanges,
  Readonly<Record<string, unknown>>,
  readonly (readonly [string, object])[],
])[] = [
  [
    'a provision state',
    {},
    { provision_state: 'verifying', target_provision_state: 'manageable', last_error: null },
    {},
    [['state', { provision_state: 'verifying', target_provision_state: 'manageable', previous_provision_state: 'enroll' }]],
  ],
  [
    'a power action in progress',
    { power_state: 'power off' },
    { target_power_state: 'power on' },
    {},
    [['power', { power_state: 'power off', target_power_state: 'power on', previous_power_state: 'power off' }]],
  ],
  [
    'a failure that puts the node into maintenance',
    { provision_state: 'cleaning', target_provision_state: 'available' },
    { provision_state: 'clean failed', maintenance: true, maintenance_reason: 'why', fault: 'clean failure', last_error: 'no' },
    {},
    [
      ['state', { provision_state: 'clean failed', target_provision_state: 'available', previous_provision_state: 'cleaning' }],
      ['maintenance', { maintenance: true, maintenance_reason: 'why', fault: 'clean failure' }],
      ['error', { last_error: 'no' }],
    ],
  ],
  ['a cleared error (none)', { last_error: 'no' }, { last_error: null }, {}, []],
  ['a step', {}, { deploy_step: running }, list, [['step', { flow: 'deploy', step: 'deploy.write', number: 2, of: 2 }]]],
  ['a completed step', { deploy_step: running }, { deploy_step: {} }, list, [['progress', { flow: 'deploy', done: 1, of: 2 }]]],
  ['a step without a list of steps (none)', {}, { clean_step: running }, {}, []],
  ['a step with an invalid list of steps (none)', {}, { clean_step: running }, { clean_steps: 'x', clean_step_index: {} }, []],
  ['other fields (none)', {}, { extra: { a: 1 }, description: 'd' }, { agent_url: 'x' }, []],
];
it.each(TOLD)('a write of a node adds events for %s', async (_, before, changes, internal, expected) => {
  const { uuid } = await make(before);
  const start = await now();
  await nodes().mergeInternal(uuid, internal);
  await nodes().update(uuid, changes);
  const told = await since(start);
  expect(told.map(({ kind, payload }) => [kind, payload])).toEqual(expected);
  const { updated_at: at } = await nodes().find(uuid);
  if (told.length > 0) expect(told.at(-1)).toMatchObject({ node_uuid: uuid, node_name: 'one', owner: 'o', lessee: null });
  if (told.length > 0 && Object.keys(changes).length > 0) expect(told.at(-1)!.at).toBe(at);
  expect(JSON.stringify(told)).not.toContain('hush');
});

it('creation and removal of a node add events, and a rolled-back transaction adds none', async () => {
  const start = await now();
  const { uuid } = await make();
  await expect(
    database.store().transaction(async (inner) => {
      await inner.nodes.update(uuid, { maintenance: true });
      throw new Error('undone');
    }),
  ).rejects.toThrow('undone');
  await nodes().remove(uuid);
  expect((await since(start)).map(({ kind, payload }) => [kind, payload])).toEqual([
    ['created', { driver: 'ipmi', provision_state: 'enroll' }],
    ['deleted', { driver: 'ipmi', provision_state: 'enroll' }],
  ]);
});

it('add appends an event', async () => {
  const node = await make();
  const start = await now();
  await events().add(node, 'progress', { percent: 40 });
  expect(await since(start)).toMatchObject([
    { node_uuid: node.uuid, node_name: 'one', owner: 'o', kind: 'progress', payload: { percent: 40 } },
  ]);
});

it('read does not skip an event whose transaction commits late', async () => {
  const { uuid } = await make();
  const other = await make({ name: 'two' });
  const start = await now();
  const slow = new Client({ connectionString: database.connection() });
  await slow.connect();
  try {
    await slow.query('BEGIN');
    await slow.query(`UPDATE nodes SET maintenance = true WHERE uuid = '${uuid}'`);
    await nodes().update(other.uuid, { maintenance: true });
    const first = await events().read(start, 100);
    await slow.query('COMMIT');
    const second = await since(first.reached);
    expect([...first.events, ...second].map(({ node_uuid: node }) => node)).toEqual([uuid, other.uuid]);
  } finally {
    await slow.end();
  }
});

it('read returns pages from any position', async () => {
  const start = await now();
  for (let index = 0; index < 7; index++) await make({ name: `n${index}` });
  const all = await since(start);
  const names: (string | null)[] = [];
  for (let at = start; ;) {
    const { events: page, reached } = await events().read(at, 3);
    names.push(...page.map(({ node_name: name }) => name));
    at = reached;
    if (page.length < 3) break;
  }
  expect(names).toEqual(['n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6']);
  expect(await since(all[4]!.position)).toEqual(all.slice(5));
});

it('trim removes events by number and age, and isReachable rejects positions before them', async () => {
  const start = await now();
  for (let index = 0; index < 7; index++) await make({ name: `n${index}` });
  const all = await since(start);
  const long = '2000-01-01T00:00:00Z';
  expect(await events().isReachable(start)).toBe(true);
  expect(await events().trim({ keep: 10, before: long, atMost: 100 })).toBe(0);
  expect(await events().isReachable(start)).toBe(true);
  expect(await events().trim({ keep: 4, before: long, atMost: 2 })).toBe(2);
  expect(await events().trim({ keep: 4, before: long, atMost: 2 })).toBe(1);
  expect(await since(start)).toEqual(all.slice(3));
  expect(await Promise.all(all.map(({ position }) => events().isReachable(position)))).toEqual([
    false,
    false,
    true,
    true,
    true,
    true,
    true,
  ]);
  expect(await events().isReachable(start)).toBe(false);
  expect(await events().trim({ keep: 4, before: '2100-01-01T00:00:00Z', atMost: 100 })).toBe(4);
  expect(await events().isReachable(all[5]!.position)).toBe(false);
  expect(await events().isReachable(all[6]!.position)).toBe(true);
});

it('reading and trimming tolerate transaction numbers of another server', async () => {
  await database.query(
    `INSERT INTO events (transaction, at, node_uuid, kind, payload) VALUES ('900000000000', now(), 'n', 'created', '{}')`,
  );
  expect(await events().isReachable('900000000000-1')).toBe(false);
  expect(await events().trim({ keep: 10, before: '2000-01-01T00:00:00Z', atMost: 100 })).toBe(1);
  const start = await now();
  expect(await events().isReachable(await events().endPosition())).toBe(true);
  await make();
  expect(await since(start)).toHaveLength(1);
});
