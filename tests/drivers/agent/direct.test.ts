import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { directDeploy } from '../../../drivers/agent/direct';
import { fakeBoot, fakePower } from '../../../drivers/fake/fake';
import { ipxeBoot } from '../../../drivers/boot-interfaces/network-boot';
import type { Outcome } from '../../../drivers/interfaces';
import { noopNetwork } from '../../../drivers/noop';
import type { JsonObject, NodeRecord } from '../../../model/records';
import { type Answer, type AgentRequest, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { NODE_UUID, type TestTask, testTask } from '../../support/task';

const MD5 = 'd41d8cd98f00b204e9800998ecf8427e';
const SHA256 = 'a'.repeat(64);
const good = { image_source: 'http://x/y.img', image_checksum: MD5 };

let folder: string;
let server: Server;
let base: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'direct-'));
  for (const name of ['kernel', 'ramdisk', 'disk.img']) writeFileSync(join(folder, name), name);
  server = createServer((request, response) => {
    if (request.url === '/moved.img') response.writeHead(302, { location: '/disk.img' }).end();
    else if (request.url === '/disk.img') response.end('some bytes');
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
});

let agent: FakeAgent | undefined;
afterEach(async () => {
  await agent?.close();
  agent = undefined;
});
const step =
  (name: string) =>
  (task: TestTask['task']): Promise<Outcome> =>
    directDeploy.steps!.find((candidate) => candidate.step === name)!.run(task, {});
const commandsSent = (): readonly string[] => agent!.asked.flatMap(({ body }) => (body ? [body.name] : []));

describe('validate', () => {
  const told = (message: string) => ({ status: 400, message });
  it.each([
    ['a URL with a checksum', { instance_info: good }],
    ['a URL with a hash', { instance_info: { image_source: 'https://x/y', image_os_hash_algo: 'sha256', image_os_hash_value: SHA256 } }],
    ['a file', { instance_info: { image_source: 'file:///var/lib/ironic/x' } }],
    ['a partition image', { instance_info: { ...good, image_type: 'partition', root_gb: 5 } }],
    ['root device hints', { instance_info: good, properties: { root_device: { size: '>= 20' } } }],
    [
      'proxies',
      {
        instance_info: good,
        driver_info: { image_http_proxy: '10.0.0.9:3128', image_https_proxy: 'https://p', image_no_proxy: '.x.y, 10.0.0.1:80' },
      },
    ],
  ])('accepts %s', async (_, node) => {
    await expect(directDeploy.validate!(testTask({ node }).task)).resolves.toBeUndefined();
  });
  it.each([
    [
      'no image',
      { instance_info: {} },
      `Node ${NODE_UUID} failed to validate deploy image info. Some parameters were missing. Missing are: ['instance_info.image_source']`,
    ],
    [
      'an unknown image_type',
      { instance_info: { ...good, image_type: 'tape' } },
      'Invalid image_type "tape", valid are whole-disk, partition',
    ],
    [
      'a partition image without root_gb',
      { instance_info: { ...good, kernel: 'http://k' } },
      "Some parameters were missing in node's instance_info. Missing are: ['root_gb']",
    ],
    [
      'no checksum',
      { instance_info: { image_source: 'http://x/y' } },
      `image_source's "image_checksum", or "image_os_hash_algo" and "image_os_hash_value" must be provided in instance_info for node ${NODE_UUID}`,
    ],
    [
      'a file outside the allowed paths',
      { instance_info: { image_source: 'file:///tmp/x' } },
      'Validation of image href file:///tmp/x failed, reason: Security: Path /tmp/x is not allowed for image source file URLs',
    ],
    [
      'malformed capabilities',
      { instance_info: { ...good, capabilities: 'x' } },
      `Error parsing capabilities from Node ${NODE_UUID} instance_info field. A dictionary or a "jsonified" dictionary is expected.`,
    ],
    [
      'an invalid image_download_source',
      { instance_info: good, driver_info: { image_download_source: 'post' } },
      'Invalid value for image_download_source: "post". Valid values are swift, http or local.',
    ],
    [
      'an invalid proxy URL',
      { instance_info: good, driver_info: { image_http_proxy: 'ftp://p' } },
      "Proxy URL should either have HTTP(S) scheme or no scheme at all, the following URLs are invalid: {'image_http_proxy': 'ftp://p'}.",
    ],
    [
      'an invalid image_no_proxy',
      { instance_info: good, driver_info: { image_no_proxy: '.*.x' } },
      "image_no_proxy should be a list of host names, IP addresses or domain names to exclude from proxying, the specified list .*.x is incorrect. To denote a domain name, prefix it with a dot (instead of e.g. '.*').",
    ],
  ])('rejects %s', async (_, node, message) => {
    await expect(directDeploy.validate!(testTask({ node }).task)).rejects.toMatchObject(told(message));
  });
  it('rejects invalid root device hints and names the field that contains them', async () => {
    for (const place of ['instance_info', 'properties'] as const) {
      const node = { instance_info: good, [place]: { ...(place === 'instance_info' ? good : {}), root_device: { colour: 'red' } } };
      await expect(directDeploy.validate!(testTask({ node }).task)).rejects.toMatchObject({
        status: 400,
        message: expect.stringMatching(
          new RegExp(`^Failed to validate the root device hints .*colour.* \\(from the node's ${place}\\) for node ${NODE_UUID}: `),
        ) as string,
      });
    }
  });
  it('calls the validation of the boot interface first', async () => {
    const { task } = testTask({ ports: [], driver: { boot: ipxeBoot } });
    await expect(directDeploy.validate!(task)).rejects.toThrow('does not have any port associated with it');
  });
});

