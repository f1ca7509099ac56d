/**
 * The conductor's process, which also serves boot files, is killed (SIGKILL) while it downloads an image into its cache and a machine reads it.
 * It starts again: the deployment says what broke off, half of a file is never served, and the image is downloaded anew.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../model/clock';
import { silentLog } from '../../../model/log';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { timeoutSignal } from '../../../wire/timeout-signal';
import { useDatabase } from '../../support/database';
import { freePort } from '../../support/free-port';
import { openProcesses } from '../../support/processes';
import { requestText } from '../../support/request';
import { until } from '../../support/until';

const MiB = 2 ** 20;
const database = useDatabase();
const processes = openProcesses(() => database.connection());
const folder = mkdtempSync(join(tmpdir(), 'bloomery-killed-download-'));
const cache = join(folder, 'cache');
const image = randomBytes(6 * MiB);
const sha256 = createHash('sha256').update(image).digest('hex');

/** The web server of the image: it sends half of it while it is held. */
let isHeld = true;
const asked: (string | undefined)[] = [];
const source = createServer((request, response) => {
  if (request.method === 'GET') asked.push(request.headers.range);
  response.writeHead(200, { 'content-length': image.length, etag: '"one"' });
  if (request.method === 'HEAD' || !isHeld) response.end(request.method === 'HEAD' ? undefined : image);
  else response.write(image.subarray(0, image.length / 2));
});
let fleet: Fleet;
let url = '';
let settings = '';
async function start(): Promise<void> {
  const said = await processes.start('one', 'api,boot,conductor', settings);
  if (typeof said !== 'string') throw new Error(said.errors);
}

beforeAll(async () => {
  source.listen(0, '127.0.0.1');
  await once(source, 'listening');
  const [port, boot] = [await freePort(), await freePort()];
  for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, name), randomBytes(1000));
  url = `http://127.0.0.1:${port}`;
  settings = `
[DEFAULT]
host = one
my_ip = 127.0.0.1
enabled_boot_interfaces = ipxe
enabled_deploy_interfaces = direct
enabled_network_interfaces = noop
[agent]
image_download_source = local
[api]
host_ip = 127.0.0.1
port = ${port}
[boot]
http_host = 127.0.0.1
http_port = ${boot}
tftp = false
[conductor]
heartbeat_interval = 1
heartbeat_timeout = 60
check_provision_state_interval = 1
automated_clean = false
deploy_kernel = file://${folder}/kernel
deploy_ramdisk = file://${folder}/ramdisk
[pxe]
instance_master_path = ${cache}
[deploy]
http_url = http://127.0.0.1:${boot}
[service_catalog]
endpoint_override = ${url}
`;
  await start();
  fleet = await startFleet({
    count: 1,
    bootUrl: `http://127.0.0.1:${boot}`,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    behaviour: { firmwareMs: 10, bootMs: 20, retryMs: 50, softOffMs: 10 },
  });
}, 240_000);
afterAll(async () => {
  await fleet?.close();
  await processes.close();
  source.closeAllConnections();
  source.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

type Body = Readonly<Record<string, unknown>>;
async function call(method: string, path: string, body?: unknown): Promise<Body> {
  const { status, text } = await requestText(`${url}${path}`, method, {
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': 'latest' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: timeoutSignal(60_000),
  });
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
  return text === '' ? {} : (JSON.parse(text) as Body);
}
async function order(uuid: string, target: string, state: string): Promise<Body> {
  await call('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
  return reach(uuid, state);
}
async function reach(uuid: string, state: string): Promise<Body> {
  let node: Body = {};
  await until(`${uuid} in ${state}`, async () => {
    node = await call('GET', `/v1/nodes/${uuid}`);
    if (node['provision_state'] !== state && String(node['provision_state']).endsWith('failed')) throw new Error(JSON.stringify(node));
    return node['provision_state'] === state && node['reservation'] === null;
  });
  return node;
}
/** The server keeps its files in a folder of its own in that folder. */
const place = (): string => join(cache, readdirSync(cache)[0]!);
const files = (): readonly string[] => readdirSync(place()).toSorted();

it('an image whose download was interrupted is downloaded anew, and half of it is never served', async () => {
  const machine = fleet.machines[0]!;
  const { address, systemId, username, password } = machine.redfish;
  const made = await call('POST', '/v1/nodes', {
    name: machine.name,
    driver: 'redfish',
    driver_info: { redfish_address: address, redfish_system_id: systemId, redfish_username: username, redfish_password: password },
    instance_info: {
      image_source: `http://127.0.0.1:${(source.address() as AddressInfo).port}/image.raw`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: sha256,
    },
  });
  const uuid = made['uuid'] as string;
  for (const mac of machine.macs) await call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
  await order(uuid, 'manage', 'manageable');
  await order(uuid, 'provide', 'available');
  await order(uuid, 'active', 'wait call-back');
  const blocks = (): number => Math.max(0, ...files().map((name) => statSync(join(place(), name)).blocks * 512));
  await until('half of the image is in the cache', () => blocks() >= image.length / 2 - MiB);
  expect(files().filter((name) => name.endsWith('.json'))).toEqual([]);
  const [half] = files();
  await processes.end('one', 'SIGKILL');

  await start();
  expect(files()).not.toContain(half);
  const failed = await reach(uuid, 'deploy failed');
  expect(failed['last_error']).toMatch(/write_image/);
  expect(machine.control.content('/dev/sda')).toBeUndefined();

  isHeld = false;
  await order(uuid, 'active', 'active');
  expect(machine.control.content('/dev/sda')).toMatchObject({ sha256, size: image.length });
  // The head of the image is asked for each deployment. The rest was never asked for: the whole image came anew.
  expect(asked.filter((range) => range === undefined)).toHaveLength(2);
  expect(asked.filter((range) => range !== undefined && !range.startsWith('bytes=0-'))).toEqual([]);
  expect(files().filter((name) => name.endsWith('.json'))).toHaveLength(1);
  expect(files().map((name) => statSync(join(place(), name)).size)).toContain(image.length);
}, 300_000);
