/** Partition images over HTTP with simulated machines: what is refused before a machine is touched, a deployment, and a rebuild that preserves data. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
let uuid: string;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), { machines: 1 });
  uuid = await whole.enrol(whole.fleet.machines[0]!, { automated_clean: false, properties: { local_gb: 18 } });
  await whole.provide(uuid);
});
afterAll(() => whole.close(), 30_000);

const setInstance = (info: object) =>
  whole.call('PATCH', `/v1/nodes/${uuid}`, [
    { op: 'add', path: '/instance_info', value: { ...whole.deployable(), image_type: 'partition', ...info } },
  ]);
const request = (target: string) => whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target });
const show = async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body;
/** The message of a refusal. */
async function refusal(target: string): Promise<string> {
  const { status, body } = await request(target);
  expect(status).toBe(400);
  return JSON.stringify(body);
}

it.each<[string, object]>([
  ["Some parameters were missing in node's instance_info. Missing are: ['root_gb']", {}],
  ['Invalid parameter root_gb: foo is not an integer value.', { root_gb: 'foo' }],
  ["Invalid parameter preserve_ephemeral: Unrecognized value 'maybe'", { root_gb: 4, preserve_ephemeral: 'maybe' }],
  ['do not fit: root_gb 40, ephemeral_gb 0 and swap_mb 0 need 40960 MiB, and properties/local_gb is 18', { root_gb: 40 }],
  [
    "The parameter 'disk_label' from instance_info['capabilities'] has an invalid value: 'bsd'",
    { root_gb: 4, capabilities: { disk_label: 'bsd' } },
  ],
  [
    "The parameter 'boot_option' from instance_info['capabilities'] has an invalid value: 'netboot'",
    { root_gb: 4, capabilities: { boot_option: 'netboot' } },
  ],
])('refuses a deployment: %s', async (message, info) => {
  await setInstance(info);
  expect(await refusal('active')).toContain(message);
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  expect(JSON.stringify(body['deploy'])).toContain(message);
  expect(await show()).toMatchObject({ provision_state: 'available', power_state: 'power off' });
});

describe('an image that is something else', () => {
  const disk = Buffer.alloc(8192);
  disk[450] = 0x83;
  disk.writeUInt32LE(8, 454);
  disk.writeUInt32LE(8, 458);
  disk.writeUInt16LE(0xaa55, 510);
  const root = Buffer.alloc(8192);
  root.write('XFSB');
  const images: Readonly<Record<string, Buffer>> = { '/disk': disk, '/root': root };
  const server = createServer((asked, answer) => answer.end(images[asked.url!]));
  beforeAll(() => new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening)));
  afterAll(() => server.close());

  it.each([
    ['disk', 'partition', 'image_type partition: it has a partition table, so it is the image of a whole disk'],
    ['root', 'whole-disk', 'image_type whole-disk: it is a file system (XFS) without a partition table and without a boot sector'],
  ])('%s as %s is refused before the machine is touched', async (name, image_type, message) => {
    const { port } = server.address() as AddressInfo;
    await setInstance({ image_source: `http://127.0.0.1:${port}/${name}`, image_disk_format: null, image_type, root_gb: 4 });
    await whole.order(uuid, 'active');
    await whole.reach(uuid, 'deploy failed');
    const node = await show();
    expect(node['last_error']).toContain(`The image of image_source does not fit ${message}`);
    expect(node).toMatchObject({ power_state: 'power off', deploy_step: {} });
    expect(whole.fleet.machines[0]!.control.isOn()).toBe(false);
    await whole.order(uuid, 'deleted');
    await whole.reach(uuid, 'available');
  });
});

it('deploys a partition image, and rebuilds it with the same sizes only if the ephemeral partition is to be preserved', async () => {
  await setInstance({ root_gb: 4, swap_mb: 512, ephemeral_gb: 2 });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  const sizes = { root_gb: 4, swap_mb: 512, ephemeral_gb: 2 };
  expect(await show()).toMatchObject({
    instance_info: {
      ...sizes,
      root_mb: 4096,
      ephemeral_mb: 2048,
      ephemeral_format: 'ext4',
      preserve_ephemeral: false,
      image_type: 'partition',
    },
    driver_internal_info: {
      is_whole_disk_image: false,
      instance: sizes,
      root_uuid_or_disk_id: expect.stringMatching(/^[0-9a-f]{8}-/) as string,
    },
  });

  await setInstance({ ...sizes, ephemeral_gb: 3, preserve_ephemeral: true });
  expect(await refusal('rebuild')).toContain(
    'The following parameters have different values from previous deployment: Deployed value of ephemeral_gb was 2 but requested value is 3.',
  );
  expect(await show()).toMatchObject({ provision_state: 'active' });
  await setInstance({ ...sizes, preserve_ephemeral: true });
  await whole.order(uuid, 'rebuild');
  await whole.reach(uuid, 'active');
  expect(await show()).toMatchObject({ instance_info: { preserve_ephemeral: true } });
  // A rebuild that preserves nothing may have other sizes.
  await setInstance({ ...sizes, ephemeral_gb: 0 });
  await whole.order(uuid, 'rebuild');
  await whole.reach(uuid, 'active');
  expect(await show()).toMatchObject({ driver_internal_info: { instance: { ...sizes, ephemeral_gb: 0 } } });

  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect((await show())['driver_internal_info']).not.toHaveProperty('instance');
});
