/** Power: what clients ask for, and the synchronisation with the machines. */
import type { NodeChanges } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine } from '../../support/machine';
import { like } from '../../support/expect';
import { settled } from '../../support/settled';
import { useConductor } from '../../support/use-conductor';

const { clock, database, start } = useConductor();
/** Past the next round of synchronisation (120 s and jitter). */
async function round(conductor: Started['conductor']): Promise<void> {
  await clock.advance(133);
  await settled(conductor);
}

it.each<[string, 'power on' | 'power off', readonly string[], NodeChanges]>([
  ['power on', 'power off', ['power on'], { power_state: 'power on' }],
  ['power on', 'power on', [], { power_state: 'power on' }],
  ['power off', 'power on', ['power off'], { power_state: 'power off' }],
  ['power off', 'power off', [], { power_state: 'power off' }],
  ['soft power off', 'power on', ['soft power off'], { power_state: 'power off' }],
  ['rebooting', 'power on', ['rebooting'], { power_state: 'power on' }],
  ['rebooting', 'power off', ['power on'], { power_state: 'power on' }],
])('the request "%s" for a machine in %s sends it %j', async (target, before, orders, after) => {
  const { conductor, enrol, node, machine } = await start({ machine: newMachine({ power: before }) });
  const { uuid } = await enrol({ provision_state: 'manageable', last_error: 'old' });
  await conductor.setPower(uuid, target);
  await conductor.idle();
  expect(machine.orders).toEqual(orders);
  expect(await node(uuid)).toMatchObject({ ...after, target_power_state: null, last_error: null, reservation: null });
});

it('composes a soft reboot, unless the driver has one', async () => {
  const { conductor, enrol, node, machine } = await start({ machine: newMachine({ power: 'power on' }) });
  const { uuid } = await enrol({ provision_state: 'manageable' });
  await conductor.setPower(uuid, 'soft rebooting');
  await conductor.idle();
  expect(machine.orders).toEqual(['soft power off', 'power on']);
  expect(await node(uuid)).toMatchObject({ power_state: 'power on', target_power_state: null, last_error: null });
});
it('does not compose a soft reboot of a machine that must stay on', async () => {
  const { conductor, enrol, node, machine } = await start({ machine: newMachine({ power: 'power on' }) });
  const { uuid } = await enrol({ provision_state: 'manageable', disable_power_off: true });
  await conductor.setPower(uuid, 'soft rebooting');
  await conductor.idle();
  expect(machine.orders).toEqual([]);
  expect(await node(uuid)).toMatchObject({
    target_power_state: null,
    last_error: like(/Failed to set node power state to soft rebooting\.$/),
  });
});

it.each([false, true])('leaves a soft reboot to the driver, also if the machine must not be off (%s)', async (stays) => {
  const { conductor, enrol, node, machine } = await start({ machine: newMachine({ power: 'power on', rebootsSoftly: true }) });
  const { uuid } = await enrol({ provision_state: 'manageable', disable_power_off: stays });
  await conductor.setPower(uuid, 'soft rebooting');
  await conductor.idle();
  expect(machine.orders).toEqual(['soft rebooting']);
  expect(await node(uuid)).toMatchObject({ power_state: 'power on', target_power_state: null, last_error: null });
});

it('removes the data of the agent when the machine goes off, but not a token in its boot medium', async () => {
  const { conductor, enrol, node } = await start({ machine: newMachine({ power: 'power on' }) });
  const agent = { agent_url: 'http://192.0.2.50:9999', agent_secret_token: 'x', agent_version: '1', kept: 1 };
  const a = await enrol({ provision_state: 'active', driver_internal_info: agent });
  const b = await enrol({ provision_state: 'active', driver_internal_info: { ...agent, agent_secret_token_pregenerated: true } });
  await conductor.setPower(a.uuid, 'rebooting');
  await conductor.setPower(b.uuid, 'rebooting');
  await conductor.idle();
  expect((await node(a.uuid)).driver_internal_info).toEqual({
    kept: 1,
    // In UTC, without an offset, as Ironic writes it.
    last_power_state_change: expect.stringMatching(/^[\d-]{10}T[\d:]{8}\.\d{6}$/) as unknown,
  });
  expect((await node(b.uuid)).driver_internal_info).toMatchObject({ agent_secret_token: 'x' });
});

