/** Inventories as objects of an object store: their names, half-written inventories, and the messages of failures. */
import { inventoriesAmong } from '../../store/inventory-objects';

type ObjectContainer = Parameters<typeof inventoriesAmong>[0];
const NODE = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';
const INVENTORY = `inspector_data-${NODE}-inventory`;
const PLUGIN = `inspector_data-${NODE}-plugin`;
const RECORD = { inventory: { cpu: { count: 4 } }, plugin_data: { own: [1] } } as never;

function container(objects: Readonly<Record<string, string>> = {}): ObjectContainer & { readonly calls: string[]; content(): object } {
  const stored = new Map(Object.entries(objects));
  const calls: string[] = [];
  return {
    calls,
    content: () => Object.fromEntries(stored),
    put: async (name, data) => {
      calls.push(`put ${name}`);
      stored.set(name, Buffer.from(data).toString());
    },
    get: async (name) => {
      calls.push(`get ${name}`);
      const text = stored.get(name);
      return text === undefined ? undefined : Buffer.from(text);
    },
    remove: async (name) => {
      calls.push(`remove ${name}`);
      stored.delete(name);
    },
  };
}

it('puts the objects that Ironic uses, the inventory last', async () => {
  const objects = container();
  await inventoriesAmong(objects).put(NODE, RECORD);
  expect(objects.calls).toEqual([`put ${PLUGIN}`, `put ${INVENTORY}`]);
  expect(objects.content()).toEqual({ [PLUGIN]: '{"own":[1]}', [INVENTORY]: '{"cpu":{"count":4}}' });
  expect(await inventoriesAmong(objects).find(NODE)).toEqual(RECORD);
});

it.each([
  ['no objects', {}],
  ['only the plugin data', { [PLUGIN]: '{}' }],
  ['only the inventory', { [INVENTORY]: '{}' }],
])('find returns undefined with %s', async (_, objects) => {
  expect(await inventoriesAmong(container(objects)).find(NODE)).toBeUndefined();
});

it('remove deletes both objects', async () => {
  const objects = container({ [PLUGIN]: '{}', [INVENTORY]: '{}', other: '' });
  await inventoriesAmong(objects).remove(NODE);
  expect(objects.content()).toEqual({ other: '' });
});

const broken = (name: keyof ObjectContainer): ObjectContainer => ({
  ...container({ [PLUGIN]: '{}', [INVENTORY]: '{}' }),
  [name]: async () => {
    throw new Error('HTTP status 503');
  },
});
it.each([
  ['get', 'find', 'get object'],
  ['put', 'put', 'put object'],
  ['remove', 'remove', 'delete object'],
] as const)('a failed %s is a SwiftOperationError', async (member, operation, words) => {
  await expect(inventoriesAmong(broken(member))[operation](NODE, RECORD)).rejects.toMatchObject({
    name: 'SwiftOperationError',
    message: `Swift operation '${words}' failed: HTTP status 503`,
  });
});

it('put does not write the inventory if the plugin data fail', async () => {
  const objects = container();
  const failing: ObjectContainer = {
    ...objects,
    put: async (name, data) => {
      if (name === PLUGIN) throw new Error('HTTP status 507');
      await objects.put(name, data);
    },
  };
  await expect(inventoriesAmong(failing).put(NODE, RECORD)).rejects.toMatchObject({ name: 'SwiftOperationError' });
  expect(objects.content()).toEqual({});
});

it('find fails for an object that is not JSON', async () => {
  const objects = container({ [PLUGIN]: '{}', [INVENTORY]: '<html>' });
  await expect(inventoriesAmong(objects).find(NODE)).rejects.toMatchObject({ name: 'SwiftOperationError' });
});
