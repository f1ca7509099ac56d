import { randomUUID } from 'node:crypto';
import type { NewNode, NodeChanges, NodeRecord } from '../../../model/records';
import { NODE_COLUMNS } from '../../../store/tables/node-lookups';
import { PORT_COLUMNS } from '../../../store/tables/ports';
import { useDatabase } from '../../support/database';
import { foreign } from '../../support/task';

const moment = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
let now = moment;
const database = useDatabase({ clock: { now: () => now, sleep: async () => {} } });
const nodes = () => database.store().nodes;
const make = (more: Partial<NewNode> = {}) => nodes().create({ uuid: randomUUID(), driver: 'fake-hardware', ...more });
beforeEach(async () => {
  now = moment;
  await database.clear();
});

it('finds nodes by UUIDs and names, many at once, and the same one several times', async () => {
  const [one, two] = [await make({ name: 'one' }), await make({ name: 'two' })];
  const wanted = [one.uuid, two.uuid, one.uuid, 'two', 'one', 'two'];
  const found = await Promise.all(wanted.map((ident) => nodes().find(ident)));
  expect(found).toEqual([one, two, one, two, one, two]);
  const unknown = [randomUUID(), 'nobody', 'no\0body', '\ud800'];
  const failed = await Promise.allSettled([...unknown, 'one'].map((ident) => nodes().find(ident)));
  expect(failed.map((result) => (result.status === 'fulfilled' ? result.value : (result.reason as Error).name))).toEqual([
    ...unknown.map(() => 'NodeNotFound'),
    one,
  ]);
});

describe('columns', () => {
  const kinds: Readonly<Record<string, string>> = {
    text: 'text',
    boolean: 'boolean',
    bigint: 'integer',
    'timestamp with time zone': 'time',
    json: 'json',
    jsonb: 'jsonb',
    ARRAY: 'texts',
  };
  it.each([
    ['nodes', NODE_COLUMNS],
    ['ports', PORT_COLUMNS],
  ] as const)('of %s are those of the schema', async (table, columns) => {
    const rows = await database.query<{ column_name: string; data_type: string }>(
      'SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1',
      [table],
    );
    // SQL reads texts of these columns of the type json: PostgreSQL refuses U+0000 there too.
    const triggers = await database.query<{ body: string }>("SELECT prosrc AS body FROM pg_proc WHERE prosrc LIKE '%NEW.%'");
    const isRead = (name: string): boolean => triggers.some(({ body }) => body.includes(`NEW.${name} ->`));
    const kindOf = ({ column_name: name, data_type: type }: (typeof rows)[number]) =>
      type === 'json' && table === 'nodes' && isRead(name) ? 'jsonb' : (kinds[type] ?? type);
    expect(Object.fromEntries(rows.map((row) => [row.column_name, kindOf(row)]))).toEqual(columns);
  });
});

