/** Inventories in a folder: whole files under names that cannot lead elsewhere, gone with their nodes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InventoryRecord } from '../../model/records';
import { inventoriesIn, noInventories } from '../../store/inventory-folder';
import { openStore, type OpenStore } from '../../store/postgres';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { useDatabase } from '../support/database';

const UUID = '11111111-2222-4333-8444-555555555555';
const record = (hostname: string): InventoryRecord => ({ inventory: { interfaces: [], hostname }, plugin_data: { a: [1] } });
const database = useDatabase();
let folder: string;
let store: OpenStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-inventories-'));
  const options = { connection: database.connection(), poolSize: 3, clock: systemClock, log: silentLog, migrate: false };
  store = await openStore({ ...options, inventories: inventoriesIn(folder) });
  await store.nodes.create({ uuid: UUID, driver: 'ipmi' });
});
afterEach(async () => {
  await store.close();
  await database.clear();
  rmSync(folder, { recursive: true, force: true });
});

it('keeps the latest inventory of each node in files for the owner only, until it is removed', async () => {
  const { inventories } = store;
  expect(await inventories.find(UUID)).toBeUndefined();
  for (const name of ['one', 'two', 'three']) {
    await inventories.put(UUID, record(name));
    expect(await inventories.find(UUID)).toEqual(record(name));
  }
  const files = readdirSync(folder);
  expect(files.sort()).toEqual([`${UUID}.a.json`, `${UUID}.b.json`]);
  for (const file of files) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
  // Nothing of it is in the database.
  expect(await database.store().inventories.find(UUID)).toBeUndefined();
  await inventories.remove(UUID);
  await inventories.remove(UUID);
  expect(readdirSync(folder)).toEqual([]);
  expect(await inventories.find(UUID)).toBeUndefined();
});

it.each(['the transaction fails', 'the writer dies in the middle of the file'])('keeps the former inventory when %s', async (how) => {
  await store.inventories.put(UUID, record('one'));
  const failing = store.transaction(async ({ inventories }) => {
    await inventories.put(UUID, record('two'));
    if (how !== 'the transaction fails') writeFileSync(join(folder, `${UUID}.b.json`), '{"inventory": {"inter');
    expect(await store.inventories.find(UUID)).toEqual(record('one'));
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await store.inventories.find(UUID)).toEqual(record('one'));
  await store.inventories.put(UUID, record('three'));
  expect(await store.inventories.find(UUID)).toEqual(record('three'));
});

it('keeps the committed inventory of two writers, even when the other one fails', async () => {
  await store.inventories.put(UUID, record('before'));
  let slow: Promise<void> | undefined;
  await store.transaction(async ({ inventories }) => {
    await inventories.put(UUID, record('right'));
    slow = store.transaction(async (inner) => {
      await inner.inventories.put(UUID, record('late'));
      throw new Error('its lock is lost');
    });
    slow.catch(() => {});
  });
  await expect(slow).rejects.toThrow('its lock is lost');
  expect(await store.inventories.find(UUID)).toEqual(record('right'));
});

it.each(['../escape', '/etc/passwd', `${UUID}/x`, `{${UUID}}`, ''])('rejects %j as a file name', async (name) => {
  const wrong = { message: `${name} is not a UUID` };
  expect(await store.inventories.find(name)).toBeUndefined();
  await expect(store.inventories.put(name, record('x'))).rejects.toMatchObject(wrong);
  await expect(store.inventories.remove(name)).rejects.toMatchObject(wrong);
});

it('reports a missing directory as InventoryFolderFailure, not as a database failure', async () => {
  await store.inventories.put(UUID, record('one'));
  rmSync(folder, { recursive: true });
  await expect(store.transaction(({ inventories }) => inventories.put(UUID, record('two')))).rejects.toMatchObject({
    name: 'InventoryFolderFailure',
    message: `The inventory of node ${UUID} cannot be written in [inventory]directory: ENOENT: no such file or directory`,
  });
  // A file takes the place of the folder.
  writeFileSync(folder, '');
  for (const ask of [() => store.inventories.find(UUID), () => store.inventories.remove(UUID)])
    await expect(ask()).rejects.toMatchObject({
      name: 'InventoryFolderFailure',
      message: expect.stringMatching(/ENOTDIR: not a directory$/) as string,
    });
});

it('leaves no incomplete file when a write fails', async () => {
  await store.inventories.put(UUID, record('one'));
  const full = {
    toJSON: (): never => {
      throw new Error('ENOSPC: no space left on device, write');
    },
  };
  const put = store.transaction(({ inventories }) => inventories.put(UUID, { ...record('two'), plugin_data: { full } }));
  await expect(put).rejects.toThrow(/cannot be written in \[inventory\]directory: ENOSPC: no space left on device$/);
  expect(readdirSync(folder)).toEqual([`${UUID}.a.json`]);
  expect(await store.inventories.find(UUID)).toEqual(record('one'));
});

it('does not follow symbolic links', async () => {
  const elsewhere = join(folder, 'elsewhere');
  writeFileSync(elsewhere, JSON.stringify(record('secret')));
  await store.inventories.put(UUID, record('one'));
  rmSync(join(folder, `${UUID}.a.json`));
  for (const file of ['a', 'b']) symlinkSync(elsewhere, join(folder, `${UUID}.${file}.json`));
  for (const ask of [store.inventories.find(UUID), store.inventories.put(UUID, record('x'))])
    await expect(ask).rejects.toMatchObject({ cause: { code: 'ELOOP' } });
  expect(JSON.parse(readFileSync(elsewhere, 'utf8'))).toEqual(record('secret'));
});

it('is independent of inventories in the database', async () => {
  const inside = database.store().inventories;
  await inside.put(UUID, record('inside'));
  expect(await store.inventories.find(UUID)).toBeUndefined();
  await store.inventories.put(UUID, record('outside'));
  expect(await inside.find(UUID)).toBeUndefined();
  await inside.put(UUID, record('inside again'));
  expect(await store.inventories.find(UUID)).toBeUndefined();
  expect(await inside.find(UUID)).toMatchObject(record('inside again'));
});

it('noInventories stores nothing', async () => {
  await noInventories.put(UUID, record('x'));
  await noInventories.remove(UUID);
  expect(await noInventories.find(UUID)).toBeUndefined();
});
