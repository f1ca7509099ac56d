/**
 * Release with a choice for the disks, over HTTP with simulated machines: which steps run, which disks stay, and what the certificate says,
 * also when the node is gone. openssl checks the signature.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
const folder = mkdtempSync(join(tmpdir(), 'bloomery-erasure-'));

beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 6,
    // As metal3 has it: by their priorities, no disk is erased in full.
    options: { 'deploy.erase_devices_priority': 0, 'deploy.erase_devices_metadata_priority': 10 },
  });
});
afterAll(async () => {
  await whole.close();
  rmSync(folder, { recursive: true, force: true });
}, 30_000);

let next = 0;
const path = (uuid: string): string => `/v1/nodes/${uuid}/states/provision`;
const patch = async (uuid: string, ...changes: readonly object[]) =>
  expect(await whole.call('PATCH', `/v1/nodes/${uuid}`, changes)).toMatchObject({ status: 200 });
/** A machine with an instance. Its root disk, /dev/sda, has content; /dev/sdb is empty. */
async function released(more: Readonly<Record<string, unknown>> = {}) {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, ...more });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'inspect');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await patch(uuid, { op: 'add', path: '/instance_info', value: whole.deployable() });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  return { uuid, machine };
}
const certificates = async (query: string) =>
  (await whole.call('GET', `/v1/erasures${query}`)).body['erasures'] as readonly Readonly<Record<string, unknown>>[];
