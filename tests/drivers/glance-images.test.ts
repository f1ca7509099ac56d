import { findImage, imageTempUrl, validImage, type GlanceTask } from '../../drivers/common/glance-images';
import { directDeploy } from '../../drivers/agent/direct';
import { inMemoryImages } from '../../drivers/agent/ramdisk';
import { ServiceError, type ServiceClient, type Services } from '../../wire/keystone/services';
import { servicesOf } from '../support/services';
import { testTask } from '../support/task';

const ID = '3a1f0b5c-2d4e-4f60-8a7b-9c0d1e2f3a4b';
const IMAGE = { id: ID, status: 'active', visibility: 'public', owner: 'p', size: 1024, disk_format: 'raw', container_format: 'bare' };
const HASHES = { checksum: 'c'.repeat(32), os_hash_algo: 'sha512', os_hash_value: 'd'.repeat(128), tags: ['t'] };

/** @param answer for the image: its body, or an error */
function cloud(answer: object | Error, more: { readonly members?: readonly string[]; readonly project?: string } = {}): Services {
  const glance: Partial<ServiceClient> = {
    isConfigured: true,
    projectId: async () => more.project ?? 'service',
    request: async (path) => {
      if (answer instanceof Error) throw answer;
      const members = (more.members ?? []).map((id) => ({ member_id: id }));
      return { status: 200, headers: {}, body: path.endsWith('/members') ? { members } : answer };
    },
  };
  const swift: Partial<ServiceClient> = {
    isConfigured: true,
    projectId: async () => 'service',
    endpoint: async () => 'http://swift:8080/v1/AUTH_service',
    request: async () => ({ status: 204, headers: { 'x-account-meta-temp-url-key': 'k' }, body: undefined }),
  };
  return { ...servicesOf(), glance: glance as ServiceClient, swift: swift as ServiceClient };
}
const taskIn = (services: Services, given: Parameters<typeof testTask>[0] = {}) =>
  testTask({ ...given, connections: { ...given.connections, services } });
const failing = (status: number) => new ServiceError('glance', 'failing', `HTTP status ${status}`, status);

test.each([
  [failing(404), 'ImageNotFound', `Image ${ID} could not be found.`],
  [failing(403), 'ImageNotAuthorized', `Not authorized for image ${ID}.`],
  [failing(500), 'GlanceConnectionFailed', 'Connection to glance endpoint of [glance] failed: HTTP status 500'],
  [failing(401), 'GlanceConnectionFailed', 'Connection to glance endpoint of [glance] failed: HTTP status 401'],
  [{}, 'GlanceConnectionFailed', 'Connection to glance endpoint of [glance] failed: the response is not an image'],
  [{ ...IMAGE, status: 'queued' }, 'ImageUnacceptable', `Image ${ID} is unacceptable: The image is required to be in an active state.`],
  [{ ...IMAGE, visibility: 'private' }, 'ImageNotFound', `Image ${ID} could not be found.`],
])('findImage maps the answer %j to %s', async (answer, name, message) => {
  await expect(findImage(taskIn(cloud(answer)).task, ID)).rejects.toMatchObject({ name, message });
});

test("findImage accepts private images of the service's project and images shared with it", async () => {
  const ofService = { ...IMAGE, visibility: 'private', owner: 'service' };
  expect(await findImage(taskIn(cloud(ofService)).task, ID)).toMatchObject({ owner: 'service' });
  const shared = { ...IMAGE, visibility: 'shared' };
  expect(await findImage(taskIn(cloud(shared, { members: ['service'] })).task, ID)).toMatchObject({ owner: 'p' });
  await expect(findImage(taskIn(cloud(shared)).task, ID)).rejects.toMatchObject({ name: 'ImageNotFound' });
});

test('findImage accepts private images for administrators unless ignore_project_check_for_admin_tasks is false', async () => {
  const { task } = taskIn(cloud({ ...IMAGE, visibility: 'private' }));
  const asAdmin = (options = task.options): GlanceTask => ({ ...task, options, caller: { admin: true, project: 'mine' } });
  expect(await findImage(asAdmin(), ID)).toMatchObject({ id: ID });
  const strict = { ...task.options, 'DEFAULT.ignore_project_check_for_admin_tasks': false };
  await expect(findImage(asAdmin(strict), ID)).rejects.toMatchObject({ name: 'ImageNotFound' });
});

test('validImage names the missing [glance]auth_type', async () => {
  await expect(validImage(taskIn(servicesOf()).task, ID)).rejects.toMatchObject({
    name: 'InvalidParameterValue',
    message: expect.stringMatching(
      /^Failed to connect to Glance to get the properties of the image .*needs \[glance\]auth_type/,
    ) as unknown,
  });
});

