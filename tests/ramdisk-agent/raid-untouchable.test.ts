/** What stays: disks and arrays in skip_block_devices, and what is made of them, or what they are made of. */
import { rootDisk, usableDisks } from '../../model/agent/root-disk';
import type { JsonObject } from '../../model/records';
import { openDisk, type Machine } from '../../ramdisk-agent/machine';
import { arraysOf } from '../../ramdisk-agent/raid/arrays';
import { deleteConfiguration } from '../../ramdisk-agent/raid/configuration';
import { erasableDisks } from '../../ramdisk-agent/raid/erasable';
import { rootCandidates } from '../../ramdisk-agent/raid/root';
import { untouchable } from '../../ramdisk-agent/raid/untouchable';
import { fakeMachine, type FakeMachine } from './fake-md';

const GiB = 1024;
const skipping = (...hints: readonly JsonObject[]): JsonObject => ({ uuid: 'u', properties: { skip_block_devices: hints } });
const keeping = (...keep: readonly JsonObject[]): JsonObject => ({ uuid: 'u', driver_internal_info: { erase_choice: { keep } } });
const software = {
  logical_disks: [{ controller: 'software', raid_level: '1', size_gb: 'MAX', volume_name: 'inner', is_root_volume: true }],
};

/** md0 is a mirror of sda and sdb; md1 is made of md0 and sdc; sdd has md2; sde is free. */
function stacked(): FakeMachine {
  const machine = fakeMachine({ sda: 5 * GiB, sdb: 5 * GiB, sdc: 5 * GiB, sdd: 5 * GiB, sde: 5 * GiB });
  machine.leave('md0', { name: 'inner', uuid: '1', members: ['sda', 'sdb'] });
  machine.leave('md1', { name: 'outer', uuid: '2', members: ['md0', 'sdc'] });
  machine.leave('md2', { name: 'other', uuid: '3', members: ['sdd'] });
  return machine;
}
const STACK = ['/dev/md0', '/dev/md1', '/dev/sda', '/dev/sdb', '/dev/sdc'];
const NODES: readonly (readonly [string, JsonObject])[] = [
  ['a disk at the bottom', skipping({ serial: 'S-sda' })],
  ['all disks at the bottom', skipping({ serial: 'S-sda' }, { serial: 'S-sdb' }, { serial: 'S-sdc' })],
  ['the array on the top', skipping({ name: '/dev/md1' })],
  ['the array between', skipping({ name: '/dev/md0' })],
  ['a disk that a request keeps', keeping({ serial: 'S-sdb' })],
  ['an array that a request keeps', keeping({ name: '/dev/md1' })],
];
/** What is opened for writing. */
function opened(machine: FakeMachine): readonly string[] {
  const names: string[] = [];
  const { open } = machine.host;
  Object.assign(machine.host, {
    open: async (disk: Parameters<typeof open>[0]) => {
      names.push(disk.name);
      return open(disk);
    },
  });
  return names;
}

it('the disks of an array on an array are those at the bottom', async () => {
  expect(await arraysOf(stacked().host)).toMatchObject([
    { name: '/dev/md0', holders: ['/dev/sda', '/dev/sdb'] },
    {
      name: '/dev/md1',
      members: ['/dev/md0', '/dev/sdc'],
      holders: ['/dev/sda', '/dev/sdb', '/dev/sdc'],
      below: ['/dev/md0', '/dev/sda', '/dev/sdb', '/dev/sdc'],
    },
    { name: '/dev/md2', holders: ['/dev/sdd'] },
  ]);
});