describe('create', () => {
  it('sets defaults for missing fields', async () => {
    const uuid = randomUUID();
    const node = await make({ uuid });
    const { id, ...rest } = node;
    expect(id).toEqual(expect.any(Number));
    const objects = ['driver_info', 'driver_internal_info', 'properties', 'instance_info', 'extra', 'network_data', 'raid_config'];
    const steps = ['target_raid_config', 'clean_step', 'deploy_step', 'service_step', 'out_of_service'];
    const flags = ['protected', 'retired', 'disable_power_off', 'maintenance', 'console_enabled'];
    const empty = Object.fromEntries(Object.keys(NODE_COLUMNS).map((name) => [name, null]));
    expect(rest).toEqual({
      ...Object.fromEntries(Object.entries(empty).filter(([name]) => name !== 'id')),
      ...Object.fromEntries([...objects, ...steps].map((name) => [name, {}])),
      ...Object.fromEntries(flags.map((name) => [name, false])),
      uuid,
      driver: 'fake-hardware',
      conductor_group: '',
      provision_state: 'enroll',
      traits: [],
      created_at: '2026-01-02T03:04:05.678000+00:00',
      updated_at: null,
      revision: 1,
      lock_fence: 0,
    });
  });

  it('stores every value unchanged', async () => {
    const values: NewNode = {
      uuid: randomUUID(),
      driver: 'ipmi',
      name: 'n\'1"; -- ü',
      extra: { z: 1, a: [1.5, null, true, { deep: '\u0000\ud800"\\' }], 10: 'x', 9: 'y' },
      driver_info: { ipmi_password: '\\u0041 $1 ?' },
      driver_internal_info: foreign({ b: 1, a: { nested: [] } }),
      traits: ['CUSTOM_B', 'HW_CPU_X86_VMX', 'with "quotes", {braces} and \\'],
      provision_state: 'available',
      automated_clean: false,
      protected: true,
      description: '',
      provision_updated_at: '2026-01-02T03:04:05.000001+00:00',
      inspection_started_at: '2026-01-02T05:04:05.1+02:00',
      conductor_group: 'rack?1',
      power_interface: 'ipmitool',
    };
    const made = await nodes().create(values);
    const expected = { ...values, inspection_started_at: '2026-01-02T03:04:05.100000+00:00' };
    expect(made).toMatchObject(expected);
    expect(await nodes().find(made.uuid)).toEqual(made);
    // The order of keys is the caller's.
    expect(JSON.stringify(made.extra)).toBe(JSON.stringify(values.extra));
  });

  const taken = { uuid: randomUUID(), name: 'taken', instance_uuid: randomUUID() };
  const other = randomUUID();
  it.each<[string, Partial<NewNode>, string, string]>([
    ['UUID', { uuid: taken.uuid }, 'NodeAlreadyExists', `A node with UUID ${taken.uuid} already exists.`],
    ['name', { name: 'taken' }, 'DuplicateName', 'A node with name taken already exists.'],
    [
      'instance',
      { uuid: other, instance_uuid: taken.instance_uuid },
      'InstanceAssociated',
      `Instance ${taken.instance_uuid} is already associated with a node, it cannot be associated with this other node ${other}`,
    ],
  ])('rejects a %s that exists already or is invalid', async (_what, fields, name, message) => {
    await make(taken);
    await expect(make(fields)).rejects.toMatchObject({ name, message });
    expect(await nodes().list({ children: 'all' })).toHaveLength(1);
  });

  it('rejects unknown columns', async () => {
    await expect(make({ ['uuid" = 1; --']: 1 } as object)).rejects.toThrow(TypeError);
    await expect(make({ constructor: 1 } as object)).rejects.toThrow(TypeError);
  });
});

describe('find', () => {
  it('finds by UUID and name', async () => {
    const node = await make({ name: 'rack-1.node' });
    expect(await nodes().find(node.uuid)).toEqual(node);
    expect(await nodes().find('rack-1.node')).toEqual(node);
  });
  it.each(['nobody', randomUUID(), '', 'a\0b', "x' OR '1'='1", '\ud800', '../..', 'x'.repeat(100_000)])(
    'fails with NodeNotFound for %j',
    async (ident) => {
      await make({ name: 'somebody' });
      await expect(nodes().find(ident)).rejects.toMatchObject({ name: 'NodeNotFound', message: `Node ${ident} could not be found.` });
    },
  );
});

describe('update', () => {
  it('changes the given fields, raises the revision and sets updated_at', async () => {
    const node = await make({ name: 'old', extra: { a: 1 } });
    now += 1500;
    const changes: NodeChanges = { name: 'new', extra: { b: 2 }, traits: ['T'], power_state: 'power on', maintenance: true };
    const after = await nodes().update(node.uuid, changes);
    const stamp = '2026-01-02T03:04:07.178000+00:00';
    expect(after).toEqual({ ...node, ...changes, revision: 2, updated_at: stamp });
    expect(await nodes().find('new')).toEqual(after);
    expect(await nodes().update(node.uuid, {})).toEqual({ ...after, revision: 3 });
    expect(await nodes().update(node.uuid, { name: null, traits: [] })).toMatchObject({ name: null, traits: [], revision: 4 });
  });
  it('rejects conflicts and unknown nodes', async () => {
    const first = await make({ name: 'first', instance_uuid: randomUUID() });
    const second = await make({ name: 'second' });
    await expect(nodes().update(second.uuid, { name: 'first' })).rejects.toMatchObject({
      name: 'DuplicateName',
      message: 'A node with name first already exists.',
    });
    await expect(nodes().update(second.uuid, { instance_uuid: first.instance_uuid })).rejects.toMatchObject({
      name: 'InstanceAssociated',
      message: expect.stringMatching(new RegExp(`Instance ${first.instance_uuid} .*other node ${second.uuid}$`)) as string,
    });
    const nobody = randomUUID();
    await expect(nodes().update(nobody, { name: 'x' })).rejects.toMatchObject({ name: 'NodeNotFound', details: { node: nobody } });
    await expect(nodes().update('\0', {})).rejects.toMatchObject({ name: 'NodeNotFound' });
    expect(await nodes().find(second.uuid)).toEqual(second);
  });
});

