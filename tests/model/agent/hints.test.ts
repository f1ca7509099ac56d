import { matchDisks, parseHints } from '../../../model/agent/hints';
import type { InventoryDisk } from '../../../model/records';

const GiB = 2 ** 30;
const disks: readonly InventoryDisk[] = [
  {
    name: '/dev/sda',
    size: 4 * GiB,
    rotational: true,
    model: 'QEMU HARDDISK',
    vendor: 'ATA',
    serial: 'AB12',
    wwn: '0x5000c500a1',
    hctl: '0:0:0:0',
  },
  {
    name: '/dev/sdb',
    size: 10.5 * GiB,
    rotational: false,
    model: 'Fast SSD 9',
    vendor: 'ACME',
    serial: 'CD34',
    wwn: null,
    hctl: '1:0:0:0',
  },
  {
    name: '/dev/nvme0n1',
    size: 100 * GiB,
    rotational: false,
    model: 'NVMe',
    serial: '',
    by_path: '/dev/disk/by-path/pci-0000:00:04.0-nvme-1',
  },
];

describe('matchDisks', () => {
  const all = ['/dev/sda', '/dev/sdb', '/dev/nvme0n1'];
  it.each<[unknown, readonly string[]]>([
    [undefined, all],
    [null, all],
    [{}, all],
    [{ name: '/dev/sdb' }, ['/dev/sdb']],
    [{ name: 's== /dev/sdb' }, ['/dev/sdb']],
    [{ name: 's!= /dev/sda' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ model: 'qemu harddisk' }, ['/dev/sda']],
    [{ model: '<in> SSD' }, ['/dev/sdb']],
    [{ model: '<in>ssd 9' }, ['/dev/sdb']],
    [{ model: '<or> fast ssd 9 <or> nvme' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ name: 's< /dev/sda' }, ['/dev/nvme0n1']],
    [{ name: 's>= /dev/sda' }, ['/dev/sda', '/dev/sdb']],
    [{ name: 's<= /dev/sda' }, ['/dev/sda', '/dev/nvme0n1']],
    [{ name: 's> /dev/sda' }, ['/dev/sdb']],
    [{ wwn: '0x5000C500A1' }, ['/dev/sda']],
    [{ hctl: '1:0:0:0' }, ['/dev/sdb']],
    [{ by_path: '<in> pci-0000:00:04.0' }, ['/dev/nvme0n1']],
    [{ size: 4 }, ['/dev/sda']],
    [{ size: '4' }, ['/dev/sda']],
    [{ size: '== 4' }, ['/dev/sda']],
    [{ size: '= 10' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ size: '>= 4' }, all],
    [{ size: '> 4' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ size: '<= 10' }, ['/dev/sda']],
    [{ size: '< 11' }, ['/dev/sda', '/dev/sdb']],
    [{ size: '!= 4' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ size: '<or> 4 <or> 100' }, ['/dev/sda', '/dev/nvme0n1']],
    [{ size: '<range-in> [ 4 10.5 )' }, ['/dev/sda']],
    [{ size: '<range-in> ( 4 10.5 ]' }, ['/dev/sdb']],
    [{ rotational: true }, ['/dev/sda']],
    [{ rotational: 'no' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ rotational: false, size: '>= 50' }, ['/dev/nvme0n1']],
    [{ serial: 's!= AB12' }, ['/dev/sdb']],
    [{ vendor: 'acme', size: '> 200' }, []],
    [{ name: 's>= /dev/sdb' }, ['/dev/sdb']],
    [{ name: 's<= /dev/nvme0n1' }, ['/dev/nvme0n1']],
    [{ name: 's< /dev/nvme0n1' }, []],
    [{ name: 's> /dev/sdb' }, []],
    [{ name: 's!=/dev/sda' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ name: '== /dev/sda' }, []],
    [{ vendor: 'ATA' }, ['/dev/sda']],
    [{ vendor: ' aTa  ' }, ['/dev/sda']],
    [{ vendor: '<in> t' }, ['/dev/sda']],
    [{ vendor: '<or>ata' }, ['/dev/sda']],
    [{ vendor: '<or> at <or>' }, []],
    [{ serial: '<or> x <or> ab12 <or> cd34' }, ['/dev/sda', '/dev/sdb']],
    [{ wwn_with_extension: '0x1' }, []],
    [{ wwn_vendor_extension: '0x1' }, []],
    // An operator without a value is a text.
    [{ name: 's==' }, []],
    [{ name: '<in>' }, []],
    [{ size: '= 4' }, all],
    [{ size: '>= 100' }, ['/dev/nvme0n1']],
    [{ size: '>= 101' }, []],
    [{ size: '> 100' }, []],
    [{ size: '<= 4' }, ['/dev/sda']],
    [{ size: '< 4' }, []],
    [{ size: '== 5' }, []],
    [{ size: '+4' }, ['/dev/sda']],
    [{ size: '<or>4' }, ['/dev/sda']],
    [{ size: '<or> 04 <or> +100' }, ['/dev/sda', '/dev/nvme0n1']],
    [{ size: '<or> 10 <or> 11' }, []],
    [{ size: '<range-in> [ 4 10.5 ]' }, ['/dev/sda', '/dev/sdb']],
    [{ size: '<range-in> ( 4 10.5 )' }, []],
    [{ size: '<range-in> ( 3.25  10.75 )' }, ['/dev/sda', '/dev/sdb']],
    [{ size: '<range-in>[   10   100   ]' }, ['/dev/sdb', '/dev/nvme0n1']],
    [{ rotational: 1 }, ['/dev/sda']],
  ])('selects by %j', (hints, names) => {
    expect(matchDisks(disks, parseHints(hints)).map((disk) => disk.name)).toEqual(names);
  });
  const one = (more: object): readonly InventoryDisk[] => [{ name: '/dev/sda', size: GiB, ...more }];
  it.each<[object, object, boolean]>([
    [{ serial: ' AB ' }, { serial: 'ab' }, true],
    [{ serial: 12 }, { serial: '12' }, true],
    [{ serial: '' }, { serial: 's!= x' }, false],
    [{ serial: '  ' }, { serial: 's!= x' }, false],
    [{ serial: null }, { serial: 's!= null' }, false],
    [{ serial: {} }, { serial: '<in> object' }, false],
    [{ serial: ['', 'X'] }, { serial: 'x' }, true],
    [{ serial: [] }, { serial: 's!= x' }, false],
    [{ serial: '0' }, { serial: '<or> x <or>' }, false],
    [{ model: '3' }, { model: '<range-in> [ 1 5 ]' }, true],
    [{ model: '3' }, { model: '<range-in> 1 5' }, false],
    [{ model: '3.0' }, { model: '== 3' }, true],
    [{ rotational: true }, { rotational: 'true' }, true],
    [{ rotational: false }, { rotational: 'true' }, false],
    [{ rotational: false }, { rotational: 'false' }, true],
    [{ rotational: null }, { rotational: 'false' }, false],
    [{ rotational: 'maybe' }, { rotational: 'false' }, false],
  ])('finds that the disk %j matches %j: %s', (disk, hints, expected) => {
    expect(matchDisks(one(disk), parseHints(hints))).toHaveLength(expected ? 1 : 0);
  });
  it.each([
    ...['1', 't', 'true', 'on', 'y', 'yes', 'YES', ' On '].map((word) => [word, true] as const),
    ...['0', 'f', 'false', 'off', 'n', 'no', 'False'].map((word) => [word, false] as const),
  ])('reads the hint rotational %j as %s', (word, rotational) => {
    expect(matchDisks([...one({ rotational }), ...one({ rotational: !rotational })], parseHints({ rotational: word }))).toEqual(
      one({ rotational }),
    );
  });
  it('compares each of several serial numbers', () => {
    const disk = { name: '/dev/dm-0', size: GiB, serial: ['X1', 'X2'] } as unknown as InventoryDisk;
    expect(matchDisks([disk], parseHints({ serial: 'x2' }))).toHaveLength(1);
    expect(matchDisks([disk], parseHints({ serial: 'x3' }))).toHaveLength(0);
  });
});

