/** A machine's life: enrol, verify, inspect, clean, deploy, rebuild, undeploy. */
import { AGENT_URL } from '../../support/conductor';
import { newMachine } from '../../support/machine';
import { anyText } from '../../support/expect';
import { settled } from '../../support/settled';
import { useConductor } from '../../support/use-conductor';

const { clock, start } = useConductor();

const MAC = '52:54:00:00:00:01';
const INVENTORY = {
  interfaces: [{ name: 'eth0', mac_address: MAC, ipv4_address: '192.0.2.50', has_carrier: true }],
  cpu: { architecture: 'x86_64', count: 4 },
  memory: { physical_mb: 4096 },
  disks: [{ name: '/dev/sda', size: 20 * 1024 ** 3 }],
  bmc_address: '192.0.2.9',
  boot: { current_boot_mode: 'bios', pxe_interface: MAC },
};

it('a node goes from enroll to active and back with the ramdisk', async () => {
  const { conductor, machine, enrol, node, speak, store } = await start();
  const { uuid } = await enrol();

  await conductor.provision(uuid, 'manage', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', power_state: 'power off', target_provision_state: null });

  await conductor.provision(uuid, 'inspect', {});
  await conductor.idle();
  const waiting = await node(uuid);
  expect(waiting).toMatchObject({ provision_state: 'inspect wait', target_provision_state: 'manageable', reservation: null });
  expect(waiting.inspection_started_at).not.toBeNull();
  const seen = await conductor.continueInspection({ macs: [MAC], bmcAddresses: ['192.0.2.9'], wantsToken: true }, INVENTORY, {
    logs: 'AAAA',
    root_disk: 1,
  });
  expect(seen.uuid).toBe(uuid);
  expect(seen.driver_internal_info.agent_secret_token).toMatch(/^[\w-]{43}$/);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'manageable',
    properties: { cpu_arch: 'x86_64' },
    inspection_started_at: null,
    inspection_finished_at: anyText(),
    power_state: 'power off',
  });
  expect(await store.ports.ofNode(uuid)).toMatchObject([{ address: MAC, pxe_enabled: true }]);
  const kept = await store.inventories.find(uuid);
  expect(kept!.inventory).toEqual(INVENTORY);
  expect(Object.keys(kept!.plugin_data).sort()).toEqual(['all_interfaces', 'macs', 'root_disk', 'valid_interfaces']);

  machine.agentSteps = [
    { interface: 'deploy', step: 'erase_devices_metadata', priority: 99, abortable: true, reboot_requested: false },
    { interface: 'deploy', step: 'erase_devices', priority: 10, abortable: true },
    { interface: 'deploy', step: 'never', priority: 0 },
  ];
  machine.orders.length = 0;
  await conductor.provision(uuid, 'provide', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'clean wait', target_provision_state: 'available', clean_step: {} });
  await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'clean wait',
    clean_step: { step: 'erase_devices_metadata' },
    driver_internal_info: { clean_step_index: 0, agent_url: AGENT_URL },
  });
  await speak(uuid);
  await conductor.idle();
  expect((await node(uuid)).clean_step).toMatchObject({ step: 'erase_devices' });
  await speak(uuid);
  await conductor.idle();
  expect(machine.orders.filter((order) => order.startsWith('step'))).toEqual([
    'step deploy.erase_devices_metadata',
    'step deploy.erase_devices',
  ]);
  const cleaned = await node(uuid);
  expect(cleaned).toMatchObject({ provision_state: 'available', clean_step: {}, last_error: null, power_state: 'power off' });
  // Ironic keeps the key clean_steps, with the value null.
  expect(cleaned.driver_internal_info).toMatchObject({ clean_steps: null });
  for (const key of ['agent_url', 'agent_secret_token']) expect(cleaned.driver_internal_info).not.toHaveProperty(key);

  machine.agentSteps = [{ interface: 'deploy', step: 'inject_files', priority: 70 }];
  machine.orders.length = 0;
  await conductor.provision(uuid, 'active', { configdrive: 'H4sIAAAA' });
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'wait call-back',
    target_provision_state: 'active',
    deploy_step: { interface: 'deploy', step: 'deploy', priority: 100 },
    instance_info: { configdrive: 'H4sIAAAA' },
  });
  await speak(uuid);
  await conductor.idle();
  expect((await node(uuid)).deploy_step).toMatchObject({ step: 'write_image' });
  await speak(uuid);
  await conductor.idle();
  expect((await node(uuid)).deploy_step).toMatchObject({ step: 'inject_files' });
  await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'active',
    deploy_step: {},
    target_provision_state: null,
    power_state: 'power on',
  });
  expect(machine.orders.filter((order) => order.startsWith('step'))).toEqual([
    'step deploy.deploy',
    'step deploy.write_image',
    'step deploy.inject_files',
    'step deploy.boot_instance',
  ]);

  machine.ramdisk = false;
  machine.agentSteps = [];
  await conductor.provision(uuid, 'rebuild', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'active', instance_info: { configdrive: 'H4sIAAAA' } });

  await store.nodes.update(uuid, { instance_uuid: '6f4a1f34-2b5a-4c39-8f0b-06f3b0f6a6a1', instance_name: 'vm' });
  await conductor.provision(uuid, 'deleted', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    provision_state: 'available',
    instance_info: {},
    instance_uuid: null,
    instance_name: null,
    power_state: 'power off',
    reservation: null,
  });
});

