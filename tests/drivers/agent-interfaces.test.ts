/** RAID and rescue by the agent, and instances in memory, without the flows: the commands to agent and machine, and the node afterwards. */
import { join } from 'node:path';
import { agentRaid } from '../../drivers/agent/raid';
import { agentRescue } from '../../drivers/agent/rescue';
import { onHeartbeat } from '../../drivers/agent/steps';
import { withCapability } from '../../drivers/common/capabilities';
import { customAgentDeploy } from '../../drivers/agent/deploy';
import { fakeBoot } from '../../drivers/fake/fake';
import { done, wait, type PlannedStep, type SavedKind } from '../../drivers/interfaces';
import { ipxeBoot, pxeBoot } from '../../drivers/boot-interfaces/network-boot';
import { ramdiskDeploy } from '../../drivers/agent/ramdisk-deploy';
import { noopNetwork } from '../../drivers/noop';
import { type Answer, type FakeAgent, result, startFakeAgent } from '../support/fakes/fake-agent';
import { NODE_UUID, testTask } from '../support/task';

let agent: FakeAgent | undefined;
afterEach(async () => {
  await agent?.close();
  agent = undefined;
});
const talking = async (answer: () => Answer): Promise<{ agent_url: string }> => {
  agent = await startFakeAgent(answer);
  return { agent_url: agent.url };
};
const commandsSent = () => agent!.asked.flatMap(({ body }) => (body ? [body] : []));

describe('agent RAID interface', () => {
  const disks = { logical_disks: [{ size_gb: 100, raid_level: '1', is_root_volume: true, controller: 'software' }] };
  const stepOf = (kind: SavedKind, name: string) =>
    agentRaid.steps!.find((step) => step.step === name && step.priority[kind] !== undefined)!;
  const planned = (step: string): PlannedStep => ({ interface: 'raid', step, priority: 0, abortable: true });

  it('create_configuration sends target_raid_config to the agent and waits', async () => {
    const dii = await talking(() => ({ body: result('execute_clean_step', 'RUNNING') }));
    const { task, node } = testTask({
      node: { driver_internal_info: dii, target_raid_config: disks, clean_step: planned('create_configuration') as never },
      driver: { raid: agentRaid },
    });
    expect(await stepOf('clean', 'create_configuration').run(task, {})).toEqual(wait);
    expect(node().driver_internal_info['target_raid_config']).toEqual(disks);
    const [sent] = commandsSent();
    expect(sent).toMatchObject({ name: 'clean.execute_clean_step', params: { step: { interface: 'raid', step: 'create_configuration' } } });
    expect(sent!.params).toMatchObject({ node: { driver_internal_info: { target_raid_config: disks } } });
  });
  it('create_configuration rejects a node without target_raid_config', async () => {
    const { task } = testTask({ driver: { raid: agentRaid } });
    await expect(stepOf('clean', 'create_configuration').run(task, {})).rejects.toMatchObject({
      status: 400,
      message: `Node ${NODE_UUID} has no target RAID configuration.`,
    });
  });
  it.each([
    [undefined, "RAID config validation error: 'logical_disks' is a required property"],
    [{ logical_disks: [] }, 'RAID config validation error: logical_disks is not a list of objects, at least one'],
    [
      { logical_disks: [...disks.logical_disks, ...disks.logical_disks] },
      'Raid config cannot have more than one root volume. 2 root volumes were specified',
    ],
  ])('apply_configuration rejects raid_config %j', async (raid_config, message) => {
    const { task } = testTask({ driver: { raid: agentRaid } });
    await expect(stepOf('deploy', 'apply_configuration').run(task, { raid_config })).rejects.toMatchObject({ status: 400, message });
  });

  const finished = (kind: SavedKind, step: string, said: unknown) =>
    talking(() => ({
      body: {
        commands: [
          result(`execute_${kind}_step`, 'SUCCEEDED', {
            command_result: { [`${kind}_result`]: said, [`${kind}_step`]: { interface: 'raid', step } },
          }),
        ],
      },
    }));
  it.each([
    ['clean', 'create_configuration'],
    ['deploy', 'apply_configuration'],
    ['service', 'apply_configuration'],
  ] as const)('the heartbeat after %s.%s stores raid_config, capabilities, local_gb and root_device on the node', async (kind, step) => {
    const made = { logical_disks: [{ ...disks.logical_disks[0]!, root_device_hint: { name: '/dev/md0' } }] };
    const dii = await finished(kind, step, made);
    const { task, node } = testTask({
      node: { driver_internal_info: dii, properties: { capabilities: 'boot_mode:uefi', local_gb: 5 } },
      driver: { raid: agentRaid },
    });
    expect(await onHeartbeat(task, kind, planned(step))).toEqual(done);
    expect(node().raid_config).toEqual({ ...made, last_updated: expect.stringMatching(/^[\d-]{10} [\d:]{8}\.\d{6}$/) as unknown });
    expect(node().properties).toEqual({ capabilities: 'boot_mode:uefi,raid_level:1', local_gb: 100, root_device: { name: '/dev/md0' } });
  });
  it('the heartbeat after delete_configuration clears raid_config and the root device hint', async () => {
    const dii = await finished('clean', 'delete_configuration', null);
    const { task, node } = testTask({
      node: { driver_internal_info: dii, raid_config: disks, properties: { root_device: { name: '/dev/md0' }, cpus: 4 } },
      driver: { raid: agentRaid },
    });
    expect(await onHeartbeat(task, 'clean', planned('delete_configuration'))).toEqual(done);
    expect(node()).toMatchObject({ raid_config: {}, properties: { cpus: 4 } });
    expect(node().properties).not.toHaveProperty('root_device');
  });
  it('the heartbeat after create_configuration fails when the agent returns no result', async () => {
    const dii = await finished('clean', 'create_configuration', null);
    const { task } = testTask({ node: { driver_internal_info: dii }, driver: { raid: agentRaid } });
    await expect(onHeartbeat(task, 'clean', planned('create_configuration'))).rejects.toThrow("didn't return a proper command result");
  });
});

