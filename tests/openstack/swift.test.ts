/** What we store in Swift, in a real one: inventories, objects that expire, and URLs from which agents read without a token. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { imageTempUrl } from '../../drivers/common/glance-images';
import { inventoriesAmong } from '../../store/inventory-objects';
import { ServiceError } from '../../wire/keystone/services';
import { objectTempUrl, putObject, swiftContainer, temporaryUrlKey } from '../../wire/openstack/swift';
import { timeoutSignal } from '../../wire/timeout-signal';
import { servicesOf } from '../support/services';
import { testTask } from '../support/task';
import { startKeystone, type RealKeystone } from './services/keystone';
import { startSwift, type RealSwift } from './services/swift';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-swift-'));
const KEY = 'a secret of tests';
const NODE = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';
let keystone: RealKeystone;
let swift: RealSwift;

beforeAll(async () => {
  mkdirSync(join(folder, 'keystone'));
  keystone = await startKeystone(join(folder, 'keystone'));
  swift = await startSwift(join(folder, 'swift'), keystone);
}, 1_800_000);
afterAll(async () => {
  await swift?.close();
  await keystone?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

const call = () => ({ signal: timeoutSignal(600_000) });
async function read(url: string, method = 'GET'): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(url, { method, ...call() });
  return { status: response.status, body: await response.text() };
}
const isThere = async (container: string, name: string): Promise<boolean> =>
  (await swiftContainer(swift.client, container).get(name)) !== undefined;

it('the inventory store saves an inventory as two objects, replaces it, and removes it', async () => {
  const inventories = inventoriesAmong(swiftContainer(swift.client, 'inventories of nodes'));
  expect(await inventories.find(NODE)).toBeUndefined();
  const first = { inventory: { cpu: { count: 4 } }, plugin_data: { 'Ünïcode/': [1] } };
  await inventories.put(NODE, first as never);
  expect(await inventories.find(NODE)).toEqual(first);
  await inventories.put(NODE, { ...first, inventory: { cpu: { count: 8 } } } as never);
  expect(await inventories.find(NODE)).toEqual({ ...first, inventory: { cpu: { count: 8 } } });
  expect(await isThere('inventories of nodes', `inspector_data-${NODE}-inventory`)).toBe(true);
  await inventories.remove(NODE);
  await inventories.remove(NODE);
  expect(await inventories.find(NODE)).toBeUndefined();
  expect(await isThere('inventories of nodes', `inspector_data-${NODE}-plugin`)).toBe(false);
});

it('putObject uploads a stream', async () => {
  const bytes = randomBytes(3_000_000);
  const body = Readable.from(
    Array.from({ length: 30 }, (_, at) => bytes.subarray(at * 100_000, (at + 1) * 100_000)),
    { objectMode: false },
  );
  await putObject(
    swift.client,
    { container: 'media', name: 'boot.iso', data: async () => ({ body, size: bytes.length }), secondsToLive: 900 },
    call(),
  );
  expect((await swiftContainer(swift.client, 'media').get('boot.iso'))?.equals(bytes)).toBe(true);
  const { headers } = await swift.client.request('/media/boot.iso', { method: 'HEAD', ...call() });
  expect(headers['x-delete-at']).toMatch(/^\d{10}$/);
});

it('putObject sets the time at which the object expires', async () => {
  await putObject(swift.client, { container: 'drives', name: 'brief', data: Buffer.from('x'), secondsToLive: 3600 }, call());
  const { headers } = await swift.client.request('/drives/brief', { method: 'HEAD', ...call() });
  expect(headers['x-delete-at']).toMatch(/^\d{10}$/);
});

describe('temporary URLs', () => {
  const expires = Math.floor(Date.now() / 1000) + 3600;
  const object = { container: 'drives', name: 'of a node' };

  it('require a key of the account', async () => {
    expect(await temporaryUrlKey(swift.client, call())).toBeUndefined();
    expect(await objectTempUrl(swift.client, { ...object, expires }, call())).toBeUndefined();
  });

  it('give everybody read access to the object until they expire', async () => {
    await swift.client.request('', { method: 'POST', headers: { 'x-account-meta-temp-url-key': KEY }, accept: [], ...call() });
    await putObject(swift.client, { ...object, data: Buffer.from('a config drive') }, call());
    const url = (await objectTempUrl(swift.client, { ...object, expires }, call()))!;
    expect(await read(url)).toEqual({ status: 200, body: 'a config drive' });
    expect((await read(url, 'DELETE')).status).toBe(401);
    expect((await read(url.replace('of%20a%20node', 'other'))).status).toBe(401);
    expect((await read(url.replace(/\?.*/, ''))).status).toBe(401);
    const old = (await objectTempUrl(swift.client, { ...object, expires: 1_000_000_000 }, call()))!;
    expect((await read(old)).status).toBe(401);
  });

  it('give agents read access to images of Glance', async () => {
    const services = { ...servicesOf(), swift: swift.client };
    const { task } = testTask({ connections: { services } });
    await putObject(swift.client, { container: 'glance', name: NODE, data: Buffer.from('an image') }, call());
    const now = { ...task.clock, now: () => Date.now() };
    expect(await read(await imageTempUrl({ ...task, clock: now }, { id: NODE }))).toEqual({ status: 200, body: 'an image' });
    await expect(imageTempUrl({ ...task, connections: { ...task.connections, services: servicesOf() } }, { id: NODE })).rejects.toThrow(
      'Swift temporary URLs require a Swift endpoint URL',
    );
  });
});

it("a request that Swift refuses fails with the status of Swift's response", async () => {
  const refused = swift.client.request('/no-such-container/object', call());
  await expect(refused).rejects.toMatchObject({ kind: 'failing', status: 404 });
  await expect(refused).rejects.toBeInstanceOf(ServiceError);
});
