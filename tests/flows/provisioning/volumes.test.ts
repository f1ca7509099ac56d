/** Instances on volumes: what a deployment checks, when volumes are attached and detached. */
import { randomUUID } from 'node:crypto';
import { Fault } from '../../../model/errors';
import type { NodeChanges } from '../../../model/records';
import type { Started } from '../../support/conductor';
import { newMachine } from '../../support/machine';
import { like } from '../../support/expect';
import { useConductor } from '../../support/use-conductor';

const { start } = useConductor();
const available: NodeChanges = { provision_state: 'available', power_state: 'power off' };
const onVolume = () => newMachine({ onVolume: true, ramdisk: false });
const volume = { volume_type: 'iscsi', volume_id: 'v-0', boot_index: 0, properties: {}, extra: {} };
const about = (machine: Started['machine']) =>
  machine.orders.filter((what) => / volumes$|^power |^rebooting$|^validate storage$/.test(what));

it('a deployment validates the storage interface, and detaches volumes if it fails', async () => {
  const { conductor, enrol, machine, node, store } = await start({ machine: onVolume() });
  const { uuid } = await enrol(available);
  await store.volumeTargets.create({ ...volume, node_uuid: uuid, uuid: randomUUID() });
  const reason = 'Failed to validate external storage interface';
  machine.broken.set('validate storage', new Fault('InvalidParameterValue', { message: reason }));
  await expect(conductor.provision(uuid, 'active', {})).rejects.toMatchObject({ status: 400, message: like(new RegExp(reason)) });
  machine.broken.clear();
  machine.broken.set('step deploy.write_image', new Error('the step failed'));
  machine.orders.length = 0;
  await conductor.provision(uuid, 'active', {});
  await conductor.idle();
  expect(await node(uuid)).toMatchObject({ provision_state: 'deploy failed' });
  expect(about(machine).at(-1)).toBe('detach volumes');
});

it('an active machine has its volumes attached at power on, and detached at power off', async () => {
  const { conductor, enrol, machine, node } = await start({ machine: onVolume() });
  const { uuid } = await enrol({ provision_state: 'active', power_state: 'power off' });
  const order = async (target: 'power on' | 'power off' | 'rebooting'): Promise<readonly string[]> => {
    machine.orders.length = 0;
    await conductor.setPower(uuid, target);
    await conductor.idle();
    return about(machine);
  };
  expect(await order('power on')).toEqual(['attach volumes', 'power on']);
  expect(await order('rebooting')).toEqual(['attach volumes', 'rebooting']);
  machine.broken.set('detach volumes', new Fault('StorageError', { message: 'no storage' }));
  expect(await order('power off')).toEqual(['power off', 'detach volumes']);
  expect(await node(uuid)).toMatchObject({ power_state: 'power off', last_error: null });
  machine.broken.set('attach volumes', new Fault('StorageError', { message: 'no storage' }));
  expect(await order('power on')).toEqual(['attach volumes']);
  expect(await node(uuid)).toMatchObject({
    power_state: 'power off',
    target_power_state: null,
    last_error: "Failed to change power state to 'power on' by 'power on': no storage",
  });
});

it('a machine without an instance has no volumes attached at power on', async () => {
  const { conductor, enrol, machine } = await start({ machine: onVolume() });
  const { uuid } = await enrol(available);
  await conductor.setPower(uuid, 'power on');
  await conductor.idle();
  expect(about(machine)).toEqual(['power on']);
});