it.each([
  ['off for the node', { automated_clean: false }, {}, false],
  ['off for all nodes', {}, { 'conductor.automated_clean': false }, false],
  ['off for all nodes, but on for the node', { automated_clean: true }, { 'conductor.automated_clean': false }, true],
])('automated cleaning: %s', async (_what, changes, options, cleans) => {
  const { conductor, machine, enrol, node } = await start({ options, machine: newMachine({ ramdisk: false }) });
  const { uuid } = await enrol({ provision_state: 'manageable', ...changes });
  await conductor.provision(uuid, 'provide', {});
  await conductor.idle();
  expect((await node(uuid)).provision_state).toBe('available');
  expect(machine.orders.includes('prepareCleaning')).toBe(cleans);
});

it('brings a retired node to manageable instead of available', async () => {
  const { conductor, enrol, node } = await start({ machine: newMachine({ ramdisk: false }) });
  const { uuid } = await enrol({ provision_state: 'active', retired: true });
  await conductor.provision(uuid, 'undeploy', {});
  await conductor.idle();
  expect((await node(uuid)).provision_state).toBe('manageable');
  await expect(conductor.provision(uuid, 'provide', {})).rejects.toThrow('because it is retired');
});

it('manual cleaning runs the steps in the given order, with their arguments', async () => {
  const { conductor, machine, enrol, node, speak } = await start();
  machine.agentSteps = [
    { interface: 'deploy', step: 'erase_devices', priority: 10 },
    { interface: 'raid', step: 'create_configuration', priority: 0, argsinfo: { size: { description: 'How big', required: true } } },
  ];
  const { uuid } = await enrol({ provision_state: 'manageable' });
  await conductor.provision(uuid, 'clean', {
    clean_steps: [
      { interface: 'raid', step: 'create_configuration', args: { size: 1 } },
      { interface: 'deploy', step: 'erase_devices' },
    ],
  });
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'clean wait', target_provision_state: 'manageable' });
  for (const step of ['create_configuration', 'erase_devices']) {
    await speak(uuid);
    await conductor.idle();
    expect(await node(uuid)).toMatchObject({ clean_step: { step }, target_provision_state: 'manageable' });
  }
  await speak(uuid);
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'manageable', clean_step: {}, target_provision_state: null });
});

it('manual cleaning boots no ramdisk if no step needs one', async () => {
  const { conductor, machine, enrol, node } = await start();
  machine.steps = [
    {
      step: 'beep',
      priority: { clean: 0 },
      requiresRamdisk: false,
      run: async () => {
        machine.orders.push('beep');
        return { kind: 'done' };
      },
    },
  ];
  const { uuid } = await enrol({ provision_state: 'manageable' });
  await conductor.provision(uuid, 'clean', { clean_steps: [{ interface: 'vendor', step: 'beep' }] });
  await conductor.idle();
  expect((await node(uuid)).provision_state).toBe('manageable');
  expect(machine.orders).toEqual(['beep']);
});

it('polls a waiting step at the interval that it gave', async () => {
  const { conductor, machine, enrol, node } = await start({ machine: newMachine({ ramdisk: false }) });
  machine.steps = [{ step: 'flash', priority: { clean: 5 }, requiresRamdisk: false, run: async () => ({ kind: 'wait', pollEvery: 30 }) }];
  const { uuid } = await enrol({ provision_state: 'manageable' });
  await conductor.provision(uuid, 'provide', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'clean wait', clean_step: { step: 'flash' } });
  machine.stepOutcome = { kind: 'wait' };
  await clock.advance(31);
  await settled(conductor);
  expect((await node(uuid)).provision_state).toBe('clean wait');
  machine.stepOutcome = { kind: 'done' };
  await clock.advance(31);
  await settled(conductor);
  expect((await node(uuid)).provision_state).toBe('available');
});
