/** Callbacks of agents during an inspection: which node they belong to, which are refused, and that of two callbacks exactly one counts. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Options } from '../../../config/options';
import type { Inventory, JsonObject, NodeChanges } from '../../../model/records';
import { newMachine } from '../../support/machine';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-logs-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const MAC = '52:54:00:00:00:01';
const inventory = (hostname: string): Inventory => ({
  interfaces: [{ name: 'eth0', mac_address: MAC }],
  cpu: { architecture: 'x86_64' },
  hostname,
});
/** A node that waits for its agent. */
async function waiting(
  changes: NodeChanges = {},
  collect: Options['agent.deploy_logs_collect'] = 'on_failure',
  more: Partial<Options> = {},
) {
  const options = { 'agent.deploy_logs_local_path': folder, 'agent.deploy_logs_collect': collect, ...more };
  const now = await start({ machine: newMachine(), options });
  const { uuid } = await now.enrol({ provision_state: 'manageable', ...changes });
  await now.conductor.provision(uuid, 'inspect', {});
  await now.conductor.idle();
  expect((await now.node(uuid)).provision_state).toBe('inspect wait');
  return { ...now, uuid };
}

it('accepts exactly one of two concurrent callbacks, as a whole', async () => {
  const { conductor, store, node, uuid } = await waiting();
  const post = (name: string) => conductor.continueInspection({ macs: [MAC], nodeUuid: uuid }, inventory(name), { from: name });
  const [one, other] = await Promise.allSettled([post('one'), post('other')]);
  const winner = one.status === 'fulfilled' ? 'one' : 'other';
  expect([one.status, other.status].sort()).toEqual(['fulfilled', 'rejected']);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', last_error: null });
  expect(await store.inventories.find(uuid)).toMatchObject({ inventory: { hostname: winner }, plugin_data: { from: winner } });
  expect(await store.ports.ofNode(uuid)).toHaveLength(1);
});

it.each<[string, JsonObject]>([
  ['an unknown node', { nodeUuid: '00000000-0000-4000-8000-000000000000', macs: [] }],
  ['an unknown address', { macs: ['52:54:00:ff:ff:ff'] }],
  ['an address that is no BMC of a waiting node', { macs: [], bmcAddresses: ['192.0.2.99'] }],
])('refuses a callback for %s, and stores nothing', async (_, lookup) => {
  const { conductor, store, node, uuid } = await waiting();
  const before = await node(uuid);
  await expect(conductor.continueInspection(lookup as never, inventory('x'), {})).rejects.toMatchObject({
    status: 404,
    message: 'Resource could not be found.',
  });
  expect(await node(uuid)).toEqual(before);
  expect(await store.ports.byMacs([MAC])).toEqual([]);
});

it('refuses a callback for a node whose inspection is over', async () => {
  const { conductor, store, node, uuid } = await waiting();
  await conductor.continueInspection({ macs: [], nodeUuid: uuid }, inventory('first'), {});
  await conductor.idle();
  const before = await node(uuid);
  const late = conductor.continueInspection({ macs: [MAC], nodeUuid: uuid }, inventory('late'), {});
  await expect(late).rejects.toMatchObject({ status: 404, message: 'Resource could not be found.' });
  expect(await node(uuid)).toEqual(before);
  expect(await store.inventories.find(uuid)).toMatchObject({ inventory: { hostname: 'first' } });
});

it('keeps properties that the operator has set', async () => {
  const { conductor, node, uuid } = await waiting({ properties: { cpu_arch: 'mine', a: 1 } });
  await conductor.continueInspection({ macs: [], nodeUuid: uuid }, inventory('x'), {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', properties: { cpu_arch: 'mine', a: 1 } });
});

it.each([
  ['on_failure', {}, 0],
  ['on_failure', { error: 'no disk' }, 1],
  ['always', {}, 1],
  ['never', { error: 'no disk' }, 0],
] as const)('with deploy_logs_collect = %s and the data %j, stores %i files with logs of the ramdisk', async (collect, data, files) => {
  const { conductor, store, uuid } = await waiting({ name: 'forge' }, collect);
  await conductor.continueInspection({ macs: [], nodeUuid: uuid }, inventory('x'), { ...data, logs: 'bG9ncw==' });
  await conductor.idle();
  const kept = readdirSync(folder);
  expect(kept).toHaveLength(files);
  for (const file of kept) expect(file).toMatch(new RegExp(`^${uuid}_forge_inspect_\\d{4}(-\\d\\d){5}\\.tar\\.gz$`));
  expect(Object.keys((await store.inventories.find(uuid))?.plugin_data ?? {})).not.toContain('logs');
});

it.each([
  [201, 'with its time to live'],
  [507, 'but Swift is full, which fails nothing'],
])('stores the logs in Swift, which answers %i: %s', async (status) => {
  const objects: { readonly path: string; readonly text: string; readonly ttl: unknown }[] = [];
  const swift = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      objects.push({ path: request.url!, text: Buffer.concat(parts).toString(), ttl: request.headers['x-delete-after'] });
      response.writeHead(objects.length === 1 ? 201 : status).end();
    });
  });
  await new Promise<void>((resolve) => swift.listen(0, '127.0.0.1', resolve));
  try {
    const { conductor, node, uuid } = await waiting({ name: 'forge' }, 'always', {
      'agent.deploy_logs_storage_backend': 'swift',
      'agent.deploy_logs_swift_container': 'logs',
      'agent.deploy_logs_swift_days_to_expire': 2,
      'swift.auth_type': 'none',
      'swift.endpoint_override': `http://127.0.0.1:${(swift.address() as AddressInfo).port}/v1/AUTH_p`,
    });
    await conductor.continueInspection({ macs: [], nodeUuid: uuid }, inventory('x'), { logs: 'bG9ncw==' });
    await conductor.idle();
    expect(objects[0]).toMatchObject({ path: '/v1/AUTH_p/logs' });
    expect(objects[1]).toMatchObject({
      path: expect.stringMatching(`^/v1/AUTH_p/logs/${uuid}_forge_inspect_.*\\.tar\\.gz$`) as string,
      text: 'logs',
      ttl: '172800',
    });
    expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', last_error: null });
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    swift.closeAllConnections();
    swift.close();
  }
});

it('returns the agent token only to a callback that asks for it', async () => {
  const tokenOf = async (wantsToken: boolean): Promise<unknown> => {
    const { conductor, uuid } = await waiting();
    const answer = await conductor.continueInspection({ macs: [], nodeUuid: uuid, wantsToken }, inventory('x'), {});
    await conductor.idle();
    return answer.driver_internal_info.agent_secret_token;
  };
  expect(await tokenOf(true)).toMatch(/^[\w-]{43}$/);
  expect(await tokenOf(false)).toBeUndefined();
});
