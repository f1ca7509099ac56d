import { randomUUID } from 'node:crypto';
import type { NewNode, NodeRecord, PortRecord } from '../../model/records';
import { NODE_COLUMNS } from '../../store/tables/node-lookups';
import { PORT_COLUMNS } from '../../store/tables/ports';
import type { NodeFilter, Store } from '../../store/store';
import { useDatabase } from '../support/database';

const database = useDatabase();
const parent = randomUUID();
const instance = randomUUID();
const rows: Readonly<Record<string, Partial<NewNode>>> = {
  a: { uuid: parent, driver: 'ipmi', owner: 'red', shard: 's1', resource_class: 'big', description: 'Rack 12% full', maintenance: true },
  b: { driver: 'redfish', lessee: 'red', provision_state: 'active', instance_uuid: instance, automated_clean: true, conductor_group: 'g' },
  C: { owner: 'blue', lessee: 'green', shard: 's2', description: 'a_b', power_state: 'power on', resource_class: 'big' },
  ä: { provision_state: 'available', resource_class: 'small', description: 'back\\slash', automated_clean: false, retired: true },
  child: { parent_node: parent, owner: 'red', provision_updated_at: '2026-01-02T03:04:05.000001+00:00' },
  grandchild: {
    parent_node: randomUUID(),
    shard: 's1',
    power_state: 'power off',
    provision_updated_at: '2026-01-02T03:04:05.000002+00:00',
  },
};
let nodes: readonly NodeRecord[];
let ports: readonly PortRecord[];
beforeAll(async () => {
  const store = database.store();
  const made: NodeRecord[] = [];
  for (const [name, fields] of Object.entries(rows))
    made.push(await store.nodes.create({ uuid: randomUUID(), driver: 'fake-hardware', name, ...fields }));
  await store.nodes.reserve('b', 'host');
  const portsMade: PortRecord[] = [];
  for (const [index, node] of [0, 0, 1, 2].entries())
    portsMade.push(
      await store.ports.create({
        uuid: randomUUID(),
        node_uuid: made[node]!.uuid,
        address: `52:54:00:00:00:${index}f`,
        pxe_enabled: index !== 1,
        ...(index === 2 ? { physical_network: 'net', description: 'UP_link' } : { name: `port${index}` }),
      }),
    );
  nodes = await store.nodes.list({ children: 'all' });
  ports = await store.ports.list({});
});

it.each<[string, NodeFilter, readonly string[]]>([
  ['no filter: parents only', {}, ['a', 'b', 'C', 'ä']],
  ['all', { children: 'all' }, ['a', 'b', 'C', 'ä', 'child', 'grandchild']],
  ['children of one', { children: parent }, ['child']],
  ['a text', { where: { driver: 'ipmi' } }, ['a']],
  ['two columns', { where: { resource_class: 'big', maintenance: false } }, ['C']],
  ['null', { where: { automated_clean: null, power_state: null } }, ['a']],
  ['false is not null', { where: { automated_clean: false } }, ['ä']],
  ['a list', { where: { provision_state: ['active', 'available', 'x'] } }, ['b', 'ä']],
  ['an empty list', { where: { provision_state: [] } }, []],
  ['a number', { where: { revision: 1 } }, ['a', 'C', 'ä']],
  ['quotes', { where: { owner: "red' OR true --" } }, []],
  ['associated', { associated: true }, ['b']],
  ['not associated', { associated: false }, ['a', 'C', 'ä']],
  ['reserved', { reserved: true }, ['b']],
  ['not reserved', { reserved: false }, ['a', 'C', 'ä']],
  ['sharded', { sharded: true, children: 'all' }, ['a', 'C', 'grandchild']],
  ['not sharded', { sharded: false }, ['b', 'ä']],
  ['description', { descriptionContains: 'rack' }, ['a']],
  ['any text', { descriptionContains: '%' }, ['a', 'C', 'ä']],
  ['one character', { descriptionContains: 'r_ck' }, ['a']],
  ['backslash', { descriptionContains: '\\' }, ['ä']],
  ['project', { project: 'red' }, ['a', 'b']],
  ['project and column', { project: 'red', where: { driver: 'redfish' } }, ['b']],
  ['limit', { limit: 2 }, ['a', 'b']],
])('lists nodes by %s', async (_what, filter, names) => {
  expect((await database.store().nodes.list(filter)).map((node) => node.name)).toEqual(names);
});

