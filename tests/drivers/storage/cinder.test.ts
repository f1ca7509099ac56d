import { directDeploy } from '../../../drivers/agent/direct';
import { ipxeBoot, pxeBoot } from '../../../drivers/boot-interfaces/network-boot';
import { cinderStorage, connectorOf } from '../../../drivers/storage/cinder';
import type { Driver } from '../../../drivers/interfaces';
import type { VolumeConnectorRecord, VolumeTargetRecord } from '../../../model/records';
import { ServiceError, type ServiceClient } from '../../../wire/keystone/services';
import { cinderInMemory } from '../../support/fakes/cinder';
import { cinderTask, IQN, targetOf, testCinder } from '../../support/cinder-cases';
import { servicesOf } from '../../support/services';
import { NODE_UUID, testTask } from '../../support/task';

const VOLUME = '7d9a3c0e-3b1c-4f37-8a51-3f6b5a0c9d77';
const connector = (type: string, id = `${type}-1`): VolumeConnectorRecord => ({ ...IQN, type, connector_id: id });

describe('with a Cinder in memory', () => {
  const cinder = cinderInMemory();
  testCinder(() => cinder);
});

describe('validate', () => {
  interface ValidationCase {
    readonly connectors?: readonly VolumeConnectorRecord[];
    readonly targets?: readonly VolumeTargetRecord[];
    readonly capabilities?: string;
    readonly boot?: Driver['boot'];
    readonly configured?: false;
  }
  const validate = ({
    connectors = [IQN],
    targets = [targetOf(VOLUME)],
    capabilities = 'iscsi_boot:true',
    boot = ipxeBoot,
    ...rest
  }: ValidationCase) =>
    cinderStorage.validate!(
      testTask({
        connectors,
        targets,
        node: { properties: { capabilities } },
        driver: { boot },
        connections: { services: servicesOf(rest.configured === false ? {} : { 'cinder.auth_type': 'password' }) },
      }).task,
    );
  const fibre = targetOf(VOLUME, { volume_type: 'fibre_channel' });
  const both = [connector('wwpn'), connector('wwnn')];
  const id = targetOf(VOLUME).uuid;
  it.each<[string, ValidationCase]>([
    ['iSCSI', {}],
    ['Fibre Channel', { connectors: both, targets: [fibre], capabilities: 'fibre_channel_boot:true' }],
    ['a data volume without a capability', { targets: [targetOf(VOLUME, { boot_index: 1 })], capabilities: '' }],
    ['no volumes, and no Cinder', { connectors: [], targets: [], capabilities: '', configured: false }],
    ['another boot interface without iSCSI', { connectors: both, targets: [], capabilities: '', boot: pxeBoot }],
  ])('accepts %s', async (_name, row) => expect(validate(row)).resolves.toBeUndefined());
  it.each<[string, ValidationCase]>([
    [
      'The [pxe]/ipxe_enabled option must be set to True or the boot interface must be set to ``ipxe`` to support network booting to an iSCSI volume.',
      { boot: pxeBoot },
    ],
    [
      "In order to enable the 'iscsi_boot' capability for the node, an associated volume_connector type must be valid for iSCSI (iqn).",
      { connectors: [], targets: [] },
    ],
    [
      "In order to enable the 'fibre_channel_boot' capability for the node, an associated volume_connector type must be valid for Fibre Channel (wwpn, wwnn).",
      { capabilities: 'iscsi_boot:true,fibre_channel_boot:true' },
    ],
    [
      'Cinder requires both wwnn and wwpn entries for FCoE connections. There must be a wwpn entry for every wwnn entry. There are 2 wwpn entries and 1 wwnn entries.',
      { connectors: [...both, connector('wwpn', 'w2')] },
    ],
    [`Volume target ${id} is configured for 'iscsi', however the capability 'iscsi_boot' is not set for the node.`, { capabilities: '' }],
    [
      `Volume target ${id} is configured for 'iscsi', however no iSCSI connectors are configured for the node.`,
      { connectors: [], capabilities: '', targets: [targetOf(VOLUME, { uuid: id, boot_index: 1 })] },
    ],
    [
      `Volume target ${id} is configured for 'fibre_channel', however the capability 'fibre_channel_boot' is not set on node.`,
      { targets: [fibre] },
    ],
    [
      `Volume target ${id} is configured for 'fibre_channel', however no Fibre Channel WWPNs are configured for the node volume connectors.`,
      { targets: [{ ...fibre, boot_index: 1 }] },
    ],
    [
      `Volume target ${id} is of an unknown type 'rbd'. Supported types: 'iscsi' or 'fibre_channel'`,
      { targets: [targetOf(VOLUME, { volume_type: 'rbd' })] },
    ],
    ['Cinder is not configured: [cinder]auth_type is not set.', { configured: false }],
  ])('rejects: %s', async (reason, row) => {
    await expect(validate(row)).rejects.toMatchObject({
      message: `Failed to validate cinder storage interface for node ${NODE_UUID}. ${reason}`,
    });
  });
});

