/**
 * The conductor's process, which also serves boot files, is killed (SIGKILL) while it downloads an image into its cache and a machine reads it.
 * It starts again: the deployment says what broke off, half of a file is never served, and the image is downloaded anew.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Body, useKilledServer } from '../../support/killed-server';
import { until } from '../../support/until';

const MiB = 2 ** 20;
const cacheIn = (folder: string): string => join(folder, 'cache');
const {
  call,
  enrol,
  folder,
  kill,
  machine: machineOf,
  start,
} = useKilledServer({
  machines: 1,
  hosts: { one: 'api,boot,conductor' },
  options: (place) => ({
    agent: { image_download_source: 'local' },
    conductor: { heartbeat_timeout: 60, automated_clean: 'false' },
    pxe: { instance_master_path: cacheIn(place) },
  }),
});
const cache = cacheIn(folder);
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
beforeAll(async () => {
  source.listen(0, '127.0.0.1');
  await once(source, 'listening');
});
afterAll(() => {
  source.closeAllConnections();
  source.close();
});

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
  const machine = machineOf(0);
  const uuid = await enrol(machine, {
    instance_info: {
      image_source: `http://127.0.0.1:${(source.address() as AddressInfo).port}/image.raw`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: sha256,
    },
  });
  await order(uuid, 'manage', 'manageable');
  await order(uuid, 'provide', 'available');
  await order(uuid, 'active', 'wait call-back');
  const blocks = (): number => Math.max(0, ...files().map((name) => statSync(join(place(), name)).blocks * 512));
  await until('half of the image is in the cache', () => blocks() >= image.length / 2 - MiB);
  expect(files().filter((name) => name.endsWith('.json'))).toEqual([]);
  const [half] = files();
  await kill('one');

  await start('one');
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
