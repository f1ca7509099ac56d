/** Instances on iSCSI volumes: the storage interface `external`, and what deploy and boot interfaces do. */
import { customAgentDeploy } from '../../../drivers/agent/deploy';
import { directDeploy } from '../../../drivers/agent/direct';
import { ramdiskDeploy } from '../../../drivers/agent/ramdisk-deploy';
import { ipxeBoot, pxeBoot } from '../../../drivers/boot-interfaces/network-boot';
import { externalStorage } from '../../../drivers/storage/external';
import type { StorageInterface, Task } from '../../../drivers/interfaces';
import type { NodeRecord, VolumeConnectorRecord, VolumeTargetRecord } from '../../../model/records';
import { NODE_UUID, portRecord, testTask } from '../../support/task';

const PROPERTIES = { target_iqn: 'iqn.2017-08.org.example:v', target_portal: '192.0.2.5:3260', target_lun: 0, auth_password: 'a secret' };
const target = (changes: Partial<VolumeTargetRecord> = {}): VolumeTargetRecord => ({
  id: 1,
  uuid: '7d9a3c0e-3b1c-4f37-8a51-3f6b5a0c9d01',
  node_uuid: NODE_UUID,
  volume_type: 'iscsi',
  volume_id: 'v-0',
  boot_index: 0,
  properties: PROPERTIES,
  extra: {},
  created_at: '2026-02-03T04:05:06.000000+00:00',
  updated_at: null,
  revision: 1,
  ...changes,
});
const connector = { type: 'iqn', connector_id: 'iqn.2017-08.org.example:node' } as VolumeConnectorRecord;
const node = (changes: Partial<NodeRecord> = {}): Partial<NodeRecord> => ({
  provision_state: 'deploying',
  properties: { capabilities: 'iscsi_boot:true,boot_mode:uefi' },
  ...changes,
});
const options = { 'conductor.deploy_kernel': '/k', 'conductor.deploy_ramdisk': '/r' };
const make = (changes: Partial<NodeRecord> = {}, targets = [target()], boot = ipxeBoot, storage: StorageInterface = externalStorage) =>
  testTask({
    node: node(changes),
    targets,
    connectors: [connector],
    options,
    ports: [portRecord({ address: '52:54:00:00:00:01' })],
    driver: { boot, storage, deploy: directDeploy },
  });
const step = async (task: Task, name: string) => directDeploy.steps!.find((candidate) => candidate.step === name)!.run(task, {});

describe('external storage interface', () => {
  it.each<[string, Partial<NodeRecord>, readonly VolumeTargetRecord[], boolean]>([
    ['a boot volume', {}, [target()], false],
    ['a boot volume and an image', { instance_info: { image_source: 'http://x' } }, [target()], true],
    ['a data volume', {}, [target({ boot_index: 1 })], true],
    ['no volume', {}, [], true],
  ])('shouldWriteImage with %s', async (_name, changes, targets, writes) => {
    const { task } = make(changes, [...targets]);
    expect(await externalStorage.shouldWriteImage(task)).toBe(writes);
  });

  const FAILED = `Failed to validate external storage interface for node ${NODE_UUID}. `;
  it.each<[string, VolumeTargetRecord, typeof ipxeBoot, string]>([
    [
      'another boot interface',
      target(),
      pxeBoot,
      'To support network booting to an iSCSI volume, the boot interface must be set to ``ipxe``.',
    ],
    [
      'an unknown volume type',
      target({ volume_type: 'rbd' }),
      ipxeBoot,
      `Volume target ${target().uuid} is of an unknown type 'rbd'. Supported types: 'iscsi' or 'fibre_channel'`,
    ],
    [
      'invalid target properties',
      target({ properties: { ...PROPERTIES, target_portal: '' } }),
      ipxeBoot,
      `Volume target ${target().uuid}: target_portal is not an address with an optional port.`,
    ],
  ])('validate rejects %s', async (_name, volume, boot, reason) => {
    await expect(externalStorage.validate!(make({}, [volume], boot).task)).rejects.toMatchObject({ message: `${FAILED}${reason}` });
  });
  it.each<[string, Partial<NodeRecord>, VolumeTargetRecord]>([
    ['an iSCSI volume', {}, target()],
    ['a Fibre Channel volume', {}, target({ volume_type: 'fibre_channel', properties: {} })],
    ['invalid properties if the node has an image', { instance_info: { image_source: 'http://x' } }, target({ properties: {} })],
  ])('validate accepts %s', async (_name, changes, volume) => {
    await expect(externalStorage.validate!(make(changes, [volume]).task)).resolves.toBeUndefined();
  });
});

