import { readWriteArguments } from '../../../model/agent/write-arguments';
import { planPartitions, type PartitionSizes } from '../../../model/agent/partition-plan';

const [MiB, GiB] = [2 ** 20, 2 ** 30];
const sizes: PartitionSizes = { root: 2048, swap: 0, ephemeral: 0, ephemeralFormat: 'ext4', preservesEphemeral: false };
const disk = { path: '/dev/sda', size: 8 * GiB, sectorSize: 512 };

describe('planPartitions', () => {
  // As DiskPartitioner of ironic-python-agent makes them: in MiB, one after the other from 1, root last.
  it.each<['bios' | 'uefi', 'gpt' | 'msdos', Partial<PartitionSizes>, number, readonly (readonly [string, number, number])[]]>([
    ['bios', 'msdos', {}, 0, [['root', 1, 2048]]],
    [
      'bios',
      'gpt',
      {},
      0,
      [
        ['bios', 1, 1],
        ['root', 2, 2048],
      ],
    ],
    [
      'uefi',
      'gpt',
      {},
      0,
      [
        ['esp', 1, 550],
        ['root', 551, 2048],
      ],
    ],
    [
      'bios',
      'msdos',
      { swap: 512 },
      0,
      [
        ['swap', 1, 512],
        ['root', 513, 2048],
      ],
    ],
    [
      'bios',
      'msdos',
      { ephemeral: 1024 },
      0,
      [
        ['ephemeral', 1, 1024],
        ['root', 1025, 2048],
      ],
    ],
    [
      'bios',
      'msdos',
      { swap: 512, ephemeral: 1024 },
      MiB + 1,
      [
        ['ephemeral', 1, 1024],
        ['swap', 1025, 512],
        ['configdrive', 1537, 2],
        ['root', 1539, 2048],
      ],
    ],
    [
      'bios',
      'gpt',
      { swap: 512, ephemeral: 1024, preservesEphemeral: true },
      400_000,
      [
        ['bios', 1, 1],
        ['ephemeral', 2, 1024],
        ['swap', 1026, 512],
        ['configdrive', 1538, 1],
        ['root', 1539, 2048],
      ],
    ],
    [
      'uefi',
      'gpt',
      { swap: 512, ephemeral: 1024 },
      400_000,
      [
        ['esp', 1, 550],
        ['ephemeral', 551, 1024],
        ['swap', 1575, 512],
        ['configdrive', 2087, 1],
        ['root', 2088, 2048],
      ],
    ],
  ])('%s, %s, %j, a config drive of %d bytes', (bootMode, label, more, configDrive, expected) => {
    const plan = planPartitions({ bootMode, label, sizes: { ...sizes, ...more }, configDrive }, disk);
    expect(plan.partitions.map(({ role, start, size }) => [role, start / MiB, size / MiB])).toEqual(expected);
    expect(plan.partitions.map(({ number }) => number)).toEqual(expected.map((_, index) => index + 1));
  });
  it.each<['gpt' | 'msdos', number, number, string | null]>([
    ['msdos', 2049 * MiB, 512, null],
    ['msdos', 2049 * MiB - 512, 512, 'need 2049 MiB (root 2048), and /dev/sda has room for 2048 MiB with a partition table msdos'],
    ['gpt', 2050 * MiB + 33 * 512, 512, null],
    ['gpt', 2050 * MiB + 32 * 512, 512, 'need 2050 MiB (bios 1, root 2048)'],
    ['gpt', 2050 * MiB + 5 * 4096, 4096, null],
    ['gpt', 2050 * MiB + 4 * 4096, 4096, 'and /dev/sda has room for 2049 MiB'],
  ])('%s: on a disk of %d bytes with sectors of %d bytes: %s', (label, size, sectorSize, message) => {
    const plan = () => planPartitions({ bootMode: 'bios', label, sizes, configDrive: 0 }, { path: '/dev/sda', size, sectorSize });
    if (message === null) expect(plan().label).toBe(label);
    else expect(plan).toThrow(message);
  });
  it('an MBR ends at 2 TiB, a GPT does not', () => {
    const large = { ...disk, size: 8 * 1024 * GiB };
    const wanted = { bootMode: 'bios', sizes: { ...sizes, root: 2 ** 21 }, configDrive: 0 } as const;
    expect(() => planPartitions({ ...wanted, label: 'msdos' }, large)).toThrow('has room for 2097152 MiB');
    expect(planPartitions({ ...wanted, label: 'gpt' }, large).partitions).toHaveLength(2);
  });
});

describe('readWriteArguments', () => {
  const read = (image: object) => readWriteArguments({ image_info: { urls: ['u'], image_type: 'partition', ...image } }).partitions;
  it.each([
    [{ root_mb: 10 }, { root: 10 }],
    [
      { root_mb: '10', swap_mb: 5, ephemeral_mb: 7 },
      { root: 10, swap: 5, ephemeral: 7, ephemeralFormat: 'ext4' },
    ],
    [
      { root_mb: 10, ephemeral_mb: 7, ephemeral_format: 'xfs', preserve_ephemeral: true },
      { root: 10, ephemeral: 7, ephemeralFormat: 'xfs', preservesEphemeral: true },
    ],
    [
      { root_mb: 10, ephemeral_mb: 0, preserve_ephemeral: 'true' },
      { root: 10, preservesEphemeral: false },
    ],
    [{ root_mb: 10, ephemeral_mb: null, ephemeral_format: null, swap_mb: null, preserve_ephemeral: null }, { root: 10 }],
    [{ image_type: 'whole-disk' }, null],
    [{ image_type: undefined }, null],
  ])('%j is %j', (image, expected) => {
    expect(read(image)).toEqual(expected && { ...sizes, ...expected });
  });
  it.each<[object, string]>([
    [{}, "Image 'root_mb' must be a number of MiB from 1 to 1073741824."],
    [{ root_mb: 0 }, "'root_mb' must be"],
    [{ root_mb: 'x' }, "'root_mb' must be"],
    [{ root_mb: 2 ** 31 }, "'root_mb' must be"],
    [{ root_mb: 1, swap_mb: -1 }, "Image 'swap_mb' must be a number of MiB from 0"],
    [{ root_mb: 1, ephemeral_mb: [] }, "'ephemeral_mb' must be"],
    [{ root_mb: 1, ephemeral_mb: 1, ephemeral_format: 'btrfs' }, "Image 'ephemeral_format' must be one of ext2, ext3, ext4, xfs, vfat."],
    [{ root_mb: 1, ephemeral_mb: 1, ephemeral_format: 'toString' }, "'ephemeral_format' must be one of"],
    [{ root_mb: 1, preserve_ephemeral: 'maybe' }, "'preserve_ephemeral' must be a boolean"],
  ])('refuses %j', (image, message) => {
    expect(() => read(image)).toThrow(message);
  });
});