describe('prepare', () => {
  const prepared = (instance_info: JsonObject, more: Parameters<typeof testTask>[0] & {} = {}) =>
    testTask({
      ...more,
      node: { instance_info, ...more.node },
      options: {
        'conductor.deploy_kernel': join(folder, 'kernel'),
        'conductor.deploy_ramdisk': join(folder, 'ramdisk'),
        'conductor.file_url_allowed_paths': [folder],
        ...more.options,
      },
      driver: { boot: ipxeBoot, ...more.driver },
    });

  it('powers off, resolves the image URL and creates the boot record of the ramdisk', async () => {
    const { task, events, node, boots } = prepared({ image_source: `${base}/moved.img`, image_checksum: MD5 });
    await directDeploy.prepare!(task);
    expect(events).toEqual(['power: power off', 'boot device: pxe once']);
    expect(node().instance_info).toMatchObject({
      image_source: `${base}/moved.img`,
      image_url: `${base}/disk.img`,
      image_type: 'whole-disk',
    });
    expect(node().driver_internal_info).toMatchObject({ is_whole_disk_image: true });
    expect(boots.get(NODE_UUID)).toMatchObject({
      purpose: 'ramdisk',
      kernel_args: 'selinux=0 troubleshoot=0 text nofb vga=normal ipa-api-url=http://10.0.0.1:6385',
      files: { kernel: join(folder, 'kernel'), ramdisk: join(folder, 'ramdisk') },
    });
  });
  it.each([
    ['a file', () => ({ image_source: `file://${join(folder, 'disk.img')}` }), {}, () => join(folder, 'disk.img')],
    [
      'a URL with image_download_source "local"',
      () => ({ image_source: `${base}/disk.img`, image_checksum: MD5 }),
      { image_download_source: 'local' },
      () => `${base}/disk.img`,
    ],
  ])('serves %s through the boot service until cleanUp', async (_, instance, driver_info, expected) => {
    for (const boot of [ipxeBoot, fakeBoot]) {
      const { task, node, boots } = prepared(instance(), { node: { driver_info }, driver: { boot } });
      await directDeploy.prepare!(task);
      expect(node().instance_info['image_url']).toBe(`http://10.0.0.1:8080/boot/${NODE_UUID}/image`);
      expect(boots.get(NODE_UUID)!.files['image']).toBe(expected());
      expect(boots.get(NODE_UUID)!.purpose).toBe(boot === ipxeBoot ? 'ramdisk' : 'disk');
      await directDeploy.cleanUp!(task);
      expect(boots.size).toBe(0);
    }
  });
  it('keeps the sizes of the partitions of a partition image', async () => {
    const { task, node } = prepared({ image_source: `${base}/disk.img`, image_checksum: MD5, kernel: 'k', root_gb: '5', ephemeral_gb: 1 });
    await directDeploy.prepare!(task);
    expect(node().instance_info).toMatchObject({
      image_type: 'partition',
      root_gb: 5,
      root_mb: 5120,
      swap_mb: 0,
      ephemeral_mb: 1024,
      ephemeral_format: 'ext4',
      preserve_ephemeral: false,
    });
    expect(node().driver_internal_info).toMatchObject({ is_whole_disk_image: false });
  });
  it('removes the image of an earlier deployment from the boot record', async () => {
    const { task, boots } = prepared({ image_source: `${base}/disk.img`, image_checksum: MD5 });
    boots.set(NODE_UUID, {
      node_uuid: NODE_UUID,
      token: NODE_UUID,
      macs: [],
      method: 'ipxe',
      purpose: 'disk',
      kernel_args: '',
      files: { image: '/old' },
    });
    await directDeploy.prepare!(task);
    expect(Object.keys(boots.get(NODE_UUID)!.files).sort()).toEqual(['kernel', 'ramdisk']);
  });
  it.each([
    [
      'an image URL that answers 404',
      () => ({ image_source: `${base}/none.img`, image_checksum: MD5 }),
      'Got HTTP code 404 instead of 200 in response to HEAD request.',
    ],
    ['a file that does not exist', () => ({ image_source: `file://${join(folder, 'none')}` }), 'Specified image file not found.'],
    [
      'a checksum URL that answers 404',
      () => ({ image_source: `${base}/disk.img`, image_checksum: `${base}/SUMS` }),
      'Failed to download image',
    ],
  ])("fails for %s before it changes the machine's power or boot", async (_, instance, message) => {
    const { task, events, boots } = prepared(instance());
    await expect(directDeploy.prepare!(task)).rejects.toThrow(message);
    expect([events, boots.size]).toEqual([[], 0]);
  });
  it('changes no power state or boot device of an active node', async () => {
    const { task, events } = prepared({}, { node: { provision_state: 'active' } });
    await directDeploy.prepare!(task);
    expect(events).toEqual([]);
  });
});