describe('deployment', () => {
  it('executes all steps without the agent, and boots the volume', async () => {
    const { task, events, boots, node: now } = make();
    await directDeploy.validate!(task);
    await directDeploy.prepare!(task);
    for (const name of ['deploy', 'write_image', 'prepare_instance_boot', 'tear_down_agent', 'switch_to_tenant_network', 'boot_instance'])
      expect([name, await step(task, name)]).toEqual([name, { kind: 'done' }]);
    expect(events).toEqual(['power: power off', 'boot device: pxe for good', 'power: power on']);
    expect(now().driver_internal_info.boot_from_volume).toBe(target().uuid);
    const row = boots.get(NODE_UUID);
    expect(row).toMatchObject({ purpose: 'volume', method: 'ipxe', macs: ['52:54:00:00:00:01'], files: {}, kernel_args: '' });
    // The boot services read the credentials from the volume targets.
    expect(JSON.stringify([row, now()])).not.toContain('secret');
  });
  it('fails for a machine without the boot capability for the volume type', async () => {
    const { task, events } = make({ properties: {} });
    await expect(directDeploy.prepare!(task)).rejects.toMatchObject({
      name: 'StorageError',
      message: `Node ${NODE_UUID} has an iSCSI boot volume defined and no iSCSI boot support available.`,
    });
    const fibre = make({ properties: {} }, [target({ volume_type: 'fibre_channel' })]).task;
    await expect(directDeploy.prepare!(fibre)).rejects.toThrow('a Fibre Channel boot volume defined and no Fibre Channel boot support');
    expect(events).toEqual(['power: power off']);
  });
  it('boots a Fibre Channel volume from "disk", without a boot record', async () => {
    const fibre = target({ volume_type: 'fibre_channel', properties: {} });
    const { task, events, boots } = make({ properties: { capabilities: 'fibre_channel_boot:true' } }, [fibre]);
    await directDeploy.prepare!(task);
    await step(task, 'prepare_instance_boot');
    expect(events.at(-1)).toBe('boot device: disk for good');
    expect(boots.size).toBe(0);
  });
  it('with the ramdisk deploy interface boots the volume too', async () => {
    const { task, boots } = make({ deploy_interface: 'ramdisk' });
    const inMemory: Task = { ...task, driver: { ...task.driver, deploy: ramdiskDeploy } };
    await ramdiskDeploy.validate!(inMemory);
    await ramdiskDeploy.prepare!(inMemory);
    // The node was read before it was changed.
    const after: Task = { ...inMemory, node: task.node };
    await ramdiskDeploy.steps![0]!.run(after, {});
    expect(boots.get(NODE_UUID)).toMatchObject({ purpose: 'volume' });
  });
  it('attaches data volumes of an instance on the local disk', async () => {
    const attached: string[] = [];
    const storage = { ...externalStorage, attachVolumes: async () => void attached.push('attached') };
    const { task } = make({}, [target({ boot_index: 1 })], { ...ipxeBoot, prepareRamdisk: async () => {} }, storage);
    await customAgentDeploy.prepare!(task);
    expect(attached).toEqual(['attached']);
  });
});

describe('tearDown', () => {
  it('detaches the volumes after power-off and deletes their targets', async () => {
    const order: string[] = [];
    const storage = { ...externalStorage, detachVolumes: async () => void order.push(`detached, power ${task.node.power_state}`) };
    const made = make(
      { provision_state: 'deleting', power_state: 'power on', driver_internal_info: { boot_from_volume: target().uuid } },
      [target()],
      ipxeBoot,
      storage,
    );
    const { task } = made;
    await directDeploy.tearDown(task);
    expect(order).toEqual(['detached, power power off']);
    expect(made.volumeTargets()).toEqual([]);
    expect(made.node().driver_internal_info).toEqual({});
  });
  it('keeps volume targets whose detachment failed', async () => {
    const storage = { ...externalStorage, detachVolumes: async () => Promise.reject(new Error('no storage')) };
    const made = make({ provision_state: 'deleting' }, [target()], ipxeBoot, storage);
    await expect(directDeploy.tearDown(made.task)).rejects.toThrow('no storage');
    expect(made.volumeTargets()).toHaveLength(1);
  });
});

it('prepare of an adopted node creates the boot record of its volume without power actions', async () => {
  const { task, events, boots } = make({ provision_state: 'adopting' });
  await directDeploy.prepare!(task);
  expect(events).toEqual([]);
  expect(boots.get(NODE_UUID)).toMatchObject({ purpose: 'volume' });
});