it.each([
  [undefined, 'raid_level:5'],
  ['a:b', 'a:b,raid_level:5'],
  ['raid_level:1,a:b', 'raid_level:5,a:b'],
])('withCapability sets raid_level in the capabilities %j', (before, after) => {
  expect(withCapability(before, 'raid_level', '5')).toBe(after);
});

describe('agent rescue interface', () => {
  const instance_info = { image_source: 'x', rescue_password: 's3cret', hashed_rescue_password: '$5$salt$hash' };
  it('sends the hashed password to the agent and removes both passwords from instance_info', async () => {
    const dii = await talking(() => ({ body: result('finalize_rescue', 'SUCCEEDED') }));
    const { task, node, boots } = testTask({
      node: { driver_internal_info: dii, provision_state: 'rescuing', instance_info },
      driver: { boot: ipxeBoot },
    });
    await agentRescue.finish!(task);
    expect(commandsSent()).toEqual([{ name: 'rescue.finalize_rescue', params: { rescue_password: '$5$salt$hash', hashed: true } }]);
    expect(node().instance_info).toEqual({ image_source: 'x' });
    expect(boots.size).toBe(0);
  });
  it.each<[string, () => Answer, RegExp]>([
    [
      'fails',
      () => ({ body: result('finalize_rescue', 'FAILED', { command_error: { message: 'no shadow' } }) }),
      /: Agent returned bad result for command finalize_rescue: no shadow$/,
    ],
    [
      'does not know the command',
      () => ({ status: 400, body: { details: 'Unknown command: finalize_rescue' } }),
      /out of date agent ramdisk/,
    ],
  ])('fails without the password hash in the message when the agent %s', async (_, answer, message) => {
    const dii = await talking(answer);
    const { task } = testTask({ node: { driver_internal_info: dii, provision_state: 'rescuing', instance_info } });
    const failure = await agentRescue.finish!(task).catch((error: unknown) => error as Error);
    expect((failure as Error).message).toMatch(/^Failed to rescue instance None for node /);
    expect((failure as Error).message).toMatch(message);
    expect((failure as Error).message).not.toContain('$5$');
  });
  it('sends the plain password to an agent that rejects the hash, if require_rescue_password_hashed is false', async () => {
    agent = await startFakeAgent(({ body }) =>
      body?.params['hashed'] === true ? { status: 400, body: 'unexpected argument' } : { body: result('finalize_rescue', 'SUCCEEDED') },
    );
    const { task } = testTask({
      node: { driver_internal_info: { agent_url: agent.url }, provision_state: 'rescuing', instance_info },
      options: { 'conductor.require_rescue_password_hashed': false },
    });
    await agentRescue.finish!(task);
    expect(commandsSent().map(({ params }) => params)).toEqual([
      { rescue_password: '$5$salt$hash', hashed: true },
      { rescue_password: 's3cret' },
    ]);
  });
  it('rescue boots the rescue ramdisk after power-off, or by a reboot with disable_power_off', async () => {
    for (const [disable_power_off, events] of [
      [false, ['power: power off', 'boot device: pxe once', 'power: power on']],
      [true, ['boot device: pxe once', 'power: rebooting']],
    ] as const) {
      const one = testTask({
        node: { provision_state: 'rescuing', instance_info, disable_power_off },
        options: {
          'conductor.rescue_kernel': '/etc/hostname',
          'conductor.rescue_ramdisk': '/etc/hosts',
          'conductor.deploy_kernel': '/none',
        },
        driver: { boot: ipxeBoot },
      });
      expect(await agentRescue.rescue(one.task)).toEqual(wait);
      expect(one.events).toEqual(events);
      expect(one.boots.get(NODE_UUID)!.files).toEqual({ kernel: '/etc/hostname', ramdisk: '/etc/hosts' });
    }
  });
});