describe('steps', () => {
  it('have the names and priorities of Ironic, but for save_disk and snapshot, and all are resumable', () => {
    expect(directDeploy.steps!.map(({ step: name, priority, resumable }) => [name, priority, resumable])).toEqual([
      ['deploy', { deploy: 100 }, true],
      ['write_image', { deploy: 80 }, true],
      ['prepare_instance_boot', { deploy: 60 }, true],
      ['tear_down_agent', { deploy: 40 }, true],
      ['switch_to_tenant_network', { deploy: 30 }, true],
      ['boot_instance', { deploy: 20 }, true],
      ['save_disk', { service: 0 }, true],
      ['snapshot', { service: 0 }, true],
    ]);
  });
  it.each([
    [{ power_state: 'power off' as const }, 'power on'],
    [{ power_state: 'power on' as const }, 'rebooting'],
    [{ power_state: 'power off' as const, disable_power_off: true }, 'rebooting'],
  ])('deploy boots the ramdisk of a node with %j by the power action "%s"', async (node, order) => {
    const { task, events } = testTask({ node });
    expect(await step('deploy')(task)).toEqual({ kind: 'wait' });
    expect(events).toEqual([`power: ${order}`]);
  });
  it.each([
    [false, 'power on'],
    [true, 'rebooting'],
  ])('boot_instance with disable_power_off %s executes the power action "%s"', async (disable_power_off, order) => {
    const { task, events } = testTask({ node: { disable_power_off } });
    expect(await step('boot_instance')(task)).toEqual({ kind: 'done' });
    expect(events).toEqual([`power: ${order}`]);
  });
  it('switch_to_tenant_network fails with the error of the network interface', async () => {
    const network = { ...noopNetwork, configureTenantNetworks: async () => Promise.reject(new Error('no switch')) };
    expect(await step('switch_to_tenant_network')(testTask({ driver: { network } }).task)).toEqual({
      kind: 'failed',
      reason: `Error changing node ${NODE_UUID} to tenant networks after deploy. no switch`,
    });
  });
});