describe('connectorOf', () => {
  const { task } = testTask();
  it.each<[string, readonly VolumeConnectorRecord[], object]>([
    ['iSCSI', [IQN], { initiator: IQN.connector_id, host: NODE_UUID }],
    [
      'iSCSI with an address',
      [connector('ip', '192.0.2.9'), IQN, connector('iqn', 'iqn.second')],
      { initiator: IQN.connector_id, ip: '192.0.2.9', host: NODE_UUID, multipath: true },
    ],
    [
      'Fibre Channel',
      [connector('wwpn'), connector('wwpn', 'w2'), connector('wwnn')],
      { wwpns: ['wwpn-1', 'w2'], wwnns: ['wwnn-1'], host: NODE_UUID, multipath: true },
    ],
  ])('builds a connector for %s', (_name, connectors, expected) => expect(connectorOf(task, connectors)).toEqual(expected));
  it('throws without an initiator name', () => {
    expect(() => connectorOf(task, [connector('ip'), connector('mac')])).toThrow(
      `Insufficient or incompatible volume connection records for node ${NODE_UUID}. Valid connector types: wwpn, wwnn, iqn`,
    );
  });
});

describe('detachVolumes', () => {
  const failing = (count: number): ServiceClient => {
    const { client } = cinderInMemory();
    let left = count;
    return {
      ...client,
      request: async (path, call) => {
        if (left-- > 0) throw new ServiceError('cinder', 'failing', 'HTTP status 500: it broke', 500);
        return client.request(path, call);
      },
    };
  };
  it.each([
    [0, 0, true],
    [3, 3, true],
    [4, 3, false],
    [1, 0, false],
  ])('with %i failures and %i retries succeeds: %s', async (failures, retries, succeeds) => {
    const { task, done } = cinderTask({ client: failing(failures) }, [targetOf(VOLUME)], { options: { 'cinder.action_retries': retries } });
    const began = task.clock.now();
    const detached = cinderStorage.detachVolumes!(task).then(
      () => true,
      () => false,
    );
    expect(await detached).toBe(succeeds);
    const attempts = Math.min(failures, retries) + 1;
    expect(done).toEqual(Array(attempts).fill('show'));
    expect(task.clock.now() - began).toBe((attempts - 1) * 5000);
  });
  it('of an active machine logs errors and succeeds', async () => {
    const { task, complaints } = cinderTask({ client: failing(1) }, [targetOf(VOLUME)], { node: { provision_state: 'active' } });
    await cinderStorage.detachVolumes!(task);
    expect(complaints).toEqual([expect.stringContaining('it broke')]);
  });
  it('and attachVolumes send no request without volumes', async () => {
    const { task, done } = cinderTask({ client: failing(9) }, [], { connectors: [] });
    await cinderStorage.detachVolumes!(task);
    await cinderStorage.attachVolumes!(task);
    expect(done).toEqual([]);
  });
});

it.each([
  ['a volume_id that is not a UUID', 'x/../../y', /the volume_id is not a UUID$/],
  ['an unreachable service', VOLUME, /^Failed to connect to block storage service : \[cinder\] nothing answers$/],
])('attachVolumes fails with the reason: %s', async (_name, volume, reason) => {
  const client: ServiceClient = {
    ...cinderInMemory().client,
    request: async () => Promise.reject(new ServiceError('cinder', 'unreachable', 'nothing answers')),
  };
  const { task } = cinderTask({ client }, [targetOf(volume)], { options: { 'cinder.action_retries': 0 } });
  await expect(cinderStorage.attachVolumes!(task)).rejects.toMatchObject({
    name: 'StorageError',
    message: expect.stringMatching(reason) as string,
  });
});

