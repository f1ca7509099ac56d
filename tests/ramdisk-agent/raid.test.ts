import { AgentError } from '../../model/agent/errors';
import type { JsonObject } from '../../model/records';
import { rootDisk, usableDisks } from '../../model/agent/root-disk';
import type { Device } from '../../ramdisk-agent/disk/device';
import { createPartitions, readPartitions } from '../../ramdisk-agent/disk/partitions';
import { arraysOf, assembleArrays, type RaidHost } from '../../ramdisk-agent/raid/arrays';
import { applyConfiguration, createConfiguration, deleteConfiguration, fatesOf } from '../../ramdisk-agent/raid/configuration';
import { erasableDisks } from '../../ramdisk-agent/raid/erasable';
import { isMember } from '../../ramdisk-agent/raid/members';
import { rootCandidates } from '../../ramdisk-agent/raid/root';
import { fakeMachine, type FakeMachine } from './fake-md';
import { fileDevice } from './support';

const MiB = 2 ** 20;
const GiB = 1024;
const mirror = { controller: 'software', raid_level: '1', size_gb: 'MAX' };
const config = (...disks: readonly JsonObject[]): JsonObject => ({ logical_disks: disks });
const NODE = { uuid: 'u', properties: { capabilities: 'boot_mode:uefi' } };
const two = (): FakeMachine => fakeMachine({ sda: 3 * GiB, sdb: 3 * GiB });
const partitionsOf = async (machine: FakeMachine, disk: string) => {
  const device = await machine.open(disk);
  const table = await readPartitions(device);
  await device.close();
  return table && { label: table.label, partitions: table.partitions.map(({ start, size }) => [start / MiB, size / MiB]) };
};
const mdadm = (machine: FakeMachine, verb: string): readonly string[] => machine.ran.filter((line) => line.startsWith(`mdadm ${verb}`));

describe('createConfiguration', () => {
  it('makes partitions on each disk, and arrays of them', async () => {
    const machine = two();
    const root = { ...mirror, size_gb: 1, volume_name: 'root', is_root_volume: true };
    const wanted = config({ ...mirror, raid_level: '1' }, { ...root });
    const { config: made, roots } = await createConfiguration(machine.host, NODE, wanted);
    expect(made).toEqual(wanted);
    for (const disk of ['sda', 'sdb'])
      expect(await partitionsOf(machine, disk)).toEqual({
        label: 'gpt',
        partitions: [
          [551, 1024 - 551],
          [1024, 2047],
        ],
      });
    expect(mdadm(machine, '--create')).toEqual([
      'mdadm --create /dev/md0 --force --run --metadata=1 --level=1 --name=root --raid-devices=2 /dev/sda1 /dev/sdb1',
      'mdadm --create /dev/md1 --force --run --metadata=1 --level=1 --name=md1 --raid-devices=2 /dev/sda2 /dev/sdb2',
    ]);
    expect([...roots]).toEqual([['/dev/md0', true]]);
    expect(await arraysOf(machine.host)).toMatchObject([
      { name: '/dev/md0', volume: 'root', members: ['/dev/sda1', '/dev/sdb1'], holders: ['/dev/sda', '/dev/sdb'] },
      { name: '/dev/md1', volume: 'md1', members: ['/dev/sda2', '/dev/sdb2'] },
    ]);
  });

  it('makes an MBR for a BIOS, and arrays on other disks beside each other', async () => {
    const machine = fakeMachine({ sda: 3 * GiB, sdb: 3 * GiB, nvme0n1: 2 * GiB, nvme1n1: 2 * GiB });
    const by = (...names: readonly string[]) => names.map((name) => ({ name: `/dev/${name}` }));
    const data = { ...mirror, raid_level: '0', size_gb: 1, physical_disks: by('nvme1n1', 'nvme0n1') };
    await createConfiguration(machine.host, { uuid: 'u' }, config({ ...mirror, physical_disks: by('sda', 'sdb') }, data));
    expect(await partitionsOf(machine, 'sda')).toEqual({ label: 'dos', partitions: [[1, 3 * GiB - 2]] });
    expect(mdadm(machine, '--create').map((line) => line.split(' ').slice(2).join(' '))).toEqual([
      '/dev/md0 --force --run --metadata=1 --level=0 --name=md0 --raid-devices=2 /dev/nvme1n1p1 /dev/nvme0n1p1',
      '/dev/md1 --force --run --metadata=1 --level=1 --name=md1 --raid-devices=2 /dev/sda1 /dev/sdb1',
    ]);
  });

  it('does nothing for a configuration of hardware', async () => {
    const machine = two();
    expect(await createConfiguration(machine.host, NODE, config({ raid_level: '1', size_gb: 100 }))).toMatchObject({ config: {} });
    expect(machine.ran).toEqual([]);
  });

  it.each<[string, (machine: FakeMachine) => unknown, JsonObject, string]>([
    ['an invalid configuration', () => {}, config({ ...mirror, raid_level: '7' }), 'Could not validate Software RAID config for u'],
    ['a disk that is too small', () => {}, config({ ...mirror, size_gb: 3 }), 'Failed to create partitions on /dev/sda'],
    ['a protected disk', (machine) => machine.protectedDisks.add('/dev/sdb'), config(mirror), 'Protected /dev/sdb'],
    [
      'partitions on a disk',
      async (machine) => {
        const device = await machine.open('sdb');
        await createPartitions(device, 'msdos', [{ start: MiB, size: MiB }], machine.host);
        await device.write(Buffer.from('content'), MiB + 1024);
        await device.close();
      },
      config(mirror),
      'Partitions detected on devices /dev/sdb during RAID config',
    ],
    [
      'an array of whole disks',
      (machine) => machine.leave('md127', { name: 'old', uuid: '1', members: ['sda', 'sdb'] }),
      config(mirror),
      'Existing Software RAID device detected that should not',
    ],
  ])('changes nothing for %s', async (_, prepare, wanted, message) => {
    const machine = two();
    await prepare(machine);
    await expect(createConfiguration(machine.host, NODE, wanted)).rejects.toThrow(message);
    expect(machine.ran.filter((line) => !line.startsWith('mdadm --detail'))).toEqual([]);
    expect(await partitionsOf(machine, 'sda')).toBeNull();
  });

  it('leaves out the disks in skip_block_devices', async () => {
    const machine = fakeMachine({ sda: 3 * GiB, sdb: 3 * GiB, sdc: 3 * GiB });
    const node = { uuid: 'u', properties: { skip_block_devices: [{ serial: 'S-sdb' }] } };
    await createConfiguration(machine.host, node, config(mirror));
    expect(mdadm(machine, '--create')[0]).toMatch(/\/dev\/sda1 \/dev\/sdc1$/);
    expect(await partitionsOf(machine, 'sdb')).toBeNull();
  });
});