interface Document {
  readonly disks: readonly Readonly<Record<string, unknown>>[];
  readonly [more: string]: unknown;
}
async function documentOf(uuid: unknown): Promise<Document> {
  const { body } = await whole.call('GET', `/v1/erasures/${String(uuid)}`);
  return JSON.parse(String(body['document'])) as Document;
}
const history = async (uuid: string): Promise<readonly string[]> =>
  ((await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`)).body['history'] as readonly { readonly event: string }[]).map(
    ({ event }) => event,
  );

it('erases all but the disks to keep, and certifies it, with automated cleaning off', async () => {
  const { uuid, machine } = await released();
  const before = machine.control.content('/dev/sda');
  expect(before).toBeDefined();
  await whole.order(uuid, 'deleted', { erase: 'full', keep: [{ name: '/dev/sda' }] });
  const node = await whole.reach(uuid, 'available');
  expect(node['driver_internal_info']).not.toHaveProperty('erase_choice');
  expect(machine.control.content('/dev/sda')).toEqual(before);
  const [certificate, ...others] = await certificates(`?node=${uuid}`);
  expect(others).toEqual([]);
  expect(certificate).toMatchObject({ node_uuid: uuid, step: 'deploy.erase_devices', erased: 1, skipped: 1 });
  const document = await documentOf(certificate!['uuid']);
  expect(document).toMatchObject({
    type: 'certificate of erasure',
    node: { uuid, name: machine.name },
    requested: { erase: 'full', keep: [{ name: '/dev/sda' }], request_id: expect.stringMatching(/^req-/) as string },
    step: 'deploy.erase_devices',
    disks: [
      { name: '/dev/sda', erased: false, reason: 'The request names it among the disks to keep.' },
      { name: '/dev/sdb', erased: true, method: 'write zeroes', proves: expect.stringContaining('write zeros') as string },
    ],
  });
  const serial = String(document.disks[1]!['serial']);
  expect(await certificates(`?serial=${encodeURIComponent(serial)}`)).toMatchObject([{ uuid: certificate!['uuid'], serials: [serial] }]);
  expect(await certificates('?serial=another')).toEqual([]);
  expect(
    (await history(uuid)).some((event) => event.startsWith(`Certificate of erasure ${String(certificate!['uuid'])}: 1 of 2 disks`)),
  ).toBe(true);
});

it('keeps the certificate when the node is gone, and openssl and the command verify it', async () => {
  const { uuid } = await released();
  await whole.order(uuid, 'deleted', { erase: 'express' });
  await whole.reach(uuid, 'available');
  const [certificate] = await certificates(`?node=${uuid}`);
  expect(certificate).toMatchObject({ step: 'deploy.erase_devices_express', erased: 0, skipped: 0 });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  expect(await whole.call('DELETE', `/v1/nodes/${uuid}`)).toMatchObject({ status: 204 });
  const id = String(certificate!['uuid']);
  expect(await certificates(`?node=${uuid}`)).toMatchObject([{ uuid: id }]);

  const run = (...words: readonly string[]) => runCommand(['erasures', ...words]);
  const [json, signature, key] = ['json', 'sig', 'pem'].map((ending) => join(folder, `${id}.${ending}`)) as [string, string, string];
  const url = ['--url', whole.server.apiUrl!];
  expect(await run('save', id, '--to', folder, ...url)).toMatchObject({ code: 0, output: `${[json, signature, key].join('\n')}\n` });
  const openssl = () => execFileSync('openssl', ['dgst', '-sha256', '-verify', key, '-signature', signature, json], { encoding: 'utf8' });
  expect(openssl()).toBe('Verified OK\n');
  const site = join(whole.stateDir, 'erasure-key.pem');
  expect(statSync(site).mode & 0o777).toBe(0o600);
  const own = join(folder, 'site.pem');
  execFileSync('openssl', ['pkey', '-in', site, '-pubout', '-out', own]);
  const valid = await run('verify', json, '--key', own);
  expect(valid).toMatchObject({ code: 0 });
  expect(valid.output).toMatch(/^valid: signed by the key [0-9a-f]{64}\n/);
  expect(valid.output).toContain('/dev/sda');

  writeFileSync(json, readFileSync(json, 'utf8').replace(uuid, uuid.replaceAll(/[0-9a-f]/g, '0')));
  expect(openssl).toThrow();
  expect(await run('verify', json, '--key', own)).toMatchObject({ code: 1, output: expect.stringMatching(/^NOT VALID/) as string });
  expect(await run('list', '--node', uuid, ...url)).toMatchObject({ code: 0, output: expect.stringContaining(id) as string });
  expect(await run('show', id, ...url)).toMatchObject({ code: 0, output: expect.stringContaining(`certificate ${id}`) as string });
});

it('follows the choice in place of the priorities, and the node in place of no choice', async () => {
  const { uuid, machine } = await released({ automated_clean: true });
  await whole.order(uuid, 'deleted', { erase: 'none' });
  await whole.reach(uuid, 'available');
  expect(machine.control.content('/dev/sda')).toBeDefined();
  const at = async () => (await certificates(`?node=${uuid}`)).map(({ step }) => step);
  // The first cleaning was that of provide.
  expect(await at()).toEqual(['deploy.erase_devices_metadata']);
  await patch(uuid, { op: 'add', path: '/driver_info/cleaning_erase', value: 'full' });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  expect(await at()).toEqual(['deploy.erase_devices_metadata', 'deploy.erase_devices']);
  expect(machine.control.content('/dev/sda')).toBeUndefined();
});

it('refuses bad input before it touches the machine', async () => {
  const { uuid, machine } = await released();
  const refused = async (body: object, target = 'deleted') => {
    const answer = await whole.call('PUT', path(uuid), { target, ...body });
    expect(answer.status).toBe(400);
    return JSON.stringify(answer.body);
  };
  expect(await refused({ erase: 'shred' })).toContain('erase must be one of none, metadata, express, full');
  expect(await refused({ erase: 'full', keep: [{ colour: 'red' }] })).toContain('keep[0]: The hints');
  expect(await refused({ keep: [{}] })).toContain('keep[0] must have a hint');
  expect(await refused({ keep: ['/dev/sda'] })).toContain('keep[0] must be an object');
  expect(await refused({ keep: [{ serial: 'no such disk' }] })).toContain(`keep: no disk in the inventory of node ${uuid} matches`);
  expect(await refused({ erase: 'full', keep: [{ size: '>= 1' }] })).toContain('keep: all disks in the inventory');
  expect(await refused({ erase: 'full' }, 'rebuild')).toContain('is only valid when setting target provision state to deleted or provide');
  const wrong = [{ op: 'add', path: '/driver_info/cleaning_erase', value: 'shred' }];
  expect(JSON.stringify((await whole.call('PATCH', `/v1/nodes/${uuid}`, wrong)).body)).toContain(
    'driver_info/cleaning_erase must be one of',
  );
  const secret = 'S1=NOT A PSID';
  const answer = await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/driver_info/opal_psids', value: secret }]);
  expect(JSON.stringify(answer)).toContain('driver_info/opal_psids must be SERIAL=PSID');
  expect(JSON.stringify(answer)).not.toContain(secret);
  expect(await whole.call('GET', `/v1/nodes/${uuid}`)).toMatchObject({ body: { provision_state: 'active', last_error: null } });
  expect(machine.control.content('/dev/sda')).toBeDefined();
  const psids = `S1=${'A1'.repeat(16)}`;
  await patch(uuid, { op: 'add', path: '/driver_info/opal_psids', value: psids });
  expect((await whole.call('GET', `/v1/nodes/${uuid}`)).body['driver_info']).toMatchObject({ opal_psids: '******' });
});

it('holds to the choice when a cleaning that failed is tried again', async () => {
  const { uuid, machine } = await released();
  const content = machine.control.content('/dev/sda');
  await whole.order(uuid, 'deleted', { erase: 'full', keep: [{ name: '/dev/sda' }] });
  await until('it waits for the agent', async () =>
    ['clean wait', 'cleaning'].includes(String((await whole.call('GET', `/v1/nodes/${uuid}`)).body['provision_state'])),
  );
  await until('the abort is taken', async () => (await whole.call('PUT', path(uuid), { target: 'abort' })).status < 300);
  await until('it has failed', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['provision_state'] === 'clean failed');
  await until('the node is free', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['reservation'] === null);
  await whole.call('DELETE', `/v1/nodes/${uuid}/maintenance`);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  expect(machine.control.content('/dev/sda')).toEqual(content);
  const found = await certificates(`?node=${uuid}`);
  expect(found).toMatchObject([{ step: 'deploy.erase_devices', erased: 1, skipped: 1 }]);
  const { requested, released: release } = (await documentOf(found[0]!['uuid'])) as unknown as Readonly<
    Record<'requested' | 'released', { readonly request_id: string }>
  >;
  expect([requested.request_id, release.request_id]).toEqual([expect.stringMatching(/^req-/), expect.stringMatching(/^req-/)]);
  expect(release.request_id).not.toBe(requested.request_id);
});