describe('parseHints', () => {
  const valid = 'size, model, wwn, serial, vendor, wwn_with_extension, wwn_vendor_extension, name, rotational, hctl, by_path';
  it.each<[unknown, string]>([
    [{ colour: 'red' }, `The hints "colour" are invalid. Valid hints are: "${valid}"`],
    [{ constructor: 'red' }, `The hints "constructor" are invalid. Valid hints are: "${valid}"`],
    [{ model: 5 }, 'Root device hint "model" is not a string value. Hint expression: 5'],
    [{ model: ' ' }, 'Root device hint "model" expression is empty'],
    [{ size: 'big' }, 'Root device hint "size" is not an integer value. Current value: big'],
    [{ size: '>= 1.5' }, 'Root device hint "size" is not an integer value. Current value: >= 1.5'],
    [{ size: 0 }, 'Root device hint "size" should be a positive integer. Current value: 0'],
    [{ size: '>= -3' }, 'Root device hint "size" should be a positive integer. Current value: >= -3'],
    [{ size: '<range-in> 4 5' }, 'Root device hint "size" is not a range. Current value: <range-in> 4 5'],
    [{ size: '<range-in> [ 4 5 ] x' }, 'Root device hint "size" is not a range. Current value: <range-in> [ 4 5 ] x'],
    [{ size: '<range-in> x [ 4 5 ]' }, 'Root device hint "size" is not a range. Current value: <range-in> x [ 4 5 ]'],
    [{ size: '<range-in> [4 5]' }, 'Root device hint "size" is not a range. Current value: <range-in> [4 5]'],
    [{ size: '<range-in> [ 4. 5 ]' }, 'Root device hint "size" is not a range. Current value: <range-in> [ 4. 5 ]'],
    [{ size: '<range-in> [ 4 5' }, 'Root device hint "size" is not a range. Current value: <range-in> [ 4 5'],
    [{ size: '4x' }, 'Root device hint "size" is not an integer value. Current value: 4x'],
    [{ size: 'x4' }, 'Root device hint "size" is not an integer value. Current value: x4'],
    [{ size: '>=' }, 'Root device hint "size" is not an integer value. Current value: >='],
    [{ size: '<or> 4 <or> x' }, 'Root device hint "size" is not an integer value. Current value: <or> 4 <or> x'],
    [{ size: '<or> 4 <or> 0' }, 'Root device hint "size" should be a positive integer. Current value: <or> 4 <or> 0'],
    [{ size: { gib: 4 } }, 'Root device hint "size" is not an integer value. Current value: {"gib":4}'],
    [{ name: true }, 'Root device hint "name" is not a string value. Hint expression: true'],
    [{ size: '' }, 'Root device hint "size" expression is empty'],
    [{ rotational: 2 }, 'Root device hint "rotational" is not a Boolean value. Current value: 2'],
    [{ b: 1, model: 'm', a: 1 }, `The hints "b, a" are invalid. Valid hints are: "${valid}"`],
    [5, 'Root device hints must be an object of hint names and values'],
    [{ rotational: 'maybe' }, 'Root device hint "rotational" is not a Boolean value. Current value: maybe'],
    ['/dev/sda', 'Root device hints must be an object of hint names and values'],
    [['/dev/sda'], 'Root device hints must be an object of hint names and values'],
  ])('rejects %j', (hints, message) => {
    expect(() => parseHints(hints)).toThrow(new Error(message));
  });
});