describe('deleteConfiguration', () => {
  const made = async (): Promise<FakeMachine> => {
    const machine = two();
    const root = { ...mirror, size_gb: 1, volume_name: 'root' };
    await createConfiguration(machine.host, NODE, config(root, { ...mirror, volume_name: 'data' }));
    machine.ran.length = 0;
    return machine;
  };
  it('stops the arrays, and wipes the partition tables of their disks', async () => {
    const machine = await made();
    await deleteConfiguration(machine.host, NODE);
    expect(mdadm(machine, '--stop')).toEqual(['mdadm --stop /dev/md0', 'mdadm --stop /dev/md1']);
    for (const disk of ['sda', 'sdb']) expect(await partitionsOf(machine, disk)).toBeNull();
    await createConfiguration(machine.host, NODE, config(mirror));
  });

  it('changes nothing if a disk is protected', async () => {
    const machine = await made();
    machine.protectedDisks.add('/dev/sdb');
    await expect(deleteConfiguration(machine.host, NODE)).rejects.toThrow('Protected /dev/sdb');
    expect(mdadm(machine, '--stop')).toEqual([]);
  });

  it('keeps a volume in skip_block_devices, and empties those that share its disks', async () => {
    const machine = await made();
    const node = { ...NODE, properties: { skip_block_devices: [{ volume_name: 'data' }] } };
    const [kept, emptied] = [await machine.open('md1'), await machine.open('md0')];
    for (const device of [kept, emptied]) await device.write(Buffer.from('content'), 0);
    await deleteConfiguration(machine.host, node);
    expect(mdadm(machine, '--stop')).toEqual([]);
    expect((await kept.read(0, 7)).toString()).toBe('content');
    expect((await emptied.read(0, 7)).toString()).toBe('\0'.repeat(7));
    await Promise.all([kept.close(), emptied.close()]);
    // It is created no second time.
    const wanted = config({ ...mirror, size_gb: 1, volume_name: 'root' }, { ...mirror, volume_name: 'data' });
    await createConfiguration(machine.host, node, wanted);
    expect(mdadm(machine, '--create')).toEqual([]);
    await expect(createConfiguration(machine.host, node, config({ ...mirror, volume_name: 'other' }))).rejects.toThrow(
      'Existing Software RAID device detected that should not',
    );
  });

  it('does not touch an array that has a member on a disk in skip_block_devices', async () => {
    const machine = await made();
    await deleteConfiguration(machine.host, { uuid: 'u', properties: { skip_block_devices: [{ name: '/dev/sda' }] } });
    expect(mdadm(machine, '--stop')).toEqual([]);
    expect(await partitionsOf(machine, 'sdb')).not.toBeNull();
  });

  it('wipes a disk that has a superblock of an array that no longer exists', async () => {
    const machine = two();
    const device = await machine.open('sdb');
    await createPartitions(device, 'msdos', [{ start: MiB, size: 512 * MiB }], machine.host);
    await device.write(Buffer.from('fc4e2ba9', 'hex'), MiB + 4096);
    await device.close();
    await deleteConfiguration(machine.host, NODE);
    expect(await partitionsOf(machine, 'sdb')).toBeNull();
    expect(machine.ran).toEqual(['blockdev --rereadpt /dev/sdb']);
  });

  it('fails if an array remains', async () => {
    const machine = await made();
    const host = {
      ...machine.host,
      run: async (program: string, args: readonly string[]) => (args[0] === '--stop' ? '' : machine.host.run(program, args)),
    };
    await expect(deleteConfiguration(host, NODE)).rejects.toThrow(/busy|Unable to clean all softraid correctly/);
  });
});

