/** Files of snapshots in a Glance that fails: each failure leaves no image, and a later attempt succeeds. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepInGlance } from '../../drivers/common/snapshot-glance';
import type { SnapshotRecord } from '../../model/records';
import type { Services } from '../../wire/keystone/services';
import { startFakeGlance, type FakeGlance } from '../support/fakes/fake-glance';
import { servicesOf } from '../support/services';

const folder = mkdtempSync(join(tmpdir(), 'snapshot-glance-'));
const path = join(folder, 'file');
const content = randomBytes(3_000_000);
const SNAPSHOT = {
  uuid: randomUUID(),
  node_uuid: randomUUID(),
  node_name: 'node-1',
  owner: 'project-1',
  description: null,
  public: false,
  image_id: null,
  size: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
} as SnapshotRecord;
let fake: FakeGlance;
let services: Services;

beforeEach(async () => {
  writeFileSync(path, content);
  fake = await startFakeGlance();
  services = servicesOf({ 'glance.auth_type': 'none', 'glance.endpoint_override': fake.url });
});
afterEach(async () => {
  await services.glance.close();
  await fake.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

const { signal } = new AbortController();
/** @returns the id that was recorded last */
async function keep(changes: Partial<SnapshotRecord> = {}): Promise<string | null> {
  let id: string | null = changes.image_id ?? null;
  const remember = async (given: string): Promise<void> => {
    // Nothing is there that a record does not know.
    expect(fake.images.has(given)).toBe(false);
    id = given;
  };
  const snapshot = { ...SNAPSHOT, ...changes };
  await keepInGlance({ glance: services.glance, snapshot, path, signal, remember, newId: randomUUID });
  return id;
}
const only = () => {
  const [image, ...others] = fake.images.values();
  expect(others).toEqual([]);
  return image!;
};

it('makes an image of the project of the snapshot, which says where it comes from', async () => {
  const id = await keep();
  expect(only().data?.equals(content)).toBe(true);
  expect(only().fields).toMatchObject({
    id,
    name: `snapshot ${SNAPSHOT.uuid} of node-1`,
    owner: 'project-1',
    visibility: 'private',
    disk_format: 'qcow2',
    container_format: 'bare',
    bloomery_snapshot: SNAPSHOT.uuid,
    bloomery_node: SNAPSHOT.node_uuid,
  });
});

it('names an image by the description, and makes that of a public snapshot public', async () => {
  await keep({ description: 'x'.repeat(300), public: true, owner: null });
  expect(only().fields).toMatchObject({ name: 'x'.repeat(255), visibility: 'public' });
  expect(only().fields).not.toHaveProperty('owner');
});

it.each([
  ['refuses the image', 'POST', '', 403, 'HTTP status 403: as the test says'],
  ['has no room', 'PUT', '/file', 413, 'HTTP status 413'],
  ['does not accept the token', 'PUT', '/file', 401, 'HTTP status 401'],
  ['fails', 'PUT', '/file', 500, 'HTTP status 500'],
  ['closes the connection', 'PUT', '/file', 'cut', /closed|ECONNRESET|EPIPE|terminated/],
  ['has other bytes', 'PUT', '/file', 'damaged', 'the sha512 checksum of the image is not that of the file'],
] as const)('leaves no image in a Glance that %s, and makes one at the next attempt', async (_, failing, end, fault, reason) => {
  fake.fault = (method, url) => (method === failing && url.endsWith(end) ? fault : undefined);
  await expect(keep()).rejects.toThrow(reason);
  expect(fake.images.size).toBe(0);
  fake.fault = () => undefined;
  await keep();
  expect(only().data?.equals(content)).toBe(true);
});

describe('after the death of a conductor', () => {
  it('an image that is whole counts, and is not sent again', async () => {
    const id = await keep();
    fake.requests.length = 0;
    expect(await keep({ image_id: id })).toBe(id);
    expect(fake.requests).toEqual([`GET /v2/images/${id}`]);
  });
  it.each([
    ['is half made', (id: string) => Object.assign(fake.images.get(id)!.fields, { status: 'saving' })],
    ['has other bytes', (id: string) => Object.assign(fake.images.get(id)!.fields, { os_hash_value: '0'.repeat(128) })],
    ['is gone', (id: string) => fake.images.delete(id)],
  ])('an image that %s is replaced', async (_, spoil) => {
    const id = (await keep())!;
    spoil(id);
    const other = await keep({ image_id: id });
    expect(other).not.toBe(id);
    expect(only().fields['id']).toBe(other);
  });
  it('an image that cannot be deleted is deleted by the next attempt', async () => {
    fake.fault = (method, url) => (method === 'DELETE' ? 503 : url.endsWith('/file') ? 500 : undefined);
    await expect(keep()).rejects.toThrow('HTTP status 500');
    const left = String(only().fields['id']);
    fake.fault = () => undefined;
    expect(await keep({ image_id: left })).not.toBe(left);
    only();
  });
});

it('refuses a file that has changed since its check', async () => {
  writeFileSync(path, Buffer.concat([content.subarray(1), Buffer.from('x')]));
  await expect(keep()).rejects.toThrow('the file has changed since its check');
  expect(fake.images.size).toBe(0);
});