async function withAgentTask(
  answer: (asked: AgentRequest, times: number) => Answer,
  given: Parameters<typeof testTask>[0] & {} = {},
): Promise<TestTask> {
  agent = await startFakeAgent(answer);
  const driver_internal_info = { agent_url: agent.url, agent_secret_token: 's3cret', ...given.node?.driver_internal_info };
  return testTask({ ...given, node: { power_state: 'power on', ...given.node, driver_internal_info } });
}

describe('write_image', () => {
  const running = (): Answer => ({ body: result('execute_deploy_step', 'RUNNING') });
  const sent = () => {
    const { step: asked } = agent!.asked[0]!.body!.params as { step: { step: string; interface: string; args: JsonObject } };
    return asked;
  };
  it('sends the complete image information to the agent', async () => {
    const { task } = await withAgentTask(running, {
      node: {
        instance_info: {
          image_source: `${base}/disk.img`,
          image_url: `${base}/disk.img`,
          image_os_hash_algo: 'sha256',
          image_os_hash_value: SHA256,
          configdrive: 'H4sI',
        },
        driver_info: { image_http_proxy: 'http://p:1', image_no_proxy: 'x' },
      },
    });
    expect(await step('write_image')(task)).toEqual({ kind: 'wait' });
    expect(sent()).toEqual({
      interface: 'deploy',
      step: 'write_image',
      priority: 80,
      args: {
        image_info: {
          id: 'disk.img',
          urls: [`${base}/disk.img`],
          disk_format: 'raw',
          container_format: null,
          stream_raw_images: true,
          os_hash_algo: 'sha256',
          os_hash_value: SHA256,
          proxies: { http: 'http://p:1' },
          no_proxy: 'x',
          node_uuid: NODE_UUID,
          image_type: 'whole-disk',
          configdrive: 'H4sI',
        },
        configdrive: 'H4sI',
      },
    });
  });
  it('sends the sizes of the partitions of a partition image', async () => {
    const sizes = { root_gb: 5, root_mb: 5120, swap_mb: 1, ephemeral_mb: 1024, ephemeral_format: 'ext4', preserve_ephemeral: false };
    const { task } = await withAgentTask(running, {
      node: {
        instance_info: {
          image_source: `${base}/disk.img`,
          image_url: `${base}/disk.img`,
          image_checksum: MD5,
          image_type: 'partition',
          ephemeral_gb: 1,
          ...sizes,
        },
        driver_internal_info: { is_whole_disk_image: false },
      },
    });
    await step('write_image')(task);
    expect(sent().args).toMatchObject({
      image_info: { ...sizes, image_type: 'partition', deploy_boot_mode: 'uefi', boot_option: 'local', disk_label: 'gpt', kernel: null },
    });
  });
  it.each([
    ['a host in image_server_auth_hosts', () => `${base}/disk.img`, ['127.0.0.1'], true],
    ['a host outside image_server_auth_hosts', () => `${base}/disk.img`, ['elsewhere'], false],
    ['the HTTP boot service', () => 'http://10.0.0.1:8080/boot/x/image', [], false],
  ])('for %s, the agent gets the login of the image server: %s %j %s', async (_, url, hosts, has) => {
    const { task } = await withAgentTask(running, {
      node: { instance_info: { image_source: `${base}/disk.img`, image_url: url(), image_checksum: MD5 } },
      options: {
        'deploy.image_server_auth_strategy': 'http_basic',
        'deploy.image_server_user': 'u',
        'deploy.image_server_password': 'p',
        'deploy.image_server_auth_hosts': hosts,
      },
    });
    await step('write_image')(task);
    const { image_info: image } = sent().args as { image_info: JsonObject };
    expect(Object.fromEntries(Object.entries(image).filter(([key]) => key.startsWith('image_server_')))).toEqual(
      has ? { image_server_auth_strategy: 'http_basic', image_server_user: 'u', image_server_password: 'p' } : {},
    );
  });
  it('sends the computed checksum of a local file and the image_disk_format of the operator', async () => {
    const { task } = await withAgentTask(running, {
      node: {
        instance_info: { image_source: `file://${join(folder, 'disk.img')}`, image_url: 'http://x/image', image_disk_format: 'gpt' },
      },
      options: { 'conductor.file_url_allowed_paths': [folder] },
    });
    await step('write_image')(task);
    expect(sent().args).toMatchObject({
      image_info: {
        urls: ['http://x/image'],
        disk_format: 'gpt',
        os_hash_algo: 'sha256',
        os_hash_value: createHash('sha256').update('disk.img').digest('hex'),
      },
      configdrive: null,
    });
  });
});