it('applyConfiguration refuses a configuration before it deletes anything', async () => {
  const machine = two();
  await createConfiguration(machine.host, NODE, config(mirror));
  machine.ran.length = 0;
  await expect(applyConfiguration(machine.host, NODE, { raid_config: config({ ...mirror, size_gb: 5 }) })).rejects.toThrow(
    '5 GiB do not fit',
  );
  expect(machine.ran.filter((line) => !line.startsWith('mdadm --detail'))).toEqual([]);
  await applyConfiguration(machine.host, NODE, { raid_config: config({ ...mirror, volume_name: 'new' }) });
  expect(await arraysOf(machine.host)).toMatchObject([{ volume: 'new' }]);
});

it('fatesOf: what shares a disk with a volume that stays, stays, but only the system partitions with their content', () => {
  const array = (volume: string, ...disks: readonly string[]) => ({
    name: `/dev/${volume}`,
    volume,
    uuid: null,
    members: [],
    holders: disks.filter((disk) => !disk.startsWith('/dev/')),
    below: disks,
  });
  const arrays = [array('data', 'a', 'b'), array('root', 'b', 'c'), array('esp', 'c'), array('more', 'c', 'd'), array('other', 'e')];
  const fates = fatesOf(arrays, { properties: { skip_block_devices: [{ volume_name: 'data' }] } }, new Set());
  expect(arrays.map((each) => fates.get(each))).toEqual(['keep', 'wipe', 'keep', 'wipe', 'delete']);
  // An array below or above one with its content has its content too.
  const stacked = [array('below', 'a'), array('data', '/dev/below', 'a'), array('above', '/dev/data', '/dev/below', 'a', 'b')];
  const all = fatesOf(stacked, { properties: { skip_block_devices: [{ volume_name: 'data' }] } }, new Set());
  expect(stacked.map((each) => all.get(each))).toEqual(['keep', 'keep', 'keep']);
});

it.each<[string, number, number, string, boolean]>([
  ['1.2', 4096, 64 * MiB, 'fc4e2ba9', true],
  ['1.1', 0, 64 * MiB, 'fc4e2ba9', true],
  ['1.0', 64 * MiB - 8192, 64 * MiB, 'fc4e2ba9', true],
  ['0.90', 64 * MiB - 65536, 64 * MiB, 'fc4e2ba9', true],
  ['0.90 of a big endian machine', 64 * MiB - 65536, 64 * MiB, 'a92b4efc', true],
  ['0.90 on a size that is no multiple', 63 * MiB, 64 * MiB - 65536 + 512 * 5 - MiB + 131072 - 512 * 5, 'fc4e2ba9', true],
  ['nothing', 8192, 64 * MiB, 'fc4e2ba9', false],
])('isMember finds a superblock of version %s', async (_, place, size, magic, expected) => {
  const device = await fileDevice(size);
  await device.write(Buffer.from(magic, 'hex'), place);
  expect(await isMember(device)).toBe(expected);
});