it('attachVolumes releases a volume whose connection failed, even if Cinder cannot terminate the connection', async () => {
  const cinder = cinderInMemory();
  const volume = await cinder.create();
  const client: ServiceClient = {
    ...cinder.client,
    request: async (path, call) => {
      const [action] = Object.keys(call?.body ?? {});
      if (action === 'os-initialize_connection' || action === 'os-terminate_connection')
        throw new ServiceError('cinder', 'failing', 'HTTP status 500: no backend', 500);
      return cinder.client.request(path, call);
    },
  };
  const { task, node } = cinderTask({ client }, [targetOf(volume)], {});
  await expect(cinderStorage.attachVolumes!(task)).rejects.toThrow(/^Failed to initialize connection .*no backend$/);
  expect(await cinder.look(volume)).toMatchObject({ status: 'available', attachments: 0 });
  expect(node().driver_internal_info).not.toHaveProperty('attaching_volume');
});

it('detachVolumes releases a volume that attachVolumes reserved and could not release', async () => {
  const cinder = cinderInMemory();
  const volume = await cinder.create();
  let isAway = true;
  const client: ServiceClient = {
    ...cinder.client,
    request: async (path, call) => {
      const [action = ''] = Object.keys(call?.body ?? {});
      if (isAway && action !== '' && action !== 'os-reserve')
        throw new ServiceError('cinder', 'failing', 'HTTP status 500: no backend', 500);
      return cinder.client.request(path, call);
    },
  };
  const made = cinderTask({ client }, [targetOf(volume)], { options: { 'cinder.action_retries': 0 } });
  await expect(cinderStorage.attachVolumes!(made.task)).rejects.toThrow(/no backend$/);
  expect(await cinder.look(volume)).toMatchObject({ status: 'attaching' });
  expect(made.node().driver_internal_info).toHaveProperty('attaching_volume', volume);
  isAway = false;
  await cinderStorage.detachVolumes!(made.task);
  expect(await cinder.look(volume)).toMatchObject({ status: 'available', attachments: 0 });
  expect(made.node().driver_internal_info).not.toHaveProperty('attaching_volume');
});

it('a failed attachVolumes releases the other volumes after an error, even without retries', async () => {
  const cinder = cinderInMemory();
  const [first, second] = [await cinder.create(), await cinder.create()];
  const client: ServiceClient = {
    ...cinder.client,
    request: async (path, call) => {
      const [action] = Object.keys(call?.body ?? {});
      const isRefused = path.includes(second) ? action === 'os-initialize_connection' : action === 'os-begin_detaching';
      if (isRefused) throw new ServiceError('cinder', 'failing', 'HTTP status 500: no backend', 500);
      return cinder.client.request(path, call);
    },
  };
  const targets = [targetOf(first), targetOf(second, { boot_index: 1 })];
  const { task } = cinderTask({ client }, targets, { options: { 'cinder.action_retries': 0 } });
  await expect(cinderStorage.attachVolumes!(task)).rejects.toThrow(/no backend$/);
  expect(await cinder.look(second)).toMatchObject({ status: 'available', attachments: 0 });
});

it('a deployment attaches and boots the volume, and tearDown detaches it and deletes its target', async () => {
  const cinder = cinderInMemory();
  const id = await cinder.create();
  const made = testTask({
    node: { provision_state: 'deploying', properties: { capabilities: 'iscsi_boot:true' } },
    targets: [targetOf(id)],
    connectors: [IQN],
    driver: { boot: ipxeBoot, deploy: directDeploy, storage: cinderStorage },
    connections: { services: { ...servicesOf(), cinder: cinder.client } },
  });
  await directDeploy.prepare!(made.task);
  await directDeploy.steps!.find(({ step }) => step === 'prepare_instance_boot')!.run(made.task, {});
  expect(made.boots.get(NODE_UUID)).toMatchObject({ purpose: 'volume' });
  expect(await cinder.look(id)).toMatchObject({ status: 'in-use', attachments: 1 });
  await directDeploy.tearDown(made.task);
  expect(await cinder.look(id)).toMatchObject({ status: 'available', attachments: 0 });
  expect(made.volumeTargets()).toEqual([]);
});