it('shows target_power_state during the change, and records why it failed', async () => {
  const { conductor, enrol, node, machine } = await start({ machine: newMachine({ followsPowerOrders: false }) });
  const { uuid } = await enrol({ provision_state: 'manageable', power_state: 'power off' });
  await conductor.setPower(uuid, 'power on', 3000);
  expect((await node(uuid)).target_power_state).toBe('power on');
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({
    power_state: 'power off',
    target_power_state: null,
    last_error: "Failed to change power state to 'power on' by 'power on': Failed to set node power state to power on.",
  });
  machine.broken.set('get power', new Error('no route'));
  await conductor.setPower(uuid, 'power on');
  await conductor.idle();
  expect((await node(uuid)).last_error).toBe("Failed to change power state to 'power on': no route");
});

it.each<[string, NodeChanges, number, RegExp]>([
  ['power off', { disable_power_off: true }, 409, /^Failed to set node power state to power off\.$/],
  ['soft rebooting', {}, 400, /^The driver test-hardware does not support the power state, soft rebooting$/],
  ['sideways', {}, 400, /"sideways" can not be performed/],
  ['power on', { driver_info: {} }, 400, /bmc/],
])('refuses "%s" for a node with %j', async (target, changes, status, text) => {
  const { conductor, enrol, node } = await start({ machine: newMachine({ isHardOnly: true }) });
  const { uuid } = await enrol({ provision_state: 'manageable', ...changes });
  await expect(conductor.setPower(uuid, target)).rejects.toMatchObject({ status, message: like(text) });
  expect((await node(uuid)).target_power_state).toBeNull();
});

