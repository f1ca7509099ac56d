import { randomUUID } from 'node:crypto';
import type { NewErasure } from '../../../model/records';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const erasures = () => database.store().erasures;
const NODE = randomUUID();
const made = (more: Partial<NewErasure> = {}): NewErasure => ({
  uuid: randomUUID(),
  node_uuid: NODE,
  node_name: 'one',
  owner: 'owner',
  lessee: 'lessee',
  instance_uuid: null,
  step: 'deploy.erase_devices',
  erased: 2,
  skipped: 0,
  serials: ['S1', 'S2'],
  command: 'command',
  document: '{}\n',
  signature: 's',
  public_key: 'p',
  key_fingerprint: 'f',
  ...more,
});
beforeEach(() => database.query('DELETE FROM erasures'));

it('issues one certificate for each command of an agent', async () => {
  const first = made();
  expect(await erasures().issue(first)).toBe(true);
  expect(await erasures().issue(made())).toBe(false);
  expect(await erasures().issue(made({ command: 'another' }))).toBe(true);
  expect(await erasures().issue(made({ node_uuid: randomUUID() }))).toBe(true);
  expect(await erasures().find(first.uuid)).toMatchObject({ ...first, updated_at: null });
});

it('lists those of a node, of a serial number, and of a project as owner or lessee', async () => {
  const [a, b] = [made(), made({ command: 'b', serials: ['S3'], owner: null, lessee: 'other' })];
  for (const each of [a, b]) await erasures().issue(each);
  const uuids = async (filter: Parameters<ReturnType<typeof erasures>['sizes']>[0]) =>
    (await erasures().sizes(filter)).map(({ uuid }) => uuid);
  expect(await uuids({ where: { node_uuid: NODE } })).toEqual([a.uuid, b.uuid]);
  expect(await uuids({ where: { node_name: 'two' } })).toEqual([]);
  expect(await uuids({ listing: { column: 'serials', text: 'S2' } })).toEqual([a.uuid]);
  expect(await uuids({ listing: { column: 'serials', text: 'S' } })).toEqual([]);
  for (const project of ['owner', 'lessee']) expect(await uuids({ ofProject: project })).toEqual([a.uuid]);
  expect(await uuids({ ofProject: 'nobody' })).toEqual([]);
  expect(await uuids({ ofProject: 'owner', marker: a.uuid })).toEqual([]);
  await expect(uuids({ ofProject: 'owner', marker: b.uuid })).rejects.toMatchObject({ name: 'RecordNotFound' });
});

it('removes the oldest ones before a time, some at a time', async () => {
  for (const command of ['1', '2', '3']) await erasures().issue(made({ command }));
  await database.query(`UPDATE erasures SET created_at = now() - interval '11 years' WHERE command IN ('1', '2')`);
  const before = new Date(Date.now() - 3650 * 86_400_000).toISOString();
  expect(await erasures().trim({ before, atMost: 1 })).toBe(1);
  expect(await erasures().trim({ before, atMost: 10 })).toBe(1);
  expect(await erasures().trim({ before, atMost: 10 })).toBe(0);
  expect(await database.query('SELECT command FROM erasures')).toEqual([{ command: '3' }]);
});