test('imageTempUrl caches a URL only with the option, and only while it remains valid for long enough', async () => {
  const options = { 'glance.swift_temp_url_cache_enabled': true, 'glance.swift_temp_url_expected_download_start_delay': 100 };
  const { task } = taskIn(cloud(IMAGE), { options });
  const first = await imageTempUrl(task, { id: ID });
  expect(first).toMatch(
    /^http:\/\/swift:8080\/v1\/AUTH_service\/glance\/3a1f0b5c-[-\da-f]+\?temp_url_sig=[\da-f]{64}&temp_url_expires=\d+$/,
  );
  await task.clock.sleep(1_000_000, task.signal);
  expect(await imageTempUrl(task, { id: ID })).toBe(first);
  await task.clock.sleep(101_000, task.signal);
  expect(await imageTempUrl(task, { id: ID })).not.toBe(first);
  const hasty = { ...task.options, 'glance.swift_temp_url_duration': 99 };
  await expect(imageTempUrl({ ...task, options: hasty }, { id: ID })).rejects.toThrow('"swift_temp_url_duration" must be greater');
});

describe('deployment', () => {
  const instance = { instance_info: { image_source: ID } };
  test('takes hashes, format and properties from Glance, and serves the image through the boot service', async () => {
    const { task, node, boots } = taskIn(cloud({ ...IMAGE, ...HASHES, os_distro: 'debian' }), { node: instance });
    await directDeploy.validate!(task);
    await directDeploy.prepare!(task);
    expect(node().instance_info).toMatchObject({
      image_os_hash_algo: 'sha512',
      image_os_hash_value: HASHES.os_hash_value,
      image_disk_format: 'raw',
      image_tags: ['t'],
      image_properties: { os_distro: 'debian' },
      image_url: expect.stringMatching(/\/boot\/.*\/image$/) as unknown,
    });
    expect(boots.get(node().uuid)?.files['image']).toBe(`glance://${ID}`);
  });
  test.each([{ img_type: 'partition' }, { kernel_id: 'k' }])('takes an image with %j for a partition image', async (properties) => {
    const { task } = taskIn(cloud({ ...IMAGE, ...HASHES, ...properties }), { node: instance });
    await expect(directDeploy.validate!(task)).rejects.toThrow("Missing are: ['root_gb']");
    const sized = taskIn(cloud({ ...IMAGE, ...HASHES, ...properties }), { node: { instance_info: { image_source: ID, root_gb: 2 } } });
    await directDeploy.validate!(sized.task);
    await directDeploy.prepare!(sized.task);
    expect(sized.node().instance_info).toMatchObject({ image_type: 'partition', root_mb: 2048 });
    expect(sized.node().driver_internal_info).toMatchObject({ is_whole_disk_image: false });
  });
  test('rejects an image larger than the memory unless it is streamed', async () => {
    const large = { ...IMAGE, ...HASHES, size: 512 * 2 ** 20 };
    const node = { ...instance, properties: { memory_mb: 256 } };
    await directDeploy.prepare!(taskIn(cloud(large), { node }).task);
    const { task } = taskIn(cloud({ ...large, disk_format: 'qcow2' }), { node });
    await expect(directDeploy.prepare!(task)).rejects.toThrow('Image size: 512 MiB, Memory size: 256 MiB, Reserved size: 0 MiB.');
  });
});

test.each([
  [{ boot_iso_id: 'i', kernel_id: 'k' }, {}, { boot_iso: 'i' }],
  [{ kernel_id: 'k', ramdisk_id: 'r' }, {}, { kernel: 'k', ramdisk: 'r' }],
  [{ kernel_id: 'k' }, { ramdisk: 'http://r' }, { kernel: 'k', ramdisk: 'http://r' }],
  [{ boot_iso_id: 'i' }, { kernel: 'http://k', ramdisk: 'http://r' }, {}],
  [{}, { image_source: 'http://image' }, {}],
])('inMemoryImages of an image with %j and instance_info %j is %j', async (properties, own, expected) => {
  const { task } = taskIn(cloud({ ...IMAGE, ...properties }), { node: { instance_info: { image_source: ID, ...own } } });
  expect(await inMemoryImages(task)).toEqual(expected);
});
test('inMemoryImages lists the missing properties of the image', async () => {
  const { task } = taskIn(cloud({ ...IMAGE, kernel_id: 'k' }), { node: { instance_info: { image_source: ID } } });
  await expect(inMemoryImages(task)).rejects.toThrow(`Image ${ID} is missing the following properties: ramdisk_id`);
});
