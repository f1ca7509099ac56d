/** Snapshots whose target is Glance, over HTTP with a simulated machine: stored after faults and a restart, deployed, deleted. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startFakeGlance, type FakeGlance } from '../../support/fakes/fake-glance';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
let fake: FakeGlance;
beforeAll(async () => {
  fake = await startFakeGlance();
  whole = await startWholeServer(database.connection(), {
    machines: 3,
    options: {
      'conductor.check_provision_state_interval': 1,
      'snapshot.check_interval': 1,
      'snapshot.min_free_space': 0,
      'snapshot.glance': true,
      'glance.auth_type': 'none',
      'glance.endpoint_override': fake.url,
    },
  });
});
afterAll(async () => {
  await whole.close();
  await fake.close();
}, 30_000);

async function nodeOf(at: number): Promise<string> {
  const uuid = await whole.enrol(whole.fleet.machines[at]!, { automated_clean: false, resource_class: 'small' });
  const owned = await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/owner', value: 'project-1' }]);
  expect(owned).toMatchObject({ status: 200 });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  return uuid;
}
async function setSource(uuid: string, info: object): Promise<void> {
  expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: info }])).toMatchObject({
    status: 200,
  });
}
const show = async (uuid: string) => (await whole.call('GET', `/v1/snapshots/${uuid}`)).body;
const snapshotOf = async (uuid: string): Promise<string> =>
  String((await whole.call('POST', `/v1/nodes/${uuid}/snapshots`, { description: 'before' })).body['uuid']);
const available = (id: string) => until('the snapshot is available', async () => (await show(id))['state'] === 'available');
async function deployed(uuid: string, source: string): Promise<unknown> {
  await setSource(uuid, { image_source: source });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  const machine = whole.fleet.machines[1]!;
  const content = machine.control.content('/dev/sda');
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  return content;
}
const remove = (id: string) => whole.call('DELETE', `/v1/snapshots/${id}`);

it('stores a snapshot in Glance, which others deploy with either name, and deletes it there', async () => {
  const uuid = await nodeOf(0);
  await setSource(uuid, { image_source: 'file:///unknown', capabilities: {} });
  await whole.order(uuid, 'adopt');
  await whole.reach(uuid, 'active');

  // Glance fails first: the file stays here, and the reason can be read.
  fake.fault = (_, url) => (url.endsWith('/file') ? 500 : undefined);
  const id = await snapshotOf(uuid);
  await until('the upload fails', async () => (await show(id))['last_error'] !== null);
  expect(await show(id)).toMatchObject({ state: 'storing', storage: null, last_error: expect.stringContaining('Glance: ') as unknown });
  expect(fake.images.size).toBe(0);
  fake.fault = () => undefined;
  await available(id);
  const saved = await show(id);
  const image = String(saved['image_id']);
  expect(saved).toMatchObject({ storage: 'glance', last_error: null });
  expect(fake.images.get(image)!.fields).toMatchObject({ owner: 'project-1', name: 'before', size: saved['size'], visibility: 'private' });
  expect(readdirSync(join(whole.stateDir, 'snapshots'))).toEqual([]);

  const other = await nodeOf(1);
  await whole.order(other, 'provide');
  await whole.reach(other, 'available');
  const bytes = { sha256: saved['sha256'], size: saved['size'] };
  expect(await deployed(other, `snapshot://${id}`)).toMatchObject(bytes);
  expect(await deployed(other, image)).toMatchObject(bytes);

  fake.fault = (method) => (method === 'DELETE' ? 500 : undefined);
  expect(await remove(id)).toMatchObject({ status: 503 });
  expect(await show(id)).toMatchObject({ state: 'available' });
  fake.fault = () => undefined;
  expect(await remove(id)).toMatchObject({ status: 204 });
  expect(fake.images.size).toBe(0);

  // An image that is gone cannot be deployed, and counts as deleted.
  await whole.reach(uuid, 'active');
  const next = await snapshotOf(uuid);
  await available(next);
  fake.images.clear();
  await setSource(other, { image_source: `snapshot://${next}` });
  const refused = await whole.call('PUT', `/v1/nodes/${other}/states/provision`, { target: 'active' });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).toContain('can not be found');
  expect(await remove(next)).toMatchObject({ status: 204 });

  // A conductor that ends during the upload: the next one leaves one image.
  await whole.reach(uuid, 'active');
  let isHeld = false;
  fake.fault = (_, url) => {
    if (!url.endsWith('/file')) return undefined;
    isHeld = true;
    return new Promise(() => {});
  };
  const last = await snapshotOf(uuid);
  await until('the upload has begun', () => isHeld);
  fake.fault = () => undefined;
  await whole.restart();
  await available(last);
  expect([...fake.images.keys()]).toEqual([(await show(last))['image_id']]);
});

it('leaves no image of a snapshot that is deleted while it is stored', async () => {
  const uuid = await nodeOf(2);
  await setSource(uuid, { image_source: 'file:///unknown', capabilities: {} });
  await whole.order(uuid, 'adopt');
  await whole.reach(uuid, 'active');
  const before = [...fake.images.keys()];
  let release = (): void => {};
  let isHeld = false;
  fake.fault = (_, url) => {
    if (!url.endsWith('/file')) return undefined;
    isHeld = true;
    return new Promise((resolve) => (release = () => resolve(undefined)));
  };
  const id = await snapshotOf(uuid);
  await until('the upload has begun', () => isHeld);
  expect(await remove(id)).toMatchObject({ status: 204 });
  fake.fault = () => undefined;
  release();
  await until('the image is gone', () => fake.images.size === before.length);
  expect([...fake.images.keys()]).toEqual(before);
});