describe('ramdisk deploy interface', () => {
  const files = { 'conductor.file_url_allowed_paths': ['/usr/share'] };
  const instance_info = {
    kernel: 'file:///usr/share/misc/magic',
    ramdisk: 'file:///usr/share/misc/magic',
    ramdisk_kernel_arguments: 'quiet',
  };
  it.each([
    ['after power-off', false, ['power: power off', 'tenant networks', 'boot device: pxe for good', 'power: power on']],
    ['by a reboot with disable_power_off', true, ['tenant networks', 'boot device: pxe for good', 'power: rebooting']],
  ])('the deploy step boots the instance over the network %s', async (_, disable_power_off, expected) => {
    const [kernel, ramdisk] = [__filename, join(__dirname, 'boot.test.ts')];
    const one = testTask({
      node: {
        provision_state: 'deploying',
        disable_power_off,
        instance_info: { ...instance_info, kernel: `file://${kernel}`, ramdisk: `file://${ramdisk}` },
      },
      options: { 'conductor.file_url_allowed_paths': [__dirname] },
      driver: {
        boot: ipxeBoot,
        deploy: ramdiskDeploy,
        network: { ...noopNetwork, configureTenantNetworks: async () => void one.events.push('tenant networks') },
      },
    });
    expect(await ramdiskDeploy.steps![0]!.run(one.task, {})).toEqual(done);
    expect(one.events).toEqual(expected);
    expect([...one.boots.values()]).toMatchObject([
      { node_uuid: NODE_UUID, macs: ['52:54:00:00:00:01'], method: 'ipxe', purpose: 'instance', files: { kernel, ramdisk } },
    ]);
    expect(one.boots.get(NODE_UUID)!.kernel_args).toBe('root=/dev/ram0 text nofb vga=normal quiet');
  });
  it('the deploy step fails for a missing kernel file after power-off, without a boot record', async () => {
    const { task, events, boots } = testTask({
      node: { provision_state: 'deploying', instance_info: { ...instance_info, kernel: 'file:///usr/share/dict/x' } },
      options: files,
      driver: { boot: pxeBoot, deploy: ramdiskDeploy },
    });
    await expect(ramdiskDeploy.steps![0]!.run(task, {})).rejects.toThrow('Specified image file not found.');
    expect(events).toEqual(['power: power off']);
    expect(boots.size).toBe(0);
  });
  it('validate rejects a boot interface without the ramdisk_boot capability', async () => {
    const { task } = testTask({ driver: { boot: fakeBoot, deploy: ramdiskDeploy } });
    await expect(ramdiskDeploy.validate!(task)).rejects.toThrow('must have the `ramdisk_boot` capability');
  });
  it('boot_iso is refused by the pxe boot interface and accepted by ipxe', async () => {
    const node = { automated_clean: false, instance_info: { boot_iso: 'http://x/y.iso' } };
    const refused = pxeBoot.validate!(testTask({ node, driver: { boot: pxeBoot, deploy: ramdiskDeploy } }).task);
    await expect(refused).rejects.toThrow('The boot interface pxe cannot boot the ISO image');
    await expect(ipxeBoot.validate!(testTask({ node, driver: { boot: ipxeBoot, deploy: ramdiskDeploy } }).task)).resolves.toBeUndefined();
  });
});

it('the custom-agent deploy interface has no write_image step', () => {
  expect(
    customAgentDeploy.steps!.filter(({ priority }) => priority.deploy !== undefined).map(({ step, priority }) => [step, priority.deploy]),
  ).toEqual([
    ['deploy', 100],
    ['prepare_instance_boot', 60],
    ['tear_down_agent', 40],
    ['switch_to_tenant_network', 30],
    ['boot_instance', 20],
  ]);
});
