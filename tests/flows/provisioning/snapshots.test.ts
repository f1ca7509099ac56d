/** Snapshots over HTTP, with simulated machines: saved, refused, interrupted, deployed elsewhere, kept and removed. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { requestText } from '../../support/request';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
let folder: string;

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 6,
    options: {
      'conductor.check_provision_state_interval': 1,
      'snapshot.check_interval': 1,
      'snapshot.min_free_space': 0,
    },
  });
  folder = join(whole.stateDir, 'snapshots');
});
afterAll(() => whole.close(), 30_000);

let next = 0;
async function machineIn(state: 'active' | 'adopted' | 'available') {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, resource_class: 'small' });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  if (state === 'adopted') {
    await setSource(uuid, { image_source: 'file:///unknown', capabilities: {} });
    await whole.order(uuid, 'adopt');
    await whole.reach(uuid, 'active');
    return { uuid, machine };
  }
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  if (state === 'active') {
    await setSource(uuid, whole.deployable());
    await whole.order(uuid, 'active');
    await whole.reach(uuid, 'active');
  }
  return { uuid, machine };
}
async function setSource(uuid: string, info: object): Promise<void> {
  const answer = await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: info }]);
  expect(answer).toMatchObject({ status: 200 });
}
const create = (uuid: string, body: object = {}) => whole.call('POST', `/v1/nodes/${uuid}/snapshots`, body);
const show = async (uuid: string) => (await whole.call('GET', `/v1/snapshots/${uuid}`)).body;
async function ended(uuid: string) {
  await until('the snapshot ends', async () => ['available', 'failed'].includes(String((await show(uuid))['state'])));
  return show(uuid);
}

it('saves the disk of an adopted machine, and deploys it elsewhere', async () => {
  const { uuid, machine } = await machineIn('adopted');
  const made = await create(uuid, { description: 'before the upgrade', blocks: 'all' });
  expect(made).toMatchObject({
    status: 201,
    body: { state: 'queued', blocks: 'all', node_uuid: uuid, description: 'before the upgrade', public: false, sha256: null },
  });
  const id = String(made.body['uuid']);
  const saved = await ended(id);
  expect(saved).toMatchObject({ state: 'available', progress: 100, last_error: null });
  await whole.reach(uuid, 'active');
  expect(await whole.call('GET', `/v1/nodes/${uuid}/snapshots`)).toMatchObject({ body: { snapshots: [{ uuid: id }] } });
  expect(readdirSync(folder)).toEqual([`${id}.qcow2`]);

  const other = await machineIn('available');
  await setSource(other.uuid, { image_source: `snapshot://${id}` });
  await whole.order(other.uuid, 'active');
  await whole.reach(other.uuid, 'active');
  expect(other.machine.control.content('/dev/sda')).toMatchObject({ sha256: saved['sha256'], size: saved['size'] });

  const command = (...words: readonly string[]) => runCommand(['snapshot', ...words, '--url', whole.server.apiUrl!]);
  const line = `${id}  ${machine.name}  available  0 MiB  before the upgrade\n`;
  expect(await command('list', '--node', uuid)).toMatchObject({ code: 0, output: line });
  expect(await command('show', id)).toMatchObject({ code: 0, output: line });
  expect(await command('delete', id)).toMatchObject({ code: 0, output: `${id}: deleted\n` });
  expect(await command('show', id)).toMatchObject({ code: 2, output: '' });
  expect(await command('list')).toMatchObject({ code: 0, output: 'no snapshots\n' });
  expect(await whole.call('GET', `/v1/snapshots/${id}`)).toMatchObject({ status: 404 });
  expect(readdirSync(folder)).toEqual([]);
});

it('refuses bad input before it touches the machine', async () => {
  const { uuid } = await machineIn('available');
  const refused = async (body: object) => JSON.stringify((await create(uuid, body)).body);
  expect(await create(uuid)).toMatchObject({ status: 400 });
  expect(await refused({ root_device: { colour: 'red' } })).toContain('root_device ');
  expect(await refused({ description: 5 })).toContain('Schema error for snapshot: 5 is not of type');
  expect(await refused({ colour: 'red' })).toContain('colour');
  expect(await refused({ blocks: 'most' })).toContain("'most' is not one of ['used', 'all']");
  expect((await whole.call('GET', '/v1/snapshots')).body).toEqual({ snapshots: [] });
  const unknown = `snapshot://${systemUuid()}`;
  const patch = [{ op: 'add', path: '/instance_info/image_source', value: unknown }];
  const answer = await whole.call('PATCH', `/v1/nodes/${uuid}`, patch);
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.body)).toContain('instance_info.image_source: there is no snapshot');
});
const systemUuid = (): string =>
  randomBytes(16)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

it('counts an interrupted snapshot as failed, and says why', async () => {
  const { uuid, machine } = await machineIn('active');
  machine.control.behave({ stepMs: 3_600_000 });
  const id = String((await create(uuid)).body['uuid']);
  expect(await create(uuid)).toMatchObject({ status: 400 });
  await until('the agent saves', async () => {
    const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
    return body['provision_state'] === 'service wait' && JSON.stringify(body['service_step']).includes('snapshot');
  });
  expect(await whole.call('DELETE', `/v1/snapshots/${id}`)).toMatchObject({ status: 409 });
  // It can be neither deployed nor completed by others.
  const part = await requestText(`${whole.server.apiUrl!}/v1/snapshots/${id}/parts/0`, 'PUT', {
    headers: { 'content-type': 'application/octet-stream', 'x-agent-token': 'x'.repeat(40) },
    body: 'x',
    signal: timeoutSignal(10_000),
  });
  expect(part.status).toBe(403);
  await whole.order(uuid, 'abort');
  await whole.reach(uuid, 'active');
  expect(await ended(id)).toMatchObject({ state: 'failed', sha256: null, last_error: expect.any(String) as unknown });
  expect(readdirSync(folder)).toEqual([]);
  expect(await whole.call('DELETE', `/v1/snapshots/${id}`)).toMatchObject({ status: 204 });
});