describe('prepare_instance_boot', () => {
  const uuids = { body: result('get_partition_uuids', 'SUCCEEDED', { command_result: { 'root uuid': 'r-1' } }) };
  const bios = { properties: { capabilities: 'boot_mode:bios' } };
  const mirror = { logical_disks: [{ controller: 'software', raid_level: '1', size_gb: 'MAX' }] };
  const installs = ['standby.get_partition_uuids', 'image.install_bootloader'];
  it.each<[string, Partial<NodeRecord>, readonly string[], { readonly root_uuid?: string; readonly target_boot_mode?: string }]>([
    ['BIOS', bios, ['standby.get_partition_uuids'], {}],
    ['UEFI', {}, installs, {}],
    ['BIOS, software RAID', { ...bios, target_raid_config: mirror }, installs, { target_boot_mode: 'bios' }],
    [
      'BIOS, software RAID with the root file system as a property of the image',
      { ...bios, raid_config: mirror, instance_info: { image_rootfs_uuid: '', image_properties: { rootfs_uuid: 'of Glance' } } },
      installs,
      { root_uuid: 'of Glance', target_boot_mode: 'bios' },
    ],
    [
      'BIOS, software RAID with the root file system that the operator names',
      { ...bios, raid_config: mirror, instance_info: { image_rootfs_uuid: 'fs', image_properties: { rootfs_uuid: 'of Glance' } } },
      installs,
      { root_uuid: 'fs', target_boot_mode: 'bios' },
    ],
    ['UEFI, RAID of a controller', { target_raid_config: { logical_disks: [{ raid_level: '1' }] } }, installs, {}],
  ])('gets the root UUID, installs the boot loader with UEFI or on arrays, and boots from disk: %s', async (_, node, expected, given) => {
    const {
      task,
      node: after,
      boots,
      events,
    } = await withAgentTask(
      ({ method, body }) =>
        body?.name === 'standby.get_partition_uuids'
          ? uuids
          : { body: result('install_bootloader', method === 'POST' ? 'RUNNING' : 'SUCCEEDED') },
      { node, driver: { boot: ipxeBoot } },
    );
    boots.set(NODE_UUID, {
      node_uuid: NODE_UUID,
      token: NODE_UUID,
      macs: [],
      method: 'ipxe',
      purpose: 'ramdisk',
      kernel_args: '',
      files: {},
    });
    expect(await step('prepare_instance_boot')(task)).toEqual({ kind: 'done' });
    expect(commandsSent()).toEqual(expected);
    expect(after().driver_internal_info).toMatchObject({ root_uuid_or_disk_id: 'r-1' });
    expect([boots.size, events]).toEqual([0, ['boot device: disk for good']]);
    if (expected.length === 2) {
      expect(agent!.asked[1]!.body!.params).toEqual({
        root_uuid: 'r-1',
        efi_system_part_uuid: null,
        prep_boot_part_uuid: null,
        target_boot_mode: 'uefi',
        ...given,
      });
    }
  });
  it.each<[string, Partial<NodeRecord>, JsonObject]>([
    ['UEFI', {}, { root_uuid: 'r-1', efi_system_part_uuid: 'e-1', target_boot_mode: 'uefi' }],
    ['BIOS', bios, { root_uuid: 'r-1', efi_system_part_uuid: null, target_boot_mode: 'bios' }],
  ])('installs the boot loader of a partition image, and remembers its sizes: %s', async (_, node, expected) => {
    const found = { 'root uuid': 'r-1', 'efi system partition uuid': 'e-1' };
    const { task, node: after } = await withAgentTask(
      ({ method, body }) =>
        body?.name === 'standby.get_partition_uuids'
          ? { body: result('get_partition_uuids', 'SUCCEEDED', { command_result: found }) }
          : { body: result('install_bootloader', method === 'POST' ? 'RUNNING' : 'SUCCEEDED') },
      {
        node: {
          ...node,
          instance_info: { root_gb: 5, swap_mb: 0, ephemeral_gb: 1 },
          driver_internal_info: { is_whole_disk_image: false },
        },
      },
    );
    expect(await step('prepare_instance_boot')(task)).toEqual({ kind: 'done' });
    expect(agent!.asked[1]!.body!.params).toEqual({ prep_boot_part_uuid: null, ...expected });
    expect(after().driver_internal_info).toMatchObject({
      root_uuid_or_disk_id: 'r-1',
      instance: { root_gb: 5, swap_mb: 0, ephemeral_gb: 1 },
    });
  });
  it.each([{}, { 'root uuid': '' }])('fails when the agent knows no root partition of a partition image: %j', async (uuids) => {
    const { task } = await withAgentTask(() => ({ body: result('get_partition_uuids', 'SUCCEEDED', { command_result: uuids }) }), {
      node: { driver_internal_info: { is_whole_disk_image: false } },
    });
    expect(await step('prepare_instance_boot')(task)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('no UUID of the root partition') as string,
    });
  });
  it("fails with the agent's error when install_bootloader fails", async () => {
    const { task, events } = await withAgentTask(({ body }) =>
      body?.name === 'standby.get_partition_uuids'
        ? { body: result('get_partition_uuids', 'SUCCEEDED') }
        : { body: result('install_bootloader', 'FAILED', { command_error: { details: 'no ESP' } }) },
    );
    expect(await step('prepare_instance_boot')(task)).toEqual({
      kind: 'failed',
      reason: `Failed to install a bootloader when deploying node ${NODE_UUID}: no ESP`,
    });
    expect(events).toEqual([]);
  });
  it('fails when the boot interface cannot set the boot device', async () => {
    const { task } = await withAgentTask(() => uuids, {
      node: bios,
      driver: { boot: { ...fakeBoot, prepareInstance: async () => Promise.reject(new Error('no such device')) } },
    });
    expect(await step('prepare_instance_boot')(task)).toEqual({
      kind: 'failed',
      reason: 'Failed to prepare instance for booting: no such device',
    });
  });
});

