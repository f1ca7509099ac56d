/** Inventories in a folder: whole files under names that cannot lead elsewhere, gone with their nodes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InventoryRecord } from '../../model/records';
import { inventoriesIn, noInventories } from '../../store/inventory-folder';
import { openStore } from '../../store/postgres';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import { useDatabase } from '../support/database';

const UUID = '11111111-2222-4333-8444-555555555555';
const record = (hostname: string): InventoryRecord => ({ inventory: { interfaces: [], hostname }, plugin_data: { a: [1] } });
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-inventories-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('keeps the latest of each node, for its owner only, and forgets it', async () => {
  const inventories = inventoriesIn(folder);
  expect(await inventories.find(UUID)).toBeUndefined();
  await inventories.put(UUID, record('one'));
  await inventories.put(UUID, record('two'));
  expect(await inventories.find(UUID)).toEqual(record('two'));
  expect(readdirSync(folder)).toEqual([`${UUID}.json`]);
  expect(statSync(join(folder, `${UUID}.json`)).mode & 0o777).toBe(0o600);
  await inventories.remove(UUID);
  await inventories.remove(UUID);
  expect(readdirSync(folder)).toEqual([]);
});

it('shows what was there before until the new one is whole', async () => {
  const inventories = inventoriesIn(folder);
  await inventories.put(UUID, record('one'));
  // A writer that died.
  writeFileSync(join(folder, `${UUID}.json.new`), '{"inventory": {"inter');
  expect(await inventories.find(UUID)).toEqual(record('one'));
  await inventories.put(UUID, record('two'));
  expect(await inventories.find(UUID)).toEqual(record('two'));
});

it.each(['../escape', '/etc/passwd', `${UUID}/x`, `{${UUID}}`, ''])('%j is no name of a file', async (name) => {
  const inventories = inventoriesIn(folder);
  const wrong = { message: `${name} is no UUID` };
  await expect(inventories.find(name)).rejects.toMatchObject(wrong);
  await expect(inventories.put(name, record('x'))).rejects.toMatchObject(wrong);
  await expect(inventories.remove(name)).rejects.toMatchObject(wrong);
});

it('follows no link', async () => {
  const inventories = inventoriesIn(folder);
  const elsewhere = join(folder, 'elsewhere');
  writeFileSync(elsewhere, JSON.stringify(record('secret')));
  for (const name of [`${UUID}.json`, `${UUID}.json.new`]) symlinkSync(elsewhere, join(folder, name));
  await expect(inventories.find(UUID)).rejects.toMatchObject({ code: 'ELOOP' });
  await expect(inventories.put(UUID, record('x'))).rejects.toMatchObject({ code: 'ELOOP' });
  expect(JSON.parse(readFileSync(elsewhere, 'utf8'))).toEqual(record('secret'));
});

it('keeps nothing where nothing is to be kept', async () => {
  await noInventories.put(UUID, record('x'));
  await noInventories.remove(UUID);
  expect(await noInventories.find(UUID)).toBeUndefined();
});

describe('a store whose inventories are elsewhere', () => {
  const database = useDatabase();
  it('puts them there from its transactions too, and nothing when the writing of the node fails', async () => {
    const options = { connection: database.connection(), poolSize: 2, clock: systemClock, log: silentLog, migrate: false };
    const store = await openStore({ ...options, inventories: inventoriesIn(folder) });
    try {
      await store.nodes.create({ uuid: UUID, driver: 'ipmi' });
      await store.transaction(({ inventories }) => inventories.put(UUID, record('one')));
      expect(await store.inventories.find(UUID)).toEqual(record('one'));
      expect(await database.store().inventories.find(UUID)).toBeUndefined();
      const failing = store.transaction(async (inner) => {
        await inner.nodes.update('00000000-0000-4000-8000-000000000000', { extra: {} });
        await inner.inventories.put(UUID, record('two'));
      });
      await expect(failing).rejects.toMatchObject({ name: 'NodeNotFound' });
      expect(await store.inventories.find(UUID)).toEqual(record('one'));
    } finally {
      await store.close();
    }
  });
});