it.each<[string, Parameters<Store['ports']['versions']>[0], readonly number[]]>([
  ['no filter', {}, [0, 1, 2, 3]],
  ['address in any case', { where: { address: '52:54:00:00:00:1F' } }, [1]],
  ['boolean and null', { where: { pxe_enabled: true, physical_network: null } }, [0, 3]],
  ['shards', { shards: ['s1', 's9'] }, [0, 1]],
  ['no shards', { shards: [] }, []],
  ['conductor groups', { conductorGroups: ['g'] }, [2]],
  ['the empty group', { conductorGroups: [''] }, [0, 1, 3]],
  ['description', { descriptionContains: 'up_' }, [2]],
])('lists ports by %s', async (_what, filter, wanted) => {
  const found = await database.store().ports.list(filter);
  expect(found).toEqual(wanted.map((index) => ports[index]));
});

const sortable = (columns: object): string[] =>
  Object.entries(columns)
    .filter(([, kind]) => !['json', 'jsonb', 'texts'].includes(kind as string))
    .map(([name]) => name);
type Value = string | number | boolean | null;
/** The order that is promised: nulls lowest, text by its bytes, ties by id. */
function compare(left: Readonly<Record<string, unknown>>, right: Readonly<Record<string, unknown>>, key: string): number {
  const rank = (value: unknown): string | number => (typeof value === 'boolean' ? Number(value) : (value as string | number));
  const [a, b] = [left[key] as Value, right[key] as Value];
  if (a !== b) {
    if (a === null || b === null) return a === null ? -1 : 1;
    if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
    return rank(a) < rank(b) ? -1 : 1;
  }
  return (left['id'] as number) - (right['id'] as number);
}

describe.each([
  ['nodes', sortable(NODE_COLUMNS)],
  ['ports', sortable(PORT_COLUMNS)],
] as const)('%s', (table, keys) => {
  const list = (paging: object): Promise<readonly (NodeRecord | PortRecord)[]> =>
    table === 'nodes' ? database.store().nodes.list({ children: 'all', ...paging }) : database.store().ports.list(paging);

  it.each(keys.flatMap((key) => [[key, 'asc'] as const, [key, 'desc'] as const]))(
    'are sorted by %s %s, completely and page by page',
    async (sortKey, sortDir) => {
      const all: readonly (NodeRecord | PortRecord)[] = table === 'nodes' ? nodes : ports;
      const wanted = [...all].sort((a, b) => compare({ ...a }, { ...b }, sortKey) * (sortDir === 'asc' ? 1 : -1));
      expect((await list({ sortKey, sortDir })).map(({ uuid }) => uuid)).toEqual(wanted.map(({ uuid }) => uuid));
      const paged: string[] = [];
      for (let page = 0; page <= all.length; page++) {
        const marker = paged.at(-1);
        const rowsOfPage = await list({ sortKey, sortDir, limit: 2, ...(marker === undefined ? {} : { marker }) });
        if (rowsOfPage.length === 0) break;
        paged.push(...rowsOfPage.map(({ uuid }) => uuid));
      }
      expect(paged).toEqual(wanted.map(({ uuid }) => uuid));
    },
  );

  it('are sorted by id by default, in either direction', async () => {
    const ids = (await list({})).map(({ id }) => id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect((await list({ sortDir: 'desc' })).map(({ id }) => id)).toEqual([...ids].reverse());
  });

  it.each(['extra', 'nothing', 'id; DROP TABLE nodes', '"id"', 'constructor', '__proto__', ''])(
    'cannot be sorted by %j',
    async (sortKey) => {
      await expect(list({ sortKey })).rejects.toMatchObject({
        name: 'InvalidParameterValue',
        message: `The sort_key value "${sortKey}" is an invalid field for sorting`,
      });
    },
  );

  it('cannot be filtered by unknown columns or invalid values', async () => {
    for (const name of ['extra', 'nothing', 'uuid" = uuid --']) await expect(list({ where: { [name]: 'x' } })).rejects.toThrow(TypeError);
    await expect(list({ where: { id: 'abc' } })).rejects.toMatchObject({ name: 'Invalid' });
    await expect(list({ where: { id: 1e300 } })).rejects.toMatchObject({ name: 'Invalid' });
    expect(await list({ where: { name: 'a\0' } })).toEqual([]);
  });

  it('cannot be listed after an unknown marker', async () => {
    const marker = randomUUID();
    await expect(list({ marker })).rejects.toMatchObject({ name: table === 'nodes' ? 'NodeNotFound' : 'PortNotFound' });
  });
});