describe('on a machine with an array', () => {
  const machine = (): FakeMachine => {
    const made = fakeMachine({ sda: 5 * GiB, sdb: 5 * GiB, sdc: 6 * GiB });
    made.leave('md0', { name: 'root', uuid: '1', members: ['sda', 'sdb'] });
    made.leave('md1', { name: 'data', uuid: '2', members: ['sdc'] });
    return made;
  };
  const software = { logical_disks: [{ ...mirror, volume_name: 'root', is_root_volume: true }] };
  const candidates = async (node: JsonObject, created?: ReadonlyMap<string, boolean>) => {
    const { host } = machine();
    const found = await rootCandidates(host, node, host.disks(), created);
    return 'root' in found ? found.root.name : found.disks.map(({ name }) => name);
  };
  it.each<[string, JsonObject, ReadonlyMap<string, boolean> | undefined, unknown]>([
    [
      'the volume that this agent created as root',
      { uuid: 'u', properties: { root_device: { name: '/dev/sda' } } },
      new Map([['/dev/md0', true]]),
      '/dev/md0',
    ],
    ['the root volume of the configuration', { uuid: 'u', raid_config: software }, undefined, '/dev/md0'],
    [
      'hints rather than the configuration',
      { uuid: 'u', raid_config: software, properties: { root_device: { name: '/dev/md1' } } },
      undefined,
      ['/dev/md0', '/dev/md1', '/dev/sda', '/dev/sdb', '/dev/sdc'],
    ],
    [
      'not what is no root volume',
      { uuid: 'u', raid_config: { logical_disks: [mirror] } },
      new Map([['/dev/md0', false]]),
      ['/dev/md1', '/dev/sdc'],
    ],
    ['not what stays', { uuid: 'u', properties: { skip_block_devices: [{ volume_name: 'root' }] } }, undefined, ['/dev/md1', '/dev/sdc']],
    ['no array of an earlier user', { uuid: 'u' }, undefined, ['/dev/sda', '/dev/sdb', '/dev/sdc']],
    ['any, before the lookup', {}, undefined, ['/dev/md0', '/dev/md1', '/dev/sda', '/dev/sdb', '/dev/sdc']],
  ])('the root disk is %s', async (_, node, created, expected) => {
    expect(await candidates(node, created)).toEqual(expected);
  });

  it.each<[string, JsonObject, readonly string[], readonly string[]]>([
    ['its arrays, if it has a configuration', { uuid: 'u', target_raid_config: software }, ['/dev/md0', '/dev/md1'], []],
    ['not what stays', { uuid: 'u', properties: { skip_block_devices: [{ volume_name: 'root' }] } }, ['/dev/md1'], []],
    ['the disks of leftovers', { uuid: 'u' }, ['/dev/sda', '/dev/sdb', '/dev/sdc'], ['mdadm --stop /dev/md0', 'mdadm --stop /dev/md1']],
    [
      'not the disks of an array with a disk that stays',
      { uuid: 'u', properties: { skip_block_devices: [{ name: '/dev/sda' }] } },
      ['/dev/sdc'],
      ['mdadm --stop /dev/md1'],
    ],
  ])('a node erases %s', async (_, node, names, stopped) => {
    const made = machine();
    expect((await erasableDisks(made.host, node, usableDisks(made.host.disks(), node))).map(({ name }) => name)).toEqual(names);
    expect(mdadm(made, '--stop')).toEqual(stopped);
  });
});

it('nothing on the disks is stopped if one of them is protected', async () => {
  const machine = fakeMachine(
    { sda: 5 * GiB, sdb: 5 * GiB },
    { 'sys/block/sda/holders/dm-0': '', 'sys/block/dm-0/dm/name': 'vg-root\n', 'sys/block/dm-0/dm/uuid': 'LVM-1\n' },
  );
  const open: RaidHost['open'] = async ({ name }) => {
    if (name === '/dev/sdb') throw new AgentError('ProtectedDeviceError', name);
    return { close: async () => {} } as Device;
  };
  await expect(erasableDisks({ ...machine.host, open }, { uuid: 'u' }, machine.host.disks())).rejects.toMatchObject({
    type: 'ProtectedDeviceError',
  });
  expect(machine.ran).toEqual([]);
});

it('the hint volume_name selects an array', async () => {
  const machine = fakeMachine({ sda: 5 * GiB, sdb: 5 * GiB });
  const { host } = machine;
  machine.leave('md127', { name: 'root', uuid: '1', members: ['sda', 'sdb'] });
  const nodeWith = (hints: JsonObject): JsonObject => ({ uuid: 'u', properties: { root_device: hints } });
  const chosen = async (node: JsonObject) => {
    const found = await rootCandidates(host, node, host.disks());
    return 'root' in found ? found.root.name : rootDisk(found.disks, node).name;
  };
  expect(await chosen(nodeWith({ volume_name: 'root' }))).toBe('/dev/md127');
  await expect(chosen(nodeWith({ volume_name: 'data' }))).rejects.toThrow('No suitable device was found for deployment using these hints');
});

it('assembleArrays starts mdadm only where udev has found a member', async () => {
  const plain = two();
  await assembleArrays(plain.host);
  expect(plain.ran).toEqual([]);
  const files = {
    'sys/block/sda/sda1/dev': '8:1',
    'sys/block/sda/sda1/partition': '1',
    'run/udev/data/b8:1': 'E:ID_FS_TYPE=linux_raid_member\n',
  };
  const member = fakeMachine({ sda: 64, sdb: 64 }, files);
  await assembleArrays(member.host);
  expect(member.ran).toContain('mdadm --assemble --scan --run');
});