describe.each(NODES)('with %s', (_, node) => {
  it('the whole stack is untouchable, and nothing else', () => {
    const { host } = stacked();
    expect([...untouchable(host.tree, host.disks(), node)].sort()).toEqual(STACK);
  });

  it('no image goes over it, by hints or as the root volume', async () => {
    const { host } = stacked();
    const hinted = { ...node, instance_info: { root_device: { size: '> 0' } } };
    const chosen = async (given: JsonObject, created?: ReadonlyMap<string, boolean>): Promise<readonly string[]> => {
      const found = await rootCandidates(host, given, host.disks(), created);
      return 'root' in found ? [found.root.name] : found.disks.map(({ name }) => name).sort();
    };
    expect(await chosen({ ...node, instance_info: { root_device: { name: '/dev/md0' } } })).toEqual(['/dev/md2', '/dev/sdd', '/dev/sde']);
    expect(await chosen(hinted)).toEqual(['/dev/md2', '/dev/sdd', '/dev/sde']);
    expect(await chosen({ ...node, raid_config: software })).toEqual(['/dev/md2', '/dev/sdd', '/dev/sde']);
    expect(await chosen(node, new Map([['/dev/md1', true]]))).toEqual(['/dev/sdd', '/dev/sde']);
    const found = await rootCandidates(host, hinted, host.disks());
    expect(() => rootDisk('disks' in found ? found.disks : [], { ...node, instance_info: { root_device: { name: '/dev/md1' } } })).toThrow(
      'No suitable device',
    );
  });

  it('it is not erased, and nothing of it is stopped', async () => {
    for (const more of [{}, { raid_config: software }]) {
      const machine = stacked();
      const written = opened(machine);
      const given = { ...node, ...more };
      const erased = await erasableDisks(machine.host, given, usableDisks(machine.host.disks(), given));
      expect(erased.map(({ name }) => name).sort()).toEqual('raid_config' in more ? ['/dev/md2', '/dev/sde'] : ['/dev/sdd', '/dev/sde']);
      expect([...machine.arrays().keys()].slice(0, 2)).toEqual(['md0', 'md1']);
      expect(written.filter((name) => STACK.includes(name))).toEqual([]);
    }
  });

  it('it is not deleted with the configuration', async () => {
    const machine = stacked();
    const written = opened(machine);
    await deleteConfiguration(machine.host, node);
    expect([...machine.arrays().keys()]).toEqual(['md0', 'md1']);
    expect([...new Set(written)].sort()).toEqual(['/dev/md2', '/dev/sdd']);
  });

  it('the guard refuses to open it for writing', async () => {
    const { host } = stacked();
    // The names of these disks, which serial numbers come from
    const parameters = { diskTimeout: 60, guardSharedStorage: true };
    const named = JSON.parse(JSON.stringify(node).replaceAll('"serial":"S-', '"name":"/dev/')) as JsonObject;
    const machine = { ...host, parameters, bootedFromMedium: false, state: { node: named } } as unknown as Machine;
    const errorOf = (name: string): Promise<unknown> =>
      openDisk(machine, { name, size: GiB, logical_sectors: 512 }).catch((error: unknown) => error);
    for (const name of STACK) expect(await errorOf(name)).toMatchObject({ type: 'ProtectedDeviceError' });
    // There is no such disk here.
    expect(await errorOf('/dev/sdd')).not.toMatchObject({ type: 'ProtectedDeviceError' });
  });
});

it('an array that shares a disk with an untouchable one is emptied, and no more', async () => {
  const files = Object.fromEntries(
    ['sda1', 'sdb1', 'sdb2'].map((part) => [`sys/block/${part.slice(0, 3)}/${part}/partition`, part.slice(3)]),
  );
  const machine = fakeMachine({ sda: 64, sdb: 64, sdc: 64 }, files);
  machine.leave('md0', { name: 'data', uuid: '1', members: ['sda1', 'sdb1'] });
  machine.leave('md1', { name: 'more', uuid: '2', members: ['sdb2', 'sdc'] });
  const written = opened(machine);
  const node = skipping({ name: '/dev/md0' });
  const erased = await erasableDisks(machine.host, node, usableDisks(machine.host.disks(), node));
  expect(erased.map(({ name }) => name)).toEqual(['/dev/sdc']);
  expect([...machine.arrays().keys()]).toEqual(['md0']);
  expect([...new Set(written)].sort()).toEqual(['/dev/md1', '/dev/sdc']);
});