describe('tear_down_agent', () => {
  /** The BMC reports these power states in turn, and the last one from then on. */
  const telling = (...states: ('power on' | 'power off' | Error)[]) => ({
    ...fakePower,
    get: async () => {
      const state = states.length > 1 ? states.shift()! : states[0]!;
      return state instanceof Error ? Promise.reject(state) : state;
    },
  });
  const fine = (): Answer => ({ body: result('power_off', 'SUCCEEDED') });
  it.each([
    ['powers off by itself', telling('power on', 'power on', 'power off'), 660, 0],
    ['is off already', telling('power off'), 0, 0],
    ['has a BMC that first reports an error', telling(new Error('busy'), 'power off'), 300, 1],
    ['does not power off by itself', telling('power on'), 30_000, 1],
  ])('powers off a machine that %s', async (_, power, milliseconds, complaints) => {
    const made = await withAgentTask(fine, { driver: { power } });
    const before = made.task.clock.now();
    expect(await step('tear_down_agent')(made.task)).toEqual({ kind: 'done' });
    expect(made.task.clock.now() - before).toBe(milliseconds);
    expect(made.events).toEqual(['power: power off']);
    expect(made.complaints).toHaveLength(complaints);
  });
  it("does not wait for the agent's answer after the machine is off", async () => {
    const made = await withAgentTask(() => 'say nothing', { driver: { power: telling('power on', 'power off') } });
    expect(await step('tear_down_agent')(made.task)).toEqual({ kind: 'done' });
    expect(made.events).toEqual(['power: power off']);
    // A timeout of the agent's answer would be a complaint.
    expect(made.complaints).toEqual([]);
  });
  it.each([
    [{ driver_info: { deploy_forces_oob_reboot: 'true' } }, ['standby.sync'], ['power: power off']],
    [{ disable_power_off: true }, ['system.lockdown'], []],
  ])('for a node with %j, sends the agent %j', async (node, commands, expected) => {
    const { task, events } = await withAgentTask(fine, { node });
    expect(await step('tear_down_agent')(task)).toEqual({ kind: 'done' });
    expect([commandsSent(), events]).toEqual([commands, expected]);
  });
  it('powers off a machine whose agent is unknown, with two warnings', async () => {
    const { task, events, complaints } = testTask({ driver: { power: telling('power on') } });
    expect(await step('tear_down_agent')(task)).toEqual({ kind: 'done' });
    expect([events, complaints.length]).toEqual([['power: power off'], 2]);
  });
  it('fails with the reason of the stop when the server stops', async () => {
    const { task, stop } = await withAgentTask(() => 'say nothing', { driver: { power: telling('power on') } });
    stop(new Error('going down'));
    await expect(step('tear_down_agent')(task)).rejects.toThrow('going down');
  });
});