describe('mergeInternal', () => {
  it('sets and removes keys, and keeps the others', async () => {
    const node = await make({ driver_internal_info: foreign({ stays: { deep: 1 }, goes: 1, changes: 1 }) });
    const changes = { changes: { now: [2] }, goes: undefined, fresh: false, unknown: undefined, empty: null, "q'\\?": '?' };
    const after = await nodes().mergeInternal(node.uuid, foreign(changes));
    expect(after.driver_internal_info).toEqual({ stays: { deep: 1 }, changes: { now: [2] }, fresh: false, empty: null, "q'\\?": '?' });
    expect(after).toMatchObject({ revision: 2, updated_at: '2026-01-02T03:04:05.678000+00:00' });
  });
  it('loses no key among many simultaneous calls', async () => {
    const { uuid } = await make();
    const keys = Array.from({ length: 40 }, (_, index) => `key${index}`);
    await Promise.all(keys.map((key, index) => nodes().mergeInternal(uuid, foreign({ [key]: index }))));
    const node = await nodes().find(uuid);
    expect(node.driver_internal_info).toEqual(Object.fromEntries(keys.map((key, index) => [key, index])));
    expect(node.revision).toBe(41);
  });
  it('loses no field or key with simultaneous updates', async () => {
    const { uuid } = await make();
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 2 ? nodes().mergeInternal(uuid, { [`k${index}`]: 1 }) : nodes().update(uuid, { last_error: `e${index}` }),
      ),
    );
    const node = await nodes().find(uuid);
    expect(Object.keys(node.driver_internal_info)).toHaveLength(10);
    expect(node.last_error).toMatch(/^e/);
  });
});

it('mergeInternalOnce() tells a power change that ends meanwhile from a value that is there', async () => {
  const { uuid } = await make();
  const token = (text: string) => ({ agent_secret_token: text });
  for (let round = 0; round < 150; round++) {
    await nodes().update(uuid, { target_power_state: 'power on' });
    await nodes().mergeInternal(uuid, { agent_secret_token: undefined });
    const [given] = await Promise.allSettled([
      nodes().mergeInternalOnce(uuid, token(`t${round}`)),
      nodes().update(uuid, { target_power_state: null }),
    ]);
    if (given.status === 'fulfilled') expect(given.value).toBe(true);
    else expect(given.reason).toMatchObject({ name: 'NodeLocked' });
  }
  await nodes().mergeInternal(uuid, token('first'));
  expect(await nodes().mergeInternalOnce(uuid, token('second'))).toBe(false);
});

describe('remove', () => {
  it('removes the node with its ports, boot record and inventory, and nothing of other nodes', async () => {
    const store = database.store();
    const [gone, stays] = [await make(), await make()];
    const of = async (node: NodeRecord, digit: number) => {
      const mac = `52:54:00:00:00:0${digit}`;
      await store.ports.create({ uuid: randomUUID(), node_uuid: node.uuid, address: mac });
      await store.boots.put({ node_uuid: node.uuid, macs: [mac], method: 'ipxe', purpose: 'disk', kernel_args: '', files: {} });
      await store.inventories.put(node.uuid, { inventory: { interfaces: [] }, plugin_data: {} });
    };
    await of(gone, 1);
    await of(stays, 2);
    await nodes().remove(gone.uuid);
    await expect(nodes().remove(gone.uuid)).rejects.toMatchObject({ name: 'NodeNotFound', details: { node: gone.uuid } });
    expect((await store.ports.list({})).map((port) => port.node_uuid)).toEqual([stays.uuid]);
    expect(await store.boots.forMac('52:54:00:00:00:01')).toBeUndefined();
    expect(await store.inventories.find(gone.uuid)).toBeUndefined();
    expect(await store.boots.ofNode(stays.uuid)).toBeDefined();
    expect(await store.inventories.find(stays.uuid)).toBeDefined();
  });
});
