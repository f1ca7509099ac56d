/** The deploy interface autodetect: which interface a node gets, when it is decided again, and what clients see. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeRegistry, type FakeRegistry } from '../../support/fakes/oci-registry';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { useDatabase } from '../../support/database';

const database = useDatabase();
const folder = mkdtempSync(join(tmpdir(), 'autodetect-'));
let whole: WholeServer;
let registry: FakeRegistry;
beforeAll(async () => {
  registry = await startFakeRegistry(join(folder, 'registry.crt'));
  registry.container('bootable');
  registry.artifact('disk', Buffer.alloc(4096));
  whole = await startWholeServer(database.connection(), {
    machines: 9,
    options: {
      'DEFAULT.enabled_deploy_interfaces': ['autodetect', 'direct', 'ramdisk', 'bootc', 'custom-agent'],
      'oci.verify_ca': registry.ca,
    },
  });
});
afterAll(async () => {
  await whole?.close();
  await registry?.close();
  rmSync(folder, { recursive: true });
}, 30_000);

let next = 0;
async function available(more: Readonly<Record<string, unknown>> = {}) {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, ...more });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  return { uuid, machine };
}
const kernel = () => whole.image.url.replace('image.raw', 'kernel');
const ramdisk = () => whole.image.url.replace('image.raw', 'ramdisk');
const inMemory = () => ({ kernel: kernel(), ramdisk: ramdisk(), ironic_ramdisk_deploy: true });
const onDisk = () => ({ image_source: whole.image.url, image_checksum: whole.image.sha256 });
/** The node's interface, and the one that it had before. */
const interfaceOf = async (uuid: string): Promise<readonly unknown[]> => {
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}`);
  const { original_deploy_interface: original } = body['driver_internal_info'] as Readonly<Record<string, unknown>>;
  return original === undefined ? [body['deploy_interface']] : [body['deploy_interface'], original];
};

it('is the default, and gives an image for the disk to direct until the node is cleaned', async () => {
  const { uuid, machine } = await available({ instance_info: onDisk() });
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
  const validation = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  expect(validation.body).toMatchObject({ deploy: { result: true }, boot: { result: true } });
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);

  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['direct', 'autodetect']);
  expect(machine.control.content('/dev/sda')).toBeDefined();

  await whole.call('PATCH', `/v1/nodes/${uuid}`, [
    { op: 'add', path: '/instance_info', value: { ...onDisk(), ...inMemory(), image_type: 'whole-disk' } },
  ]);
  await whole.order(uuid, 'rebuild');
  await whole.reach(uuid, 'active');
  // As in Ironic, a rebuild does not decide again.
  expect(await interfaceOf(uuid)).toEqual(['direct', 'autodetect']);

  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
});

it('gives an instance that says that it runs from memory to ramdisk', async () => {
  const { uuid, machine } = await available({ instance_info: inMemory() });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['ramdisk', 'autodetect']);
  expect(machine.control.content('/dev/sda')).toBeUndefined();
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
});

it('gives a bootable container to bootc, also for a rebuild while the registry is away', async () => {
  const { uuid, machine } = await available({ instance_info: { image_source: registry.href('bootable') } });
  const validation = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  expect(validation.body).toMatchObject({ deploy: { result: true }, boot: { result: true } });
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);

  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['bootc', 'autodetect']);
  expect(machine.control.content('/dev/sda')).toMatchObject({ url: registry.href('bootable') });

  // As in Ironic, a rebuild does not decide again.
  registry.fail(503);
  await whole.order(uuid, 'rebuild');
  await whole.reach(uuid, 'active');
  registry.fail(undefined);
  expect(await interfaceOf(uuid)).toEqual(['bootc', 'autodetect']);
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
});

it('gives a disk image of a registry to direct', async () => {
  const { uuid } = await available({ instance_info: { image_source: registry.href('disk') } });
  const validation = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  expect(validation.body).toMatchObject({ deploy: { result: true } });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['direct', 'autodetect']);
});

it('uses the last one if the registry does not say what the image is, and its reason fails the deployment', async () => {
  const { uuid, machine } = await available({ instance_info: { image_source: registry.href('bootable') } });
  registry.fail(403);
  await whole.order(uuid, 'active');
  const failed = await whole.reach(uuid, 'deploy failed');
  registry.fail(undefined);
  expect(failed['last_error']).toContain(`image_source: Image ${registry.href('bootable')} could not be found.`);
  expect(machine.control.content('/dev/sda')).toBeUndefined();
  // As in Ironic, the next deployment does not decide again.
  expect(await interfaceOf(uuid)).toEqual(['direct', 'autodetect']);
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  const again = { image_source: registry.href('bootable') };
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: again }]);
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['bootc', 'autodetect']);
});

it('decides nothing for a request that is refused, and names what the chosen interface lacks', async () => {
  const { uuid } = await available();
  const refused = await whole.call('PUT', `/v1/nodes/${uuid}/states/provision`, { target: 'active' });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).toContain("Missing are: ['instance_info.image_source']");
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
  const validation = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  expect(JSON.stringify(validation.body['deploy'])).toContain('instance_info.image_source');
});

it('is there again after manual cleaning, and after a service', async () => {
  const { uuid } = await available({ instance_info: onDisk() });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'clean', { clean_steps: [{ interface: 'deploy', step: 'erase_devices_metadata' }] });
  await whole.reach(uuid, 'manageable');
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  await whole.order(uuid, 'service', { service_steps: [{ interface: 'deploy', step: 'erase_devices_metadata' }] });
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['autodetect']);
});

it('gives way to an interface that the operator sets meanwhile', async () => {
  const { uuid } = await available({ instance_info: onDisk() });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'active');
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'replace', path: '/maintenance', value: true }]);
  const patched = await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'replace', path: '/deploy_interface', value: 'custom-agent' }]);
  expect(patched.status).toBe(200);
  expect(await interfaceOf(uuid)).toEqual(['custom-agent']);
  await whole.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'replace', path: '/maintenance', value: false }]);
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(await interfaceOf(uuid)).toEqual(['custom-agent']);
});

it('adopts an instance with the interface that its instance_info describes', async () => {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { instance_info: { ...onDisk() } });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'adopt');
  await whole.reach(uuid, 'active');
  expect(await interfaceOf(uuid)).toEqual(['direct', 'autodetect']);
});