describe('tearDown and cleaning', () => {
  it.each([
    [false, ['power: power off']],
    [true, []],
  ])('tearDown with disable_power_off %s executes the expected power actions', async (disable_power_off, expected) => {
    const { task, events } = testTask({ node: { disable_power_off, provision_state: 'deleting' } });
    expect(await directDeploy.tearDown(task)).toEqual({ kind: 'done' });
    expect(events).toEqual(expected);
  });
  it('prepareCleaning sets the erase options and boots the ramdisk', async () => {
    const { task, events, node } = testTask({ options: { 'deploy.shred_random_overwrite_iterations': 3 } });
    expect(await directDeploy.prepareCleaning(task)).toEqual({ kind: 'wait' });
    expect(events).toEqual(['power: rebooting']);
    expect(node().driver_internal_info).toEqual({
      agent_erase_devices_iterations: 3,
      agent_erase_devices_zeroize: true,
      agent_continue_if_secure_erase_failed: false,
      agent_continue_if_ata_erase_failed: false,
      agent_enable_nvme_secure_erase: true,
      agent_enable_ata_secure_erase: true,
      disk_erasure_concurrency: 4,
      agent_erase_skip_read_only: false,
    });
  });
  it.each([
    [{}, ['power: power off']],
    [{ fault: 'clean failure' }, []],
    [{ disable_power_off: true }, ['power: rebooting']],
    [{ disable_power_off: true, fault: 'clean failure' }, []],
  ])('tearDownCleaning of a node with %j executes the expected power actions', async (node, expected) => {
    const { task, events } = testTask({ node });
    await directDeploy.tearDownCleaning(task);
    expect(events).toEqual(expected);
  });
});
