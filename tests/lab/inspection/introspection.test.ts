/** Every `openstack baremetal introspection` command of python-ironic-inspector-client against our introspection service. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/free-port';
import { until } from '../../../demo/lab/machines';
import { startServerProcess, type RunningServer } from '../../../demo/lab/server';
import { programs } from '../support/venv';

jest.setTimeout(1_800_000);
const MAC = '52:54:00:00:00:01';
const RULE = 'cccccccc-0000-4000-8000-000000000001';
const REPORT = {
  inventory: {
    interfaces: [{ name: 'eth0', mac_address: MAC, ipv4_address: '10.0.0.1' }],
    cpu: { architecture: 'x86_64', count: 2 },
    memory: { physical_mb: 1024 },
  },
};
let folder: string;
let server: RunningServer;
let openstack: string;
let [api, service] = ['', ''];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomery-introspection-'));
  const bin = await programs('inspector-client', ['python-ironic-inspector-client==5.4.0', 'python-openstackclient==10.5.0']);
  openstack = join(bin, 'openstack');
  const [port, inspectorPort] = [await freePort(), await freePort()];
  [api, service] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${inspectorPort}`];
  const fake = ['boot', 'deploy', 'management', 'power'].map((kind) => [`enabled_${kind}_interfaces`, 'fake']);
  server = await startServerProcess(
    folder,
    {
      DEFAULT: {
        my_ip: '127.0.0.1',
        listen_address: '127.0.0.1',
        listen_port: inspectorPort,
        enabled_hardware_types: 'fake-hardware',
        enabled_network_interfaces: 'noop',
        enabled_inspect_interfaces: 'no-inspect',
        ...(Object.fromEntries(fake) as Record<string, string>),
      },
      api: { host_ip: '127.0.0.1', port },
    },
    undefined,
    ['--roles', 'api,conductor,inspector'],
  );
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...words: readonly string[]): Promise<string> =>
  new Promise((done, fail) => {
    execFile(
      openstack,
      ['--os-auth-type', 'none', '--os-endpoint', service, 'baremetal', 'introspection', ...words],
      { timeout: 120_000 },
      (error, output, errors) => (error ? fail(new Error(`${words.join(' ')}: ${errors}`)) : done(output)),
    );
  });
const json = async (...words: readonly string[]): Promise<unknown> => JSON.parse(await run(...words, '-f', 'json'));
async function post(url: string, body: unknown): Promise<void> {
  const { status } = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.80' },
    body: JSON.stringify(body),
  });
  expect(status).toBeLessThan(300);
}
const state = async (): Promise<unknown> => ((await json('status', 'anvil')) as { state: unknown }).state;
const reach = (wanted: string): Promise<void> =>
  until(
    240,
    () => `the introspection to have the state ${wanted}`,
    async () => (await state()) === wanted,
  );

it('our introspection service works with the commands start, status, list, data save, reprocess, abort and rule', async () => {
  const uuid = 'aaaaaaaa-0000-4000-8000-000000000001';
  await post(`${api}/v1/nodes`, { uuid, name: 'anvil', driver: 'fake-hardware' });
  await post(`${api}/v1/ports`, { node_uuid: uuid, address: MAC });
  const rules = join(folder, 'rules.json');
  writeFileSync(
    rules,
    JSON.stringify([
      { uuid: RULE, description: 'd', actions: [{ action: 'set-attribute', path: '/extra/cpus', value: '{data[cpus]}' }] },
      { actions: [{ action: 'add-trait', name: 'CUSTOM_X' }] },
    ]),
  );
  await run('rule', 'import', rules);
  expect(await json('rule', 'list')).toHaveLength(2);
  expect(await json('rule', 'show', RULE)).toMatchObject({ uuid: RULE, description: 'd' });
  await run('start', 'anvil');
  await reach('waiting');
  await post(`${service}/v1/continue`, REPORT);
  await reach('finished');
  expect(await json('list')).toMatchObject([{ UUID: uuid, Error: null }]);
  const file = join(folder, 'data.json');
  await run('data', 'save', '--file', file, 'anvil');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ cpus: 2, macs: [MAC] });
  await run('data', 'save', '--unprocessed', '--file', file, 'anvil');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(REPORT);
  await run('reprocess', 'anvil');
  await reach('finished');
  await run('start', 'anvil');
  await reach('waiting');
  await run('abort', 'anvil');
  await reach('error');
  await run('rule', 'delete', RULE);
  await run('rule', 'purge');
  expect(await json('rule', 'list')).toEqual([]);
  await expect(run('status', 'nobody')).rejects.toThrow(/Node nobody was not found in Ironic/);
});