describe('the power synchronisation', () => {
  const active: NodeChanges = { provision_state: 'active', power_state: 'power on' };

  it.each<[string, NodeChanges, object, readonly string[], NodeChanges]>([
    ['sets the machine to the recorded power state', active, {}, ['power on'], { power_state: 'power on' }],
    [
      'records the power state of the machine if force_power_state_during_sync is off',
      active,
      { 'conductor.force_power_state_during_sync': false },
      [],
      { power_state: 'power off' },
    ],
    ['does not force the power state with disable_power_off', { ...active, disable_power_off: true }, {}, [], { power_state: 'power off' }],
    ['records the power state if none was known', { ...active, power_state: null }, {}, [], { power_state: 'power off' }],
    [
      'clears an old error if the power state is right',
      { ...active, power_state: 'power off', last_error: 'old' },
      {},
      [],
      { last_error: null },
    ],
    [
      'keeps the error of a failed state',
      { ...active, provision_state: 'deploy failed', power_state: 'power off', last_error: 'why' },
      {},
      [],
      { last_error: 'why' },
    ],
    [
      'keeps the error of a failed state whose power state was unknown',
      { ...active, provision_state: 'clean failed', power_state: null, last_error: 'why' },
      {},
      [],
      { power_state: 'power off', last_error: 'why' },
    ],
    [
      'ignores nodes in maintenance',
      { ...active, maintenance: true, last_error: 'old' },
      {},
      [],
      { power_state: 'power on', last_error: 'old' },
    ],
    ['ignores waiting nodes', { ...active, provision_state: 'clean wait' }, {}, [], { power_state: 'power on' }],
    ['ignores nodes without a BMC address', { ...active, power_state: null, driver_info: {} }, {}, [], { power_state: null }],
  ])('%s', async (_name, from, options, orders, after) => {
    const { conductor, enrol, node, machine } = await start({ options });
    const { uuid } = await enrol(from);
    await round(conductor);
    expect(machine.orders).toEqual(orders);
    expect(await node(uuid)).toMatchObject({ ...after, reservation: null });
  });

  it.each<[string, NodeChanges, object, NodeChanges]>([
    ['and switches it on again', {}, {}, { power_state: 'power on' }],
    ['and leaves it off', { disable_power_off: true }, {}, { power_state: 'power off' }],
    ['and records that', {}, { 'conductor.force_power_state_during_sync': false }, { power_state: 'power off' }],
  ])('forgets the agent of a machine that somebody switched off, %s', async (_, changes, options, after) => {
    const { conductor, enrol, node } = await start({ options });
    const driver_internal_info = { agent_url: 'https://192.0.2.9:9999', agent_secret_token: 'held', kept: 1 };
    const { uuid } = await enrol({ provision_state: 'manageable', power_state: 'power on', driver_internal_info, ...changes });
    await round(conductor);
    const found = await node(uuid);
    expect(found).toMatchObject({ ...after, driver_internal_info: { kept: 1 } });
    expect(found.driver_internal_info).not.toHaveProperty('agent_url');
    expect(found.driver_internal_info).not.toHaveProperty('agent_secret_token');
  });

  it('records health, boot mode and vendor that the BMC reports, and changes of health in the history', async () => {
    const status = { health: 'Warning', bootMode: 'uefi', namesVendor: true } as const;
    const { conductor, enrol, node, machine } = await start({ machine: newMachine({ power: 'power on', status, vendor: 'ACME' }) });
    const { uuid } = await enrol({ ...active });
    await round(conductor);
    const seen = { health: 'Warning', boot_mode: 'uefi', properties: { vendor: 'ACME' }, last_error: null, reservation: null };
    expect(await node(uuid)).toMatchObject(seen);
    const { revision } = await node(uuid);
    await round(conductor);
    expect((await node(uuid)).revision).toBe(revision);
    machine.status = { health: null, bootMode: 'bios', namesVendor: true };
    machine.vendor = 'other';
    await round(conductor);
    expect(await node(uuid)).toMatchObject({ health: null, boot_mode: 'bios', properties: { vendor: 'ACME' } });
    const told = await database.store().history.list({ where: { node_uuid: uuid } });
    expect(told.map(({ event, event_type: type, severity }) => [event, type, severity])).toEqual([
      ["Node health status changed: health='Warning' (previously 'None')", 'monitoring', 'INFO'],
      ['Health, warning: the BMC reports a warning about the machine', 'health', 'INFO'],
      ["Node health status changed: health='None' (previously 'Warning')", 'monitoring', 'INFO'],
    ]);
  });
  it('records no health if enable_health_monitoring is off, or if the power and management interfaces differ', async () => {
    const status = { health: 'Critical', bootMode: 'uefi', namesVendor: false } as const;
    const machine = newMachine({ power: 'power on', status });
    const { conductor, enrol, node } = await start({ machine, options: { 'conductor.enable_health_monitoring': false } });
    const [one, two] = [await enrol({ ...active }), await enrol({ ...active, management_interface: 'other' })];
    await round(conductor);
    expect(await node(one.uuid)).toMatchObject({ health: null, boot_mode: 'uefi' });
    expect(await node(two.uuid)).toMatchObject({ health: null, boot_mode: null });
  });

  it('sets maintenance if the BMC does not answer, and ends it when the BMC answers again', async () => {
    const { conductor, enrol, node, machine } = await start({
      options: { 'conductor.power_state_sync_max_retries': 1, 'conductor.power_failure_recovery_interval': 300 },
    });
    const { uuid } = await enrol({ ...active });
    machine.broken.set('get power', new Error('no route'));
    await round(conductor);
    expect(await node(uuid)).toMatchObject({ maintenance: false, power_state: 'power on' });
    await round(conductor);
    expect(await node(uuid)).toMatchObject({
      maintenance: true,
      fault: 'power failure',
      power_state: null,
      maintenance_reason: like(/^During sync_power_state, max retries exceeded for node .* Error: no route$/),
    });
    machine.broken.clear();
    await round(conductor);
    await round(conductor);
    await round(conductor);
    expect(await node(uuid)).toMatchObject({ maintenance: false, fault: null, maintenance_reason: null, power_state: 'power off' });
  });
});

it('reads and sets the boot device of the BMC', async () => {
  const { conductor, enrol, machine } = await start();
  const { uuid } = await enrol();
  expect(await conductor.getBootDevice(uuid)).toEqual({ boot_device: 'pxe', persistent: false });
  expect(await conductor.supportedBootDevices(uuid)).toEqual(['pxe', 'disk']);
  await conductor.setBootDevice(uuid, 'disk', true);
  await expect(conductor.setBootDevice(uuid, 'cdrom', true)).rejects.toMatchObject({
    status: 400,
    message: 'Invalid boot device cdrom specified.',
  });
  expect(machine.orders).toEqual(['get boot device', 'boot device disk for good']);
});
